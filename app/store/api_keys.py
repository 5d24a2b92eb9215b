"""API keys: their format, their check against the database, and a cache of valid keys."""

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
# A revoked key has to be refused within 5 seconds.
CACHE_TTL_SECONDS = 3
# An entry takes 500 bytes, so the cache takes at most 5 MB.
MAX_CACHED_KEYS = 10_000


class ApiKey(NamedTuple):
    """A valid key: its id, which is not secret, what it opens, the time at which it expires (epoch ms), if any.

    `zone` is the time zone of its fleet.
    """

    key_id: str
    scope: Scope
    expires_at: int | None = None
    zone: ZoneInfo = UTC


class ApiKeyCache:
    """A cache of the valid keys of a store, each for CACHE_TTL_SECONDS. All threads of a process share it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cached: dict[str, tuple[float, ApiKey]] = {}

    def get_cached(self, key: str) -> ApiKey | None:
        """Return the cached ApiKey of a key, or None. A revoked key stays cached for up to CACHE_TTL_SECONDS."""
        if entry := self._cached.get(digest(key)):
            fetched_at, api_key = entry
            # A clock that is set back does not extend the TTL: the age is then negative.
            if 0 <= time.time() - fetched_at < CACHE_TTL_SECONDS and not _has_expired(api_key.expires_at):
                return api_key
        return None

    def fetch(self, key: str) -> ApiKey | None:
        """Return what `get_key` returns, and cache a valid key."""
        now = time.time()
        if api_key := get_key(self._store, key):
            # Invalid keys are not cached, so a client without a key cannot fill the cache.
            if len(self._cached) >= MAX_CACHED_KEYS:
                self._cached.clear()
            self._cached[digest(key)] = now, api_key
        return api_key


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
    """Return the ApiKey of a key that was issued and is neither revoked nor expired. Index: (digest).

    Does not query the database for a key that is not well formed. Raises InvalidDocument, and OtherFormat if the read
    models of the fleet cannot be read.
    """
    if not is_well_formed(key):
        return None
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
    return "expired" if _has_expired(stored["expires_at"]) else LIVE


def _has_expired(expires_at: int | None) -> bool:
    return expires_at is not None and expires_at <= time.time() * 1000


def _checksum(body: str) -> str:
    number, digits = zlib.crc32(body.encode()), ""
    while number:
        number, digit = divmod(number, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits.rjust(CHECKSUM_LENGTH, ALPHABET[0])
