"""The totals of a driver's day, week or month by insurance period."""

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.store import Document, Store
from schemas.fleet import IMPLAUSIBLE_COUNT, NO_INSURANCE_PERIOD
from schemas.periods import DAY
from schemas.summary import AMOUNTS, EVENT_TOTALS

# Totals by insurance period.
Totals = Mapping[str, Mapping[str, Any]]
# Whether a day has trips with an insurance period.
HAS_INSURANCE_PERIODS = {"$cond": [{"$ifNull": ["$insurance_periods", False]}, True, False]}
OF_DAY = {"_id": 0, "driver_id": 1, "insurance_periods": 1, "summary": 1, f"contribution.{IMPLAUSIBLE_COUNT}": 1}


def add_up_days(store: Store, fleet: str, driver_ids: Sequence[str], dates: Sequence[str]) -> dict[str, Totals]:
    """Return what the days of each of the drivers add up to, by driver_id.

    Index: driver_periods (fleet, period, driver_id, start_date).
    """
    if not driver_ids:
        return {}
    match = {"fleet": fleet, "period": DAY, "driver_id": {"$in": driver_ids}, "start_date": {"$in": dates}}
    by_driver = defaultdict[str, defaultdict[str, list[Document]]](lambda: defaultdict(list))
    for day in store.driver_periods.find(match, OF_DAY):
        whole = {**day.get("summary", {}), **day.get("contribution", {})}
        for name, totals in day.get("insurance_periods", {NO_INSURANCE_PERIOD: whole}).items():
            by_driver[day["driver_id"]][name].append(totals)
    return {
        driver_id: {name: _add_up(days) for name, days in of_driver.items()}
        for driver_id, of_driver in by_driver.items()
    }


def _add_up(days: Sequence[Document]) -> Document:
    names = ("trip_count", IMPLAUSIBLE_COUNT, *AMOUNTS)
    events = [day.get("events_summary", {}) for day in days]
    return {
        **{name: _sum(days, name) for name in names},
        "events_summary": {name: _sum(events, name) for name in EVENT_TOTALS},
    }


def _sum(documents: Iterable[Document], name: str) -> float:
    # As in `saturate_totals`. What a contribution has is rounded, so another error in the last bit changes nothing.
    # Damaged documents may lack a field.
    total: float = sum(document.get(name, 0) for document in documents)
    return min(total, sys.float_info.max)
