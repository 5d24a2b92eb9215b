"""Units, the position of the town on the Earth, distances and bearings.

`Point` is in metres east and north of the town's centre; latitude and longitude are in degrees.
"""

import math
from typing import NamedTuple

LATITUDE, LONGITUDE = 38.84, -97.5  # degrees, the town's centre
EARTH_RADIUS_METERS = 6_371_008.8  # mean radius, IUGG
METERS_PER_MILE = 1609.344
MPS_PER_MPH = METERS_PER_MILE / 3600
DEGREES_PER_METER_NORTH = math.degrees(1 / EARTH_RADIUS_METERS)
DEGREES_PER_METER_EAST = DEGREES_PER_METER_NORTH / math.cos(math.radians(LATITUDE))

Point = tuple[float, float]


class Fix(NamedTuple):
    """A sample of a drive: seconds since its start, degrees rounded to 6 decimals, and the speed limit there."""

    second: int
    latitude: float
    longitude: float
    limit_mph: int


def haversine_meters(a: Fix, b: Fix) -> float:
    """Return the distance between two samples."""
    lat_a, lat_b = math.radians(a.latitude), math.radians(b.latitude)
    half_lat, half_lon = (lat_b - lat_a) / 2, math.radians(b.longitude - a.longitude) / 2
    h = math.sin(half_lat) ** 2 + math.cos(lat_a) * math.cos(lat_b) * math.sin(half_lon) ** 2
    return 2 * EARTH_RADIUS_METERS * math.asin(math.sqrt(h))


def bearing(a: Fix, b: Fix) -> float:
    """Return the direction from a to b in degrees from North, [0, 360), to one decimal."""
    lat_a, lat_b, lon = math.radians(a.latitude), math.radians(b.latitude), math.radians(b.longitude - a.longitude)
    north = math.cos(lat_a) * math.sin(lat_b) - math.sin(lat_a) * math.cos(lat_b) * math.cos(lon)
    return round(math.degrees(math.atan2(math.sin(lon) * math.cos(lat_b), north)), 1) % 360
