"""API keys: their format, and the read of a valid one."""

import hashlib
import re
import secrets
import string
import time
import zlib
from typing import NamedTuple
from zoneinfo import ZoneInfo

from marshmallow import EXCLUDE

from app.store import Document, InvalidDocument, Store
from app.store.fleets import check_format, get_time_zone
from app.store.scope import Scope
from schemas.periods import UTC
from schemas.stored import StoredKey

PREFIX = "da_"
ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
RANDOM_LENGTH, CHECKSUM_LENGTH = 30, 6
LIVE = "live"
SCHEMA = StoredKey(unknown=EXCLUDE)
KEY_PATTERN = re.compile(f"{PREFIX}[0-9A-Za-z]{{{RANDOM_LENGTH + CHECKSUM_LENGTH}}}")


class ApiKey(NamedTuple):
    """A valid key: its id, which is not secret, what it opens, the time at which it expires (epoch ms), if any.

    `zone` is the time zone of its fleet.
    """

    key_id: str
    scope: Scope
    expires_at: int | None = None
    zone: ZoneInfo = UTC


def make_key() -> str:
    """Return a new key: `da_`, 30 random base62 characters (178 bits), and the CRC32 of both in base62."""
    body = PREFIX + "".join(secrets.choice(ALPHABET) for _ in range(RANDOM_LENGTH))
    return body + _checksum(body)


def digest(key: str) -> str:
    """Return the SHA-256 of a key, which is all that the database stores. A random key needs no salt or stretching.

    The database looks a key up by its digest, so the time of a look-up reveals nothing about stored keys. The checksum
    is not secret: it follows from the other characters of the same key.
    """
    return hashlib.sha256(key.encode()).hexdigest()


def is_well_formed(key: str) -> bool:
    """Return whether a key has the format and the checksum of an issued key."""
    return bool(KEY_PATTERN.fullmatch(key)) and key.endswith(_checksum(key[:-CHECKSUM_LENGTH]))


def get_key(store: Store, key: str) -> ApiKey | None:
    """Return the ApiKey of a well-formed key that was issued and is neither revoked nor expired. Index: (digest).

    Raises InvalidDocument, and OtherFormat if the read models of the fleet cannot be read.
    """
    return _get_live_key(store, {"digest": digest(key)})


def get_key_by_id(store: Store, key_id: str) -> ApiKey | None:
    """Return the ApiKey with this id if it is neither revoked nor expired, as `get_key` does. Index: (key_id)."""
    return _get_live_key(store, {"key_id": key_id})


def _get_live_key(store: Store, match: Document) -> ApiKey | None:
    stored = store.keys.find_one(match)
    if stored is None:
        return None
    if SCHEMA.validate(stored):
        # Without the driver_id of a key of one driver: the log has none.
        raise InvalidDocument(store.keys, {name: stored[name] for name in ("_id", "key_id") if name in stored})
    if get_state(stored) != LIVE:
        return None
    fleet = stored["fleet"]
    check_format(store, fleet)
    zone = get_time_zone(store, fleet)
    return ApiKey(stored["key_id"], Scope(fleet, stored["driver_id"]), stored["expires_at"], zone)


def get_state(stored: Document) -> str:
    """Return the state of a stored key now: `live`, `revoked` or `expired`."""
    if stored["revoked_at"] is not None:
        return "revoked"
    return "expired" if has_expired(stored["expires_at"]) else LIVE


def has_expired(expires_at: int | None) -> bool:
    """Return whether a key that expires at this time (epoch ms) has expired. None is never."""
    return expires_at is not None and expires_at <= time.time() * 1000


def _checksum(body: str) -> str:
    number, digits = zlib.crc32(body.encode()), ""
    while number:
        number, digit = divmod(number, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits.rjust(CHECKSUM_LENGTH, ALPHABET[0])
