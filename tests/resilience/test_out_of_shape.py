"""Documents that the validators would have refused, put into the store past them."""

import contextlib

import pytest
from pymongo import MongoClient

from tests.resilience.fleet import FLEET, MONDAY
from tests.resilience.load import Ask, told
from tests.resilience.processes import DATABASE

BY_ID, BY_TRACKING = Ask("/trip/trip_id/t017"), Ask("/trip/tracking_id/k02")
MASKED = Ask("/trip/trip_id/t017", "{trips{event_summary{hard_brake_count}}}")
DRIVER = Ask(f"/driver-aggregate/daily?start_date={MONDAY}&driver_id=d17", "{data{driver_info{driver_id,email}}}")
DAY = Ask(f"/driver-aggregate/daily?start_date={MONDAY}&driver_id=d17", "{data{driving_summary{fm_score}}}")
OWN = [BY_ID, BY_TRACKING, MASKED, DRIVER, DAY]
TRIP, NAMED, SPAN = {"trip_id": "t017"}, {"driver_id": "d17"}, {"driver_id": "d03", "span": ""}
SUMMARY = {"day": {"driver_id": "d17", "date": str(MONDAY)}}

# A document, what is done to it, and the requests for it that cannot be answered, or only without it.
DAMAGES = [
    ("trips", TRIP, {"$unset": {"text": 1, "event_summary": 1}}, {BY_ID, BY_TRACKING, MASKED}),
    ("trips", TRIP, {"$unset": {"text": 1}, "$set": {"trail_path": "x"}}, {BY_ID, BY_TRACKING}),
    ("trips", TRIP, {"$unset": {"text": 1}, "$set": {"distance_miles": "ten"}}, {BY_ID, BY_TRACKING}),
    ("trips", TRIP, {"$set": {"event_summary": None}}, {MASKED}),
    ("trips", TRIP, {"$set": {"text": "x", "version": 1}}, set()),
    ("drivers", NAMED, {"$set": {"email": 5}}, {DRIVER}),
    ("drivers", NAMED, {"$unset": {"email": 1}}, {DRIVER}),
    # What is derived is answered from what it was derived from.
    ("daily_summaries", SUMMARY, {"$set": {"summary.fm_score": "x"}}, set()),
    ("served_spans", SPAN, {"$set": {"text": "x", "buckets": "x"}}, set()),
    ("served_drivers", {"number": 0}, {"$set": {"rows": ["x"]}}, set()),
]


@contextlib.contextmanager
def damaged(db, collection, match, change):
    """Have a document out of shape for a while."""
    sound = db[collection].find_one({"fleet": FLEET, **match})
    db[collection].update_one({"_id": sound["_id"]}, change, bypass_document_validation=True)
    yield
    db[collection].replace_one({"_id": sound["_id"]}, sound)


@pytest.fixture
def service(make_service, store):
    with make_service(MONGODB_URI=store.uri) as found:
        yield found


def test_a_document_out_of_shape_costs_the_requests_for_it_alone(service, store, report):
    right = {**store.right, **{ask: service.body(ask, store.key) for ask in OWN}}
    results, told_of = [], 0
    with MongoClient(store.uri) as client:
        for collection, match, change, lost in DAMAGES:
            before = len(service.said())
            with damaged(client[DATABASE], collection, match, change):
                found = [service.ask(ask, store.key, answer) for ask, answer in right.items()]
            # A list goes on without it.
            due = {ask: "wrong answer" if ask == BY_TRACKING else "500 InternalError" for ask in lost}
            assert {one.ask: one.failure for one in found if one.failure} == due
            lines = [line for line in service.said()[before:].splitlines() if "out of shape" in line]
            assert all(FLEET in line and (collection != "trips" or "t017" in line) for line in lines)
            assert len(lines) >= len(lost)
            results, told_of = results + found, told_of + len(lines)
    report(f"{len(DAMAGES)} documents out of shape: {told(results)}; {told_of} log lines that name the document")
