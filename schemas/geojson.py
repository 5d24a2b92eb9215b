"""Trips as GeoJSON (RFC 7946): the schema, the conversion from a Trip page, and the lines of a trail."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any

from marshmallow import Schema, fields
from marshmallow.validate import Length

from schemas.fields import Choice, Identifier, List, Number, Object, Objects, field_metadata
from schemas.page import EventPage, RatedTripPage, TripDetailPage
from schemas.trip import Event, FleetEvent, TripSummary

GEO_JSON = "application/geo+json"
# The longitude of the antimeridian, in degrees, and also half of the circumference.
HALF_TURN = 180
# Longitude, latitude, and the time (epoch ms) at which the trip was there.
TimedPoint = tuple[float, float, int]
Line = list[TimedPoint]


def _always(name: str) -> Choice:
    return Choice(f"Always `{name}`.", choices=[name])


def _position(description: str = "") -> List:
    return List(Number(low=-HALF_TURN, high=HALF_TURN), description, validate=Length(equal=2))


def _positions(description: str = "") -> List:
    return List(_position(), description, validate=Length(min=2))


class OneOfNested(fields.Field[Any]):
    """An object that matches exactly one of several schemas: the value of its field `tag` says which."""

    def __init__(self, description: str = "", *, tag: str, schemas: Mapping[str, type[Schema]], **kwargs: Any) -> None:
        self.tag, self.schemas = tag, schemas
        super().__init__(metadata=field_metadata(description), required=True, **kwargs)


class Point(Schema):
    """A position."""

    type = _always("Point")
    coordinates = _position("Longitude and latitude, in degrees.")


class LineString(Schema):
    """A line."""

    type = _always("LineString")
    coordinates = _positions("Longitude and latitude of each point, in degrees.")


class MultiLineString(Schema):
    """A line that crosses the antimeridian, divided there into parts."""

    type = _always("MultiLineString")
    coordinates = List(
        _positions(), "Longitude and latitude of each point of each part, in degrees.", validate=Length(min=2)
    )


class TripProperties(TripSummary):
    """A trip in summary form, with the time of each point of its trail."""

    kind = _always("trip")
    coordinate_times = List(
        fields.Raw(),
        "When the trip was at each position of the geometry, in epoch milliseconds. For a MultiLineString, it is a "
        "list for each part.",
        data_key="coordTimes",
    )


class TripFeature(Schema):
    """A trip: its trail as the geometry, its summary form and times as the properties."""

    type = _always("Feature")
    kind = _always("trip")
    id = Identifier("The `trip_id`.")
    geometry = OneOfNested(
        "The trail. Null if it has fewer than two points.",
        tag="type",
        schemas={"LineString": LineString, "MultiLineString": MultiLineString},
        allow_none=True,
    )
    properties = Object(TripProperties, "The trip.")


class TripEvent(Event):
    """An event, with the identifier of its trip."""

    trip_id = Identifier("Identifier of the trip.")
    kind = _always("event")


class EventFeature(Schema):
    """An event: the position of its start as the geometry, the event as the properties."""

    type = _always("Feature")
    kind = _always("event")
    geometry = Object(Point, "Position of the start.")
    properties = Object(TripEvent, "The event.")


class FleetEventFeature(Schema):
    """An event of a fleet: the position of its start as the geometry, the event as the properties."""

    type = _always("Feature")
    geometry = Object(Point, "Position of the start.")
    properties = Object(FleetEvent, "The event.")


class EventMap(EventPage):
    """A page of the events of a fleet, as GeoJSON (RFC 7946)."""

    type = _always("FeatureCollection")
    features = Objects(FleetEventFeature, "The events, in the `order` of the request.")

    class Meta:
        """The fields of a FeatureCollection, with those of the page between them."""

        fields = ("type", "limit", "start_date", "end_date", "next_cursor", "features")


class TripMap(TripDetailPage):
    """A page of trips in detail form, as GeoJSON (RFC 7946)."""

    type = _always("FeatureCollection")
    features = List(
        OneOfNested(tag="kind", schemas={"trip": TripFeature, "event": EventFeature}),
        "The trips, oldest first, each followed by its events in order of time.",
    )

    class Meta:
        """The fields of a FeatureCollection, with those of the page between them."""

        fields = ("type", "count", "current_page", "next_page", "limit", "features")


class RatedTripMap(RatedTripPage):
    """A page of the trips of a fleet in detail form, as GeoJSON (RFC 7946)."""

    type = _always("FeatureCollection")
    features = TripMap().fields["features"]

    class Meta:
        """The fields of a FeatureCollection, with those of the page between them."""

        fields = EventMap.Meta.fields


SUMMARY = tuple(TripSummary().fields)


def make_map(page: Mapping[str, Any]) -> dict[str, Any]:
    """Return the TripMap of a Trip page in detail form. Its `features` yield those of one trip after the other."""
    return _make_collection(TripMap, page, (list(_make_features(trip)) for trip in page["trips"]))


def make_rated_map(page: Mapping[str, Any]) -> dict[str, Any]:
    """Return the RatedTripMap of a page of rated trips in detail form."""
    return _make_collection(RatedTripMap, page, (list(_make_features(rated["trip"])) for rated in page["trips"]))


def _make_collection(schema: type[Any], page: Mapping[str, Any], features: Iterator[Any]) -> dict[str, Any]:
    collection = {**page, "type": "FeatureCollection", "features": features}
    return {name: collection[name] for name in schema.Meta.fields}


def _make_features(trip: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    geometry, times = _make_geometry(trip["trail_path"])
    properties = {**{name: trip[name] for name in SUMMARY}, "kind": "trip", "coordTimes": times}
    yield {"type": "Feature", "kind": "trip", "id": trip["trip_id"], "geometry": geometry, "properties": properties}
    for event in trip["events"]:
        properties = {**event, "trip_id": trip["trip_id"], "kind": "event"}
        yield {"type": "Feature", "kind": "event", "geometry": _make_start(event), "properties": properties}


def make_event_map(page: Mapping[str, Any]) -> dict[str, Any]:
    """Return the EventMap of a page of events."""
    features = ([{"type": "Feature", "geometry": _make_start(event), "properties": event}] for event in page["events"])
    return _make_collection(EventMap, page, features)


def _make_start(event: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "Point", "coordinates": [event["event_start_longitude"], event["event_start_latitude"]]}


def _make_geometry(trail: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Any] | None, list[Any]]:
    """Return the geometry of a trail, and the time of each of its positions."""
    line = make_line(trail)
    if len(line) < 2:
        return None, []
    parts = divide_at_antimeridian(line)
    positions = [[[longitude, latitude] for longitude, latitude, _ in part] for part in parts]
    times = [[time for *_, time in part] for part in parts]
    if len(parts) == 1:
        return {"type": "LineString", "coordinates": positions[0]}, times[0]
    return {"type": "MultiLineString", "coordinates": positions}, times


def make_line(trail: Iterable[Mapping[str, Any]]) -> Line:
    """Return the points of a trail, in their order."""
    return list(map(itemgetter("longitude", "latitude", "timestamp"), trail))


def divide_at_antimeridian(line: Line) -> list[Line]:
    """Divide a line, which has points, at the antimeridian (RFC 7946, 3.1.9).

    Two points are joined by the shorter way round, so the line crosses the antimeridian between two points whose
    longitudes differ by more than 180 degrees.
    """
    longitudes = [longitude for longitude, *_ in line]
    if max(longitudes) - min(longitudes) <= HALF_TURN:
        return [line]
    parts: list[Line] = [line[:1]]
    for (left, south, begin), (right, north, end) in itertools.pairwise(line):
        if abs(right - left) > HALF_TURN:
            before, after = HALF_TURN - abs(left), HALF_TURN - abs(right)
            share = before / ((before + after) or 1)
            latitude, time = south + (north - south) * share, round(begin + (end - begin) * share)
            edge = math.copysign(HALF_TURN, left)
            # A point on the antimeridian belongs to both sides. Adding it again would give a part a point twice.
            if (left, south) != (edge, latitude):
                parts[-1].append((edge, latitude, time))
            parts.append([(-edge, latitude, time)])
            if (right, north) == (-edge, latitude):
                continue
        parts[-1].append((right, north, end))
    return [part for part in parts if len(part) > 1] or [line]
