"""The shard keys of deploy/sharding.js: queries go to the shards of one fleet, and mostly to one shard."""

import itertools
import json
import re
from pathlib import Path

import pytest

from app.middleware.auth import REPORT_FILE_ENDPOINT
from app.store import READ_MODELS
from app.store.indexes import INDEXES
from scripts.admin.backup import FILE_INDEXES
from tests.factories import make_driver, make_trip

SCRIPT = (Path(__file__).parents[2] / "deploy" / "sharding.js").read_text()
SHARD_KEYS = json.loads(re.search(r"SHARD_KEYS = (\{.*?\n\});", SCRIPT, re.DOTALL)[1])
# Small, and rarely written or read; keys are looked up by digest, before the fleet is known.
UNSHARDED = {"keys", "reports", "report_files.files", "resume_tokens"}
DATE = "2026-03-16"
REPORT = f"/report?report_time={DATE}T00:00:00"
REQUESTS = {
    "drivers.list_drivers": ["/drivers", "/drivers?page=2&limit=2", "/drivers?page=99"],
    "trips.list_driver_trips": [
        "/driver/d1/trips?start_date=2026-03-01&limit=2",
        "/driver/no/trips?start_date=2026-03-01",
    ],
    "trips.list_trips": ["/trip/trip_id/t12", "/trip/tracking_id/k", "/trip/tracking_id/k?page=2", "/trip/trip_id/no"],
    "aggregates.get_daily_driver_aggregate": [
        "/driver-aggregate/daily?start_date=2026-03-12&driver_id=d1&driver_id=d2"
    ],
    "aggregates.get_weekly_driver_aggregate": [
        "/driver-aggregate/weekly?start_date=2026-03-09&driver_id=d1&driver_id=d2"
    ],
    "aggregates.get_monthly_driver_aggregate": [
        "/driver-aggregate/monthly?start_date=2026-03-01&driver_id=d1&driver_id=d2"
    ],
    "scores.get_driver_score": ["/driver/d1/score?start_date=2026-03-09", "/driver/no/score?start_date=2026-03-09"],
    "rankings.get_ranking": [
        "/ranking?period=week&start_date=2026-03-09",
        "/ranking?period=month&start_date=2026-03-01&min_distance_miles=1&order=best",
    ],
    "report.get_report_links": [REPORT],
    "changes.list_changes": ["/changes?limit=3", "/changes"],
}
# Without any data.
NO_DATA = {"health", "docs", "explorer", "discovery", "guides"}
MASKS = ("", "count,drivers{alias},trips{trip_id},data{driver_info{alias},driving_summary{fm_score}},total{fm_score}")


@pytest.fixture
def db(recorded_mongod):
    """An empty database of a real server; the commands sent to it are recorded."""
    return recorded_mongod


@pytest.fixture
def filters(db, service, load, recorder, command):
    """Return the queries of every endpoint on sharded collections, with a mask or none, as (collection, filter)."""
    trips = [make_trip(f"2026-03-{day}T08:00", trip_id=f"t{day}", tracking_id="k") for day in range(10, 16)]
    load(*trips, make_trip("2026-03-18T07:30", trip_id="new", tracking_id="k"), drivers=[make_driver("d2")])
    assert command("reports", "build", "--fleet", "f1", "--report-date", DATE).exit_code == 0

    def filters(mask=""):
        recorder.commands.clear()
        for path in itertools.chain(*REQUESTS.values()):
            response = service.get(path, headers={"X-Fields": mask})
            service.get(path, headers={"X-Fields": mask, "If-None-Match": response.headers.get("ETag", "")})
        link = service.get(REPORT).json["report_link"].partition("localhost/api/v1")[2]
        assert service.get(link, fleet=None, buffered=True).status_code == 200
        return [result for read in recorder.reads if read["$db"] == db.name for result in filters_of(read)]

    return filters


def filters_of(command):
    """Yield the filter of a command that reads a sharded collection."""
    name, collection = next(iter(command.items()))
    if collection in SHARD_KEYS:
        yield collection, command["filter"] if name == "find" else command["pipeline"][0]["$match"]


def is_pinned(value):
    """Return whether a filter names the values that a field may have."""
    return value is not None and (not isinstance(value, dict) or list(value) in (["$eq"], ["$in"]))


def spread(result):
    """Return the fields of queries that go to all shards of a fleet: those without the whole shard key."""
    return {
        (collection, *(field for field in match if field != "fleet" and is_pinned(match[field])))
        for collection, match in result
        if not all(is_pinned(match.get(field)) for field in SHARD_KEYS[collection])
    }


def test_every_endpoint_that_reads_data_is_requested(service):
    endpoints = {rule.endpoint for rule in service.app.url_map.iter_rules()}
    assert {name for name in endpoints if name.partition(".")[0] not in NO_DATA} == {*REQUESTS, REPORT_FILE_ENDPOINT}


def test_every_collection_has_a_shard_key_or_is_named_as_having_none():
    assert {*INDEXES, *FILE_INDEXES} == {*SHARD_KEYS} | UNSHARDED


def test_a_shard_key_begins_an_index_and_every_unique_one():
    for name, key in SHARD_KEYS.items():
        indexes = [index.document for index in INDEXES.get(name, ())]
        result = [(["_id"], False), *((list(index["key"]), index.get("unique", False)) for index in indexes)]
        result += (
            [([field for field, _ in FILE_INDEXES[name][0]], FILE_INDEXES[name][1])] if name in FILE_INDEXES else []
        )
        begun = [unique for fields, unique in result if fields[: len(key)] == [*key]]
        assert begun
        assert begun.count(True) == [unique for _, unique in result].count(True)


@pytest.mark.parametrize("mask", MASKS)
def test_every_read_is_within_its_fleet(filters, mask):
    result = filters(mask)
    assert {collection for collection, _ in result} == {*READ_MODELS, "fleets", "report_files.chunks"}
    for collection, match in result:
        first = next(iter(SHARD_KEYS[collection]))
        assert is_pinned(match.get(first)) or (collection, "tracking_id" in match) == ("trip_details", True)
        assert match.get("fleet") == "f1" or "f1" in str(match[first])


@pytest.mark.parametrize("mask", MASKS)
def test_only_trips_of_a_tracking_id_and_rankings_query_more_than_one_shard_of_a_fleet(filters, mask):
    rankings = {("driver_periods", "period", "start_date")}
    assert spread(filters(mask)) == {("trip_details", "tracking_id")} | rankings
