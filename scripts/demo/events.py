"""The events of a demonstration trip, which are derived from its trail, and their summary.

- HARD_BRAKE and RAPID_ACCELERATION: speed changes beyond -3.5 and +3.0 m/s2 from one step of 1 s to the next.
- OVERSPEEDING: at least 10 s at more than 5 mph above the limit.
- PHONE_USE: random stretches between two trail points, according to the driver's style.
"""

import collections
import itertools
import random
from typing import NamedTuple

from scripts.demo.geometry import MPS_PER_MPH, Fix

# The numbers of schemas.trip.EVENT_TYPES.
RAPID_ACCELERATION, HARD_BRAKE, PHONE_USE, OVERSPEEDING = 1, 2, 7, 9
HARD_BRAKE_MPS2, RAPID_ACCELERATION_MPS2 = -3.5, 3.0
OVERSPEEDING_MARGIN_MPH, OVERSPEEDING_MIN_SECONDS = 5, 10


class Event(NamedTuple):
    """An event from one trail point to another, given by their indexes."""

    event_type: int
    first: int
    last: int
    data: dict[str, float]


def find_sharp_changes(seconds: list[int], mph: list[float]) -> list[Event]:
    """Return the runs of steps of 1 s between which the speed falls, or rises, beyond the threshold."""
    events: list[Event] = []
    for i in range(1, len(mph)):
        if seconds[i - 1] != 1 or seconds[i] != 1:
            continue
        mps2 = (mph[i] - mph[i - 1]) * MPS_PER_MPH
        event_type = (
            HARD_BRAKE if mps2 < HARD_BRAKE_MPS2 else RAPID_ACCELERATION if mps2 > RAPID_ACCELERATION_MPS2 else 0
        )
        if event_type and events and events[-1].event_type == event_type and events[-1].last >= i:
            events[-1] = Event(event_type, events[-1].first, i + 1, {})
        elif event_type:
            events.append(Event(event_type, i - 1, i + 1, {}))
    return events


def find_overspeeding(fixes: list[Fix], miles: list[float], mph: list[float]) -> list[Event]:
    """Return the runs of steps at one speed limit that all exceed it by the margin, with the speeds of the trail."""
    events: list[Event] = []
    limits = [max(a.limit_mph, b.limit_mph) for a, b in itertools.pairwise(fixes)]
    keys = [(limit, speed > limit + OVERSPEEDING_MARGIN_MPH) for limit, speed in zip(limits, mph, strict=True)]
    end = 0
    for (limit, is_over), run in itertools.groupby(keys):
        begin, end = end, end + len(list(run))
        seconds = fixes[end].second - fixes[begin].second
        if is_over and seconds >= OVERSPEEDING_MIN_SECONDS:
            data = {
                "user_speed_mph": round(sum(miles[begin:end]) / seconds * 3600, 1),  # the mean
                "speed_limit_mph": limit,
                "max_user_speed_mph": round(max(mph[begin:end]), 1),
            }
            events.append(Event(OVERSPEEDING, begin, end, data))
    return events


def make_phone_use(fixes: list[Fix], share: float, rng: random.Random) -> list[Event]:
    """Return stretches, none of which overlap, that take about this share of the trip's time."""
    events: list[Event] = []
    remaining_seconds = share * fixes[-1].second * rng.uniform(0.4, 1.6)
    while remaining_seconds > 0:
        length = rng.uniform(8, 50)
        if rng.random() > remaining_seconds / length:
            break  # the last stretch is longer than the remaining time: with this probability the mean is right
        remaining_seconds -= length
        begin = rng.randrange(len(fixes))
        end = next((i for i, fix in enumerate(fixes) if fix.second >= fixes[begin].second + length), begin)
        if begin < end and all(end <= event.first or event.last <= begin for event in events):
            events.append(Event(PHONE_USE, begin, end, {}))
    return events


def summarize(events: list[Event], fixes: list[Fix]) -> dict[str, int]:
    """Return the EventSummary of a trip's events."""
    counts, seconds = collections.Counter[int](), collections.Counter[int]()
    for event in events:
        counts[event.event_type] += 1
        seconds[event.event_type] += fixes[event.last].second - fixes[event.first].second
    return {
        "phone_use_count": counts[PHONE_USE],
        "rapid_acceleration_count": counts[RAPID_ACCELERATION],
        "hard_brake_count": counts[HARD_BRAKE],
        "overspeeding_count": counts[OVERSPEEDING],
        "phone_use_time_seconds": seconds[PHONE_USE],
        "overspeeding_time_seconds": seconds[OVERSPEEDING],
    }
