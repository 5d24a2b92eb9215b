"""Driving summaries of up to 20 drivers."""

from typing import Any

from flask import Blueprint, g

from app.database import get_store
from app.endpoint import Endpoint
from app.store import Result
from app.store.pagination import Selection
from app.store.summaries import DAY, WEEK, find_aggregates
from schemas.page import DailyAggregates, WeeklyAggregates
from schemas.params import DailyParams, WeeklyParams

bp = Blueprint("aggregates", __name__)


@bp.get("/driver-aggregate/daily")
@Endpoint(DailyParams(), DailyAggregates())
def get_daily_driver_aggregate(params: dict[str, Any], selection: Selection) -> Result:
    """Summarise a day of up to 20 drivers.

    One element for each distinct driver, in the order first asked. A trip belongs to the UTC date on which it started,
    and counts as soon as it is stored, before it is listed. If any of the drivers is not in the fleet the answer is
    NotFound, and its message names them.
    """
    return find_aggregates(
        get_store(),
        g.api_key.fleet,
        DAY,
        driver_ids=params["driver_id"],
        start_date=params["start_date"],
        selection=selection,
    )


@bp.get("/driver-aggregate/weekly")
@Endpoint(WeeklyParams(), WeeklyAggregates())
def get_weekly_driver_aggregate(params: dict[str, Any], selection: Selection) -> Result:
    """Summarise a week of up to 20 drivers.

    One element for each distinct driver, in the order first asked. The week is seven UTC dates from a Monday on; one in
    progress holds all that is stored so far, trips that are not listed yet included. If any of the drivers is not in
    the fleet the answer is NotFound, and its message names them.
    """
    return find_aggregates(
        get_store(),
        g.api_key.fleet,
        WEEK,
        driver_ids=params["driver_id"],
        start_date=params["start_date"],
        selection=selection,
    )
