"""API keys: what they look like, and who they let in."""

import hashlib
import re
import secrets
import string
import time
import zlib
from typing import NamedTuple

from app.store import Document, InvalidDocument, Store
from schemas.introspection import fields_of, make_document_check
from schemas.stored import StoredKey

PREFIX = "da_"
ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
RANDOM_LENGTH, CHECKSUM_LENGTH = 30, 6
LIVE = "live"
is_valid_document = make_document_check(StoredKey, fields_of(StoredKey))
KEY_PATTERN = re.compile(f"{PREFIX}[0-9A-Za-z]{{{RANDOM_LENGTH + CHECKSUM_LENGTH}}}")


# Revocation is to take hold within 5 seconds.
CACHE_TTL_SECONDS = 3
# A key takes 500 bytes.
MAX_CACHED_KEYS = 10_000


class ApiKey(NamedTuple):
    """A key that lets in: its id, which is no secret, its fleet, and when it expires, in epoch ms, if it does."""

    key_id: str
    fleet: str
    expires_at: int | None = None


class ApiKeyCache:
    """The keys of a store that let in, each known for CACHE_TTL_SECONDS, to whichever thread wants it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cached: dict[str, tuple[float, ApiKey]] = {}

    def get_cached(self, key: str) -> ApiKey | None:
        """Return the ApiKey that the store lately told of: a revoked one may let in for CACHE_TTL_SECONDS yet."""
        if known := self._cached.get(digest(key)):
            asked_at, found = known
            # A clock set back makes nothing known for longer.
            if 0 <= time.time() - asked_at < CACHE_TTL_SECONDS and not _has_expired(found.expires_at):
                return found
        return None

    def fetch(self, key: str) -> ApiKey | None:
        """Return the ApiKey as get_key does."""
        now = time.time()
        if answer := get_key(self._store, key):
            # Only what lets in is kept, so that nobody without a key can fill this.
            if len(self._cached) >= MAX_CACHED_KEYS:
                self._cached.clear()
            self._cached[digest(key)] = now, answer
        return answer


def make_key() -> str:
    """Return a new key: `da_`, 30 random base62 characters (178 bits), and the CRC32 of all that in base62."""
    body = PREFIX + "".join(secrets.choice(ALPHABET) for _ in range(RANDOM_LENGTH))
    return body + _checksum(body)


def digest(key: str) -> str:
    """Return what the store holds of a key: its SHA-256. A key is random enough to need no salt or stretching.

    A key is looked up by it, and never compared itself: what time that takes tells of the digest alone. The checksum is
    no secret, since it follows from the rest of the key that was sent.
    """
    return hashlib.sha256(key.encode()).hexdigest()


def is_well_formed(key: str) -> bool:
    """Return whether a key has the form and the checksum of one that was issued."""
    return bool(KEY_PATTERN.fullmatch(key)) and key.endswith(_checksum(key[:-CHECKSUM_LENGTH]))


def get_key(store: Store, key: str) -> ApiKey | None:
    """Return the ApiKey where it was issued and is neither revoked nor expired. Index: (digest).

    One that is not well formed is refused without asking the database. Raises InvalidDocument.
    """
    if not is_well_formed(key):
        return None
    return _get_live_key(store, {"digest": digest(key)})


def get_key_by_id(store: Store, key_id: str) -> ApiKey | None:
    """Return the ApiKey where it was issued and is neither revoked nor expired. Index: (key_id)."""
    return _get_live_key(store, {"key_id": key_id})


def _get_live_key(store: Store, match: Document) -> ApiKey | None:
    stored = store.keys.find_one(match)
    if stored is None:
        return None
    if not is_valid_document(stored):
        raise InvalidDocument(store.keys, match)
    if get_state(stored) != LIVE:
        return None
    return ApiKey(stored["key_id"], stored["fleet"], stored["expires_at"])


def get_state(stored: Document) -> str:
    """Return whether a stored key is live, revoked or expired by now."""
    if stored["revoked_at"] is not None:
        return "revoked"
    return "expired" if _has_expired(stored["expires_at"]) else LIVE


def _has_expired(expires_at: int | None) -> bool:
    return expires_at is not None and expires_at <= time.time() * 1000


def _checksum(body: str) -> str:
    number, digits = zlib.crc32(body.encode()), ""
    while number:
        number, digit = divmod(number, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits.rjust(CHECKSUM_LENGTH, ALPHABET[0])
