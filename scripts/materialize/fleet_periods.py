"""The read models of a fleet's days, weeks and months, in `fleet_periods`: what the drivers' documents add up to."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from pymongo.client_session import ClientSession

from app.store import Document, Store
from schemas.fleet import CONTRIBUTION, FleetSummary, make_fleet_summary
from schemas.periods import LONG_PERIODS, PERIODS, first_of_month, last_of_month
from scripts.materialize.days import Day, group_by_dates
from scripts.materialize.periods import PeriodIdentity
from scripts.materialize.render import to_json, version_of

FLEET_SUMMARY = FleetSummary()
# What identifies a document of `fleet_periods` in its fleet: period and start_date.
FleetPeriodIdentity = tuple[str, str]
NOTHING: Mapping[str, int] = {}


class FleetChanges:
    """How the documents of drivers that are about to be written change the sums of their fleet."""

    def __init__(self, store: Store, session: ClientSession, fleet: str) -> None:
        self._store, self._session, self._fleet = store, session, fleet
        self._changes: defaultdict[FleetPeriodIdentity, Counter[str]] = defaultdict(Counter)

    def add(self, documents: Mapping[PeriodIdentity, Document | None]) -> None:
        """Add the contributions of days, weeks or months, and subtract those of the stored ones, which they replace."""
        stored = self._find_stored(documents)
        for identity, document in documents.items():
            before, after = stored.get(identity, NOTHING), document["contribution"] if document else NOTHING
            if before != after:
                _, period, start_date = identity
                self._changes[period, start_date].update(after)
                self._changes[period, start_date].subtract(before)

    def make_documents(self) -> dict[FleetPeriodIdentity, Document | None]:
        """Return the documents of the fleet that change, or None for one without drivers."""
        sums = self._find_sums()
        return {
            identity: make_fleet_period(self._fleet, identity, Counter(sums.get(identity)) + change)
            for identity, change in self._changes.items()
            if any(change.values())
        }

    def _find_stored(self, identities: Iterable[PeriodIdentity]) -> dict[PeriodIdentity, dict[str, int]]:
        days_by_period: defaultdict[str, list[Day]] = defaultdict(list)
        for driver_id, period, start_date in identities:
            days_by_period[period].append(Day(driver_id, start_date))
        fields = {"_id": 0, "driver_id": 1, "start_date": 1, "contribution": 1}
        return {
            (document["driver_id"], period, document["start_date"]): document["contribution"]
            for period, days in days_by_period.items()
            for driver_ids, dates in group_by_dates(days)
            for document in self._store.driver_periods.find(
                {
                    "fleet": self._fleet,
                    "period": period,
                    "driver_id": {"$in": driver_ids},
                    "start_date": {"$in": dates},
                    # A damaged document contributes nothing.
                    "contribution": {"$exists": True},
                },
                fields,
                session=self._session,
            )
        }

    def _find_sums(self) -> dict[FleetPeriodIdentity, dict[str, int]]:
        dates_by_period: defaultdict[str, list[str]] = defaultdict(list)
        for period, start_date in self._changes:
            dates_by_period[period].append(start_date)
        return {
            (period, document["start_date"]): document.get("sums", NOTHING)
            for period, dates in dates_by_period.items()
            for document in self._store.fleet_periods.find(
                {"fleet": self._fleet, "period": period, "start_date": {"$in": dates}},
                {"_id": 0, "start_date": 1, "sums": 1},
                session=self._session,
            )
        }


def make_fleet_period(fleet: str, identity: FleetPeriodIdentity, found: Mapping[str, int]) -> Document | None:
    """Return the document of a fleet's day, week or month, or None if nobody drove. An absent sum is 0."""
    sums = {name: found.get(name, 0) for name in CONTRIBUTION}
    if not sums["driver_count"]:
        return None
    period, start_date = identity
    text = to_json(FLEET_SUMMARY, make_fleet_summary(sums))
    return {
        "fleet": fleet,
        "period": period,
        "start_date": start_date,
        "sums": sums,
        "json": text,
        "version": version_of(text),
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
