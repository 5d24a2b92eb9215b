"""The read models of a fleet's days, weeks and months, in `fleet_periods`: what the drivers' documents add up to.

There are sums of the whole fleet, and of each of its segments. A group also has the number of its drivers.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, Self

import orjson

from app.store import Document, Store
from app.store.groups import INDEX, OF_COUNT
from schemas.fleet import CONTRIBUTION, INSURANCE_PERIODS, add_whole, make_fleet_summary, make_segment
from schemas.periods import LONG_PERIODS, MONTH, PERIODS, PROFILE, first_of_month, is_date, last_of_month
from scripts.command_line.batches import batches
from scripts.materialize.days import Day, Groups, PeriodIdentity, group_by_dates
from scripts.materialize.unidentified import is_identified
from scripts.materialize.versions import version_of
from scripts.mongodb.connection import IDS_PER_COMMAND

GROUPS = {"_id": 0, "driver_id": 1, "groups": 1}
COUNT_FIELDS = {"_id": 0, "segment": 1, "driver_count": 1}
# Greater than any sum.
MAX_SUM = 2**62
CONTRIBUTIONS = {"driver_id": 1, "start_date": 1, "contribution": 1, "parts": 1}
# The groups of drivers before and after a change, by driver_id.
GroupChanges = Mapping[str, tuple[Collection[str], Collection[str]]]
# Documents of `fleet_periods` by SumKey.
FleetPeriods = dict[tuple[Any, ...], Document | None]


class SumKey(NamedTuple):
    """What identifies a document of `fleet_periods` in its fleet: the day, week or month of a segment."""

    segment: str
    period: str
    start_date: str

    @classmethod
    def of(cls, document: Document) -> Self:
        """Return that of a stored document."""
        return cls(*(document[name] for name in cls._fields))


# The numbers of a contribution or a sum. The key of each is an insurance period, or None for the whole, and its name.
Numbers = Mapping[tuple[str | None, str], int]
Sums = dict[SumKey, Counter[tuple[str | None, str]]]


def find_stored_groups(store: Store, fleet: str, driver_ids: Iterable[str]) -> Groups:
    """Return the groups of drivers, as their stored profiles have them."""
    match = {"fleet": fleet, "period": PROFILE, "driver_id": {"$in": list(driver_ids)}, "groups": {"$exists": True}}
    # In no order: MongoDB may read them in the index of groups, and would sort them.
    found = store.driver_periods.find(match, {"_id": 0, "driver_id": 1, "groups": 1})
    # Those of a damaged profile are not known.
    return {profile["driver_id"]: profile["groups"] for profile in found if _is_grouped(profile)}


def _is_grouped(profile: Document) -> bool:
    groups = profile["groups"]
    return isinstance(groups, list) and all(isinstance(value, str) for value in (profile["driver_id"], *groups))


def change_sums(
    store: Store,
    fleet: str,
    period: str,
    documents: Mapping[PeriodIdentity, Document | None],
    groups: Groups,
) -> FleetPeriods:
    """Return the documents of the fleet that change with documents of its drivers, or None for one without drivers.

    The documents of the drivers are days, or weeks, or months, as `period` says. They are about to be written: the sums
    get their contributions, and lose those of the stored documents that they replace.
    """
    changes: Sums = defaultdict(Counter)
    for (driver_id, _, start_date), document in documents.items():
        numbers = _flatten(document or {}, "contribution")
        for group in (None, *groups.get(driver_id, ())):
            changes[SumKey(make_segment(group), period, start_date)].update(numbers)
    match = {"fleet": fleet, "period": period}
    # What is damaged adds up to wrong sums at most: a rebuild adds up all contributions at the end.
    for driver_ids, dates in group_by_dates(Day(driver_id, start_date) for driver_id, _, start_date in documents):
        replaced = {**match, "driver_id": {"$in": driver_ids}, "start_date": {"$in": dates}}
        for stored in store.driver_periods.find(replaced, CONTRIBUTIONS):
            if not is_identified(stored, "driver_id", "start_date"):
                continue
            numbers = _flatten_stored(stored, "contribution")
            for group in (None, *groups.get(stored["driver_id"], ())):
                changes[SumKey(make_segment(group), period, stored["start_date"])].subtract(numbers)
    return _apply(store, fleet, changes)


def _flatten(document: Document, whole: str) -> Numbers:
    """Return the numbers of a document, whose field `whole` has those of the whole."""
    numbers: dict[tuple[str | None, str], int] = {
        (None, name): number for name, number in document.get(whole, {}).items()
    }
    for part in document.get("parts", ()):
        numbers |= {(part["insurance_period"], name): part[name] for name in CONTRIBUTION if name in part}
    return numbers


def _flatten_stored(document: Document, whole: str) -> Numbers:
    """Return the numbers of a stored document. A damaged one may lack some, or have anything in their place."""
    parts = document.get("parts")
    of_parts = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    found = [(None, document.get(whole)), *((str(part.get("insurance_period")), part) for part in of_parts)]
    return {
        (insurance_period, name): number
        for insurance_period, part in found
        if isinstance(part, dict)
        for name in CONTRIBUTION
        if isinstance(number := part.get(name), int) and abs(number) < MAX_SUM
    }


def change_groups(store: Store, fleet: str, groups: GroupChanges) -> FleetPeriods:
    """Return the documents of groups that change when drivers join and leave them.

    A driver who joins adds the stored contributions to the sums of the group, and one who leaves subtracts them. Call
    this after the days, weeks and months are written.
    """
    if not groups:
        return {}
    # New drivers of a file have not driven yet.
    match = {"fleet": fleet, "period": MONTH, "driver_id": {"$in": list(groups)}}
    found = store.driver_periods.find(match, {"driver_id": 1})
    drove = {month["driver_id"] for month in found}
    # The drivers by the group, and by whether they join or leave it.
    moves = defaultdict[tuple[str, bool], list[str]](list)
    for driver_id in drove:
        before, after = map(set, groups[driver_id])
        for group in before ^ after:
            moves[group, group in after].append(driver_id)
    changes: Sums = defaultdict(Counter)
    for (group, joins), driver_ids in moves.items():
        match = {"period": {"$in": PERIODS}, "driver_id": {"$in": driver_ids}}
        change = Counter[Any].update if joins else Counter[Any].subtract
        for key, numbers in _sum_contributions(store, fleet, match, make_segment(group)).items():
            change(changes[key], numbers)
    return _apply(store, fleet, changes)


def change_driver_counts(store: Store, fleet: str, groups: GroupChanges) -> FleetPeriods:
    """Return the numbers of drivers of groups that change when drivers join and leave them, or None for zero.

    Call this before the profiles are written.
    """
    changes = Counter[str]()
    for before, after in groups.values():
        changes.update(set(after))
        changes.subtract(set(before))
    counts = {make_segment(group): change for group, change in changes.items() if change}
    if counts:
        match = {"fleet": fleet, "segment": {"$in": list(counts)}, **OF_COUNT}
        for stored in store.fleet_periods.find(match, COUNT_FIELDS):
            if is_identified(stored, "segment") and isinstance(stored.get("driver_count"), int):
                counts[stored["segment"]] += stored["driver_count"]
    return dict(_make_count(fleet, *count) for count in counts.items())


def count_drivers(store: Store, fleet: str) -> FleetPeriods:
    """Return the number of drivers of each group, by their stored profiles. A stored one without drivers is None.

    Indexes: driver_periods (fleet, groups, period, ...), fleet_periods (fleet, segment, period, start_date).
    """
    stored = find_stored_sums(store, fleet, {"start_date": OF_COUNT["start_date"]})
    pipeline: list[Document] = [
        {"$match": {"fleet": fleet, "groups": {"$exists": True}, "period": PROFILE}},
        {"$project": {"_id": 0, "groups": 1}},
        {"$unwind": "$groups"},
        {"$group": {"_id": "$groups", "driver_count": {"$sum": 1}}},
    ]
    found = store.driver_periods.aggregate(pipeline, hint=INDEX)
    counts = {make_segment(group["_id"]): group["driver_count"] for group in found}
    return stored | dict(_make_count(fleet, *count) for count in counts.items())


def _make_count(fleet: str, segment: str, driver_count: int) -> tuple[SumKey, Document | None]:
    """Return the document with the number of a group's drivers, and what identifies it; None without drivers."""
    key = SumKey(segment, **OF_COUNT)
    # A damaged one may have been too low.
    return key, {"fleet": fleet, **key._asdict(), "driver_count": driver_count} if driver_count > 0 else None


def _sum_contributions(store: Store, fleet: str, match: Document, segment: str = "") -> Sums:
    """Return what the matching documents of drivers add up to."""
    sums: Sums = defaultdict(Counter)
    for field in ("contribution", "parts"):
        key = {"period": "$period", "start_date": "$start_date", "insurance_period": f"${field}.insurance_period"}
        pipeline: list[Document] = [
            {"$match": {"fleet": fleet, **match}},
            {"$project": {"period": 1, "start_date": 1, field: 1}},
            {"$unwind": f"${field}"},
            {"$group": {"_id": key, **{name: {"$sum": f"${field}.{name}"} for name in CONTRIBUTION}}},
        ]
        for found in store.driver_periods.aggregate(pipeline):
            found_key = found.pop("_id")
            part = found_key.get("insurance_period")
            numbers = {(part, name): number for name, number in found.items()}
            sums[SumKey(segment, found_key["period"], found_key["start_date"])].update(numbers)
    return sums


def _apply(store: Store, fleet: str, changes: Sums) -> FleetPeriods:
    """Return the documents that change with these changes of sums."""
    sums = {key: change for key, change in changes.items() if any(change.values())}
    if not sums:
        return {}
    match = {
        name: {"$in": list(set(values))} for name, values in zip(SumKey._fields, zip(*sums, strict=True), strict=True)
    }
    for document in store.fleet_periods.find({"fleet": fleet, **match}):
        # Each combination of the values matches, so also others.
        if is_identified(document, *SumKey._fields) and (change := sums.get(SumKey.of(document))):
            change.update(_flatten_stored(document, "sums"))
    return {key: _make_fleet_period(fleet, key, numbers) for key, numbers in sums.items()}


def _make_fleet_period(fleet: str, key: SumKey, numbers: Numbers) -> Document | None:
    """Return the document of a sum, or None if nobody drove.

    `sums` is what the contributions of drivers add up to, and `json` the FleetSummary that follows, absent if no trip
    is counted. `parts` is the same by insurance period, absent without any.
    """
    if not any(numbers.values()):
        return None
    sums = {name: numbers.get((None, name), 0) for name in CONTRIBUTION}
    parts = [part for name in INSURANCE_PERIODS if (part := _make_part(name, numbers, sums))]
    rendered = _render(sums)
    return {
        "fleet": fleet,
        **key._asdict(),
        "sums": sums,
        **({"parts": parts} if parts else {}),
        **rendered,
        "version": version_of(*rendered.values(), *parts),
    }


def _make_part(insurance_period: str, numbers: Numbers, sums: Mapping[str, int]) -> Document | None:
    """Return the part of a document for an insurance period, or None without any."""
    part = {name: number for name in CONTRIBUTION if (number := numbers.get((insurance_period, name), 0))}
    if not part:
        return None
    return {"insurance_period": insurance_period, **part, **_render(add_whole(insurance_period, part, sums))}


def _render(sums: Mapping[str, int]) -> Document:
    """Return the rendered JSON of sums, or nothing if no trip is counted."""
    return {"json": orjson.dumps(make_fleet_summary(sums)).decode()} if sums["driver_count"] else {}


def add_up_month(store: Store, fleet: str, month: str) -> FleetPeriods:
    """Return the days, weeks and months of all segments that begin in a month, added up from those of all drivers.

    `month` is its first date. A stored one without drivers is None. Indexes: driver_periods (fleet, period, driver_id,
    start_date) and (fleet, groups, period, ...), fleet_periods (fleet, segment, period, start_date).
    """
    dates = {"start_date": {"$gte": month, "$lte": last_of_month(month)}}
    match = {"period": {"$in": PERIODS}, **dates}
    sums = _sum_contributions(store, fleet, match)
    for group, driver_ids in find_members(store, fleet).items():
        for batch in batches(driver_ids, IDS_PER_COMMAND):
            of_batch = {**match, "driver_id": {"$in": batch}}
            for key, numbers in _sum_contributions(store, fleet, of_batch, make_segment(group)).items():
                sums[key].update(numbers)
    stored = find_stored_sums(store, fleet, dates)
    return stored | {key: _make_fleet_period(fleet, key, numbers) for key, numbers in sums.items()}


def find_stored_sums(store: Store, fleet: str, match: Document) -> FleetPeriods:
    """Return what identifies the stored documents that match, with None for each."""
    stored = store.fleet_periods.find({"fleet": fleet, **match}, {"_id": 0, **dict.fromkeys(SumKey._fields, 1)})
    return {SumKey.of(document): None for document in stored if is_identified(document, *SumKey._fields)}


def find_members(store: Store, fleet: str) -> dict[str, list[str]]:
    """Return the drivers of each group, as the stored profiles have them."""
    members = defaultdict[str, list[str]](list)
    match = {"fleet": fleet, "groups": {"$exists": True}, "period": PROFILE}
    for profile in store.driver_periods.find(match, GROUPS).hint(INDEX):
        for group in profile["groups"]:
            members[group].append(profile["driver_id"])
    return members


def find_months(store: Store, fleet: str) -> tuple[list[str], list[str]]:
    """Return the months, by their first dates, in which any week or month of a driver or of the fleet begins.

    Also returns what damaged documents of the fleet have in place of a date. A number of drivers has an empty one.
    """
    match = {"fleet": fleet, "period": {"$in": LONG_PERIODS}}
    of_fleet = store.fleet_periods.distinct("start_date", {"fleet": fleet})
    dates = {date for date in of_fleet if isinstance(date, str) and date != OF_COUNT["start_date"]}
    others = {date for date in dates if not is_date(date)}
    months = map(first_of_month, {*store.driver_periods.distinct("start_date", match), *dates - others})
    return sorted(set(months)), sorted(others)
