"""GET /trip/{filter_param}/{filter_value} as GPX 1.1, by the rules of its schema."""

import datetime
import itertools
import re
from xml.etree import ElementTree as ET

import pytest

from tests.factories import epoch_ms, make_event, make_point, make_trip

GPX = "application/gpx+xml"
NAMESPACE = "{http://www.topografix.com/GPX/1/1}"
# The elements below each element that we use, in the order of the schema.
ORDER = {"gpx": ["wpt", "trk"], "wpt": ["time", "name", "cmt"], "trk": ["name", "trkseg"], "trkseg": ["trkpt"]}
ORDER["trkpt"] = ["time"]
DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?")


def get_gpx(service, path="/trip/trip_id/t1", **headers):
    return service.get(path, headers={"Accept": GPX, **headers})


def check(element):
    """Check an element and all below it against the schema."""
    tag = element.tag.removeprefix(NAMESPACE)
    places = [ORDER.get(tag, []).index(child.tag.removeprefix(NAMESPACE)) for child in element]
    assert places == sorted(places)
    if tag in ("wpt", "trkpt"):
        latitude, longitude = element.get("lat"), element.get("lon")
        assert DECIMAL.fullmatch(latitude)
        assert DECIMAL.fullmatch(longitude)
        assert "-0.0000000" not in (latitude, longitude)
        assert -90 <= float(latitude) <= 90
        assert -180 <= float(longitude) < 180
    if tag == "time":
        assert datetime.datetime.fromisoformat(element.text).tzinfo == datetime.UTC
    for child in element:
        check(child)


def read(response):
    assert (response.status_code, response.content_type) == (200, f"{GPX}; charset=utf-8"), response.text
    root = ET.fromstring(response.data)
    assert (root.tag, root.get("version"), root.get("creator")) == (f"{NAMESPACE}gpx", "1.1", "Driver Analytics API")
    check(root)
    return root


def texts(root, path):
    return [element.text for element in root.iterfind(path.replace("*", NAMESPACE))]


def test_a_trip_is_a_track_and_an_event_a_waypoint(service, load):
    start = epoch_ms("2026-03-10T08:00")
    trail = [
        make_point(start, latitude=41.25, longitude=-96.5),
        make_point(start + 1_500, latitude=41.3, longitude=-97),
    ]
    load(make_trip(trip_id="t1", trail_path=trail, events=[make_event(start + 250)]))
    root = read(get_gpx(service))
    points = [dict(point.attrib) for point in root.iter(f"{NAMESPACE}trkpt")]
    assert points == [{"lat": "41.2500000", "lon": "-96.5000000"}, {"lat": "41.3000000", "lon": "-97.0000000"}]
    assert texts(root, "*trk/*trkseg/*trkpt/*time") == ["2026-03-10T08:00:00.000Z", "2026-03-10T08:00:01.500Z"]
    assert texts(root, "*trk/*name") == texts(root, "*wpt/*cmt") == ["t1"]
    assert (texts(root, "*wpt/*name"), texts(root, "*wpt/*time")) == (["HARD_BRAKE"], ["2026-03-10T08:00:00.250Z"])


def segments(service, load, *points):
    """Return the longitudes in each segment of a trip with these points, as pairs of seconds and longitude."""
    start = epoch_ms("2026-03-10T08:00")
    trail = [make_point(start + 1000 * seconds, longitude=longitude, latitude=10) for seconds, longitude in points]
    load(make_trip(trip_id="t1", trail_path=trail))
    root = read(get_gpx(service))
    return [[float(point.get("lon")) for point in part] for part in root.iter(f"{NAMESPACE}trkseg")]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([0, 120, 241, 250], [[1, 2], [3, 4]]),
        ([0, 121, 242], [[1], [2], [3]]),
        # Some points came late.
        ([0, 300, 310, 60], [[1], [2, 3], [4]]),
    ],
)
def test_a_new_segment_begins_after_more_than_two_minutes_without_a_point(service, load, times, expected):
    points = zip(times, itertools.count(1), strict=False)
    assert segments(service, load, *points) == expected


def test_a_new_segment_begins_at_the_antimeridian(service, load):
    assert segments(service, load, (0, 179), (30, -179), (60, -180), (400, 180)) == [
        [179, 179.9999999],
        [-180, -179, -180],
        [179.9999999],
    ]


def test_any_trip_is_valid_gpx(service, load):
    places = [(5e-324, 180), (-90, -180), (90, 179.99999999), (1e-7, -1e-9), (41, -96)]
    times = [epoch_ms("0001-01-01T00:00"), epoch_ms("9999-12-31T23:59"), 0, 1, 2]
    trail = [
        make_point(time, latitude=latitude, longitude=longitude)
        for time, (latitude, longitude) in zip(times, places, strict=True)
    ]
    name = "<a&b>\"'\ufffe]]>\u2028🚒"
    load(make_trip(trip_id=name, tracking_id="k", trail_path=trail, events=[make_event(0, event_start_longitude=180)]))
    load(make_trip(trip_id="empty", tracking_id="k", trail_path=[]))
    root = read(get_gpx(service, "/trip/tracking_id/k"))
    assert sorted(texts(root, "*trk/*name")) == sorted([name.replace("\ufffe", "\ufffd"), "empty"])
    assert len(root.findall(f".//{NAMESPACE}trkpt")) == len(places)


def test_nothing_found_is_an_empty_document(service):
    assert list(read(get_gpx(service))) == []
