"""The read models of a fleet's days, weeks and months, in `fleet_periods`: what the drivers' documents add up to.

There are sums of the whole fleet, and of each of its segments.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import NamedTuple

from pymongo.client_session import ClientSession

from app.store import Document, Store
from schemas.fleet import CONTRIBUTION, INSURANCE_PERIOD, FleetSummary, make_fleet_summary
from schemas.periods import LONG_PERIODS, PERIODS, PROFILE, first_of_month, last_of_month
from schemas.segments import NO_INSURANCE_PERIOD, make_segment
from scripts.materialize.periods import Day, PeriodIdentity, group_by_dates, to_json, version_of

FLEET_SUMMARY = FleetSummary()
# What identifies a document of `fleet_periods` in its fleet.
IDENTITY = ("segment", "period", "start_date")
FleetPeriodIdentity = tuple[str, str, str]
GROUPS = {"_id": 0, "driver_id": 1, "groups": 1}
CONTRIBUTIONS = {"driver_id": 1, "start_date": 1, "contribution": 1, "parts": 1}
# The groups of each driver who is in any.
Groups = Mapping[str, Collection[str]]


class Change(NamedTuple):
    """The groups of a driver before and after a change."""

    before: Collection[str]
    after: Collection[str]


class SumKey(NamedTuple):
    """What a sum is about: a day, week or month of a group, of an insurance period, of both, or of the whole."""

    group: str | None
    insurance_period: str | None
    period: str
    start_date: str

    @property
    def identity(self) -> FleetPeriodIdentity:
        """What identifies its document."""
        return make_segment(self.group, self.insurance_period), self.period, self.start_date


# Sums, or changes of sums.
Sums = dict[SumKey, Counter[str]]


def find_stored_groups(store: Store, session: ClientSession, fleet: str, driver_ids: Iterable[str]) -> Groups:
    """Return the groups of drivers, as their stored profiles have them."""
    match = {"fleet": fleet, "period": PROFILE, "driver_id": {"$in": list(driver_ids)}, "groups": {"$exists": True}}
    found = store.driver_periods.find(match, GROUPS, session=session)
    return {profile["driver_id"]: profile["groups"] for profile in found}


def change_sums(
    store: Store,
    session: ClientSession,
    fleet: str,
    period: str,
    documents: Mapping[PeriodIdentity, Document | None],
    groups: Groups,
) -> dict[FleetPeriodIdentity, Document | None]:
    """Return the documents of the fleet that change with documents of its drivers, or None for one without drivers.

    The documents of the drivers are days, or weeks, or months, as `period` says. They are about to be written: the sums
    get their contributions, and lose those of the stored documents that they replace.
    """
    changes: Sums = defaultdict(Counter)
    for (driver_id, _, start_date), document in documents.items():
        for key, contribution in _divide(document or {}, period, start_date, groups.get(driver_id, ())):
            changes[key].update(contribution)
    match = {"fleet": fleet, "period": period}
    for driver_ids, dates in group_by_dates(Day(driver_id, start_date) for driver_id, _, start_date in documents):
        replaced = {**match, "driver_id": {"$in": driver_ids}, "start_date": {"$in": dates}}
        for stored in store.driver_periods.find(replaced, CONTRIBUTIONS, session=session):
            for key, contribution in _divide(stored, period, stored["start_date"], groups.get(stored["driver_id"], ())):
                changes[key].subtract(contribution)
    return _apply(store, session, fleet, changes)


def _divide(
    document: Document, period: str, start_date: str, groups: Iterable[str]
) -> Iterator[tuple[SumKey, Mapping[str, int]]]:
    """Yield what a driver's day, week or month contributes to each sum. A damaged document contributes nothing."""
    for part in (document.get("contribution", {}), *document.get("parts", ())):
        contribution = {name: part.get(name, 0) for name in CONTRIBUTION}
        for group in (None, *groups):
            yield SumKey(group, part.get(INSURANCE_PERIOD), period, start_date), contribution


def change_groups(
    store: Store, session: ClientSession, fleet: str, groups: Mapping[str, Change]
) -> dict[FleetPeriodIdentity, Document | None]:
    """Return the documents of groups that change when drivers join and leave them, by driver_id.

    The drivers bring their stored contributions, and take them away. So they are written before.
    """
    drivers = defaultdict[tuple[frozenset[str], frozenset[str]], list[str]](list)
    for driver_id, (before, after) in groups.items():
        drivers[frozenset(after).difference(before), frozenset(before).difference(after)].append(driver_id)
    changes: Sums = defaultdict(Counter)
    for (joined, left), driver_ids in drivers.items():
        match = {"period": {"$in": PERIODS}, "driver_id": {"$in": driver_ids}}
        for key, sums in _add_up(store, session, fleet, match):
            for group in joined:
                changes[key._replace(group=group)].update(sums)
            for group in left:
                changes[key._replace(group=group)].subtract(sums)
    return _apply(store, session, fleet, changes)


def _add_up(
    store: Store, session: ClientSession, fleet: str, match: Document
) -> Iterator[tuple[SumKey, Mapping[str, int]]]:
    """Yield what the matching documents of drivers add up to, by insurance period."""
    for name in ("contribution", "parts"):
        dates = {"period": "$period", "start_date": "$start_date"}
        insurance_period = {"$ifNull": [f"${name}.{INSURANCE_PERIOD}", None]}
        pipeline: list[Document] = [
            {"$match": {"fleet": fleet, **match}},
            {"$project": {"period": 1, "start_date": 1, name: 1}},
            {"$unwind": f"${name}"},
            {
                "$group": {
                    "_id": {**dates, INSURANCE_PERIOD: insurance_period},
                    **{total: {"$sum": f"${name}.{total}"} for total in CONTRIBUTION},
                }
            },
        ]
        for found in store.driver_periods.aggregate(pipeline, session=session):
            yield SumKey(group=None, **found.pop("_id")), found


def _apply(
    store: Store, session: ClientSession, fleet: str, changes: Sums
) -> dict[FleetPeriodIdentity, Document | None]:
    """Return the documents that change with these changes of sums."""
    changed = {key for key, change in changes.items() if any(change.values())}
    if not changed:
        return {}
    # The sums without an insurance period are stored as the difference to those of the whole.
    whole = {key._replace(insurance_period=None) for key in changed}
    rest = {key._replace(insurance_period=NO_INSURANCE_PERIOD) for key in changed}
    keys = {key.identity: key for key in changed | whole | rest}
    match = {name: {"$in": list(set(values))} for name, values in zip(IDENTITY, zip(*keys, strict=True), strict=True)}
    sums: Sums = defaultdict(Counter)
    for document in store.fleet_periods.find({"fleet": fleet, **match}, session=session):
        # Each combination of the values matches, so also others.
        if key := keys.get(tuple(document[name] for name in IDENTITY)):
            sums[key].update(document.get("sums", {}))
    for key in changed:
        sums[key].update(changes[key])
    documents = make_fleet_periods(fleet, sums)
    return {key.identity: documents[key.identity] for key in changed | rest & sums.keys()}


def make_fleet_periods(
    fleet: str, sums: Mapping[SumKey, Mapping[str, int]]
) -> dict[FleetPeriodIdentity, Document | None]:
    """Return the documents of sums, or None where nobody drove. The sums without an insurance period need the whole."""
    documents = dict[FleetPeriodIdentity, Document | None]()
    for key, found in sums.items():
        own = {name: found.get(name, 0) for name in CONTRIBUTION}
        is_rest = key.insurance_period == NO_INSURANCE_PERIOD
        whole = sums.get(key._replace(insurance_period=None), {}) if is_rest else {}
        total = {name: own[name] + whole.get(name, 0) for name in CONTRIBUTION}
        rendered = {"json": to_json(FLEET_SUMMARY, make_fleet_summary(total))} if total["driver_count"] else {}
        document = {
            "fleet": fleet,
            **dict(zip(IDENTITY, key.identity, strict=True)),
            "sums": own,
            **rendered,
            "version": version_of(*rendered.values()),
        }
        documents[key.identity] = document if any(own.values()) else None
    return documents


def add_up_month(
    store: Store, session: ClientSession, fleet: str, month: str
) -> dict[FleetPeriodIdentity, Document | None]:
    """Return the days, weeks and months of all segments that begin in a month, added up from those of all drivers.

    `month` is its first date. A stored one without drivers is None. Indexes: driver_periods (fleet, period, driver_id,
    start_date) and (fleet, groups, driver_id), fleet_periods (fleet, segment, period, start_date).
    """
    match = {"period": {"$in": PERIODS}, "start_date": {"$gte": month, "$lte": last_of_month(month)}}
    stored = store.fleet_periods.find({"fleet": fleet, **match}, dict.fromkeys(IDENTITY, 1), session=session)
    documents: dict[FleetPeriodIdentity, Document | None] = dict.fromkeys(map(itemgetter(*IDENTITY), stored))
    sums = dict(_add_up(store, session, fleet, match))
    for group, driver_ids in find_members(store, session, fleet).items():
        of_group = _add_up(store, session, fleet, {**match, "driver_id": {"$in": driver_ids}})
        sums |= {key._replace(group=group): found for key, found in of_group}
    return documents | make_fleet_periods(fleet, sums)


def find_members(store: Store, session: ClientSession | None, fleet: str) -> dict[str, list[str]]:
    """Return the drivers of each group, as the stored profiles have them."""
    members = defaultdict[str, list[str]](list)
    match = {"fleet": fleet, "groups": {"$exists": True}}
    for profile in store.driver_periods.find(match, GROUPS, session=session).hint("groups"):
        for group in profile["groups"]:
            members[group].append(profile["driver_id"])
    return members


def find_months(store: Store, fleet: str) -> Iterator[str]:
    """Yield the months, by their first dates, in which any week or month of a driver or of the fleet begins."""
    match = {"fleet": fleet, "period": {"$in": LONG_PERIODS}}
    dates = {*store.driver_periods.distinct("start_date", match), *store.fleet_periods.distinct("start_date", match)}
    yield from sorted(set(map(first_of_month, dates)))
