"""driver-analytics rollups: what follows from the trips, made again from the trips."""

import collections
import itertools
import math
import sys

import bson
import pytest
from app.store.served import COUNT
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from app.store import pipelines
from schemas.summary import DailySummary
from schemas.trip import ImportedTrip
from scripts import imports, sharing
from tests.factories import epoch_ms, make_driver, make_event_summary, make_trip

DAY_MS = 86_400_000
COLLECTIONS = ("drivers", "trips", "daily_summaries", "served_spans", "served_drivers", "served_trackings", "writers")
AMOUNTS = ("distance_miles", "duration_seconds", "night_driving_seconds", "highway_miles")
COUNTS = ("phone_use_count", "rapid_acceleration_count", "hard_brake_count", "overspeeding_count")
TIMES = ("phone_use_time_seconds", "overspeeding_time_seconds")
# Of a score of which the rounding takes a sum that is this close to its edge, either outcome is right.
EDGE = 1e-9


@pytest.fixture
def loaded(command, mongod, write_lines, monkeypatch):
    """Two fleets with trips on three days, three of which share a tracking id; f1 also has a driver without any."""
    monkeypatch.setattr(sharing, "MANY", 2)
    trips = [
        make_trip(
            f"2026-03-{day}T{hour}:00",
            f"d{hour}",
            trip_id=f"{day} {hour}",
            tracking_id=f"k{day + hour}",
            distance_miles=hour / 3,
        )
        for day in (10, 11, 12)
        for hour in (13, 14, 15)
    ]
    drivers = [make_driver("idle"), make_driver("d13", first_travel_date="2026-01-01")]
    words = ["--drivers", str(write_lines("drivers.ndjson", *drivers))]
    words += ["--trips", str(write_lines("trips.ndjson", *trips))]
    for fleet in ("f1", "f2"):
        assert command("import", "--fleet", fleet, *words).exit_code == 0
    return stored(mongod)


@pytest.fixture
def rebuild(command):
    """Rebuild, and return what was said."""

    def rebuild(*options):
        result = command("rollups", "rebuild", *options)
        assert result.exit_code == 0, result.output
        return result.stdout

    return rebuild


def stored(db):
    """Return what lies in the store, as bytes but for the order in which a document's own fields lie."""
    return {
        name: sorted(bson.encode(dict(sorted(document.items()))) for document in db[name].find({}, {"_id": 0}))
        for name in COLLECTIONS
    }


def dates(db, fleet):
    return sorted({doc["day"]["date"] for doc in db.daily_summaries.find({"fleet": fleet})})


def test_a_rebuild_restores_summaries_that_were_lost(loaded, rebuild, mongod):
    mongod.daily_summaries.delete_many({})
    assert rebuild() == "f1: 9 days rebuilt\nf2: 9 days rebuilt\n"
    assert stored(mongod) == loaded


def test_a_rebuild_of_what_is_right_changes_nothing(loaded, rebuild, mongod):
    rebuild()
    assert stored(mongod) == loaded


def test_a_rebuild_restores_summaries_that_went_wrong(loaded, rebuild, mongod):
    mongod.daily_summaries.update_many({}, {"$set": {"summary.trip_count": 99, "summary.fm_grade": "poor"}})
    rebuild()
    assert stored(mongod) == loaded


def test_a_rebuild_clears_days_left_stale(loaded, rebuild, mongod):
    mongod.daily_summaries.update_many({"day.date": "2026-03-11"}, {"$set": {"stale": True}, "$unset": {"summary": ""}})
    rebuild()
    assert stored(mongod) == loaded


def test_a_rebuild_removes_summaries_of_days_without_trips(loaded, rebuild, mongod):
    mongod.trips.delete_many({"fleet": "f1", "day.date": "2026-03-11"})
    assert rebuild("--fleet", "f1") == "f1: 9 days rebuilt\n"
    assert dates(mongod, "f1") == ["2026-03-10", "2026-03-12"]
    assert dates(mongod, "f2") == ["2026-03-10", "2026-03-11", "2026-03-12"]


def test_a_rebuild_repairs_travel_dates(loaded, rebuild, mongod):
    wrong = {"first_travel_date": "2020-01-01", "last_travel_date": None}
    mongod.drivers.update_many({}, {"$set": wrong})
    rebuild()
    assert stored(mongod) == loaded


def test_a_rebuild_makes_drivers_that_were_lost(loaded, rebuild, mongod):
    mongod.drivers.delete_one({"fleet": "f1", "driver_id": "d14"})
    rebuild()
    assert stored(mongod) == loaded


def test_travel_dates_of_a_driver_whose_trips_are_gone_are_those_of_the_file(loaded, rebuild, mongod):
    mongod.trips.delete_many({"driver_id": {"$in": ["d13", "d14"]}})
    mongod.daily_summaries.delete_many({})
    rebuild()
    drivers = {doc["driver_id"]: doc for doc in mongod.drivers.find({"fleet": "f1"})}
    found = [(drivers[name]["first_travel_date"], drivers[name]["last_travel_date"]) for name in ("d13", "d14", "d15")]
    assert found == [("2026-01-01", None), (None, None), ("2026-03-10", "2026-03-12")]


def test_one_fleet_is_rebuilt_alone(loaded, rebuild, mongod):
    mongod.daily_summaries.delete_many({})
    assert rebuild("--fleet", "f2") == "f2: 9 days rebuilt\n"
    assert (dates(mongod, "f1"), len(dates(mongod, "f2"))) == ([], 3)


@pytest.mark.parametrize(
    ("since", "count"), [("2026-03-10", 9), ("2026-03-11", 6), ("2026-03-12", 3), ("2026-03-13", 0)]
)
def test_days_are_rebuilt_from_a_date_on(loaded, rebuild, mongod, since, count):
    mongod.daily_summaries.delete_many({})
    assert rebuild("--fleet", "f1", "--since", since) == f"f1: {count} days rebuilt\n"
    assert dates(mongod, "f1") == [date for date in ("2026-03-10", "2026-03-11", "2026-03-12") if date >= since]


def test_days_before_the_date_keep_their_summaries(loaded, rebuild, mongod):
    mongod.daily_summaries.delete_many({"day.date": "2026-03-12"})
    rebuild("--since", "2026-03-12")
    assert stored(mongod) == loaded


def test_an_empty_store_has_nothing_to_rebuild(mongod, rebuild):
    assert rebuild() == ""


@pytest.mark.parametrize("name", ["rebuild", "verify"])
def test_an_unknown_fleet_is_an_error_in_one_line(loaded, command, name):
    result = command("rollups", name, "--fleet", "nope")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "Error: Nothing is stored for the fleet nope.\n"


@pytest.mark.parametrize("since", ["yesterday", "20260310", "2026-02-30", "2026-03-10T00:00", "", "2026-13-01"])
def test_a_date_that_is_none_is_a_usage_error(command, since):
    result = command("rollups", "rebuild", "--since", since)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--since" in result.stderr


def test_many_days_are_rebuilt_in_chunks(loaded, rebuild, mongod, monkeypatch):
    monkeypatch.setattr("scripts.rollups.CHUNK", 2)
    mongod.daily_summaries.delete_many({})
    rebuild()
    assert stored(mongod) == loaded


# Compared with what they follow from.


@pytest.fixture
def verify(command):
    """Compare, and return the exit status and what was said."""

    def verify(*options):
        result = command("rollups", "verify", *options)
        return result.exit_code, result.stdout.splitlines()

    return verify


F1_RIGHT, F2_RIGHT = "f1: 4 drivers, 9 days: all right", "f2: 4 drivers, 9 days: all right"
TRIP, DAY = {"trip_id": "10 13"}, {"driver_id": "d13", "date": "2026-03-10"}
SPAN = {"driver_id": "d13", "span": "2026-03-10"}
WEEK = {"driver_id": "d13", "span": "P7D/2026-03-09"}
SUMMARY_DIFFERS = "driver d13, 2026-03-10: the daily summary differs from the trips"
WEEK_DIFFERS = "driver d13, what is served of P7D/2026-03-09: differs"
# What goes wrong: the collection, the documents, their update or None where they are lost, and what is said of it.
WRONG = {
    "a daily summary": (
        "daily_summaries",
        {"day": DAY},
        {"$set": {"summary.trip_count": 2}},
        SUMMARY_DIFFERS,
        WEEK_DIFFERS,
    ),
    "a daily summary that is missing": ("daily_summaries", {"day": DAY}, None, SUMMARY_DIFFERS, WEEK_DIFFERS),
    "a daily summary left stale": ("daily_summaries", {"day": DAY}, {"$set": {"stale": True}}, SUMMARY_DIFFERS),
    "a day's text": (
        "served_spans",
        SPAN,
        {"$set": {"text": b"{}"}},
        "driver d13, what is served of 2026-03-10: differs",
    ),
    "a day's trips": (
        "served_spans",
        SPAN,
        {"$set": {"rows": [b"{}"]}},
        "driver d13, what is served of 2026-03-10: differs",
    ),
    "a day that is missing": ("served_spans", SPAN, None, "driver d13, what is served of 2026-03-10: is missing"),
    "a week's text": ("served_spans", WEEK, {"$set": {"text": b"{}"}}, WEEK_DIFFERS),
    "a week that is missing": ("served_spans", WEEK, None, "driver d13, what is served of P7D/2026-03-09: is missing"),
    "a week that should be another": (
        "served_spans",
        WEEK,
        {"$set": {"span": "P7D/2026-03-16"}},
        "driver d13, what is served of P7D/2026-03-09: is missing",
        "driver d13, what is served of P7D/2026-03-16: should not be there",
    ),
    "a day of a driver who is not known": (
        "served_spans",
        SPAN,
        {"$set": {"driver_id": "nobody"}},
        "driver d13, what is served of 2026-03-10: is missing",
        "driver nobody, what is served: should not be there",
    ),
    "a driver's text": (
        "served_spans",
        {"driver_id": "idle"},
        {"$set": {"text": b"{}"}},
        "driver idle, what is served of the driver: differs",
    ),
    "a driver's buckets": (
        "served_spans",
        {"driver_id": "d13", "span": ""},
        {"$unset": {"buckets": ""}},
        "driver d13, what is served of the driver: differs",
    ),
    "a driver who is not served": (
        "served_spans",
        {"driver_id": "idle"},
        None,
        "driver idle, what is served of the driver: is missing",
    ),
    "a trip's text": ("trips", TRIP, {"$set": {"text": b"{}"}}, "trip 10 13: its text differs from the trip"),
    "a trip's version": ("trips", TRIP, {"$set": {"version": b"1"}}, "trip 10 13: its text differs from the trip"),
    "a trip without text": ("trips", TRIP, {"$unset": {"text": ""}}, "trip 10 13: its text differs from the trip"),
    "how many trips share a tracking id": (
        "served_trackings",
        {"tracking_id": "k25"},
        {"$set": {"dates.counts": b""}},
        "tracking id k25: the count differs",
    ),
    "a tracking id that is not counted": ("served_trackings", {}, None, "tracking id k25: the count differs"),
    "a tracking id that should not be counted": (
        "served_trackings",
        {},
        {"$set": {"tracking_id": "k24"}},
        "tracking id k24: the count differs",
        "tracking id k25: the count differs",
    ),
    "a page": ("served_drivers", {"number": 0}, {"$set": {"rows": [b"{}"]}}, "driver list: page 0 differs"),
    "a page that is missing": ("served_drivers", {"number": 0}, None, "driver list: page 0 differs"),
    "a page that should be another": (
        "served_drivers",
        {"number": 0},
        {"$set": {"number": 1}},
        "driver list: page 0 differs",
        "driver list: page 1 should not be there",
    ),
    "the count": ("served_drivers", {"number": COUNT}, {"$set": {"count": 3}}, "driver list: the count differs"),
    "the count that is missing": ("served_drivers", {"number": COUNT}, None, "driver list: the count differs"),
}


def test_what_was_imported_is_all_right(loaded, verify):
    assert verify() == (0, [F1_RIGHT, F2_RIGHT])


def test_one_fleet_is_compared_alone(loaded, verify, mongod):
    mongod.daily_summaries.delete_many({"fleet": "f1"})
    assert verify("--fleet", "f2") == (0, [F2_RIGHT])


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named_and_a_rebuild_mends_it(loaded, verify, rebuild, mongod, wrong):
    collection, documents, update, *told = wrong
    if update:
        mongod[collection].update_one({"fleet": "f1", **documents}, update, bypass_document_validation=True)
    else:
        mongod[collection].delete_one({"fleet": "f1", **documents})
    mends = f"{len(told)} differences; 'driver-analytics rollups rebuild' mends them"
    said = [*(f"f1: {line}" for line in told), f"f1: 4 drivers, 9 days: {mends}", F2_RIGHT]
    assert verify() == (1, said)
    rebuild()
    assert verify() == (0, [F1_RIGHT, F2_RIGHT])
    assert stored(mongod) == loaded


def test_travel_dates_that_are_wrong_are_named_and_a_rebuild_mends_them(loaded, verify, rebuild, mongod):
    mongod.drivers.update_one({"fleet": "f1", "driver_id": "d14"}, {"$set": {"last_travel_date": "2026-03-13"}})
    status, said = verify()
    assert (status, said[0]) == (1, "f1: driver d14: travel dates differ from those of the trips")
    rebuild()
    assert verify() == (0, [F1_RIGHT, F2_RIGHT])


def test_many_differences_are_summed_up(loaded, verify, mongod):
    mongod.served_spans.delete_many({"fleet": "f1"})
    mongod.trips.update_many({"fleet": "f1"}, {"$set": {"text": b"{}"}})
    status, said = verify("--fleet", "f1")
    assert (status, len(said)) == (1, 22)
    assert said[20].startswith("f1: and 5 more")
    assert said[21].startswith("f1: 4 drivers, 9 days: 25 differences; ")


def test_days_are_compared_in_chunks(loaded, verify, mongod, monkeypatch):
    monkeypatch.setattr("scripts.rollups.CHUNK", 2)
    assert verify() == (0, [F1_RIGHT, F2_RIGHT])
    mongod.served_spans.delete_one({"fleet": "f2", **WEEK})
    assert verify()[1][1] == "f2: driver d13, what is served of P7D/2026-03-09: is missing"


def test_an_empty_store_has_nothing_to_compare(mongod, verify):
    assert verify() == (0, [])


def test_pages_of_drivers_with_one_missing_are_made_anew(command, write_lines, verify, rebuild, mongod):
    drivers = write_lines("drivers.ndjson", *(make_driver(f"d{number:03}") for number in range(250)))
    command("import", "--fleet", "f1", "--drivers", str(drivers))
    mongod.served_drivers.delete_one({"number": 1})
    assert verify()[1][0] == "f1: driver list: page 1 differs"
    rebuild()
    assert verify() == (0, ["f1: 250 drivers, 0 days: all right"])


# Whatever the trips.


def score(totals):
    """Return the contract's score before it is rounded, and the shares of the caps, in its order."""
    miles, seconds, events = totals["distance_miles"], totals["duration_seconds"], totals["events_summary"]
    shares = [
        (events["phone_use_time_seconds"] / seconds if seconds else 0) / 0.15,
        (events["overspeeding_time_seconds"] / seconds if seconds else 0) / 0.20,
        (100 * events["hard_brake_count"] / miles if miles else 0) / 20,
        (100 * events["rapid_acceleration_count"] / miles if miles else 0) / 20,
    ]
    lost = zip((35, 30, 20, 15), shares, strict=True)
    return 100 - sum(weight * min(1, share) for weight, share in lost), shares


def total(trips):
    """Return what the summary of these trips of one day holds beside score and flags."""
    return {
        "trip_count": len(trips),
        **{name: math.fsum(trip[name] for trip in trips) for name in AMOUNTS},
        "events_summary": {
            **{name: sum(trip["event_summary"][name] for trip in trips) for name in COUNTS},
            **{name: math.fsum(trip["event_summary"][name] for trip in trips) for name in TIMES},
        },
    }


def assert_follows(summary, trips):
    """Check a stored summary against the contract, worked out in plain Python."""
    expected = total(trips)
    for name in ("trip_count", *AMOUNTS):
        assert summary[name] == pytest.approx(expected[name], rel=1e-12, abs=0)
    assert summary["events_summary"] == pytest.approx(expected["events_summary"], rel=1e-12, abs=0)
    assert {name: summary["events_summary"][name] for name in COUNTS} == {
        name: expected["events_summary"][name] for name in COUNTS
    }
    exact, shares = score(expected)
    near = {math.floor((exact + step) * 10 + 0.5) / 10 for step in (-EDGE, 0, EDGE)}
    assert summary["fm_score"] in near
    grades = [name for name, lowest in (("excellent", 85), ("good", 70), ("fair", 50)) if summary["fm_score"] >= lowest]
    assert summary["fm_grade"] == (grades or ["poor"])[0]
    flags = ("is_phone_use", "is_overspeeding", "is_hard_brake", "is_acceleration")
    assert list(summary["focus_area"]) == list(flags)
    for flag, share in zip(flags, shares, strict=True):
        assert summary["focus_area"][flag] is (share >= 0.5) or abs(share - 0.5) < EDGE


def test_the_contracts_own_arithmetic():
    events = {"phone_use_time_seconds": 54, "overspeeding_time_seconds": 72, "hard_brake_count": 1}
    trip = make_trip(duration_seconds=720, event_summary=make_event_summary(**events))
    assert score(total([trip])) == (pytest.approx(100 - 17.5 - 15 - 10), [pytest.approx(0.5)] * 3 + [0])


def test_totals_past_what_a_document_may_hold_stay_at_its_bounds(command, mongod, write_lines):
    most = make_event_summary(**dict.fromkeys(COUNTS, 2**63 - 1), **dict.fromkeys(TIMES, 1.7e308))
    trips = [make_trip(**dict.fromkeys(AMOUNTS, 1.7e308), event_summary=most) for _ in range(3)]
    result = command("import", "--fleet", "f1", "--trips", str(write_lines("trips.ndjson", *trips)))
    assert result.exit_code == 0
    summary = mongod.daily_summaries.find_one({})["summary"]
    assert [summary[name] for name in AMOUNTS] == [sys.float_info.max] * 4
    assert [summary["events_summary"][name] for name in COUNTS] == [2**63 - 1] * 4
    assert [summary["events_summary"][name] for name in TIMES] == [sys.float_info.max] * 2


amounts = st.one_of(
    st.integers(0, 5000), st.floats(0, 5000), st.sampled_from([0, 0.0, 0.1, 5e-324, 1e-9, 1e15, 2**53 + 1])
)
seconds = st.one_of(st.integers(0, 600), st.floats(0, 600), st.sampled_from([0, 90, 180, 135.0, 270]))
counts = st.one_of(st.integers(0, 5), st.sampled_from([2**53 + 1, 2**40]))
trips = st.builds(
    make_trip,
    trip_id=st.sampled_from([f"t{n}" for n in range(9)]),
    driver_id=st.sampled_from(["d1", "d2", "$d", "d.3", "é"]),
    trip_start_time=st.integers(0, 3 * DAY_MS).map(lambda ms: epoch_ms("2026-03-10T00:00") + ms)
    | st.sampled_from([epoch_ms("2026-03-11T00:00"), epoch_ms("2026-03-11T00:00") - 1]),
    trip_end_time=st.just(epoch_ms("2026-03-14T00:00")),
    **dict.fromkeys(AMOUNTS, amounts),
    event_summary=st.builds(make_event_summary, **dict.fromkeys(COUNTS, counts), **dict.fromkeys(TIMES, seconds)),
)


def same_day(*more):
    return [make_trip(trip_id=f"t{n}", **fields) for n, fields in enumerate(more)]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trips=st.lists(trips, min_size=1, max_size=25), cuts=st.lists(st.integers(0, 25), max_size=5))
@example(same_day({"distance_miles": 0, "duration_seconds": 0}, {"distance_miles": 0.0}), [])
@example(same_day(*({"distance_miles": miles} for miles in (0.1, 0.2, 0.3, 1e16, -0.0, 1))), [1, 3])
@example(
    [make_trip(trip_id="t1"), make_trip(trip_id="t1", driver_id="d2"), make_trip("2026-03-12T00:00", "d3")], [1, 2]
)
def test_summaries_equal_an_aggregation_over_the_trips_and_the_contract_in_plain_python(mongod, trips, cuts):
    for name in ("drivers", "trips", "daily_summaries"):
        mongod[name].delete_many({})
    edges = sorted({0, *cuts, len(trips)})
    for first, last in itertools.pairwise(edges):
        if batch := trips[first:last]:
            imports.load_trips(mongod, "f1", [ImportedTrip().load(trip) for trip in batch])
    by_day = collections.defaultdict(list)
    for trip in {trip["trip_id"]: trip for trip in trips}.values():
        by_day[trip["driver_id"], trip["trip_start_time"] // DAY_MS].append(trip)
    assert_stored(mongod, by_day)


def assert_stored(db, by_day):
    """Check that the store holds a summary for exactly these days, each the one that its trips ask for."""
    found = list(db.daily_summaries.find({}, {"_id": 0, "fleet": 0}))
    direct = list(db.trips.aggregate(pipelines.daily_summaries("f1", [doc["day"] for doc in found])))
    order = DailySummary().fields
    assert sorted(map(bson.encode, direct)) == sorted(
        bson.encode({"day": doc["day"], "summary": doc["summary"]}) for doc in found
    )
    assert len(found) == len(by_day)
    assert {tuple(sorted(doc)) for doc in found} == {("day", "summary")}
    for doc in found:
        day = doc["day"]["driver_id"], epoch_ms(doc["day"]["date"]) // DAY_MS
        assert list(doc["summary"]) == list(order)
        assert doc["summary"]["date"] == doc["day"]["date"]
        assert_follows(doc["summary"], by_day[day])


@pytest.mark.parametrize("since", ["2026-3-1", "٢٠٢٦-03-01", "20260301", "soon"])
def test_a_since_that_is_no_date_is_refused(command, since):
    assert command("rollups", "rebuild", "--since", since).exit_code == 2
