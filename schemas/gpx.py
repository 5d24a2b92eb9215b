"""Trips as GPX 1.1, for map programs and navigation devices."""

import datetime
import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as ET

GPX = "application/gpx+xml"
NAMESPACE = "http://www.topografix.com/GPX/1/1"
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
# A centimetre.
DECIMALS = 7
HALF_TURN = 180
# Identifiers may have them, XML may not.
NO_XML = re.compile("[\ufffe\uffff]")


def make_gpx(page: Mapping[str, Any]) -> bytes:
    """Return a Trip page in detail form as GPX: a waypoint where each event began, then a track for each trip."""
    root = ET.Element("gpx", {"xmlns": NAMESPACE, "version": "1.1", "creator": "Driver Analytics API"})
    for trip in page["trips"]:
        for event in trip["events"]:
            place = [event[f"event_start_{name}"] for name in ("latitude", "longitude", "timestamp")]
            waypoint = _add_point(root, "wpt", *place)
            _add_text(waypoint, "name", event["event_name"])
            _add_text(waypoint, "cmt", trip["trip_id"])
    for trip in page["trips"]:
        track = ET.SubElement(root, "trk")
        _add_text(track, "name", trip["trip_id"])
        segment = ET.SubElement(track, "trkseg")
        for point in trip["trail_path"]:
            _add_point(segment, "trkpt", point["latitude"], point["longitude"], point["timestamp"])
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document


def _add_point(parent: ET.Element, tag: str, latitude: float, longitude: float, time_ms: int) -> ET.Element:
    longitude = round(longitude, DECIMALS)
    # A longitude is less than 180 in GPX.
    place = {"lat": latitude, "lon": -longitude if longitude == HALF_TURN else longitude}
    # Numbers have no exponents in GPX. With `z`, zero has no sign.
    point = ET.SubElement(parent, tag, {name: f"{value:z.{DECIMALS}f}" for name, value in place.items()})
    time = EPOCH + datetime.timedelta(milliseconds=time_ms)
    _add_text(point, "time", time.isoformat(timespec="milliseconds").replace("+00:00", "Z"))
    return point


def _add_text(parent: ET.Element, tag: str, text: str) -> None:
    ET.SubElement(parent, tag).text = NO_XML.sub("\ufffd", text)
