"""Trips as GPX 1.1, for map programs and navigation devices."""

import datetime
import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any
from xml.sax.saxutils import escape

from schemas.geojson import HALF_TURN, Line, divide_at_antimeridian, make_line

GPX = "application/gpx+xml"
NAMESPACE = "http://www.topografix.com/GPX/1/1"
BEGIN = (
    f'<?xml version="1.0" encoding="utf-8"?>\n<gpx xmlns="{NAMESPACE}" version="1.1" creator="Driver Analytics API">'
)
EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001
MS_PER_MINUTE = 60_000
# After a longer time without a point, nobody knows where the vehicle was. Devices send a point each 1 to 60 seconds.
MAX_GAP_MS = 120_000
# A centimetre.
DECIMALS = 7
# A longitude is less than 180 in GPX.
MAX_LONGITUDE = HALF_TURN - 10**-DECIMALS
# Identifiers may have them, XML may not.
NO_XML = re.compile("[\ufffe\uffff]")


def write_gpx(page: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield a Trip page in detail form as GPX: a waypoint where each event began, then a track for each trip.

    It reads the trips twice, one after the other.
    """
    yield BEGIN.encode()
    for format_part in (_format_waypoints, _format_track):
        for trip in page["trips"]:
            yield "".join(format_part(trip)).encode()
    yield b"</gpx>"


def _format_waypoints(trip: Mapping[str, Any]) -> Iterator[str]:
    for event in trip["events"]:
        point = [event[f"event_start_{name}"] for name in ("longitude", "latitude", "timestamp")]
        texts = f"<name>{event['event_name']}</name><cmt>{_escape(trip['trip_id'])}</cmt>"
        yield f"<wpt {_format_point(*point)}{texts}</wpt>"


def _format_track(trip: Mapping[str, Any]) -> Iterator[str]:
    yield f"<trk><name>{_escape(trip['trip_id'])}</name>"
    for part in _divide_at_gaps(make_line(trip["trail_path"])):
        for segment in divide_at_antimeridian(part):
            yield "<trkseg>"
            yield from (f"<trkpt {_format_point(*point)}</trkpt>" for point in segment)
            yield "</trkseg>"
    yield "</trk>"


def _divide_at_gaps(line: Line) -> list[Line]:
    """Divide a line where two points are more than MAX_GAP_MS apart, whichever of them is earlier."""
    parts: list[Line] = []
    for point in line:
        if not parts or abs(point[-1] - parts[-1][-1][-1]) > MAX_GAP_MS:
            parts.append([])
        parts[-1].append(point)
    return parts


def _format_point(longitude: float, latitude: float, time_ms: int) -> str:
    """Return the attributes of a point, and the element of its time."""
    minutes, ms = divmod(time_ms, MS_PER_MINUTE)
    # Numbers have no exponents in GPX. With `z`, zero has no sign.
    place = f'lat="{latitude:z.{DECIMALS}f}" lon="{min(longitude, MAX_LONGITUDE):z.{DECIMALS}f}"'
    return f"{place}><time>{_format_minutes(minutes)}:{ms / 1000:06.3f}Z</time>"


@functools.lru_cache
def _format_minutes(minutes: int) -> str:
    """Return minutes since 1970 as text. Many points are in the same minute."""
    return (EPOCH + datetime.timedelta(minutes=minutes)).isoformat(timespec="minutes")


def _escape(text: str) -> str:
    return escape(NO_XML.sub("\ufffd", text))
