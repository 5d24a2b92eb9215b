"""What a request reads: the commands that it sends to the server, whole and with a field mask."""

import pytest
from pymongo import MongoClient
from scripts.derive import Day, mark_stale

from scripts import sharing
from tests.factories import epoch_ms, make_driver, make_event_summary, make_trip
from tests.store.test_plans import Recorder

TRIPS = "/driver/d1/trips?start_date=2026-03-01"
AGGREGATES = {
    "daily": "/driver-aggregate/daily?start_date=2026-03-10&driver_id=d1&driver_id=d2",
    "weekly": "/driver-aggregate/weekly?start_date=2026-03-09&driver_id=d1&driver_id=d2",
}
DATA = ("drivers", "trips", "daily_summaries", "served_spans", "served_drivers", "served_trackings")
DRIVERS, TRIPS_FOUND, _, SPANS, LIST, COUNTS = (("find", name) for name in DATA)
ID = {"_id": 0}


@pytest.fixture
def recorder():
    """The commands that read, as sent."""
    return Recorder()


@pytest.fixture
def db(mongod, mongod_uri, recorder):
    """An empty database of a real server; what is sent to it is recorded."""
    with MongoClient(mongod_uri, event_listeners=[recorder]) as client:
        yield client[mongod.name]


@pytest.fixture
def sent(service, load, recorder, monkeypatch):
    """Return the commands that a request sends to the data: `sent(path, mask)`."""
    monkeypatch.setattr(sharing, "MANY", 5)
    events = make_event_summary(hard_brake_count=2, phone_use_time_seconds=30)
    load(
        *(
            make_trip(f"2026-03-{day}T08:00", trip_id=f"t{day}", tracking_id="k", event_summary=events)
            for day in range(10, 16)
        ),
        drivers=[make_driver("d1"), make_driver("d2")],
    )

    def sent(path, mask, **headers):
        recorder.reads.clear()
        answer = service.get(path, headers=headers if mask is None else {"X-Fields": mask, **headers})
        assert answer.status_code == (304 if headers else 200), answer.text
        return [read for read in recorder.reads if target(read)[1] in DATA]

    return sent


def target(command):
    """Return what a command does and to which collection."""
    return next(iter(command.items()))


def targets(commands):
    return [target(command) for command in commands]


def stage(command, name):
    """Return the one stage of that name in the pipeline of a command."""
    (found,) = (stage[name] for stage in command["pipeline"] if name in stage)
    return found


WHOLE = pytest.mark.parametrize("mask", [None, "", " ", "*", "{*}"])


@WHOLE
@pytest.mark.parametrize(
    ("path", "commands"),
    [
        ("/drivers", [LIST]),
        (f"{TRIPS}&limit=2", [SPANS, SPANS]),
        ("/trip/trip_id/t10", [TRIPS_FOUND]),
        (AGGREGATES["daily"], [SPANS]),
        (AGGREGATES["weekly"], [SPANS]),
    ],
)
def test_a_whole_answer_is_read_as_text(sent, mask, path, commands):
    assert targets(sent(path, mask)) == commands


def test_a_whole_trip_is_read_without_its_documents(sent):
    (found,) = sent("/trip/trip_id/t10", None)
    assert found["projection"] == {**ID, "version": 1, "text": 1}


@pytest.mark.parametrize("mask", [None, "count,trips{trip_id},drivers{alias},data{driver_info}"])
@pytest.mark.parametrize("path", ["/drivers", TRIPS, "/trip/trip_id/t10", *AGGREGATES.values()])
def test_an_answer_that_the_client_holds_is_not_read(service, sent, path, mask):
    held = service.get(path, headers={} if mask is None else {"X-Fields": mask}).headers["ETag"]
    (read,) = sent(path, mask, **{"If-None-Match": held})
    assert not {"text", "rows"} & set(read["projection"])
    assert target(read) in (SPANS, LIST, TRIPS_FOUND)


def test_a_stale_week_is_added_up_in_full(db, sent):
    sent("/drivers", "{}")
    mark_stale(db, "f1", {Day("d1", "2026-03-10")})
    *_, stale, found = sent(AGGREGATES["weekly"], None)
    assert (target(stale), stale["projection"]) == (("find", "daily_summaries"), {**ID, "day": 1})
    assert stage(found, "$group")["_id"] == "$day.driver_id"


def test_a_key_is_asked_for_once_in_three_seconds(service, sent, recorder, clock):
    sent(TRIPS, "limit")
    sent(TRIPS, "limit")
    assert ("find", "keys") not in targets(recorder.reads)
    clock.shift(3)
    sent(TRIPS, "limit")
    assert targets(recorder.reads).count(("find", "keys")) == 1


def test_trips_are_found_with_exactly_the_fields_asked_for_and_not_counted(sent):
    known, found = sent(TRIPS, "{trips{trip_id,distance_miles}}")
    assert target(known) == SPANS
    assert target(found) == TRIPS_FOUND
    assert list(found["projection"].items()) == [("_id", 0), ("trip_id", 1), ("distance_miles", 1)]


def test_fields_below_are_projected_one_by_one(sent):
    _, found = sent(TRIPS, "trips{event_summary{hard_brake_count},trip_id}")
    assert found["projection"] == {**ID, "event_summary.hard_brake_count": 1, "trip_id": 1}


def test_a_trip_of_which_little_is_asked_is_found_with_no_more(sent):
    known, found = sent("/trip/trip_id/t10", "trips{trip_id}")
    assert (known["projection"], found["projection"]) == ({**ID, "version": 1}, {**ID, "trip_id": 1})


@pytest.mark.parametrize("mask", ["{}", "count", "count,limit,next_page", "next_page", "nope", "{nope{x},COUNT}"])
def test_records_are_not_found_where_nothing_of_them_is_asked(sent, mask):
    assert targets(sent(TRIPS, mask)) == [SPANS]
    assert targets(sent("/drivers", mask)) == [LIST]
    (trip,) = sent("/trip/trip_id/t10", mask)
    assert trip["projection"] == {**ID, "version": 1}


@pytest.mark.parametrize("mask", ["trips{nope}", "trips{event_summary{nope},nope}"])
def test_trips_of_which_nothing_is_asked_are_found_but_not_read(sent, mask):
    _, found = sent(TRIPS, mask)
    assert set(found["projection"]) <= {"_id", "_", "event_summary._"}


@pytest.mark.parametrize("mask", [None, "*,nope", "trips"])
def test_a_page_past_the_end_is_not_looked_for(sent, mask):
    assert targets(sent(f"{TRIPS}&page=9", mask)) == [SPANS]


def test_a_masked_page_is_sought_by_its_date_not_by_all_that_come_before(sent):
    _, found = sent(f"{TRIPS}&page=3&limit=2", "trips{trip_id}")
    assert found["filter"]["trip_start_time"] == {"$gte": epoch_ms("2026-03-14T00:00")}
    assert found.get("skip", 0) == 0


def test_trips_that_share_an_id_are_counted_where_a_page_is_full_and_sought_by_their_time(sent):
    assert targets(sent("/trip/tracking_id/k", None)) == [TRIPS_FOUND, COUNTS]
    known, found = sent("/trip/tracking_id/k?page=2", None)
    assert targets([known, found]) == [COUNTS, TRIPS_FOUND]
    assert (found["filter"]["trip_start_time"], found.get("skip", 0)) == ({"$gte": epoch_ms("2026-03-15T08:00")}, 0)
    assert targets(sent("/trip/tracking_id/nobody", None)) == [TRIPS_FOUND]


def test_drivers_are_found_with_exactly_the_fields_asked_for_and_not_counted(sent):
    known, found = sent("/drivers", "drivers{alias}")
    assert "rows" not in known["projection"]
    assert (targets([known, found]), found["projection"]) == ([LIST, DRIVERS], {**ID, "alias": 1})


@pytest.mark.parametrize(
    "mask", ["data{driver_info}", "data{driver_info{alias}}", "data{nope}", "data{driver_info{}}", "{}"]
)
@pytest.mark.parametrize("path", AGGREGATES.values(), ids=AGGREGATES)
def test_summaries_are_not_read_where_none_are_asked_for(sent, path, mask):
    assert targets(sent(path, mask)) == [SPANS, DRIVERS]


@pytest.mark.parametrize("path", AGGREGATES.values(), ids=AGGREGATES)
def test_of_a_driver_whose_summary_alone_is_asked_for_only_the_id_is_read(sent, path):
    known = sent(path, "data{driving_summary{trip_count}}")[1]
    assert (target(known), known["projection"]) == (DRIVERS, {**ID, "driver_id": 1})


def test_a_daily_summary_is_projected_to_what_is_asked_for(sent):
    *_, found, _ = sent(AGGREGATES["daily"], "data{driving_summary{fm_score,events_summary{hard_brake_count}}}")
    asked = {"summary.fm_score": 1, "summary.events_summary.hard_brake_count": 1}
    assert (target(found), found["projection"]) == (("find", "daily_summaries"), {**ID, "day": 1, "stale": 1, **asked})


def test_a_daily_summary_of_which_nothing_is_asked_is_not_read(sent):
    *_, found, _ = sent(AGGREGATES["daily"], "data{driving_summary{nope}}")
    assert found["projection"] == {**ID, "day": 1, "stale": 1, "summary._": 1}


def weekly(sent, fields):
    """Return the pipeline's command for these fields of a weekly summary."""
    *_, found, again = sent(AGGREGATES["weekly"], f"data{{driving_summary{{{fields}}}}}")
    assert target(again) == SPANS
    assert target(found) == ("aggregate", "daily_summaries")
    return found


@pytest.mark.parametrize("fields", ["fm_score", "trip_count,date", "events_summary,focus_area", "nope"])
def test_a_week_without_its_breakdown_collects_no_days(sent, fields):
    assert "$push" not in str(weekly(sent, fields))


def test_a_week_of_distances_adds_up_nothing_else_and_has_no_score(sent):
    found = weekly(sent, "distance_miles")
    assert set(stage(found, "$group")) == {"_id", "trip_count", "distance_miles"}
    assert "fm_score" not in str(found)
    assert "$set" not in str(found)


def test_a_week_of_one_kind_of_event_counts_only_that(sent):
    found = weekly(sent, "events_summary{hard_brake_count}")
    assert set(stage(found, "$group")) == {"_id", "trip_count", "hard_brake_count"}


def test_a_week_of_scores_adds_up_only_what_a_score_follows_from(sent):
    bases = {"distance_miles", "duration_seconds"}
    counts = {"phone_use_time_seconds", "overspeeding_time_seconds", "hard_brake_count", "rapid_acceleration_count"}
    for fields in ("fm_score", "fm_grade", "focus_area{is_phone_use}"):
        assert set(stage(weekly(sent, fields), "$group")) == {"_id", "trip_count", *bases, *counts}


def test_the_days_of_a_breakdown_are_collected_with_what_is_asked_of_them(sent):
    found = weekly(sent, "daily_summary_breakdown{date,focus_area{is_phone_use}}")
    assert set(stage(found, "$group")) == {"_id", "trip_count", "daily_summary_breakdown"}
    pushed = stage(found, "$group")["daily_summary_breakdown"]["$push"]
    assert pushed == {"date": "$summary.date", "focus_area": {"is_phone_use": "$summary.focus_area.is_phone_use"}}


SUMMARY_MASKS = [
    "*",
    "trip_count",
    "fm_score",
    "nope",
    "events_summary{overspeeding_count,hard_brake_count},distance_miles",
    "focus_area{is_hard_brake},fm_grade",
    "events_summary{nope},date",
    "end_date,daily_summary_breakdown{date,fm_score},highway_miles",
    "daily_summary_breakdown{events_summary{hard_brake_count},nope}",
    "daily_summary_breakdown{nope}",
]


@pytest.mark.parametrize("fields", SUMMARY_MASKS)
@pytest.mark.parametrize("path", AGGREGATES.values(), ids=AGGREGATES)
def test_a_masked_summary_of_a_stale_day_is_that_of_the_day_when_it_is_not(db, service, sent, path, fields):
    headers = {"X-Fields": f"data{{driver_info{{driver_id}},driving_summary{{{fields}}}}}"}
    before = service.get(path, headers=headers)
    assert before.status_code == 200
    mark_stale(db, "f1", {Day("d1", "2026-03-10"), Day("d1", "2026-03-12"), Day("d2", "2026-03-10")})
    assert service.get(path, headers=headers).text == before.text


def test_the_trips_of_a_stale_day_are_added_up_to_no_more_than_is_asked_for(db, service, sent, recorder):
    sent("/drivers", "{}")
    mark_stale(db, "f1", {Day("d1", "2026-03-10")})
    found = sent(AGGREGATES["daily"], "data{driving_summary{highway_miles}}")[-1]
    assert target(found) == ("aggregate", "trips")
    assert set(stage(found, "$group")) == {"_id", "trip_count", "highway_miles"}
