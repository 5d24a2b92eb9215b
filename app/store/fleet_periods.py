"""The fleet as a whole, or a segment of it, by day, week or month."""

from typing import Any

from orjson import Fragment
from pymongo import ASCENDING

from app.store import Document, Result, Store
from app.store.groups import check_group
from app.store.scope import Scope
from schemas.fleet import NO_INSURANCE_PERIOD, make_segment
from schemas.periods import FIRST_AND_LAST_DATE

# More than the days of 24 months, so that all arrive in the first batch.
MAX_INTERVALS = 800


def find_fleet_aggregate(
    store: Store,
    fleet: str,
    *,
    group: str | None = None,
    insurance_period: str | None = None,
    start_date: str,
    end_date: str,
    interval: str,
) -> Result:
    """Return the FleetAggregate of the intervals that begin from `start_date` to `end_date`. All stored trips count.

    Raises UnknownRecord. Index: fleet_periods (fleet, segment, period, start_date).
    """
    projection: Document = {"_id": 0} | dict.fromkeys(("start_date", "version", "json"), 1)
    if insurance_period is not None:
        projection["parts"] = {"$elemMatch": {"insurance_period": insurance_period}}
    options: Any = {"sort": [("start_date", ASCENDING)], "batch_size": MAX_INTERVALS}
    dates = {"$gte": start_date, "$lte": end_date}
    match = {"fleet": fleet, "segment": make_segment(group), "period": interval, "start_date": dates}
    with store.snapshot():
        if group is not None:
            check_group(store, Scope(fleet), group)
        periods = list(store.fleet_periods.find(match, projection, **options))
    series, versions = list[Document](), list[str]()
    for period in periods:
        first = period["start_date"]
        # Where no trip is counted, there is no summary.
        if summary := _get_json(period, insurance_period):
            dates = {"start_date": first, "end_date": FIRST_AND_LAST_DATE[interval][1](first)}
            series.append({**dates, "fleet_summary": Fragment(summary)})
            versions.append(period["version"])
    content = {"start_date": start_date, "end_date": end_date, "interval": interval, "series": series}
    return Result(" ".join(versions), content)


def _get_json(period: Document, insurance_period: str | None) -> str | None:
    """Return the summary of a period, or of an insurance period in it, or None without any.

    `parts` has only the part of the insurance period.
    """
    # If all trips are without an insurance period, they are the whole.
    if insurance_period is None or (insurance_period == NO_INSURANCE_PERIOD and "parts" not in period):
        return period.get("json")
    return next((part.get("json") for part in period.get("parts", ())), None)
