"""scripts/ingest/known_fields.py: what it says about fields that another service sends without end."""

from schemas.driver import Driver
from scripts.ingest.known_fields import MAX_NAME_CHARS, MAX_NAMES, KnownFields


def test_of_many_unknown_fields_the_first_are_named_once():
    known, names = KnownFields(), [f"{number:03}{'x' * 200}" for number in range(MAX_NAMES + 5)]
    driver = {"driver_id": "d1", **dict.fromkeys(names)}
    known.keep(Driver(), driver)
    described = known.describe_new()
    assert driver == {"driver_id": "d1"}
    assert described.count("xxx, ") == MAX_NAMES - 1
    assert f": {names[0][:MAX_NAME_CHARS]}, " in described
    known.keep(Driver(), dict.fromkeys(names))
    assert known.describe_new() == ""
