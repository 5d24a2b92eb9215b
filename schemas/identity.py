"""What identifies the documents of the collections, and the keys that put them in order."""

import struct
from collections.abc import Iterable
from typing import Any

from schemas.fields import MIN_EPOCH_MS, SURROGATE
from schemas.trip import MAX_EVENTS


def make_id(fleet: str, identifier: str) -> str:
    """Return the `_id` of a driver's or trip's source: it is the identity of the document."""
    return f"{fleet}/{identifier}"


def match_ids(fleet: str, identifiers: Iterable[str]) -> dict[str, Any]:
    """Return the condition on the `_id` of the documents of a fleet with these identifiers."""
    return {"_id": {"$in": [make_id(fleet, identifier) for identifier in identifiers]}}


def split_id(_id: Any) -> tuple[str, str] | None:
    """Return the fleet and the identifier of an `_id`, or None if it belongs to no fleet or is not UTF-8."""
    # What is not UTF-8 was read with surrogates, which MongoDB does not take back.
    fleet, slash, identifier = _id.partition("/") if isinstance(_id, str) else ("", "", "")
    return None if not fleet or not slash or SURROGATE.search(_id) else (fleet, identifier)


def ids_of_fleet(fleet: str) -> dict[str, str]:
    """Return the condition on the `_id` of a fleet's documents."""
    # In the order of MongoDB, 0 is the character after the slash.
    return {"$gte": f"{fleet}/", "$lt": f"{fleet}0"}


def make_event_id(fleet: str, start_ms: int, trip_id: str = "", index: int = 0) -> str:
    """Return the `_id` of an event of a trip that starts at a time: they are in order of time, trip_id and index.

    Without a trip, it is less than those of all events that start then.
    """
    in_trip = f"\t{index:0{len(str(MAX_EVENTS))}}" if trip_id else ""
    return f"{fleet}/{make_start_key(start_ms, trip_id)}{in_trip}"


def make_start_key(start_ms: int, trip_id: str = "") -> str:
    """Return the key of a trip that starts at a time: keys are in order of time and trip_id.

    Without a trip, it is less than those of all trips that start then.
    """
    # A tab is less than all characters that a trip_id may have.
    return f"{start_ms - MIN_EPOCH_MS:015}" + (f"\t{trip_id}" if trip_id else "")


def make_worst_key(fm_score: float, distance_miles: float, trip_id: str) -> str:
    """Return the key of a trip in the order of its score, then of its distance, the longer first, then of trip_id."""
    # The bits of doubles from 0 on are in the order of the doubles.
    (bits,) = struct.unpack(">Q", struct.pack(">d", distance_miles))
    return f"{fm_score:05.1f} {2**64 - 1 - bits:016x} {trip_id}"
