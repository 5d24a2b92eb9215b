"""Driving summaries of up to 20 drivers."""

from collections.abc import Callable
from typing import Any

from flask import Blueprint, Response, g

from app.db import get_db
from app.errors import NotFound
from app.operations import Operation
from app.responses import json_response
from app.store import drivers, summaries
from schemas.derive import Fields
from schemas.page import DailyAggregates, WeeklyAggregates
from schemas.query import DailyQuery, WeeklyQuery

bp = Blueprint("aggregates", __name__)


@bp.get("/driver-aggregate/daily")
@Operation(DailyQuery(), DailyAggregates())
def get_daily_driver_aggregate(query: dict[str, Any], fields: Fields) -> Response:
    """Summarise a day of up to 20 drivers.

    One element for each distinct driver, in the order first asked. A trip belongs to the UTC date on which it started,
    and counts as soon as it is stored, before it is listed. If any of the drivers is not in the fleet the answer is
    NotFound, and its message names them.
    """
    return _aggregates(query, fields, summaries.find_daily)


@bp.get("/driver-aggregate/weekly")
@Operation(WeeklyQuery(), WeeklyAggregates())
def get_weekly_driver_aggregate(query: dict[str, Any], fields: Fields) -> Response:
    """Summarise a week of up to 20 drivers.

    One element for each distinct driver, in the order first asked. The week is seven UTC dates from a Monday on; one in
    progress holds all that is stored so far, trips that are not listed yet included. If any of the drivers is not in
    the fleet the answer is NotFound, and its message names them.
    """
    return _aggregates(query, fields, summaries.find_weekly)


def _aggregates(query: dict[str, Any], fields: Fields, find_summaries: Callable[..., dict[str, Any]]) -> Response:
    asked, fleet = query["driver_id"], g.key.fleet
    row = fields.get("data") or {}
    known = drivers.find_by_id(get_db(), fleet, asked, row.get("driver_info") or {})
    if unknown := [driver_id for driver_id in asked if driver_id not in known]:
        raise NotFound(f"Not in this fleet: {', '.join(unknown)}")
    summary = row.get("driving_summary")
    found = {} if summary is None else find_summaries(get_db(), fleet, asked, query["start_date"], summary)
    parts = {"driver_info": known, "driving_summary": found}
    rows = [{name: parts[name].get(driver_id) for name in row} for driver_id in asked]
    return json_response(dict.fromkeys(fields, rows))
