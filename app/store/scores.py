"""The explanation of a driver's score in a window of days, and in the intervals of the window."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson

from app.store import Document, Result, Store, UnknownRecord
from app.store.driver_periods import BY_PERIOD, HAS_SUMMARY, Calendar, DriverPeriods
from app.store.scope import Scope
from app.store.totals import saturate_totals, sum_days
from schemas.introspection import Fields
from schemas.mask import make_pruner
from schemas.periods import DAY, FIRST_AND_LAST_DATE, MONTH, PROFILE, months_of
from schemas.score import explain_score

# The fields that are computed from the days of the window.
FROM_DAYS = ("total", "series")
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
    store: Store, scope: Scope, driver_id: str, *, start_date: str, end_date: str, interval: str, fields: Fields
) -> Result:
    """Return the DriverScore of a window. All stored trips count, visible or not.

    The calendars of the driver's months have the days with trips and their versions; MongoDB adds up the days. Index:
    driver_periods (fleet, period, driver_id, start_date). Raises UnknownRecord.
    """
    window = Window(start_date, end_date)
    from_days = [name for name in FROM_DAYS if name in fields]
    with store.snapshot().bind():
        periods = DriverPeriods(store, scope.match_drivers([driver_id]))
        documents = _find_months_and_profile(periods, window, fields)
        if not documents:
            raise UnknownRecord(f"Not in this fleet: {driver_id}")
        *months, profile = documents
        calendar = Calendar.of(months, *window)
        version = " ".join([profile["version"], *calendar.versions])
        intervals = window.find_intervals(interval, calendar.dates)
        totals = _add_up_days(periods, intervals, from_days) if intervals else {}
    driver = {"driver_info": orjson.loads(profile["json"])} if "driver_info" in fields else {}
    content = {**driver, **window._asdict(), **_explain(intervals, totals)}
    return Result(version, make_pruner(fields)(content))


def _find_months_and_profile(periods: DriverPeriods, window: Window, fields: Fields) -> list[Document]:
    """Return the months of the window in order of date, if they are needed, then the driver's profile.

    The list is empty if the scope does not have the driver.
    """
    # MONTH comes before PROFILE. Every driver who drove has a profile.
    kinds: list[Document] = [{"period": PROFILE}]
    if not fields.keys().isdisjoint(FROM_DAYS):
        kinds.append({"period": MONTH, "start_date": {"$in": months_of(*window)}})
    fragments = {"json": 1} if "driver_info" in fields else {}
    projection = {"_id": 0, "version": 1, "calendar": 1} | fragments
    return periods.find({"$or": kinds}, projection)


def _add_up_days(
    periods: DriverPeriods, intervals: Sequence[Window], names: Sequence[str]
) -> dict[str, list[Document]]:
    """Return totals of the days in the intervals: as `total` those of all days, as `series` those of each interval.

    Only the `names` of these are read. The total is not the sum of the intervals, which may differ in the last bit. The
    `_id` of the totals of an interval is its start_date.
    """
    days = {"$gte": intervals[0].start_date, "$lte": intervals[-1].end_date}
    branches = [{"case": {"$lte": ["$start_date", end_date]}, "then": start_date} for start_date, end_date in intervals]
    group_ids = {"total": None, "series": {"$switch": {"branches": branches}}}
    pipeline = [
        {"$match": {**periods.driver, "period": DAY, "start_date": days, **HAS_SUMMARY}},
        {"$sort": dict(BY_PERIOD)},
        {
            "$facet": {
                name: [{"$group": {"_id": group_ids[name], **SUMS_OF_DAYS}}, {"$project": SATURATED_TOTALS}]
                for name in names
            }
        },
    ]
    (totals,) = periods.store.driver_periods.aggregate(pipeline)
    return totals


def _explain(intervals: Sequence[Window], totals: Mapping[str, Sequence[Document]]) -> Document:
    """Return the fields FROM_DAYS of a DriverScore. Totals that were not read are left out."""
    explanations = {of_interval["_id"]: explain_score(of_interval) for of_interval in totals.get("series", ())}
    return {
        "total": next(map(explain_score, totals.get("total", ())), None),
        "series": [
            {**interval._asdict(), "explanation": explanations[interval.start_date]}
            for interval in intervals
            if interval.start_date in explanations
        ],
    }
