"""The read models of a fleet's days, weeks and months, in `fleet_periods`: what the drivers' documents add up to."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from pymongo.client_session import ClientSession

from app.store import Document, Store
from schemas.fleet import CONTRIBUTION, FleetSummary, make_fleet_summary
from schemas.periods import LONG_PERIODS, PERIODS, first_of_month, last_of_month
from scripts.materialize.periods import Day, PeriodIdentity, group_by_dates, to_json, version_of

FLEET_SUMMARY = FleetSummary()
# What identifies a document of `fleet_periods` in its fleet: period and start_date.
FleetPeriodIdentity = tuple[str, str]
NOTHING: Mapping[str, int] = {}


def change_sums(
    store: Store, session: ClientSession, fleet: str, period: str, documents: Mapping[PeriodIdentity, Document | None]
) -> dict[FleetPeriodIdentity, Document | None]:
    """Return the documents of the fleet that change with documents of its drivers, or None for one without drivers.

    The documents of the drivers are days, or weeks, or months, as `period` says. They are about to be written: the sums
    get their contributions, and lose those of the stored documents that they replace.
    """
    changes = defaultdict[str, Counter[str]](Counter)
    for (_, _, start_date), document in documents.items():
        changes[start_date].update(document["contribution"] if document else NOTHING)
    match = {"fleet": fleet, "period": period}
    for driver_ids, dates in group_by_dates(Day(driver_id, start_date) for driver_id, _, start_date in documents):
        replaced = {**match, "driver_id": {"$in": driver_ids}, "start_date": {"$in": dates}}
        for document in store.driver_periods.find(replaced, {"start_date": 1, "contribution": 1}, session=session):
            # A damaged document contributes nothing.
            changes[document["start_date"]].subtract(document.get("contribution", NOTHING))
    found = store.fleet_periods.find({**match, "start_date": {"$in": list(changes)}}, session=session)
    sums = {document["start_date"]: document.get("sums", NOTHING) for document in found}
    return {
        (period, date): make_fleet_period(fleet, (period, date), Counter(sums.get(date)) + change)
        for date, change in changes.items()
        if any(change.values())
    }


def make_fleet_period(fleet: str, identity: FleetPeriodIdentity, found: Mapping[str, int]) -> Document | None:
    """Return the document of a fleet's day, week or month, or None if nobody drove. An absent sum is 0."""
    sums = {name: found.get(name, 0) for name in CONTRIBUTION}
    if not any(sums.values()):
        return None
    period, start_date = identity
    rendered = {"json": to_json(FLEET_SUMMARY, make_fleet_summary(sums))} if sums["driver_count"] else {}
    return {
        "fleet": fleet,
        "period": period,
        "start_date": start_date,
        "sums": sums,
        **rendered,
        "version": version_of(*rendered.values()),
    }


def add_up_month(
    store: Store, session: ClientSession, fleet: str, month: str
) -> dict[FleetPeriodIdentity, Document | None]:
    """Return the fleet's days, weeks and months that begin in a month, added up from the stored ones of all drivers.

    `month` is its first date. A stored one without drivers is None. Indexes: driver_periods (fleet, period, driver_id,
    start_date), fleet_periods (fleet, period, start_date).
    """
    match = {"fleet": fleet, "period": {"$in": PERIODS}, "start_date": {"$gte": month, "$lte": last_of_month(month)}}
    stored = store.fleet_periods.find(match, {"_id": 0, "period": 1, "start_date": 1}, session=session)
    documents: dict[FleetPeriodIdentity, Document | None] = {
        (document["period"], document["start_date"]): None for document in stored
    }
    group = {"_id": {"period": "$period", "start_date": "$start_date"}}
    sums = {name: {"$sum": f"$contribution.{name}"} for name in CONTRIBUTION}
    for found in store.driver_periods.aggregate([{"$match": match}, {"$group": {**group, **sums}}], session=session):
        identity = (found["_id"]["period"], found["_id"]["start_date"])
        documents[identity] = make_fleet_period(fleet, identity, found)
    return documents


def find_months(store: Store, fleet: str) -> Iterator[str]:
    """Yield the months, by their first dates, in which any week or month of a driver or of the fleet begins."""
    match = {"fleet": fleet, "period": {"$in": LONG_PERIODS}}
    dates = {*store.driver_periods.distinct("start_date", match), *store.fleet_periods.distinct("start_date", match)}
    yield from sorted(set(map(first_of_month, dates)))
