"""Trips as GeoJSON (RFC 7946): the shape, and what makes it of a Trip page."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from marshmallow import Schema, fields
from marshmallow.validate import Length, OneOf

from schemas.fields import Identifier, Number, OneOfNested, Text, field_metadata
from schemas.page import TripDetailPage
from schemas.trip import Event, TripSummary

GEO_JSON = "application/geo+json"
# Degrees of longitude: the antimeridian, and half way round.
HALF_TURN = 180
# As GeoJSON has it, longitude comes first.
Position = list[float]


def _always(name: str) -> Text:
    return Text(f"Always `{name}`.", required=True, validate=OneOf([name]))


def _position(description: str = "") -> fields.List[Any]:
    number = Number(low=-HALF_TURN, high=HALF_TURN)
    return fields.List(number, metadata=field_metadata(description), required=True, validate=Length(equal=2))


def _positions(description: str = "") -> fields.List[Any]:
    return fields.List(_position(), metadata=field_metadata(description), required=True, validate=Length(min=2))


class Point(Schema):
    """A place."""

    type = _always("Point")
    coordinates = _position("Longitude and latitude, in degrees.")


class LineString(Schema):
    """A line."""

    type = _always("LineString")
    coordinates = _positions("Longitude and latitude of each of its points, in degrees.")


class MultiLineString(Schema):
    """A line that crosses the antimeridian, cut there."""

    type = _always("MultiLineString")
    coordinates = fields.List(
        _positions(),
        metadata=field_metadata("Longitude and latitude of each point of its parts, in degrees."),
        required=True,
        validate=Length(min=2),
    )


class TripFeature(Schema):
    """A trip: its trail, and what its summary tells."""

    type = _always("Feature")
    id = Identifier("The `trip_id`.", required=True)
    geometry = OneOfNested(
        LineString,
        MultiLineString,
        metadata=field_metadata("The trail; null where it has fewer than two points."),
        required=True,
        allow_none=True,
    )
    properties = fields.Nested(TripSummary, metadata=field_metadata("The trip in summary form."), required=True)


class TripEvent(Event):
    """An event, and the trip on which it happened."""

    trip_id = Identifier("Identifier of the trip.", required=True)


class EventFeature(Schema):
    """An event: where it began, and what is known of it."""

    type = _always("Feature")
    geometry = fields.Nested(Point, metadata=field_metadata("Where it began."), required=True)
    properties = fields.Nested(TripEvent, metadata=field_metadata("The event."), required=True)


class TripMap(TripDetailPage):
    """A page of trips in full as GeoJSON (RFC 7946)."""

    type = _always("FeatureCollection")
    features = fields.List(
        OneOfNested(TripFeature, EventFeature),
        metadata=field_metadata("Each trip, oldest first, followed by its events in the order of time."),
        required=True,
    )

    class Meta:
        """The members of a FeatureCollection, with the page's own between."""

        fields = ("type", "count", "current_page", "next_page", "limit", "features")


SUMMARY = tuple(TripSummary().fields)


def trip_map(page: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Trip page, detail form, as a TripMap."""
    features = [feature for trip in page["trips"] for feature in _features(trip)]
    members = {**page, "type": "FeatureCollection", "features": features}
    return {name: members[name] for name in TripMap.Meta.fields}


def _features(trip: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    summary = {name: trip[name] for name in SUMMARY}
    yield {"type": "Feature", "id": trip["trip_id"], "geometry": _line(trip["trail_path"]), "properties": summary}
    for event in trip["events"]:
        place = {"type": "Point", "coordinates": [event["event_start_longitude"], event["event_start_latitude"]]}
        yield {"type": "Feature", "geometry": place, "properties": {**event, "trip_id": trip["trip_id"]}}


def _line(trail: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    if len(trail) < 2:
        return None
    parts = _parts([[point["longitude"], point["latitude"]] for point in trail])
    if len(parts) == 1:
        return {"type": "LineString", "coordinates": parts[0]}
    return {"type": "MultiLineString", "coordinates": parts}


def _parts(line: list[Position]) -> list[list[Position]]:
    """Return the line cut at the antimeridian (RFC 7946, 3.1.9), which it crosses where that is the shorter way."""
    parts: list[list[Position]] = [line[:1]]
    for (left, south), (right, north) in itertools.pairwise(line):
        if abs(right - left) > HALF_TURN:
            before, after = HALF_TURN - abs(left), HALF_TURN - abs(right)
            latitude = south + (north - south) * before / ((before + after) or 1)
            edge = math.copysign(HALF_TURN, left)
            # What lies on the antimeridian lies on both of its sides, and a part has two points.
            if [left, south] != [edge, latitude]:
                parts[-1].append([edge, latitude])
            parts.append([[-edge, latitude]])
            if [right, north] == [-edge, latitude]:
                continue
        parts[-1].append([right, north])
    return [part for part in parts if len(part) > 1] or [line]
