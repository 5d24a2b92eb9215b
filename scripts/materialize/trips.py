"""The read models of trips: `trip_details`, their events, `trip_events`, and the change feed, `trip_changes`.

The details of a trip are its detail form in fragments, and what finds, orders and adds it up. The change feed has an
entry for each trip, and for 30 days a tombstone for each deleted trip.
"""

import datetime
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from zoneinfo import ZoneInfo

import orjson

from app.store import Document, Store
from app.store.fleets import get_settings
from app.store.trips import DETAIL_FRAGMENTS, TRIP_SUMMARY_FIELDS
from schemas.identity import make_event_id, make_id, make_start_key, make_worst_key, match_ids
from schemas.periods import date_of, now_ms
from schemas.plausibility import IMPLAUSIBLE_KINDS, LEFT_OUT, find_kinds
from schemas.score import compute_trip_score
from schemas.summary import AMOUNTS
from schemas.trip import ImportedTrip, TripDetail
from scripts.materialize.days import Day, days_of, group_by_dates
from scripts.materialize.sources import InvalidSource, read_sources
from scripts.materialize.versions import is_same, version_of, version_of_texts

TRIP_DETAIL = TripDetail()
# Such as `tracking_id`.
NOT_RETURNED = [name for name in ImportedTrip().fields if name not in TRIP_DETAIL.fields]
# The values of a trip that are added up in its Daily summary.
TRIP_TOTALS_FIELDS = (*AMOUNTS, "event_summary")
# The document of a day contains the summaries of its trips, up to 1.5 kB each. MongoDB limits it to 16 MB.
MAX_TRIPS_A_DAY = 5_000
# The fields of an entry of the change feed that follow from its trip.
CONTENT = ("driver_id", "tracking_id", "trip_end_time", "version", "json")
# The fields of an entry whose values no other document has, or had once. The checksum is made of them, and of the
# `deleted_at` of a tombstone.
HISTORY = ("_id", "change", "replaced", "driver_id", "trip_end_time")
# The fields of a tombstone, and of any other entry.
OF_ENTRY = {"_id", "fleet", "trip_id", "change", "replaced", "checksum"}
OF_TOMBSTONE, OF_TRIP = OF_ENTRY | {"driver_id", "deleted_at"}, OF_ENTRY.union(CONTENT)

TRIP_ID = {"_id": 0, "trip_id": 1}
# The entries of the change feed that are no tombstones.
NOT_DELETED = {"deleted_at": {"$exists": False}}


def make_trip_detail(fleet: str, trip: Document) -> Document:
    """Return the details of a trip (schema ImportedTrip), to which `apply_settings` adds what its fleet decides.

    They have its filter and sort fields, and its detail form as rendered JSON in four fragments: `summary` is the
    summary form, the others are one field each. `implausible` has the kinds of an implausible trip, and is
    absent for any other; `insurance_period` is absent if it is null. `start_key` and `worst_key` have the two orders of
    lists of trips.
    """
    detail = TRIP_DETAIL.dump(add_focus_area(trip))
    summary = {name: detail[name] for name in TRIP_SUMMARY_FIELDS}
    fragments = {"summary": orjson.dumps(summary), **{name: orjson.dumps(detail[name]) for name in DETAIL_FRAGMENTS}}
    # Part of the version, because they are stored in `trips` but not in the detail form.
    source = orjson.dumps([*map(trip.get, NOT_RETURNED), "focus_area" in trip])
    implausible, trip_id, start_ms = find_kinds(trip, IMPLAUSIBLE_KINDS), trip["trip_id"], trip["trip_start_time"]
    fm_score = compute_trip_score(trip)["fm_score"]
    return {
        "_id": make_id(fleet, trip["trip_id"]),
        "fleet": fleet,
        "trip_id": trip_id,
        "tracking_id": trip["tracking_id"],
        "driver_id": trip["driver_id"],
        "trip_start_time": start_ms,
        "trip_end_time": trip["trip_end_time"],
        "start_key": make_start_key(start_ms, trip_id),
        "worst_key": make_worst_key(fm_score, trip["distance_miles"], trip_id),
        "fm_score": fm_score,
        "distance_miles": detail["distance_miles"],
        "is_implausible": bool(implausible),
        **({"implausible": implausible} if implausible else {}),
        **({"insurance_period": period} if (period := trip["insurance_period"]) is not None else {}),
        **{name: text.decode() for name, text in fragments.items()},
        "version": version_of_texts([source, *fragments.values()]),
    }


def add_focus_area(trip: Document) -> Document:
    """Return a trip with its focus area, as in a response: if it has none, its event summary gives it."""
    return trip if "focus_area" in trip else {**trip, "focus_area": compute_trip_score(trip)["focus_area"]}


def read_trips(
    store: Store,
    fleet: str,
    trip_ids: Iterable[str],
    invalid: list[InvalidSource],
    check: Callable[[Document], None] = lambda trip: None,
) -> dict[str, Document | None]:
    """Return the details that follow from the sources of trips, by trip_id, or None without a valid source.

    Adds the invalid sources to `invalid`, and calls `check` with the others.
    """
    details: dict[str, Document | None] = dict.fromkeys(trip_ids)
    for trip in read_sources(store.trips, fleet, details, invalid):
        check(trip)
        details[trip["trip_id"]] = make_trip_detail(fleet, trip)
    present = [detail for detail in details.values() if detail]
    for index, reason in apply_settings(store, fleet, present).items():
        trip_id = present[index]["trip_id"]
        details[trip_id] = None
        invalid.append(InvalidSource("trips", make_id(fleet, trip_id), reason))
    return details


def apply_settings(store: Store, fleet: str, details: Sequence[Document]) -> dict[int, str]:
    """Set what the settings of the fleet decide about trips, and return why some have no details, by their index.

    `date` is the local date of a trip, and `totals` is what it adds to its day, or null if it is left out of the sums.
    A trip has no details if its date is not in the years 1 to 9999, or if its day has no room for it.
    """
    (zone, policy), reasons = get_settings(store, fleet), dict[int, str]()
    for index, detail in enumerate(details):
        detail["totals"] = None if policy == LEFT_OUT and detail["is_implausible"] else _make_totals(detail)
        if date := get_date(detail["trip_start_time"], zone):
            detail["date"] = date
        else:
            reasons[index] = f"trip_start_time: Its date in {zone.key} is not in the years 1 to 9999."
    dated = {index: detail for index, detail in enumerate(details) if index not in reasons}
    reason = f"driver_id: Has {MAX_TRIPS_A_DAY} other trips on this date, which is the maximum."
    return reasons | dict.fromkeys(_find_excess(store, fleet, dated), reason)


def _make_totals(detail: Document) -> Document:
    """Return the values of a trip that are added up.

    They are plain numbers of JSON: MongoDB adds up a 64-bit integer with other rounding errors than a 32-bit one, and a
    trip that is exported and imported again has lost the difference.
    """
    summary = orjson.loads(detail["summary"])
    return {name: summary[name] for name in TRIP_TOTALS_FIELDS}


def get_date(start_ms: int, zone: ZoneInfo) -> str | None:
    """Return the date of a trip, or None if it is not in the years 1 to 9999."""
    try:
        return date_of(start_ms, zone)
    except ValueError:
        return None


def _find_excess(store: Store, fleet: str, details: Mapping[int, Document]) -> list[int]:
    """Return the indices of the trips for which their day has no room: it has MAX_TRIPS_A_DAY other trips.

    The details, by index, take their places one after the other. Of several with the same trip_id, a later one takes
    the place of the earlier one, as it does of the stored one. Index: trip_details (fleet, driver_id, date, ...).
    """
    counts = _count_trips(store, fleet, days_of(details.values()))
    if max(counts.values(), default=0) + len(details) <= MAX_TRIPS_A_DAY:
        return []
    match = {"_id": {"$in": [detail["_id"] for detail in details.values()]}}
    stored = store.trip_details.find(match, {"driver_id": 1, "date": 1})
    places = {detail["_id"]: day for detail in stored for day in days_of([detail])}
    excess = list[int]()
    for index, detail in details.items():
        day, before = Day(detail["driver_id"], detail["date"]), places.get(detail["_id"])
        if day == before:
            continue
        if counts[day] >= MAX_TRIPS_A_DAY:
            excess.append(index)
            continue
        counts[day] += 1
        if before:
            counts[before] -= 1
        places[detail["_id"]] = day
    return excess


def _count_trips(store: Store, fleet: str, days: Iterable[Day]) -> Counter[Day]:
    counts = Counter[Day]()
    for driver_ids, dates in group_by_dates(days):
        match = {"fleet": fleet, "driver_id": {"$in": driver_ids}, "date": {"$in": dates}}
        group = {"_id": {"driver_id": "$driver_id", "date": "$date"}, "count": {"$sum": 1}}
        found = store.trip_details.aggregate([{"$match": match}, {"$group": group}], hint="day_trips")
        counts.update({day: each["count"] for each in found for day in days_of([each["_id"]])})
    return counts


def make_events(
    store: Store, fleet: str, details: Mapping[str, Document | None]
) -> dict[tuple[str, str], Document | None]:
    """Return the events of trips, by trip_id and `_id`; None is for one that is stored and should not be there.

    Details are by trip_id, and None for a trip that does not exist. Index: trip_events (fleet, trip_id).
    """
    match = {"fleet": fleet, "trip_id": {"$in": list(details)}}
    # The field of a damaged event may be an array with the identifier, and its `_id` an object.
    stored = [
        event
        for event in store.trip_events.find(match, {"trip_id": 1})
        if isinstance(event["trip_id"], str) and not isinstance(event["_id"], dict)
    ]
    events = dict[tuple[str, str], Document | None].fromkeys((event["trip_id"], event["_id"]) for event in stored)
    for detail in filter(None, details.values()):
        events |= {(event["trip_id"], event["_id"]): event for event in _make_events(detail)}
    return events


def _make_events(detail: Document) -> Iterator[Document]:
    """Yield the events of a trip. `is_late` says that one starts after the end of the trip, and is absent otherwise.

    A trip that is left out of the sums has none, so that no list of events reads them.
    """
    if detail["totals"] is None:
        return
    fleet, trip_id = detail["fleet"], detail["trip_id"]
    for index, event in enumerate(orjson.loads(detail["events"])):
        yield {
            "_id": make_event_id(fleet, event["event_start_timestamp"], trip_id, index),
            "fleet": fleet,
            "trip_id": trip_id,
            "driver_id": detail["driver_id"],
            "event_index": index,
            **event,
            "trip_end_time": detail["trip_end_time"],
            **({"is_late": True} if event["event_start_timestamp"] > detail["trip_end_time"] else {}),
        }


def make_entries(store: Store, fleet: str, details: Mapping[str, Document | None]) -> dict[str, Document | None]:
    """Return the entries to write, by `_id`, for trips whose stored entry is missing or outdated, or None to delete it.

    Details are by trip_id, and None for a trip that does not exist: if it has an entry, a tombstone takes its place.
    `transaction` has given the change its number. A damaged entry counts as missing, or is deleted without a trip:
    `has_damaged_entry` says whether the feed has to begin from scratch.
    """
    entries = {entry["_id"]: entry for entry in store.trip_changes.find(match_ids(fleet, details))}
    damaged = {_id for _id, entry in entries.items() if _is_damaged(fleet, entry)}
    made = dict[str, Document | None]()
    state: Document = {}
    for trip_id, detail in details.items():
        _id = make_id(fleet, trip_id)
        entry = None if _id in damaged else entries.get(_id)
        if _is_outdated(entry, detail):
            state = state or store.fleets.find_one({"_id": fleet}) or {"writes": 0, "written_at": None}
            made[_id] = _make_entry(fleet, trip_id, detail, entry, state)
        elif _id in damaged:
            made[_id] = None
    return made


def has_damaged_entry(store: Store, fleet: str, ids: Iterable[str]) -> bool:
    """Return whether any of the stored entries with these `_id` has not the history that was written.

    Then nobody knows what the clients of the feed have of its trip.
    """
    return any(_is_damaged(fleet, entry) for entry in store.trip_changes.find({"_id": {"$in": list(ids)}}))


def _is_damaged(fleet: str, entry: Document) -> bool:
    is_tombstone = "deleted_at" in entry
    return (
        (is_tombstone and (entry.keys() != OF_TOMBSTONE or not isinstance(entry["deleted_at"], datetime.datetime)))
        or entry["_id"] != f"{entry.get('fleet')}/{entry.get('trip_id')}"
        or entry.get("fleet") != fleet
        # JSON, of which the checksum is made, has null in place of a number such as infinity.
        or not isinstance(entry.get("replaced"), dict | None)
        or entry.get("checksum") != _make_checksum(entry)
    )


def _make_checksum(entry: Document) -> str:
    deleted_at = entry.get("deleted_at")
    # MongoDB stores milliseconds.
    time = deleted_at.isoformat(timespec="milliseconds") if isinstance(deleted_at, datetime.datetime) else None
    try:
        return version_of(*map(entry.get, HISTORY), time)
    except orjson.JSONEncodeError:
        # No valid entry has a value of this type.
        return ""


def _is_outdated(entry: Document | None, detail: Document | None) -> bool:
    if detail is None:
        return entry is not None and "deleted_at" not in entry
    if entry is None or entry.keys() != OF_TRIP:
        return True
    return not is_same(_get_content(detail), {name: entry[name] for name in CONTENT})


def _get_content(detail: Document) -> Document:
    return {**{name: detail[name] for name in CONTENT if name != "json"}, "json": detail["summary"]}


def _make_entry(
    fleet: str, trip_id: str, detail: Document | None, before: Document | None, state: Document
) -> Document:
    """Return the entry of a trip, or the tombstone of a deleted one, which had an entry `before`.

    `change` is the number of the transaction that last changed the trip, `json` the summary form as rendered JSON, and
    `version` that of the details. `replaced` merges all earlier versions into one, and is null if there were none.
    Nothing else has this history, so `checksum` shows whether it is what was written.
    """
    # A tombstone has MongoDB's own time, because MongoDB deletes it 30 days later by that.
    deleted = {"driver_id": before["driver_id"], "deleted_at": state["written_at"]} if before else {}
    entry = {
        "_id": make_id(fleet, trip_id),
        "fleet": fleet,
        "trip_id": trip_id,
        "change": state["writes"],
        "replaced": _describe_replaced(before, state["writes"]) if before else None,
        **(_get_content(detail) if detail else deleted),
    }
    return {**entry, "checksum": _make_checksum(entry)}


def _describe_replaced(before: Document, change: int) -> Document | None:
    """Return the earlier versions of a trip that has the entry `before`, which this change replaces, as one.

    It has their earliest end and the time of the latest replacement, so it covers every version that a client may have.
    An upstream system may correct the end of a trip any number of times.
    """
    replaced: Document | None = before.get("replaced")
    if "deleted_at" in before:
        return replaced
    end = min(version["trip_end_time"] for version in (before, replaced) if version)
    return {"trip_end_time": end, "change": change, "replaced_at": now_ms()}
