"""driver-analytics fleets: which fleets there are, and removing one with everything."""

import bson
import pytest

from app.store import Store
from schemas.report import ReportWindow
from scripts.ingest.resume_tokens import ResumeToken, name_cursor, save_resume_token
from scripts.lifecycle import fleets
from scripts.reports.build import build_report
from tests.commands.test_erase import REPORT
from tests.factories import make_driver, make_trip
from tests.following import Following
from tests.store_contents import everything, issue_key, load

ERASE = ("fleets", "erase", "--fleet", "acme")
TRIPS = [make_trip(f"2026-03-{day:02}T08:00", trip_id=f"t{day}") for day in (10, 11, 12)]


@pytest.fixture
def loaded(mongod, clock):
    """The fleets acme and other, each with a report and a key."""
    for fleet in ("acme", "other"):
        load(mongod, *TRIPS, drivers=[make_driver("idle", groups=["North"])], fleet=fleet)
        build_report(Store.of(mongod), fleet, ReportWindow(REPORT[-1]))
        issue_key(mongod, fleet)
        cursor = name_cursor(fleet, "https://api.example.com")
        save_resume_token(Store.of(mongod), cursor, ResumeToken(b"cursor", 1))
    return mongod


def names(db, fleet):
    """Return the collections that have the name of the fleet in any document."""
    text = fleet.encode()
    return {name for name in db.list_collection_names() if any(text in bson.encode(found) for found in db[name].find())}


def test_list_counts_drivers_trips_and_live_keys(loaded, command):
    issue_key(loaded, "of keys alone")
    loaded.keys.update_one({"fleet": "other"}, {"$set": {"revoked_at": 1}})
    assert command("fleets", "list").stdout == (
        "acme\t2\t3\t1\tUTC\tcounted\nof keys alone\t0\t0\t1\tUTC\tcounted\nother\t2\t3\t0\tUTC\tcounted\n"
    )


def test_erase_leaves_nothing_of_the_fleet_and_all_of_others(loaded, command):
    assert command(*ERASE, "--yes").exit_code == 0
    assert names(loaded, "acme") == set()
    assert command("fleets", "list").stdout == "other\t2\t3\t1\tUTC\tcounted\n"
    assert command("rollups", "verify").exit_code == 0


def test_erase_does_nothing_without_a_terminal_or_a_confirmation(loaded, command):
    before = everything(loaded)
    result = command(*ERASE)
    assert (result.exit_code, "--yes" in result.stderr) == (1, True)
    assert everything(loaded) == before


def test_an_erasure_that_was_killed_again_and_again_ends(loaded, command, kills):
    list(kills(fleets, lambda: command(*ERASE, "--yes"), 3, 3, 20))
    assert names(loaded, "acme") == set()


def test_a_follower_leaves_an_erased_fleet_alone(loaded, command):
    following = Following(loaded)
    following.catch_up()
    assert command(*ERASE, "--yes").exit_code == 0
    following.catch_up()
    assert names(loaded, "acme") == set()


def test_a_fleet_of_the_same_name_begins_with_nothing(loaded, command, make_service):
    service = make_service()
    cursor = service.get("/changes", fleet="acme").json["cursor"]
    command(*ERASE, "--yes")
    load(loaded, TRIPS[0], fleet="acme")
    service.keys.clear()
    assert service.get("/drivers", fleet="acme").json["count"] == 1
    assert list(service.errors("/changes", fleet="acme", cursor=cursor)) == ["cursor"]


OF_A_FLEET = ["export --out out", "erase --driver d1", "prune --before 2026-03-01", "rollups rebuild", "rollups verify"]
OF_A_FLEET += ["reports list", "keys issue", "keys list", "fleets erase", "groups list", "groups delete --group a"]


@pytest.mark.parametrize("words", OF_A_FLEET)
def test_an_unknown_fleet_gets_the_names_of_those_that_exist(loaded, command, words):
    assert command(*words.split(), "--fleet", "acmee").stderr.endswith("The fleets are: acme, other.\n")
