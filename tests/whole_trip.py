"""A trip with every part that a trip can have, and lines with one of its values altered."""

import copy
import functools
import json
from typing import Any

from tests.factories import epoch_ms, make_event, make_trip

MAX_INT, MIN_INT = 2**63 - 1, -(2**63)
SPEEDS = {"user_speed_mph": 71.5, "speed_limit_mph": 60, "max_user_speed_mph": 80.25}
FOCUS = dict.fromkeys(("is_phone_use", "is_rapid_acceleration", "is_hard_brake", "is_overspeeding"), False)
EVENTS = [(1, "RAPID_ACCELERATION", {}), (2, "HARD_BRAKE", {}), (7, "PHONE_USE", {}), (9, "OVERSPEEDING", SPEEDS)]
SNOWMAN = "☃"


def make_events(begin: int) -> list[dict[str, Any]]:
    """Return an event of each type."""
    return [make_event(begin, event_type=kind, event_name=name, event_data=data) for kind, name, data in EVENTS]


def make_whole_trip(**fields: Any) -> dict[str, Any]:
    """Return a trip with every part that a trip can have, events of all types included."""
    events = make_events(epoch_ms("2026-03-10T08:00"))
    given = {"trip_id": "bad", "tracking_id": "k1", "insurance_period": 2, "focus_area": FOCUS, "events": events}
    return make_trip(**{**given, **fields})


WHOLE = make_whole_trip()


def steps_of(path: str) -> list[Any]:
    """Return the keys and indexes of a path such as `events.0.event_type`."""
    return [int(step) if step.isdigit() else step for step in path.split(".")]


def altered(path: str, text: str | None, document: dict[str, Any] = WHOLE) -> str:
    """Return the line of a document in which the value at `path` is this JSON text; None leaves the field out."""
    document = copy.deepcopy(document)
    *way, last = steps_of(path)
    inside: Any = functools.reduce(lambda result, step: result[step], way, document)
    if text is None:
        del inside[last]
        return json.dumps(document)
    inside[last] = SNOWMAN
    return json.dumps(document, ensure_ascii=False).replace(json.dumps(SNOWMAN, ensure_ascii=False), text)
