"""The explanation of a driver's score in a window of days, and in the intervals of the window."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from orjson import Fragment

from app.store import Document, Result, Store, UnknownRecord
from app.store.driver_periods import BY_PERIOD, HAS_SUMMARY, Calendar, find_periods
from app.store.scope import Scope
from app.store.totals import saturate_totals, sum_days
from schemas.periods import DAY, FIRST_AND_LAST_DATE, MONTH, PROFILE, months_of
from schemas.score import explain_score

SUMS_OF_DAYS, SATURATED_TOTALS = sum_days(), saturate_totals()


class Window(NamedTuple):
    """The dates from `start_date` to `end_date`, both included."""

    start_date: str
    end_date: str

    def find_intervals(self, interval: str, dates: Sequence[str]) -> list["Window"]:
        """Return the intervals of a type that contain any of the dates, which are ascending, clipped to the window."""
        first_of, last_of = FIRST_AND_LAST_DATE[interval]
        intervals: list[Window] = []
        for date in dates:
            if not intervals or date > intervals[-1].end_date:
                intervals.append(Window(max(first_of(date), self.start_date), min(last_of(date), self.end_date)))
        return intervals


def get_explanation(
    store: Store, scope: Scope, driver_id: str, *, start_date: str, end_date: str, interval: str
) -> Result:
    """Return the DriverScore of a window. All stored trips count, visible or not.

    The calendars of the driver's months have the days with trips and their versions; MongoDB adds up the days. Index:
    driver_periods (fleet, period, driver_id, start_date). Raises UnknownRecord.
    """
    window = Window(start_date, end_date)
    driver = scope.match_drivers([driver_id])
    # MONTH comes before PROFILE. Every driver who drove has a profile.
    kinds: list[Document] = [{"period": PROFILE}, {"period": MONTH, "start_date": {"$in": months_of(*window)}}]
    with store.snapshot():
        documents = find_periods(store, {**driver, "$or": kinds}, "version", "calendar", "json")
        if not documents:
            raise UnknownRecord(f"Not in this fleet: {driver_id}")
        *months, profile = documents
        calendar = Calendar.of(months, *window)
        intervals = window.find_intervals(interval, calendar.dates)
        totals = _add_up_days(store, driver, intervals) if intervals else {}
    version = " ".join([profile["version"], *calendar.versions])
    return Result(
        version, {"driver_info": Fragment(profile["json"]), **window._asdict(), **_explain(intervals, totals)}
    )


def _add_up_days(store: Store, driver: Document, intervals: Sequence[Window]) -> dict[str, list[Document]]:
    """Return totals of the days in the intervals: as `total` those of all days, as `series` those of each interval.

    The total is not the sum of the intervals, which may differ in the last bit. The `_id` of the totals of an interval
    is its start_date.
    """
    days = {"$gte": intervals[0].start_date, "$lte": intervals[-1].end_date}
    branches = [{"case": {"$lte": ["$start_date", end_date]}, "then": start_date} for start_date, end_date in intervals]
    group_ids = {"total": None, "series": {"$switch": {"branches": branches}}}
    pipeline = [
        {"$match": {**driver, "period": DAY, "start_date": days, **HAS_SUMMARY}},
        {"$sort": dict(BY_PERIOD)},
        {
            "$facet": {
                name: [{"$group": {"_id": group_id, **SUMS_OF_DAYS}}, {"$project": SATURATED_TOTALS}]
                for name, group_id in group_ids.items()
            }
        },
    ]
    (totals,) = store.driver_periods.aggregate(pipeline)
    return totals


def _explain(intervals: Sequence[Window], totals: Mapping[str, Sequence[Document]]) -> Document:
    """Return `total` and `series` of a DriverScore. There are no totals of a driver who did not drive."""
    explanations = {of_interval["_id"]: explain_score(of_interval) for of_interval in totals.get("series", ())}
    return {
        "total": next(map(explain_score, totals.get("total", ())), None),
        "series": [
            {**interval._asdict(), "explanation": explanations[interval.start_date]}
            for interval in intervals
            if interval.start_date in explanations
        ],
    }
