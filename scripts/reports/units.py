"""The units in which a report page shows distances. The CSV file has miles, as the API."""

import sys
from typing import NamedTuple

from schemas.report import rate

MILES = "miles"


class Units(NamedTuple):
    """A unit of distance: its name in a sentence and at the head of a column, and how many of it are a mile."""

    name: str
    heading: str
    per_mile: float

    def distance(self, miles: float) -> float:
        """Return a distance in miles in this unit, at most the largest double."""
        return min(miles * self.per_mile, sys.float_info.max)

    def rate(self, count: float, miles: float) -> float:
        """Return how often something happened per 100 of this unit."""
        return rate(count, self.distance(miles))


UNITS = {MILES: Units("miles", "Miles", 1.0), "km": Units("km", "km", 1.609344)}
