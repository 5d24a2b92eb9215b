"""Trips that are too long to be in memory together: as JSON they come one after the other, in less memory."""

import gzip
import itertools
import json
import tracemalloc

import pytest

from app.store import StoreLags
from tests.factories import epoch_ms, make_point, make_trip
from tests.store_contents import load as load_documents
from tests.whole_trip import make_events

TRIPS, POINTS = 5, 3_000
PAGE, ONE = "/trip/tracking_id/long", "/trip/trip_id/t0"
RATED = "/trips?start_date=2026-03-01&form=detail"
WHOLE_TRAIL = "{trips{trip_id,trail_path{timestamp,latitude,longitude,course}}}"
OF_POINTS = "trips{trail_path{course,latitude}}"
GEO_JSON, GPX = "application/geo+json", "application/gpx+xml"
# One trip, two, and more than four are longer.
LENGTHS = [1, 250_000, 1_000_000]
MASKS = [
    "",
    WHOLE_TRAIL,
    "{}",
    "count,trips{events{event_name}},limit",
    "trips{focus_area,event_summary{hard_brake_count},*},*",
]


def make_long_trip(number, **fields):
    start = f"2026-03-10T0{number}:00"
    begin = epoch_ms(start)
    trail = [make_point(begin + n, latitude=n / 100, course=n % 360 / 7) for n in range(POINTS)]
    return make_trip(
        start, trip_id=f"t{number}", tracking_id="long", trail_path=trail, events=make_events(begin), **fields
    )


@pytest.fixture(scope="module")
def loaded(shared_service):
    """The service with a page of long trips."""
    load_documents(shared_service.db, *map(make_long_trip, range(TRIPS)))
    return shared_service


def shorten(monkeypatch, length, *, parsed=True):
    """Let trips be long that have so many characters or more, and too long to be `parsed`."""
    monkeypatch.setattr("app.store.rendered.MAX_WHOLE_LENGTH", length)
    monkeypatch.setattr("app.store.rendered.PART_LENGTH", 10_000)
    if parsed:
        monkeypatch.setattr("app.store.rendered.MAX_PARSED_LENGTH", length)


@pytest.fixture(params=LENGTHS)
def short(request, monkeypatch):
    shorten(monkeypatch, request.param)


def get(service, path, mask="", **headers):
    return service.get(path, headers={"X-Fields": mask, **headers}, buffered=True)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("path", [PAGE, f"{PAGE}?page=2", ONE, RATED])
def test_long_trips_are_in_the_response_as_others_are(loaded, monkeypatch, path, mask, length):
    plain = get(loaded, path, mask)
    shorten(monkeypatch, length)
    long = get(loaded, path, mask)
    assert (long.status_code, long.data, long.headers["ETag"]) == (200, plain.data, plain.headers["ETag"])
    packed = get(loaded, path, mask, **{"Accept-Encoding": "gzip"})
    assert (gzip.decompress(packed.data) if "Content-Encoding" in packed.headers else packed.data) == plain.data


@pytest.mark.parametrize("path", [PAGE, ONE, RATED])
def test_points_are_taken_in_parts(loaded, monkeypatch, path):
    shorten(monkeypatch, 1, parsed=False)
    mask = "trips{trip{trail_path{course,latitude}}}" if path == RATED else OF_POINTS
    trips = [rated.get("trip", rated) for rated in get(loaded, path, mask).json["trips"]]
    expected = {"trail_path": [{"course": n % 360 / 7, "latitude": n / 100} for n in range(POINTS)]}
    assert trips == [expected] * len(trips) != []


@pytest.mark.parametrize(
    ("headers", "name"),
    [({"X-Fields": OF_POINTS}, "X-Fields"), ({"Accept": GEO_JSON}, "Accept"), ({"Accept": GPX}, "Accept")],
)
def test_what_takes_the_points_of_trips_that_are_too_long_together_is_refused_with_the_ways_that_work(
    loaded, short, headers, name
):
    refused = loaded.get(PAGE, headers=headers)
    assert (refused.status_code, refused.json["error"]) == (400, "ValidationError")
    assert "Request each trip by its trip_id, or" in refused.json["errors"][name][0]
    assert loaded.get(ONE, headers=headers).status_code == 200
    assert get(loaded, PAGE, WHOLE_TRAIL).status_code == 200


def measure(service, path, mask, *, while_sent=False):
    """Return the bytes of a response, and the memory that it takes, or takes while a client reads it part by part."""
    service.get(path, headers={"X-Fields": mask}).close()
    tracemalloc.start()
    try:
        response = service.get(path, headers={"X-Fields": mask})
        if while_sent:
            tracemalloc.reset_peak()
        size = sum(map(len, response.response))
        return size, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("mask", ["", WHOLE_TRAIL])
def test_a_page_of_long_trips_is_sent_with_few_of_them_in_memory(loaded, monkeypatch, mask):
    shorten(monkeypatch, 1)
    size, peak = measure(loaded, PAGE, mask, while_sent=True)
    # One as MongoDB sends it, the same decoded, and little else.
    assert peak < 2.5 * size / TRIPS


def test_a_mask_within_a_trail_takes_no_object_for_each_point(loaded, monkeypatch):
    shorten(monkeypatch, 1)
    whole, _ = measure(loaded, ONE, "")
    _, peak = measure(loaded, ONE, OF_POINTS)
    print(peak / whole)
    # The trip as MongoDB sends it, decoded, and the response. The objects alone would take four times as much.
    assert peak < 4 * whole


def test_a_response_ends_where_one_of_its_trips_is_changed_meanwhile(service, load, monkeypatch):
    shorten(monkeypatch, 1)
    load(*map(make_long_trip, range(3)))
    parts = iter(service.get(PAGE).response)
    begin = list(itertools.islice(parts, 3))
    load(make_long_trip(2, distance_miles=99.0))
    with pytest.raises(StoreLags):
        begin.extend(parts)
    assert b'"trip_id":"t1"' in b"".join(begin)
    assert json.loads(get(service, PAGE).data)["count"] == 3
