"""Driving summaries of up to 20 drivers."""

from collections.abc import Callable
from typing import Any

from flask import Blueprint, Response, g, request

from app.db import get_db
from app.errors import NotFound
from app.responses import json_response
from app.store import drivers, summaries
from schemas.query import DailyQuery, Query, WeeklyQuery

bp = Blueprint("aggregates", __name__)


@bp.get("/driver-aggregate/daily")
def list_daily() -> Response:
    """List the drivers, in the order asked, with their summary of one day."""
    return _aggregates(DailyQuery(), summaries.find_daily)


@bp.get("/driver-aggregate/weekly")
def list_weekly() -> Response:
    """List the drivers, in the order asked, with their summary of one week."""
    return _aggregates(WeeklyQuery(), summaries.find_weekly)


def _aggregates(shape: Query, find_summaries: Callable[..., dict[str, Any]]) -> Response:
    query = shape.parse(request.query_string)
    asked, fleet = query["driver_id"], g.key.fleet
    known = drivers.find_by_id(get_db(), fleet, asked)
    if unknown := [driver_id for driver_id in asked if driver_id not in known]:
        raise NotFound(f"Not in this fleet: {', '.join(unknown)}")
    found = find_summaries(get_db(), fleet, asked, query["start_date"])
    rows = [{"driver_info": known[driver_id], "driving_summary": found.get(driver_id)} for driver_id in asked]
    return json_response({"data": rows})
