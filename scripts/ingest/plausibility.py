"""What is said of trips that are valid but not plausible. They are loaded."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from schemas.periods import UTC, midnight

OLDEST_START_MS = midnight("2000-01-01", UTC)
MAX_MEAN_MPH = 150
# A duration may leave out stops, and a time is a whole number of milliseconds.
MAX_DIFFERENCE, MAX_DIFFERENCE_SECONDS = 0.1, 60
# A part that was added up from many numbers may exceed the whole by as much.
ROUNDING = 1e-6


def _is_too_fast(trip: Mapping[str, Any]) -> bool:
    return bool(trip["distance_miles"] * 3600 > MAX_MEAN_MPH * trip["duration_seconds"])


def _differs_from_times(trip: Mapping[str, Any]) -> bool:
    seconds = (trip["trip_end_time"] - trip["trip_start_time"]) / 1000
    difference = abs(trip["duration_seconds"] - seconds)
    return bool(difference > MAX_DIFFERENCE_SECONDS and difference > MAX_DIFFERENCE * seconds)


def _has_longer_part(whole: float, *parts: float) -> bool:
    return max(parts) > whole * (1 + ROUNDING)


def _has_too_many_seconds(trip: Mapping[str, Any]) -> bool:
    events = trip["event_summary"]
    seconds = events["phone_use_time_seconds"], events["overspeeding_time_seconds"], trip["night_driving_seconds"]
    return _has_longer_part(trip["duration_seconds"], *seconds)


def _has_too_many_miles(trip: Mapping[str, Any]) -> bool:
    return _has_longer_part(trip["distance_miles"], trip["highway_miles"], trip["night_driving_miles"])


def _is_out_of_order(trip: Mapping[str, Any]) -> bool:
    times = (point["timestamp"] for point in trip["trail_path"])
    return any(before > after for before, after in itertools.pairwise(times))


KINDS: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "a trip_start_time before the year 2000 (times are epoch milliseconds)": (
        lambda trip: trip["trip_start_time"] < OLDEST_START_MS
    ),
    "phone, overspeeding or night seconds longer than the trip": _has_too_many_seconds,
    "highway or night miles longer than the trip": _has_too_many_miles,
    "trail points out of order of time": _is_out_of_order,
    f"a mean speed over {MAX_MEAN_MPH} mph": _is_too_fast,
    "a duration_seconds that differs from its times by more than a tenth and a minute": _differs_from_times,
}


class Doubts:
    """The trips of an input that are not plausible: how many of each kind, and the first of each."""

    def __init__(self) -> None:
        self._counts, self._firsts = Counter[str](), dict[str, dict[str, Any]]()

    def check(self, number: int, trip: Mapping[str, Any]) -> None:
        """Check a trip (schema ImportedTrip), which has this number in the input."""
        for kind, is_doubtful in KINDS.items():
            if is_doubtful(trip):
                self._firsts.setdefault(kind, {"number": number, "trip_id": trip["trip_id"]})
                self._counts[kind] += 1

    def describe(self, name: str) -> Iterator[str]:
        """Yield a sentence on each kind. `name` is how a trip is named: "line {number}" or "trip {trip_id}"."""
        for kind, count in self._counts.items():
            yield f"{count} loaded, but with {kind}. The first: {name.format(**self._firsts[kind])}"
