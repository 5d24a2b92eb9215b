"""The format of a key, and which keys are accepted: app/store/api_keys.py, and the cache in app/middleware/auth.py."""

import hashlib
import string
import zlib
from contextlib import nullcontext

import pytest

from app.middleware import auth
from app.store import api_keys as keys
from app.store.scope import Scope
from scripts.admin.keys import issue_key

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase


def with_checksum(body):
    number, digits = zlib.crc32(body.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = BASE62[digit] + digits
    return body + digits


KEY = with_checksum("da_" + "0" * 30)


def test_a_new_key_has_the_form_of_the_contract():
    made = [keys.make_key() for _ in range(200)]
    assert {(len(key), key[:3], with_checksum(key[:-6]) == key, keys.is_well_formed(key)) for key in made} == {
        (39, "da_", True, True)
    }
    assert {char for key in made for char in key[3:33]} == {*BASE62}


def test_a_checksum_is_padded_with_zeros():
    padded = [key for number in range(500) if (key := with_checksum(f"da_{number:030}"))[33] == "0"]
    assert padded
    assert all(map(keys.is_well_formed, padded))


@pytest.mark.parametrize(
    "key",
    ["", "da_", KEY[:-1], KEY + "0", KEY + "\n", " " + KEY, KEY.swapcase(), with_checksum("dx_" + KEY[3:33]), KEY[3:]]
    + [with_checksum("da_" + "０" * 30), with_checksum("da_" + "-" * 30), "é" * 39, KEY[:10] + "\udcff" + KEY[11:]]
    + [KEY[:position] + ("1" if KEY[position] == "0" else "0") + KEY[position + 1 :] for position in range(39)],
)
def test_what_is_not_well_formed_is_refused_without_a_database_query(key):
    assert keys.is_well_formed(KEY)
    assert not keys.is_well_formed(key)
    assert auth.ApiKeyCache(None, nullcontext).get(key) is None


@pytest.fixture
def live(store, clock):
    return auth.ApiKeyCache(store, nullcontext)


def revoke_all(store):
    store.keys.update_many({}, {"$set": {"revoked_at": 1}})


# A clock that is set back does not extend the TTL.
@pytest.mark.parametrize(("seconds", "accepted"), [(2.999, True), (3, False), (-1, False), (-86_400, False)])
def test_a_cached_key_that_is_revoked_is_refused_within_three_seconds(store, live, clock, seconds, accepted):
    key = issue_key(store, "f1")
    assert live.get(key)
    revoke_all(store)
    clock.shift(seconds)
    assert bool(live.get(key)) is accepted


def test_a_key_is_refused_from_the_millisecond_of_its_expiry_on_cached_or_not(store, live, clock):
    key = issue_key(store, "f1", expires_in_days=1)
    clock.shift(86_399.999)
    assert keys.get_key(store, key) == live.get(key) is not None
    clock.shift(0.001)
    assert keys.get_key(store, key) is None
    assert live.get(key) is None


def test_a_key_that_was_refused_is_accepted_once_it_is_issued(store, live, monkeypatch):
    assert live.get(KEY) is None
    monkeypatch.setattr("scripts.admin.keys.make_key", lambda: KEY)
    issue_key(store, "f2")
    assert live.get(KEY).scope == Scope("f2")


def test_the_number_of_cached_keys_is_bounded_and_no_plain_key_is_stored(store, live, monkeypatch):
    monkeypatch.setattr(auth, "MAX_CACHED_KEYS", 2)
    issued = [issue_key(store, "f1") for _ in range(5)]
    assert all(live.get(key) for key in issued)
    revoke_all(store)
    assert 1 <= sum(live.get(key) is not None for key in issued) <= 2
    assert not any(key in str(vars(live)) for key in issued)


def test_refused_keys_do_not_evict_a_cached_key_and_are_accepted_once_they_are_issued(store, live, monkeypatch):
    monkeypatch.setattr(auth, "MAX_CACHED_KEYS", 2)
    revoked = issue_key(store, "f1")
    revoke_all(store)
    assert live.get(key := issue_key(store, "f1"))
    assert {live.get(refused) for refused in (revoked, KEY, "junk", "")} == {None}
    revoke_all(store)
    assert live.get(key)
    monkeypatch.setattr("scripts.admin.keys.make_key", lambda: KEY)
    issue_key(store, "f2")
    assert live.get(KEY).scope == Scope("f2")


def test_an_issued_key_has_its_id_and_fleet_until_it_is_revoked(store, live):
    key = issue_key(store, "f1")
    stored = store.keys.find_one({"digest": hashlib.sha256(key.encode()).hexdigest()})
    assert live.get(key) == live.get(key) == keys.ApiKey(stored["key_id"], Scope("f1"))
    revoke_all(store)
    assert auth.ApiKeyCache(store, nullcontext).get(key) is None
