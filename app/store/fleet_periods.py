"""The fleet as a whole, by day, week or month."""

from collections.abc import Callable
from typing import Any

from pymongo import ASCENDING

from app.store import Document, Result, Store
from app.store.groups import find_group
from app.store.rendering import make_renderer
from app.store.scope import Scope
from schemas.introspection import Fields
from schemas.periods import FIRST_AND_LAST_DATE
from schemas.segments import NO_INSURANCE_PERIOD, make_segment

# More than twice the days of 24 months, so that all arrive in the first batch.
MAX_INTERVALS = 1_500


def find_fleet_aggregate(
    store: Store,
    fleet: str,
    *,
    group: str | None = None,
    insurance_period: str | None = None,
    start_date: str,
    end_date: str,
    interval: str,
    fields: Fields,
) -> Result:
    """Return the FleetAggregate of the intervals that begin from `start_date` to `end_date`. All stored trips count.

    Raises UnknownGroup. Index: fleet_periods (fleet, segment, period, start_date).
    """
    # Where all trips are without an insurance period, that segment has no document of its own: it is the whole.
    names = [None, NO_INSURANCE_PERIOD] if insurance_period == NO_INSURANCE_PERIOD else [insurance_period]
    match = {
        "fleet": fleet,
        "segment": {"$in": [make_segment(group, name) for name in names]},
        "period": interval,
        "start_date": {"$gte": start_date, "$lte": end_date},
    }
    projection = {"_id": 0, "start_date": 1, "json": 1, "version": 1}
    options: Any = {"sort": [("start_date", ASCENDING), ("segment", ASCENDING)], "batch_size": MAX_INTERVALS}
    with store.snapshot() as session:
        if group is not None:
            find_group(store, session, Scope(fleet), group, limit=1)
        read = store.fleet_periods.find(match, projection, session=session, **options)
        found = {period["start_date"]: period for period in read}
    # Where no trip is counted, there is no summary.
    periods = [period for period in found.values() if "json" in period]
    version = " ".join(period["version"] for period in periods)
    element = fields.get("series") or {}
    _, last_of = FIRST_AND_LAST_DATE[interval]
    render = make_renderer(element.get("fleet_summary"))
    values: dict[str, Callable[[Document], Any]] = {
        "start_date": lambda period: period["start_date"],
        "end_date": lambda period: last_of(period["start_date"]),
        "fleet_summary": lambda period: render(period["json"]),
    }
    series = [{name: values[name](period) for name in element} for period in periods]
    content = {"start_date": start_date, "end_date": end_date, "interval": interval, "series": series}
    return Result(version, {name: content[name] for name in fields})
