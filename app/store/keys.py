"""API keys: what they look like, and who they let in."""

import hashlib
import re
import secrets
import string
import time
import zlib
from typing import NamedTuple

from pymongo.database import Database

from app.store import Document

PREFIX = "da_"
ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
RANDOM_LENGTH, CHECKSUM_LENGTH = 30, 6
LIVE = "live"
FORM = re.compile(f"{PREFIX}[0-9A-Za-z]{{{RANDOM_LENGTH + CHECKSUM_LENGTH}}}")


class Key(NamedTuple):
    """A key that lets in: its id, which is no secret, and its fleet."""

    key_id: str
    fleet: str


def make_key() -> str:
    """Return a new key: `da_`, 30 random base62 characters (178 bits), and the CRC32 of all that in base62."""
    body = PREFIX + "".join(secrets.choice(ALPHABET) for _ in range(RANDOM_LENGTH))
    return body + _checksum(body)


def digest(key: str) -> str:
    """Return what the store holds of a key: its SHA-256. A key is random enough to need no salt or stretching."""
    return hashlib.sha256(key.encode()).hexdigest()


def is_well_formed(key: str) -> bool:
    """Return whether a key has the form and the checksum of one that was issued."""
    return bool(FORM.fullmatch(key)) and key.endswith(_checksum(key[:-CHECKSUM_LENGTH]))


def get_key(db: Database[Document], key: str) -> Key | None:
    """Return the Key where it was issued and is neither revoked nor expired. Index: (digest).

    One that is not well formed is refused without asking the database.
    """
    if not is_well_formed(key):
        return None
    stored = db["keys"].find_one({"digest": digest(key)})
    return Key(stored["key_id"], stored["fleet"]) if stored and state(stored) == LIVE else None


def state(stored: Document) -> str:
    """Return whether a stored key is live, revoked or expired by now."""
    if stored["revoked_at"] is not None:
        return "revoked"
    expires_at = stored["expires_at"]
    return "expired" if expires_at is not None and expires_at <= time.time() * 1000 else LIVE


def _checksum(body: str) -> str:
    number, digits = zlib.crc32(body.encode()), ""
    while number:
        number, digit = divmod(number, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits.rjust(CHECKSUM_LENGTH, ALPHABET[0])
