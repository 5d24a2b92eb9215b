"""app/store/api_keys.py: the format of a key, and which keys are accepted."""

import hashlib
import zlib

import pytest

from app.store import api_keys as keys
from scripts.admin.keys import issue_key

ZEROS = "da_" + "0" * 30


def base62(number):
    digits = ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits


def test_a_new_key_has_the_form_of_the_contract():
    key = keys.make_key()
    assert (len(key), key[:3], key.isascii(), key[3:].isalnum()) == (39, "da_", True, True)
    assert keys.is_well_formed(key)


def test_every_base62_digit_is_drawn():
    drawn = {char for _ in range(200) for char in keys.make_key()[3:33]}
    assert drawn == set("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


def test_the_checksum_is_the_crc32_in_base62_padded_with_zeros():
    bodies = [f"da_{number:030}" for number in range(500)]
    assert all(keys.is_well_formed(body + base62(zlib.crc32(body.encode()))) for body in bodies)
    assert any(base62(zlib.crc32(body.encode())).startswith("0") for body in bodies)


def test_the_digest_is_the_sha_256():
    assert keys.digest("da_x") == hashlib.sha256(b"da_x").hexdigest()


KEY = ZEROS + base62(zlib.crc32(ZEROS.encode()))


@pytest.mark.parametrize(
    "key",
    ["", "da_", KEY[:-1], KEY + "0", KEY + "\n", " " + KEY, KEY.upper(), "DA_" + KEY[3:], "dx_" + KEY[3:], KEY[3:]]
    + [ZEROS + "000000", KEY.replace("da_0", "da_1"), KEY.replace("0", "０"), KEY.swapcase()]
    + [KEY[:10] + "-" + KEY[11:], KEY[:10] + "\0" + KEY[11:], KEY[:10] + "\udcff" + KEY[11:], "é" * 39, KEY * 2],
)
def test_what_is_not_well_formed_is_refused(key):
    assert keys.is_well_formed(KEY)
    assert not keys.is_well_formed(key)


@pytest.mark.parametrize("position", range(39))
def test_no_character_of_a_key_can_be_changed(position):
    other = "1" if KEY[position] == "0" else "0"
    assert not keys.is_well_formed(KEY[:position] + other + KEY[position + 1 :])


def test_a_malformed_key_is_refused_without_a_database_query():
    assert keys.get_key(None, KEY[:-1] + "!") is None


def test_a_key_that_was_never_issued_is_refused(store):
    assert keys.get_key(store, KEY) is None


def test_an_issued_key_has_its_fleet(store):
    key = issue_key(store, "f1")
    stored = store.keys.find_one()
    assert keys.get_key(store, key) == keys.ApiKey(stored["key_id"], "f1")


def test_a_revoked_key_is_refused(store):
    key = issue_key(store, "f1")
    store.keys.update_one({}, {"$set": {"revoked_at": 1}})
    assert keys.get_key(store, key) is None


def test_a_key_is_refused_from_the_millisecond_of_its_expiry_on(store, clock):
    key = issue_key(store, "f1", expires_in_days=1)
    clock.shift(86_399.999)
    assert keys.get_key(store, key)
    clock.shift(0.001)
    assert keys.get_key(store, key) is None


@pytest.fixture
def live(store, clock):
    return keys.ApiKeyCache(store)


def find_key(live, key):
    return live.get_cached(key) or live.fetch(key)


def test_a_cached_key_that_is_revoked_is_refused_within_three_seconds(store, live, clock):
    key = issue_key(store, "f1")
    assert find_key(live, key)
    store.keys.update_one({}, {"$set": {"revoked_at": 1}})
    clock.shift(2.999)
    assert find_key(live, key)
    clock.shift(0.001)
    assert find_key(live, key) is None


@pytest.mark.parametrize("seconds", [-1, -86_400])
def test_a_clock_set_back_does_not_extend_the_cache_ttl(store, live, clock, seconds):
    key = issue_key(store, "f1")
    assert find_key(live, key)
    store.keys.update_one({}, {"$set": {"revoked_at": 1}})
    clock.shift(seconds)
    assert find_key(live, key) is None


def test_a_cached_key_is_refused_from_the_millisecond_of_its_expiry_on(store, live, clock):
    key = issue_key(store, "f1", expires_in_days=1)
    clock.shift(86_399)
    assert find_key(live, key)
    clock.shift(1)
    assert find_key(live, key) is None


def test_refused_keys_do_not_evict_a_cached_key(store, live, monkeypatch):
    monkeypatch.setattr(keys, "MAX_CACHED_KEYS", 2)
    revoked = issue_key(store, "f1")
    store.keys.update_one({}, {"$set": {"revoked_at": 1}})
    assert find_key(live, key := issue_key(store, "f1"))
    assert {find_key(live, refused) for refused in (revoked, KEY, "junk", "")} == {None}
    assert live.get_cached(key)


def test_a_key_issued_after_it_was_refused_is_accepted_at_once(store, live, monkeypatch):
    monkeypatch.setattr("scripts.admin.keys.make_key", lambda: KEY)
    assert find_key(live, KEY) is None
    issue_key(store, "f1")
    assert find_key(live, KEY).fleet == "f1"


def test_the_number_of_cached_keys_is_bounded_and_no_plain_key_is_stored(store, live, monkeypatch):
    monkeypatch.setattr(keys, "MAX_CACHED_KEYS", 2)
    issued = [issue_key(store, "f1") for _ in range(5)]
    assert all(find_key(live, key) for key in issued)
    assert 1 <= sum(live.get_cached(key) is not None for key in issued) <= 2
    assert not any(key in str(vars(live)) for key in issued)
