"""GET /events. The events of the module's fleet are at bounds, or near them, wherever their trips are."""

import json
import random

import pytest

from app.store import Store
from schemas.trip import EVENT_NAMES
from scripts.materialize.fleet_settings import apply_to_trips, set_settings
from tests.factories import epoch_ms, make_event, make_trip
from tests.store_contents import load as load_into

FIELDS = ["trip_id", "driver_id", "event_index", "event_type", "event_name", "event_start_timestamp"]
FIELDS += ["event_end_timestamp", "event_start_latitude", "event_start_longitude", "event_end_latitude"]
FIELDS += ["event_end_longitude", "event_data"]
# In New York, the first of these days has 23 hours: the clock changes at CHANGE.
ZONE, CHANGE = "America/New_York", epoch_ms("2026-03-08T07:00")
MIDNIGHTS = {
    "2026-03-08": epoch_ms("2026-03-08T05:00"),
    "2026-03-09": epoch_ms("2026-03-09T04:00"),
    "2026-03-10": epoch_ms("2026-03-10T04:00"),
}
WINDOWS = [
    ({"start_date": "2026-03-08"}, MIDNIGHTS["2026-03-08"], 2**60),
    ({"start_date": "2026-03-08", "end_date": "2026-03-08"}, MIDNIGHTS["2026-03-08"], MIDNIGHTS["2026-03-09"]),
    ({"start_date": "2026-03-08", "end_date": "2026-03-09"}, MIDNIGHTS["2026-03-08"], MIDNIGHTS["2026-03-10"]),
]
OVERSPEEDING = 9
ORDER = ("event_start_timestamp", "trip_id", "event_index")


def get_seconds(event):
    return (event["event_end_timestamp"] - event["event_start_timestamp"]) / 1000


def get_mph_over(event):
    return event["event_data"].get("max_user_speed_mph", -1e9) - event["event_data"].get("speed_limit_mph", 0)


def is_north_of(event, latitude):
    return latitude <= event["event_start_latitude"]


FILTERS = [
    ({}, lambda event: True),
    ({"event_type": [2, 9, 2]}, lambda event: event["event_type"] in (2, 9)),
    ({"driver_id": ["d1", "d2"]}, lambda event: event["driver_id"] in ("d1", "d2")),
    ({"bbox": "-96.5,-1e-7,0,9E1"}, lambda e: is_north_of(e, 0) and -96.5 <= e["event_start_longitude"] <= 0),
    (
        {"bbox": "179.5,41.25,-96.5,90"},
        lambda event: is_north_of(event, 41.25) and not -96.5 < event["event_start_longitude"] < 179.5,
    ),
    ({"min_seconds": 16.1}, lambda event: get_seconds(event) >= 16.1),
    ({"min_over_mph": 0}, lambda event: get_mph_over(event) >= 0),
    ({"min_over_mph": 20, "event_type": 9, "min_seconds": 1}, lambda e: get_mph_over(e) >= 20 and get_seconds(e) >= 1),
    ({"min_over_mph": 0, "event_type": [1, 2, 7]}, lambda event: False),
]


def make_random_event(rng):
    start = rng.choice([CHANGE, *MIDNIGHTS.values()]) + rng.choice([-1, 0, 0, 3_600_000])
    number = rng.choice(list(EVENT_NAMES))
    speeds = {"user_speed_mph": 60, "speed_limit_mph": -9, "max_user_speed_mph": rng.choice([-9.5, 11, 2**63 - 1])}
    return make_event(
        start,
        event_end_timestamp=start + rng.choice([0, 16_099, 16_100, 90_000]),
        event_type=number,
        event_name=EVENT_NAMES[number],
        event_start_latitude=rng.choice([0, 90, -90, 41.25]),
        event_start_longitude=rng.choice([0, -180, 180, 179.5, -96.5]),
        event_data=speeds if number == OVERSPEEDING else {},
    )


@pytest.fixture(scope="module")
def events(shared_db):
    """All visible events, oldest first."""
    rng = random.Random(60)
    set_settings(Store.of(shared_db), "f1", time_zone=ZONE)
    trips = [
        make_trip(
            f"2026-03-{rng.randint(8, 11):02}T08:00",
            f"d{rng.randint(1, 3)}",
            trip_id=trip_id,
            events=[make_random_event(rng) for _ in range(rng.randint(5, 9))],
        )
        for trip_id in ("t", "t 0", "t-1", "t0", "T", "é", "a/b", "a")
    ]
    # Events may start when only trips that are not visible have ended, and after today.
    moments = map(epoch_ms, ("2026-03-18T11:00", "2026-04-01T00:00"))
    late = make_trip("2026-03-09T08:00", "d3", trip_id="late", events=[make_event(moment) for moment in moments])
    trips.append(late)
    hidden = make_trip("2026-03-18T07:50", "d1", trip_id="hidden", events=[make_event(CHANGE)] * 3)
    load_into(shared_db, *trips, make_trip(driver_id="d2"), hidden)
    load_into(shared_db, make_trip(trip_id="t", driver_id="theirs", events=[make_event(CHANGE)]), fleet="f2")
    found = [
        {**{name: trip[name] for name in ("trip_id", "driver_id")}, "event_index": index, **event}
        for trip in trips
        for index, event in enumerate(trip["events"])
    ]
    return sorted(found, key=lambda event: [event[name] for name in ORDER])


def read_all(service, path="/events", name="events", **query):
    """Return the elements of all pages, by the cursors."""
    elements, cursor, options = [], None, {}
    for option in ("fleet", "driver"):
        options |= {option: query.pop(option)} if option in query else {}
    while True:
        page = service.get(path, **query, **options, **({"cursor": cursor} if cursor else {})).json
        elements, cursor = elements + page[name], page["next_cursor"]
        if cursor is None:
            return elements


@pytest.mark.parametrize(("query", "matches"), FILTERS, ids=[json.dumps(query) for query, _ in FILTERS])
@pytest.mark.parametrize(("window", "start", "end"), WINDOWS)
def test_pages_have_what_a_filter_leaves_of_the_dates_of_the_fleet(
    shared_service, events, window, start, end, query, matches
):
    expected = [event for event in events if start <= event["event_start_timestamp"] < end and matches(event)]
    for limit in (1, 7, 1000):
        assert read_all(shared_service, **window, **query, limit=limit) == expected
    assert read_all(shared_service, **window, **query, limit=3, order="newest") == expected[::-1]


def test_a_page_has_the_fields_of_the_contract_in_order_and_links_to_the_next_and_the_first(shared_service, events):
    response = shared_service.get("/events?start_date=2026-03-08&limit=1&event_type=2")
    assert list(response.json) == ["limit", "start_date", "end_date", "events", "next_cursor"]
    assert list(response.json["events"][0]) == FIELDS
    assert (response.json["limit"], response.json["end_date"]) == (1, None)
    next_url, first_url = (link.split(">")[0].split("/api/v1")[1] for link in response.headers["Link"].split(", <")[:2])
    assert next_url == f"/events?start_date=2026-03-08&limit=1&event_type=2&cursor={response.json['next_cursor']}"
    assert shared_service.get(next_url).json["events"][0] != response.json["events"][0]
    assert shared_service.get(first_url).json == response.json


def test_a_page_ends_after_a_bounded_number_of_entries(shared_service, events, monkeypatch):
    monkeypatch.setattr("app.store.cursor_lists.MAX_ENTRIES", 24)
    page = shared_service.get("/events?start_date=2026-03-08&min_over_mph=1e9&limit=1").json
    assert (page["events"], page["next_cursor"] is None) == ([], False)
    expected = [event for event in events if event["event_type"] == OVERSPEEDING]
    assert read_all(shared_service, start_date="2026-03-07", event_type=9, limit=1) == expected
    assert read_all(shared_service, start_date="2026-03-07", event_type=9, limit=1, order="newest") == expected[::-1]


def test_events_of_implausible_trips_are_left_out_if_the_fleet_says_so(service, load):
    moments = [epoch_ms(f"2026-03-10T08:0{minute}") for minute in (1, 2)]
    load(
        make_trip("2026-03-10T08:00", trip_id="good", events=[make_event(moments[0])]),
        make_trip("2026-03-10T08:00", trip_id="bad", duration_seconds=0, events=[make_event(moments[1])]),
    )
    for policy, trips in (("counted", ["good", "bad"]), ("left_out", ["good"]), ("counted", ["good", "bad"])):
        set_settings(service.store, "f1", implausible_trips=policy)
        for _ in apply_to_trips(service.store, "f1", ["good", "bad"], []):
            pass
        assert [event["trip_id"] for event in read_all(service, start_date="2026-03-10")] == trips


def test_geojson_has_a_point_for_each_event(shared_service, events):
    accept = {"headers": {"Accept": "application/geo+json"}}
    page = shared_service.get("/events?start_date=2026-03-08&limit=2", **accept).json
    assert list(page) == ["type", "limit", "start_date", "end_date", "next_cursor", "features"]
    plain = shared_service.get("/events?start_date=2026-03-08&limit=2").json
    assert [feature["properties"] for feature in page["features"]] == plain["events"]
    event, point = plain["events"][0], page["features"][0]["geometry"]
    assert point == {"type": "Point", "coordinates": [event["event_start_longitude"], event["event_start_latitude"]]}


INVALID = {
    "bbox": ["1,2,3", "1,91,3,92", "1,3,3,2", "181,1,3,2", "a,1,3,2", "1,1,1e999,2"],
    "event_type": ["3", "02", ["1"] * 5],
    "min_seconds": ["-1"],
    "min_over_mph": ["nan"],
    "order": ["worst"],
    "limit": ["1001"],
    "end_date": ["2026-03-01"],
    "cursor": ["nonsense"],
    "page": ["2"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in INVALID.items() for value in values])
def test_an_invalid_parameter_is_named(shared_service, name, value):
    assert list(shared_service.errors("/events", start_date="2026-03-08", **{name: value})) == [name]


@pytest.mark.parametrize(
    ("name", "meant"), [("type", "event_type"), ("behaviour", "event_type"), ("from", "start_date"), ("to", "end_date")]
)
def test_the_name_that_another_service_uses_is_answered_with_ours(shared_service, name, meant):
    (reason,) = shared_service.errors(f"/events?start_date=2026-03-08&{name}=x")[name]
    assert f"did you mean {meant}?" in reason


def test_a_cursor_goes_with_its_parameters_and_its_scope(shared_service, events):
    query = {"start_date": "2026-03-08", "limit": 1, "driver_id": "d2"}
    cursor = shared_service.get("/events", **query).json["next_cursor"]
    assert shared_service.get("/events", **{**query, "limit": 9}, cursor=cursor).status_code == 200
    assert shared_service.get("/events", **query, cursor="start").status_code == 200
    altered = cursor[:-1] + ("A" if cursor[-1] != "A" else "B")
    for change in (
        {"cursor": altered},
        {"order": "newest"},
        {"start_date": "2026-03-07"},
        {"min_seconds": 1},
        {"driver_id": (), "group": "North"},
        {"driver": "d2"},
        {"fleet": "f2", "driver_id": "theirs"},
    ):
        assert list(shared_service.errors("/events", **{**query, "cursor": cursor, **change})) == ["cursor"], change
