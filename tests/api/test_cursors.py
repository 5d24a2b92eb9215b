"""What the cursors of /trips and /events say and how long they are valid. Their pages are in the tests of the lists."""

import base64
import datetime
import itertools

import pytest

from tests.factories import epoch_ms, make_event, make_event_summary, make_trip

OWN, OTHERS = ("me-1", "me-2", "me-3", "me-4", "me-5"), 30
DAY_SECONDS = 86_400
LISTS = [
    "/trips?start_date=2026-03-01",
    "/trips?start_date=2026-03-01&order=newest",
    "/trips?start_date=2026-03-01&order=worst",
    "/trips?start_date=2026-03-01&min_distance_miles=99",
    "/trips?start_date=2026-03-01&implausible=true&form=detail",
    "/events?start_date=2026-03-01",
    "/events?start_date=2026-03-01&order=newest",
    "/events?start_date=2026-03-01&event_type=9",
    "/events?start_date=2026-03-01&driver_id=me&min_seconds=1",
]


def make_trips(driver_id, trip_ids):
    """Return a trip an hour, some of them the worst, and each with two events."""
    return [
        make_trip(
            f"2026-03-{day:02}T08:{minute:02}",
            driver_id,
            trip_id=trip_id,
            event_summary=make_event_summary(hard_brake_count=minute % 3),
            events=[make_event(epoch_ms(f"2026-03-{day:02}T08:{minute + 1:02}")) for _ in range(2)],
        )
        for trip_id, (minute, day) in zip(trip_ids, itertools.product(range(50), range(2, 12)), strict=False)
    ]


def read_pages(service, path, **options):
    """Return the pages of a list without their cursors, and these."""
    pages, cursors = [], ["start"]
    while cursors[-1]:
        page = service.get(f"{path}&limit=2&cursor={cursors[-1]}", **options).json
        cursors.append(page.pop("next_cursor"))
        pages.append(page)
    return pages, cursors[1:-1]


@pytest.mark.parametrize("path", LISTS)
def test_a_driver_key_gets_the_pages_of_a_fleet_that_has_this_driver_alone(service, load, monkeypatch, path):
    monkeypatch.setattr("app.store.cursor_lists.MAX_ENTRIES", 40)
    mine = make_trips("me", OWN)
    load(*mine, fleet="f2")
    load(
        *mine, *(trip for n in range(OTHERS) for trip in make_trips(f"secret{n}", [f"secret{n}-{i}" for i in range(9)]))
    )
    pages, cursors = read_pages(service, path, driver="me")
    alone, cursors_alone = read_pages(service, path, fleet="f2", driver="me")
    assert pages == alone
    assert list(map(len, cursors)) == list(map(len, cursors_alone))
    for cursor in cursors:
        assert b"secret" not in base64.urlsafe_b64decode(cursor + "==")


def test_a_list_of_one_driver_has_no_empty_pages(service, load, monkeypatch):
    monkeypatch.setattr("app.store.cursor_lists.MAX_ENTRIES", 40)
    load(*make_trips("me", OWN), *make_trips("other", [f"other-{n}" for n in range(90)]))
    for path in ("/trips", "/events"):
        pages, _ = read_pages(service, f"{path}?start_date=2026-03-01&driver_id=me")
        assert all(page[path[1:]] for page in pages)


# A number that is not spelt as the default is, or as another spelling of it; and values in another order.
EQUAL = [
    ("/trips", "", "&min_distance_miles=0"),
    ("/trips", "&min_distance_miles=0", "&min_distance_miles=0.0"),
    ("/trips", "&min_distance_miles=1e0", "&min_distance_miles=1"),
    ("/trips", "", "&order=oldest&form=summary&at=none"),
    ("/trips", "&driver_id=me&driver_id=you", "&driver_id=you&driver_id=me&driver_id=you"),
    ("/events", "", "&min_seconds=0e9&order=oldest"),
    ("/events", "&event_type=1&event_type=2", "&event_type=2&event_type=1"),
    ("/events", "&min_over_mph=0", "&min_over_mph=0.00"),
    ("/events", "&bbox=-97,0,0,42", "&bbox=-97.0,-0,-0.0,4.2e1"),
]


@pytest.mark.parametrize(("path", "first", "second"), EQUAL)
@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_cursor_goes_with_equal_values_however_they_are_spelt(service, load, path, first, second, is_reversed):
    events = [make_event(epoch_ms("2026-03-10T08:01"), event_type=1, event_name="RAPID_ACCELERATION")] * 2
    speeds = {"user_speed_mph": 60, "speed_limit_mph": 40, "max_user_speed_mph": 70}
    fast = [make_event(epoch_ms("2026-03-10T08:02"), event_type=9, event_name="OVERSPEEDING", event_data=speeds)] * 2
    load(*(make_trip("2026-03-10T08:00", driver_id, events=events + fast) for driver_id in ("me", "you")))
    given, later = (second, first) if is_reversed else (first, second)
    cursor = service.get(f"{path}?start_date=2026-03-10&limit=1{given}").json["next_cursor"]
    page = service.get(f"{path}?start_date=2026-03-10&limit=9{later}&cursor={cursor}")
    assert (page.status_code, len(page.json[path[1:]]) > 0) == (200, True)


@pytest.mark.parametrize("query", ["", "&order=newest", "&order=worst&end_date=2025-10-18"])
def test_a_list_from_the_first_allowed_day_is_read_on_after_midnight(service, load, clock, query):
    load(*make_trips("me", OWN), *(make_trip("2025-09-18T08:00", trip_id=f"old-{n}") for n in range(3)))
    path = f"/trips?start_date=2025-09-18&limit=1{query}"
    first = service.get(path).json
    clock.shift(DAY_SECONDS)
    assert list(service.errors(path)) == ["start_date"]
    second = service.get(f"{path}&cursor={first['next_cursor']}").json
    assert second["trips"] != first["trips"]
    third = service.get(f"{path}&cursor={second['next_cursor']}")
    assert third.status_code == 200
    # A day later, the list has to be begun again.
    clock.shift(DAY_SECONDS)
    assert list(service.errors(f"{path}&cursor={second['next_cursor']}")) == ["start_date"]


def test_a_time_in_progress_is_read_on_after_midnight(service, load, clock):
    load(*(make_trip("2025-09-17T23:50", trip_id=f"old-{n}") for n in range(2)))
    path = f"/trips?at={epoch_ms('2025-09-18T00:00')}&limit=1"
    cursor = service.get(path).json["next_cursor"]
    clock.shift(DAY_SECONDS)
    assert list(service.errors(path)) == ["at"]
    assert len(service.get(f"{path}&cursor={cursor}").json["trips"]) == 1


def test_a_made_up_cursor_changes_no_rule_on_dates(service, load):
    load(*make_trips("me", OWN))
    cursor = service.get("/trips?start_date=2026-03-01&limit=1").json["next_cursor"]
    content = base64.urlsafe_b64decode(cursor + "==")
    today, yesterday = (datetime.date(2026, 3, day).toordinal().to_bytes(3) for day in (18, 17))
    forged = base64.urlsafe_b64encode(content.replace(today, yesterday)).rstrip(b"=").decode()
    assert forged != cursor
    assert list(service.errors(f"/trips?start_date=2025-09-17&limit=1&cursor={forged}")) == ["cursor"]


def test_the_second_page_of_twenty_of_the_longest_identifiers_is_one_request_line(service, load):
    # 128 bytes that are all encoded, as three characters of a URL each.
    ids = [f"{'€' * 42}{chr(ord('à') + n)}" for n in range(20)]
    load(
        *(
            make_trip("2026-03-10T08:00", name, trip_id=name, events=[make_event(epoch_ms("2026-03-10T08:00"))])
            for name in ids
        )
    )
    query = {"start_date": "2026-03-10", "limit": 9, "driver_id": ids}
    page = service.get("/events", **query)
    again = service.get("/events", **query, cursor=page.json["next_cursor"])
    target = f"{again.request.path}?{again.request.query_string.decode()}"
    # With any limit, of up to four digits.
    assert len(f"GET {target}000 HTTP/1.1") <= 8_190
    assert len(again.json["events"]) == 9
