"""What is said of trips that are valid, but not plausible. They are loaded.

The values of an implausible trip cannot be. One broken device could turn the score of a fleet, so a fleet may leave
such trips out of its sums. The other kinds are only named.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from operator import itemgetter
from typing import Any, Final, NamedTuple

from schemas.periods import MS_PER_DAY, MS_PER_SECOND, now_ms

Trip = Mapping[str, Any]
COUNTED: Final = "counted"
LEFT_OUT: Final = "left_out"
# What a fleet does with implausible trips in its summaries, scores and sums.
POLICIES = (COUNTED, LEFT_OUT)

MAX_MEAN_MPH, MAX_MPH, MAX_LIMIT_MPH = 150, 200, 100
SECONDS_PER_EVENT = 5
MAX_AGE_MS = 3_653 * MS_PER_DAY
# How far a time may be outside the trip, and a trip in another one.
MARGIN_SECONDS = 60
MARGIN_MS = MARGIN_SECONDS * MS_PER_SECOND
# A duration may leave out stops.
MAX_DIFFERENCE = 0.1
# A part that was added up from many numbers may exceed the whole by as much.
MOST_ROUNDED = Decimal("1.000001")
ZERO = (0, 0)
TRIP_START, TRIP_END, EVENT_START, EVENT_END = (
    itemgetter(f"{name}_latitude", f"{name}_longitude") for name in ("start", "end", "event_start", "event_end")
)


def _get_counts(trip: Trip) -> dict[str, int]:
    """Return the counts of events in the event summary."""
    return {name: count for name, count in trip["event_summary"].items() if name.endswith("_count")}


def _find_speeds(trip: Trip) -> list[Trip]:
    """Return the `event_data` of the events of overspeeding."""
    return [event["event_data"] for event in trip["events"] if event["event_data"]]


def _find_trail_times(trip: Trip) -> list[int]:
    return list(map(itemgetter("timestamp"), trip["trail_path"]))


def _are_outside(times: list[int], trip: Trip) -> bool:
    """Return whether any of the times is outside the time of the trip, and not by a little."""
    first, last = trip["trip_start_time"] - MARGIN_MS, trip["trip_end_time"] + MARGIN_MS
    return bool(times) and not first <= min(times) <= max(times) <= last


def _is_too_fast(trip: Trip) -> bool:
    return bool(trip["distance_miles"] * 3600 > MAX_MEAN_MPH * trip["duration_seconds"])


def _has_longer_part(trip: Trip) -> bool:
    events = trip["event_summary"]
    seconds = events["phone_use_time_seconds"], events["overspeeding_time_seconds"], trip["night_driving_seconds"]
    miles = trip["highway_miles"], trip["night_driving_miles"]
    wholes = ((trip["duration_seconds"], seconds), (trip["distance_miles"], miles))
    # Few parts are longer, so that decimals, which are exact, cost nothing.
    return any(
        max(parts) > whole and Decimal(str(max(parts))) > Decimal(str(whole)) * MOST_ROUNDED for whole, parts in wholes
    )


def _has_too_many_events(trip: Trip) -> bool:
    return bool(sum(_get_counts(trip).values()) * SECONDS_PER_EVENT > trip["duration_seconds"])


def _has_zero_position(trip: Trip) -> bool:
    trail, events = trip["trail_path"], trip["events"]
    # Most trails have no latitude of 0, which is found fast.
    if not all(map(itemgetter("latitude"), trail)) and ZERO in map(itemgetter("latitude", "longitude"), trail):
        return True
    return ZERO in [TRIP_START(trip), TRIP_END(trip), *map(EVENT_START, events), *map(EVENT_END, events)]


def _has_impossible_speed(trip: Trip) -> bool:
    return any(
        not 0 < speed["speed_limit_mph"] <= MAX_LIMIT_MPH
        or max(speed["user_speed_mph"], speed["max_user_speed_mph"]) > MAX_MPH
        for speed in _find_speeds(trip)
    )


def _has_lower_maximum(trip: Trip) -> bool:
    return any(speed["max_user_speed_mph"] < speed["user_speed_mph"] for speed in _find_speeds(trip))


def _is_old(trip: Trip) -> bool:
    return bool(trip["trip_start_time"] < now_ms() - MAX_AGE_MS)


def _has_unordered_trail(trip: Trip) -> bool:
    times = _find_trail_times(trip)
    return times != sorted(times)


def _has_trail_outside(trip: Trip) -> bool:
    return _are_outside(_find_trail_times(trip), trip)


def _has_event_outside(trip: Trip) -> bool:
    return _are_outside([event[f"event_{end}_timestamp"] for event in trip["events"] for end in ("start", "end")], trip)


def _has_other_counts(trip: Trip) -> bool:
    counts, names = _get_counts(trip), [f"{event['event_name'].lower()}_count" for event in trip["events"]]
    return counts != {name: names.count(name) for name in counts}


def _differs_from_times(trip: Trip) -> bool:
    seconds = (trip["trip_end_time"] - trip["trip_start_time"]) / MS_PER_SECOND
    difference = abs(trip["duration_seconds"] - seconds)
    return bool(difference > MARGIN_SECONDS and difference > MAX_DIFFERENCE * seconds)


class Kind(NamedTuple):
    """A kind of trip that is not plausible: its name, how it is named in a sentence, and the rule."""

    name: str
    words: str
    is_met: Callable[[Trip], bool]


IMPLAUSIBLE_KINDS = (
    Kind("mean_speed", f"a mean speed over {MAX_MEAN_MPH} mph", _is_too_fast),
    Kind("part_longer_than_trip", "phone, overspeeding, night or highway parts longer than the trip", _has_longer_part),
    Kind("event_rate", f"more than one event in {SECONDS_PER_EVENT} seconds", _has_too_many_events),
)
IMPLAUSIBLE = tuple(kind.name for kind in IMPLAUSIBLE_KINDS)
KINDS = (
    *IMPLAUSIBLE_KINDS,
    Kind("old_start", "a trip_start_time more than ten years ago (times are epoch milliseconds)", _is_old),
    Kind("trail_order", "trail points out of order of time", _has_unordered_trail),
    Kind("trail_time", "trail points outside the time of the trip by more than a minute", _has_trail_outside),
    Kind("event_time", "an event outside the time of the trip by more than a minute", _has_event_outside),
    Kind("zero_position", "a position of exactly 0, 0", _has_zero_position),
    Kind(
        "speed",
        f"a speed limit of 0 or less or over {MAX_LIMIT_MPH} mph, or a speed over {MAX_MPH} mph",
        _has_impossible_speed,
    ),
    Kind("maximum", "a max_user_speed_mph below user_speed_mph", _has_lower_maximum),
    Kind("counts", "counts of event_summary that differ from the events", _has_other_counts),
    Kind(
        "duration",
        "a duration_seconds that differs from its times by more than a tenth and a minute",
        _differs_from_times,
    ),
)
# Known from the other trips of the driver, not from a trip alone.
OVERLAP = "overlap"
WORDS = {kind.name: kind.words for kind in KINDS} | {
    OVERLAP: "times that overlap those of another trip of the driver by more than a minute"
}


def find_kinds(trip: Trip, kinds: Sequence[Kind] = KINDS) -> list[str]:
    """Return the kinds of a trip (schema ImportedTrip) but OVERLAP, in the order of the table. Most trips have none."""
    return [kind.name for kind in kinds if kind.is_met(trip)]
