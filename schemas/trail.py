"""A trail as lines for a map, divided where it crosses the antimeridian and where the signal was lost."""

import itertools
import math
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any

# The longitude of the antimeridian, in degrees, and also half of the circumference.
HALF_TURN = 180
# After a longer time without a point, nobody knows where the vehicle was. Devices send a point each 1 to 60 seconds.
MAX_GAP_MS = 120_000
# Longitude, latitude, and the time (epoch ms) at which the trip was there.
Point = tuple[float, float, int]
Line = list[Point]


def make_line(trail: Iterable[Mapping[str, Any]]) -> Line:
    """Return the points of a trail, in their order."""
    return list(map(itemgetter("longitude", "latitude", "timestamp"), trail))


def divide_at_gaps(line: Line) -> list[Line]:
    """Divide a line where two points are more than MAX_GAP_MS apart, whichever of them is earlier."""
    gaps = [
        index
        for index, ((*_, begin), (*_, end)) in enumerate(itertools.pairwise(line), 1)
        if abs(end - begin) > MAX_GAP_MS
    ]
    return [line[begin:end] for begin, end in itertools.pairwise([0, *gaps, len(line)]) if begin < end]


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
