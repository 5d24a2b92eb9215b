"""Read models of another format: of another version of the program, or half built from scratch."""

import click
import pytest

from app.store import READ_MODELS, OtherFormat, Store
from app.store.fleets import FORMAT
from scripts.materialize.rebuild_and_verify import discard_other_formats, rebuild_fleet
from scripts.mongodb.collections import INDEXES, prepare_collections
from tests.conftest import Service
from tests.factories import make_driver, make_trip
from tests.fleet_states import differences
from tests.store_contents import contents, load

WAY_OUT = "run 'driver-analytics rollups rebuild', or go back to the version that built them"
FORMATS = {"none": {"$unset": {"format": 1}}, "a later one": {"$set": {"format": FORMAT + 1}}}


@pytest.fixture
def loaded(mongod):
    """A fleet with a driver and trips, and another fleet."""
    load(mongod, make_trip(trip_id="t1"), make_trip(trip_id="t2"), drivers=[make_driver("idle")])
    load(mongod, make_trip(), fleet="f2")
    return mongod


@pytest.fixture(params=FORMATS.values(), ids=FORMATS)
def other_format(loaded, request):
    """The same, where one fleet has another format."""
    loaded.fleets.update_one({"_id": "f1"}, request.param)
    return loaded


READ_OR_WRITTEN = [
    "rollups verify",
    "import --fleet f2 --trips -",
    "follow",
    "prune --before 2026-03-01",
    "erase --fleet f1 --driver idle --yes",
    "export --fleet f1 --out out",
    "fleets list",
    "keys issue --fleet f1 --driver idle",
    "reports build --due",
    "demo",
]


@pytest.mark.parametrize("words", READ_OR_WRITTEN)
def test_every_command_that_reads_or_writes_them_ends_with_one_line(run_main, other_format, mongod_uri, words):
    before = contents(other_format)
    ended = run_main(*words.split(), MONGODB_URI=mongod_uri, MONGODB_DATABASE=other_format.name)
    (line,) = ended.stderr.splitlines()
    assert ended.status == 1
    assert line.startswith("Error: The read models of the fleet f1 are of another version: ")
    assert WAY_OUT in line
    assert contents(other_format) == before


def test_the_service_does_not_start(serve_error, other_format, mongod_uri):
    assert WAY_OUT in serve_error(MONGODB_URI=mongod_uri, MONGODB_DATABASE=other_format.name)


@pytest.mark.parametrize("path", ["/drivers", "/changes", "/fleet-aggregate?start_date=2026-03-09&period=week"])
def test_a_running_service_serves_nothing_of_the_fleet_and_logs_what_to_do(other_format, clock, log, path):
    service = Service(other_format)
    response = service.get(path)
    assert (response.status_code, response.json["error"]) == (503, "StoreUnavailable")
    assert response.json["message"].startswith("The data of this fleet has to be built again.")
    (line,) = [line for line in log() if line["level"] == "error"]
    assert (line["event"], WAY_OUT in line["reason"]) == ("read models of another format", True)
    assert service.get("/drivers", fleet="f2").status_code == 200


def test_a_running_command_writes_nothing_more(other_format):
    before = contents(other_format)
    with pytest.raises(OtherFormat):
        load(other_format, make_trip())
    assert contents(other_format) == before


def test_a_rebuild_makes_them_from_scratch_whatever_they_were(loaded, command):
    before = contents(loaded)
    for name in READ_MODELS:
        loaded[name].update_many({}, {"$unset": {"version": 1}, "$set": {"x": 1}}, bypass_document_validation=True)
    feed = loaded.fleets.find_one({"_id": "f1"})["feed_key"]
    loaded.fleets.update_many({}, FORMATS["none"], bypass_document_validation=True)
    assert command("rollups", "rebuild", "--since", "2026-03-11").exit_code == 0
    assert contents(loaded) == before
    assert command("rollups", "verify").exit_code == 0
    # A client of the change feed may have what is no longer in it.
    assert loaded.fleets.find_one({"_id": "f1"})["feed_key"] != feed


def test_a_rebuild_of_another_format_that_was_killed_is_not_taken_for_a_whole_one(other_format, command, run_main):
    next(rebuild_fleet(Store.of(other_format), "f1"))
    assert WAY_OUT in run_main("rollups", "verify").stderr
    assert command("rollups", "rebuild", "--fleet", "f1").exit_code == 0
    assert differences(other_format) == []


def test_a_rebuild_does_not_end_one_that_another_version_has_begun(loaded):
    rebuild = rebuild_fleet(Store.of(loaded), "f1")
    next(rebuild)
    loaded.fleets.update_one({"_id": "f1"}, FORMATS["none"])
    list(rebuild)
    assert "format" not in loaded.fleets.find_one({"_id": "f1"})


def test_a_rebuild_from_scratch_writes_nothing_into_another_one_that_began_later(other_format):
    rebuild = rebuild_fleet(Store.of(other_format), "f1")
    next(rebuild)
    discard_other_formats(Store.of(other_format))
    with pytest.raises(click.ClickException, match="Another command builds the read models of f1 from scratch"):
        list(rebuild)
    assert [other_format[name].count_documents({"fleet": "f1"}) for name in READ_MODELS] == [0] * len(READ_MODELS)
    assert "format" not in other_format.fleets.find_one({"_id": "f1"})


def test_a_rebuild_drops_indexes_of_another_version_and_keeps_yours(other_format, command):
    other_format.trips.create_index("driver_id", name="mine")
    for collection in (other_format.trips, other_format.reports, other_format.trip_details):
        collection.create_index("another_version", name="another", unique=True, sparse=True)
    other_format.driver_periods.drop_index("group_ranking_worst")
    other_format.driver_periods.create_index("groups", name="group_ranking_worst")
    other_format.trip_details.create_index("another_version_too")
    try:
        assert command("rollups", "rebuild").exit_code == 0
        stored = {name: {*other_format[name].index_information()} for name in INDEXES}
        assert stored.pop("trips") == {"_id_", "driver_trips", "mine"}
        # MongoDB does not list the index of a clustered collection.
        assert {name: names - {"_id_"} for name, names in stored.items()} == {
            name: {index.document["name"] for index in INDEXES[name]} for name in stored
        }
        assert "partialFilterExpression" in other_format.driver_periods.index_information()["group_ranking_worst"]
    finally:
        other_format.trips.drop_indexes()
        prepare_collections(Store.of(other_format))


def test_a_backup_reads_the_sources_of_any_format(other_format, command, tmp_path):
    assert command("backup", str(tmp_path / "saved")).exit_code == 0
