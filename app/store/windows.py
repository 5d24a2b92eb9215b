"""The summaries of drivers in any window of days."""

from collections.abc import Mapping, Sequence
from typing import Any

from orjson import Fragment

from app.store import Document, Result, Store
from app.store.driver_periods import check_known, find_profiles
from app.store.drivers import read_list
from app.store.groups import find_page_of_group
from app.store.pagination import PageRequest
from app.store.scope import Scope
from app.store.totals import saturate_totals, sum_totals
from schemas.fleet import NO_INSURANCE_PERIOD
from schemas.mask import Fields
from schemas.periods import DAY, MONTH, months_of
from schemas.score import make_driving_summary
from schemas.summary import TOTALS

DAYS_A_MONTH = 31


def find_window(
    store: Store,
    scope: Scope,
    *,
    driver_ids: Sequence[str] = (),
    group: str | None = None,
    insurance_period: str | None = None,
    start_date: str,
    end_date: str,
    page: int,
    limit: int,
    fields: Fields,
) -> Result:
    """Return a WindowPage: a page of the summaries of these drivers in their order, of a group, or of all drivers.

    All stored trips count, visible or not. MongoDB adds up the totals of the days, which the months have, unless the
    `fields` leave them out. The element of a driver who did not drive has no `driving_summary`. Indexes: fleet_drivers
    (fleet, offset), driver_periods (fleet, period, driver_id, start_date). Raises UnknownRecord, also for those not on
    the page.
    """
    page_request = PageRequest(page, limit)
    with store.snapshot():
        on_page: Sequence[str]
        if group is not None:
            count, on_page = find_page_of_group(store, scope, group, page_request)
        elif driver_ids:
            count, on_page = len(driver_ids), driver_ids[page_request.skip :][:limit]
        else:
            count, _, on_page = read_list(store, scope, page_request, "driver_ids")
        profiles = find_profiles(store, scope.match_drivers(driver_ids or on_page), "json")
        check_known(driver_ids, profiles)
        days = dict[str, Document]()
        if "driving_summary" in (fields.get("data") or ()):
            days = _find_days(store, scope.match_drivers(on_page), start_date, end_date, insurance_period)
    versions = [profiles[driver_id]["version"] for driver_id in on_page]
    data: list[Document] = [{"driver_info": Fragment(profiles[driver_id]["json"])} for driver_id in on_page]
    for driver_id, element in zip(on_page, data, strict=True):
        if totals := days.get(driver_id):
            element["driving_summary"] = make_driving_summary(totals)
            versions += filter(None, totals["versions"])
    content = {"start_date": start_date, "end_date": end_date, "data": data}
    return page_request.build_result(count, versions, content)


def _find_days(
    store: Store, drivers: Document, start_date: str, end_date: str, insurance_period: str | None
) -> dict[str, Document]:
    """Return what the days of each driver who drove add up to, by driver_id, and the `versions` of these days.

    `drivers` is the filter for the drivers that the scope made. `versions` may have null for a date without trips.
    """
    if insurance_period is None:
        pipeline = _make_pipeline(drivers, start_date, end_date)
    else:
        pipeline = _sum_insurance_period(drivers, start_date, end_date, insurance_period)
    found = store.driver_periods.aggregate(pipeline, hint="period")
    return {days["_id"]: days for days in found if days["trip_count"]}


def _make_pipeline(drivers: Document, start_date: str, end_date: str) -> list[Document]:
    """Return the pipeline over `driver_periods`: one document per driver with trips in the months of the window.

    The fields of the documents: `_id`, the driver_id; `versions`, those of the days; and the totals of a
    DrivingSummary. Index: (fleet, period, driver_id, start_date).
    """
    parts, names = _find_parts(start_date, end_date), ["versions", *TOTALS]
    return [
        {"$match": {**drivers, "period": MONTH, "start_date": {"$in": list(parts)}}},
        {"$sort": {"driver_id": 1, "start_date": 1}},
        {"$group": {"_id": "$driver_id", **{name: {"$push": _cut(name, parts)} for name in names}}},
        {"$project": {name: _join(name, len(parts)) for name in names}},
        # As in a $group, $sum ignores null, and compensates rounding in the order of the days.
        {"$project": {"versions": 1, **{name: {"$sum": f"${name}"} for name in TOTALS}}},
        {"$project": {"versions": 1, **saturate_totals()}},
    ]


def _sum_insurance_period(drivers: Document, start_date: str, end_date: str, insurance_period: str) -> list[Document]:
    """Return the pipeline over `driver_periods` for the same documents, of the trips of an insurance period alone.

    It reads the days: the months do not have their totals by insurance period.
    """
    of_day: Any = f"$insurance_periods.{insurance_period}"
    if insurance_period == NO_INSURANCE_PERIOD:
        # A day without an insurance period has no such totals: its summary is about the same trips.
        of_day = {"$cond": [{"$ifNull": ["$insurance_periods", False]}, of_day, "$summary"]}
    return [
        {"$match": {**drivers, "period": DAY, "start_date": {"$gte": start_date, "$lte": end_date}}},
        {"$sort": {"driver_id": 1, "start_date": 1}},
        {"$project": {"driver_id": 1, "version": 1, "totals": of_day}},
        {
            "$group": {
                "_id": "$driver_id",
                "versions": {"$push": "$version"},
                **sum_totals(trip_count="$totals.trip_count", amounts="$totals.", events="$totals.events_summary."),
            }
        },
        {"$project": {"versions": 1, **saturate_totals()}},
    ]


def _find_parts(start_date: str, end_date: str) -> dict[str, tuple[int, int]]:
    """Return for each month the part of the arrays in `day_totals` that is in the window: its start and its length."""
    months = months_of(start_date, end_date)
    parts = dict.fromkeys(months, (0, DAYS_A_MONTH))
    parts[months[-1]] = (0, int(end_date[-2:]))
    first, last = int(start_date[-2:]) - 1, parts[months[0]][1]
    parts[months[0]] = (first, last - first)
    return parts


def _cut(name: str, parts: Mapping[str, tuple[int, int]]) -> Document:
    """Return an expression for the part of an array of a month that is in the window."""
    branches = [
        {"case": {"$eq": ["$start_date", month]}, "then": {"$slice": [f"$day_totals.{name}", *part]}}
        for month, part in parts.items()
    ]
    return {"$switch": {"branches": branches}}


def _join(name: str, month_count: int) -> Document:
    """Return an expression for the arrays of all months as one. It is null if a month lacks the totals of its days."""
    # $reduce would do it in a line, but mongomock does not have it.
    count = {"$size": f"${name}"}
    arrays = [
        {"$cond": [{"$gt": [count, number]}, {"$arrayElemAt": [f"${name}", number]}, []]}
        for number in range(month_count)
    ]
    return {"$concatArrays": arrays}
