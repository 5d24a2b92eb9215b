"""docs/README.md shows the documents that the example of docs/data.md becomes."""

import re

import pytest
import time_machine

from tests.conftest import Service
from tests.service_process import ROOT

BLOCK = re.compile(r"^```(?:json|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DRIVER, TRIP, *_ = BLOCK.findall((ROOT / "docs" / "data.md").read_text())
SAMPLES = BLOCK.findall((ROOT / "docs" / "README.md").read_text())
WEEKLY = "/driver-aggregate/weekly?start_date=2026-11-16&driver_id=d-17"
MAX_TEXT, MAX_RESPONSE = 60, 300


def shorten(value, is_inner=False):
    """Return a value as the page shows it: long texts are cut, and inner objects and lists after their first value."""
    if isinstance(value, str):
        return repr(value if len(value) <= MAX_TEXT else f"{value[:MAX_TEXT]}…")
    if isinstance(value, dict):
        brackets, parts = "{}", [f"{name!r}: {shorten(inner, True)}" for name, inner in value.items()]
    elif isinstance(value, list):
        brackets, parts = "[]", [shorten(inner, True) for inner in value]
    else:
        return repr(value)
    parts = [parts[0], "…"] if is_inner and len(parts) > 1 else parts
    return ", ".join(parts).join(brackets)


@pytest.fixture
def samples(command, mongod, write_lines):
    """The documents, in the order of the page, and the response."""
    drivers, trips = (
        str(write_lines(f"{name}.ndjson", text.replace("\n", ""))) for name, text in (("d", DRIVER), ("t", TRIP))
    )
    assert command("import", "--fleet", "acme", "--drivers", drivers, "--trips", trips).exit_code == 0
    day = mongod.driver_periods.find_one({"period": "day"}, {"_id": 0})
    documents = [mongod.trips.find_one(), mongod.trip_details.find_one(), day, mongod.trip_changes.find_one()]
    with time_machine.travel("2026-11-18T12:00:00Z", tick=False):
        body = Service(mongod).get(WEEKLY, fleet="acme").text
    return [*map(shorten, documents), f"{body[:MAX_RESPONSE]}…"]


def test_the_page_shows_the_documents_of_the_database(samples):
    assert ["".join(sample.split()) for sample in SAMPLES] == ["".join(sample.split()) for sample in samples]
