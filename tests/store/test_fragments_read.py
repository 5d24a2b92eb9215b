"""What a request reads: the commands that it sends to the server, whole and with a field mask."""

import pytest
from pymongo import MongoClient

from app.store import Store
from scripts.mongodb.connection import prepare_collections
from tests.command_recorder import Recorder
from tests.factories import make_driver, make_event, make_trip
from tests.store_contents import DATA, load

DRIVERS = "/drivers"
TRIPS = "/driver/d1/trips?start_date=2026-03-01"
TRIP = "/trip/trip_id/t10"
AGGREGATES = {
    "daily": "/driver-aggregate/daily?start_date=2026-03-10&driver_id=d1&driver_id=d2",
    "weekly": "/driver-aggregate/weekly?start_date=2026-03-09&driver_id=d1&driver_id=d2",
    "monthly": "/driver-aggregate/monthly?start_date=2026-03-01&driver_id=d1&driver_id=d2",
}
SCORE = "/driver/d1/score?start_date=2026-02-27&end_date=2026-03-14"
RANKING = "/ranking?period=week&start_date=2026-03-09"
PATHS = [DRIVERS, TRIPS, TRIP, *AGGREGATES.values(), SCORE, RANKING]
BLOCKS = {"offset", "version", "driver_count", "drivers"}
CALENDAR = {"calendar"}
PERIODS = {"period", "driver_id", "version"}
FRAGMENTS = {
    "driving_summary",
    "breakdown",
    "drivers",
    "json",
    "trips",
    "trip_ends",
    "summary",
    "focus_area",
    "trail_path",
    "events",
    "totals",
}
PARTS = {"version", "summary", "focus_area", "trail_path", "events"}
PERIOD = {"daily": "day", "weekly": "week", "monthly": "month"}
WEEK_FRAGMENTS = {"json", "driving_summary", "breakdown"}
SUMMARIES = {"daily": {"json"}, "weekly": WEEK_FRAGMENTS, "monthly": WEEK_FRAGMENTS}
COUNTS = ("driver_periods", None)
ROWS, PROFILES = {"driver_id", "version", "driving_summary"}, {"driver_id", "version", "json"}


@pytest.fixture(scope="module")
def recorder():
    """The commands sent to the server."""
    return Recorder()


@pytest.fixture(scope="module")
def db(mongod_uri, recorder):
    """A database with six trips of a driver, and a driver without any, which tests only read."""
    with MongoClient(mongod_uri, event_listeners=[recorder]) as client:
        prepare_collections(Store.of(client["fragments"]))
        trips = [
            make_trip(f"2026-03-{day}T08:00", trip_id=f"t{day}", tracking_id="k", events=[make_event(1)])
            for day in range(10, 16)
        ]
        load(client["fragments"], *trips, drivers=[make_driver("d1"), make_driver("d2")])
        yield client["fragments"]
        client.drop_database("fragments")


@pytest.fixture
def read(service, recorder):
    """Return what a request reads of the data, in order: `read(path, mask)`, as pairs of a collection and its fields.

    Of a collection whose documents are counted, the fields are None.
    """

    def read(path, mask=None, **headers):
        recorder.commands.clear()
        response = service.get(path, headers=headers if mask is None else {"X-Fields": mask, **headers})
        assert response.status_code == (304 if headers else 200), response.text
        result = [(next(iter(command.values())), command) for command in recorder.reads]
        return [(name, fields_of(command)) for name, command in result if name in DATA]

    return read


def fields_of(command):
    """Return the fields that a `find` returns."""
    projection = command.get("projection")
    return projection and {name for name, included in projection.items() if included}


WHOLE = pytest.mark.parametrize("mask", [None, "", " ", "*", "{*}"])


@WHOLE
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (DRIVERS, [("fleet_drivers", BLOCKS)]),
        (f"{TRIPS}&limit=2", [("driver_periods", CALENDAR), ("driver_periods", {"start_date", "trips"})]),
        (TRIP, [("trip_details", PARTS)]),
        *((path, [("driver_periods", PERIODS | SUMMARIES[kind])]) for kind, path in AGGREGATES.items()),
        (RANKING, [COUNTS, ("driver_periods", ROWS), ("driver_periods", PROFILES)]),
    ],
)
def test_a_whole_response_is_read_as_rendered_json(read, mask, path, expected):
    assert read(path, mask) == expected


@pytest.mark.parametrize("mask", [None, "count,trips{trip_id,events},drivers{alias},data{driver_info,driving_summary}"])
@pytest.mark.parametrize("path", PATHS)
def test_of_a_response_that_the_client_has_only_versions_are_read(service, read, path, mask):
    tag = service.get(path, headers={} if mask is None else {"X-Fields": mask}).headers["ETag"]
    result = read(path, mask, **{"If-None-Match": tag})
    assert result
    assert not [fields for _, fields in result if FRAGMENTS & (fields or set())]


MONTHS = {"version", "calendar"}


def test_an_explanation_reads_the_profile_and_calendars_then_the_days(read, recorder):
    assert read(SCORE) == [("driver_periods", {*MONTHS, "json"}), ("driver_periods", None)]
    assert recorder.reads[-2]["filter"]["start_date"] == {"$in": ["", "2026-02-01", "2026-03-01"]}
    match, _, facets = recorder.reads[-1]["pipeline"]
    assert match["$match"]["start_date"] == {"$gte": "2026-03-09", "$lte": "2026-03-14"}
    assert list(facets["$facet"]) == ["total", "series"]


@pytest.mark.parametrize("mask", ["{driver_info}", "driver_info{alias}", "{}", "start_date,end_date", "nope"])
def test_no_days_are_read_for_an_explanation_if_the_mask_selects_no_figures(read, recorder, mask):
    assert read(SCORE, mask) == [("driver_periods", {*MONTHS, *(["json"] if "driver" in mask else [])})]
    assert recorder.reads[-1]["filter"]["start_date"] == {"$in": [""]}


@pytest.mark.parametrize(("mask", "part"), [("{total{fm_score}}", "total"), ("series{start_date},end_date", "series")])
def test_only_what_a_mask_selects_of_an_explanation_is_added_up(read, recorder, mask, part):
    assert read(SCORE, mask) == [("driver_periods", MONTHS), ("driver_periods", None)]
    assert list(recorder.reads[-1]["pipeline"][-1]["$facet"]) == [part]


def test_no_days_are_added_up_for_an_explanation_that_the_client_has(service, read):
    etag = service.get(SCORE).headers["ETag"]
    assert read(SCORE, **{"If-None-Match": etag}) == [("driver_periods", MONTHS)]


def test_no_days_are_added_up_if_the_driver_did_not_drive(read):
    assert read("/driver/d2/score?start_date=2026-03-09") == [("driver_periods", {*MONTHS, "json"})]


def test_a_key_is_looked_up_once_in_three_seconds(service, read, recorder, clock):
    def lookups():
        recorder.commands.clear()
        service.get(TRIPS)
        return [command for command in recorder.reads if command.get("find") == "keys"]

    read(TRIPS)
    assert lookups() == []
    clock.shift(3)
    assert len(lookups()) == 1


@pytest.mark.parametrize(
    ("mask", "fragments"),
    [
        ("{trips{trip_id,distance_miles}}", {"summary"}),
        ("trips{event_summary{hard_brake_count}}", {"summary"}),
        ("trips{focus_area}", {"focus_area"}),
        ("trips{trail_path{latitude}},count", {"trail_path"}),
        ("trips{events{event_type},trip_id}", {"events", "summary"}),
        ("trips{nope}", set()),
    ],
)
@pytest.mark.parametrize("path", [TRIP, "/trip/tracking_id/k?page=2"])
def test_of_a_trip_only_the_fragments_that_a_mask_names_are_read(read, path, mask, fragments):
    assert read(path, mask) == [("trip_details", {"version", *fragments})]


@pytest.mark.parametrize("mask", ["{}", "count", "count,limit,next_page", "next_page", "nope", "{nope{x},COUNT}"])
def test_no_list_is_read_where_a_mask_leaves_it_out(read, recorder, mask):
    assert read(TRIPS, mask) == [("driver_periods", CALENDAR)]
    assert read(TRIP, mask) == [("trip_details", None)]
    assert read(RANKING, mask) == [COUNTS]
    assert read(DRIVERS, mask) == [("fleet_drivers", BLOCKS)]
    assert recorder.reads[-1]["filter"]["$or"] == [{"offset": -1}]


@pytest.mark.parametrize(
    ("mask", "fragments"),
    [
        ("fm_score,focus_area{is_hard_brake}", {"driving_summary"}),
        ("end_date", {"breakdown"}),
        ("daily_summary_breakdown{date},trip_count", {"driving_summary", "breakdown"}),
        ("nope", set()),
    ],
)
def test_of_a_week_only_the_fragments_that_a_mask_names_are_read(read, mask, fragments):
    path = AGGREGATES["weekly"]
    assert read(path, f"data{{driving_summary{{{mask}}}}}") == [("driver_periods", PERIODS | fragments)]


def test_of_a_ranking_only_what_a_mask_names_is_read(read):
    rows, profiles = ("driver_periods", ROWS), ("driver_periods", PROFILES)
    versions = ("driver_periods", {"driver_id", "version"})
    assert read(RANKING, "drivers{driving_summary{fm_score}}") == [COUNTS, rows]
    assert read(RANKING, "drivers{driver_info{alias}}") == [COUNTS, versions, profiles]
    assert read(RANKING, "drivers{rank}") == read(RANKING, "drivers{nope}") == [COUNTS, versions]


@pytest.mark.parametrize("mask", [None, "*,nope", "drivers"])
def test_a_page_of_a_ranking_past_the_end_is_not_looked_for(read, mask):
    assert read(f"{RANKING}&page=9", mask) == [COUNTS]


@pytest.mark.parametrize("mask", [None, "*,nope", "trips"])
def test_a_page_past_the_end_is_not_looked_for(read, mask):
    assert read(f"{TRIPS}&page=9", mask) == [("driver_periods", CALENDAR)]


def test_of_a_driver_s_trips_only_the_days_of_the_page_are_read(read, recorder):
    read(f"{TRIPS}&page=2&limit=2")
    assert recorder.reads[-1]["filter"]["start_date"] == {"$gte": "2026-03-12", "$lte": "2026-03-13"}


def test_ends_of_trips_are_read_only_of_days_on_which_some_are_not_visible(read, recorder, clock):
    clock.move_to("2026-03-15T09:00:00Z")
    ends, trips = {"start_date", "trip_ends"}, {"start_date", "trips"}
    assert [fields for _, fields in read(TRIPS)] == [CALENDAR, ends, trips]
    assert recorder.reads[-2]["filter"]["start_date"] == {"$in": ["2026-03-15"]}


def test_trips_that_share_an_id_are_counted_only_where_a_page_is_full_or_empty(read):
    assert [fields for _, fields in read("/trip/tracking_id/k")] == [PARTS, None]
    assert [fields for _, fields in read("/trip/tracking_id/k?page=2")] == [PARTS]
    assert [fields for _, fields in read("/trip/tracking_id/k?page=3")] == [PARTS, None]
    assert [fields for _, fields in read("/trip/tracking_id/nobody")] == [PARTS]


def periods(recorder):
    """Return the periods of the last read."""
    return recorder.reads[-1]["filter"]["period"]["$in"]


@pytest.mark.parametrize("kind", AGGREGATES)
def test_drivers_and_summaries_are_read_at_once(read, recorder, kind):
    read(AGGREGATES[kind])
    assert periods(recorder) == ["profile", PERIOD[kind]]


@pytest.mark.parametrize("mask", ["data{driver_info}", "data{driver_info{alias}}", "data{driver_info{}}"])
@pytest.mark.parametrize("kind", AGGREGATES)
def test_no_summary_is_read_if_the_mask_selects_none(read, recorder, kind, mask):
    assert read(AGGREGATES[kind], mask) == [("driver_periods", {*PERIODS, "json"})]
    assert periods(recorder) == ["profile"]


@pytest.mark.parametrize("mask", ["{}", "data{nope}", "nope"])
@pytest.mark.parametrize("kind", AGGREGATES)
def test_only_versions_of_drivers_are_read_where_a_mask_names_nothing(read, recorder, kind, mask):
    assert read(AGGREGATES[kind], mask) == [("driver_periods", PERIODS)]
    assert periods(recorder) == ["profile"]


@pytest.mark.parametrize("path", PATHS)
def test_all_that_a_response_is_made_of_is_read_in_one_snapshot(read, recorder, path):
    read(path)
    commands = [command for command in recorder.reads if next(iter(command.values())) in DATA]
    concerns = {str(command.get("readConcern", {}).get("level")) for command in commands}
    times = {command["readConcern"].get("atClusterTime") for command in commands[1:]}
    assert (concerns, len(times) <= 1, None in times) == ({"snapshot"}, True, False)
