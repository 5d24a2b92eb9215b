"""Tracking ids that many trips share: how many they are is kept, not counted."""

import pytest
from app.store.buckets import Counts
from scripts.verify import make_trackings

from scripts import sharing
from tests.factories import epoch_ms, make_trip

LISTED = 23
PATHS = [f"/trip/tracking_id/crowd?page={page}" for page in (1, 2, 3, 4, 5, 6, 99)]


def crowd():
    """Return 27 trips of three drivers on six dates that share a tracking id; all but four are listed by now."""
    times = [(day, hour) for day in (1, 2, 9, 16, 17) for hour in range(8, 13)] + [(18, 6), (18, 9)]
    trips = [
        make_trip(f"2026-03-{day:02}T{hour:02}:00", f"d{n % 3}", trip_id=f"t{n}", tracking_id="crowd")
        for n, (day, hour) in enumerate(times)
    ]
    for n in (3, 7, 24):
        trips[n]["trip_end_time"] = epoch_ms("2026-03-18T08:30")
    return trips


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    """Keep count from a fourth trip on."""
    monkeypatch.setattr(sharing, "MANY", 3)


def kept(db):
    """Return the tracking ids that are kept count of, and whether they are marked."""
    return {doc["tracking_id"]: "stale" in doc for doc in db.served_trackings.find({})}


def is_right(db):
    """Return whether what is kept is what would be made anew."""
    stored = {doc["tracking_id"]: doc for doc in db.served_trackings.find({"fleet": "f1"}, {"_id": 0})}
    return stored == {doc["tracking_id"]: doc for doc in make_trackings(db, "f1")}


@pytest.mark.parametrize("mask", ["*", "count,next_page,trips{trip_id}", "count"])
def test_pages_are_the_same_whether_trips_are_counted_or_not(service, load, db, mask):
    load(*crowd())
    answers = [service.get(path, headers={"X-Fields": mask}).json for path in PATHS]
    assert kept(db) == {"crowd": False}
    assert {answer["count"] for answer in answers} == {LISTED}
    db.served_trackings.delete_many({})
    assert [service.get(path, headers={"X-Fields": mask}).json for path in PATHS] == answers


def test_all_pages_together_have_every_listed_trip_in_order(service, load):
    load(*crowd())
    found = [trip for path in PATHS for trip in service.get(path).json["trips"]]
    assert len({trip["trip_id"] for trip in found}) == len(found) == LISTED
    assert found == sorted(found, key=lambda trip: (trip["trip_start_time"], trip["trip_id"]))


def test_few_trips_are_skipped_however_many_a_date_has(load, db):
    load(*crowd())
    (document,) = db.served_trackings.find({})
    assert {Counts(document["dates"]).seek(skip)[1] for skip in range(27)} == {0, 1, 2}


def test_what_is_marked_is_counted(service, load, db):
    load(*crowd())
    db.served_trackings.update_many({}, {"$set": {"stale": True, "dates.counts": b"", "dates.keys": b""}})
    assert [service.get(path).json["count"] for path in PATHS] == [LISTED] * len(PATHS)


def test_few_trips_are_not_kept_count_of(load, db):
    load(*crowd()[:3])
    assert kept(db) == {}
    load(*crowd()[3:4])
    assert kept(db) == {"crowd": False}


def test_trips_that_come_later_are_counted_in(service, load, db):
    load(*crowd()[:8])
    load(*crowd()[8:])
    assert is_right(db)
    assert service.get(PATHS[1]).json["count"] == LISTED


def test_trips_that_go_to_another_id_or_date_are_counted_there(load, db):
    load(*crowd())
    load(*({**trip, "tracking_id": "other"} for trip in crowd()[::2]))
    assert kept(db) == {"crowd": False, "other": False}
    assert is_right(db)
    load(*({**trip, "tracking_id": "crowd"} for trip in crowd()[:-2]))
    assert kept(db) == {"crowd": False}
    assert is_right(db)


def test_the_same_id_in_another_fleet_is_another(service, load, db):
    load(*crowd())
    load(*crowd()[:4], fleet="f2")
    assert [service.get(PATHS[0], fleet=fleet).json["count"] for fleet in ("f1", "f2")] == [LISTED, 3]
    assert is_right(db)


def test_trips_without_an_id_share_none(load, db):
    load(*({**trip, "tracking_id": None} for trip in crowd()))
    assert kept(db) == {}
