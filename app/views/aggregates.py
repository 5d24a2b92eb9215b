"""Daily, Weekly and Monthly summaries of up to 20 drivers, and the summaries of any window."""

from typing import Any

from flask import Blueprint

from app.endpoint import ResultEndpoint
from app.services import get_scope, get_services
from app.store import Result
from app.store.summaries import find_aggregates
from app.store.windows import find_window
from schemas.page import DailyAggregates, MonthlyAggregates, WeeklyAggregates, WindowPage
from schemas.params import DailyParams, MonthlyParams, WeeklyParams, WindowAggregateParams
from schemas.periods import DAY, MONTH, WEEK

bp = Blueprint("aggregates", __name__)

FIRST_DRIVER = {"driver_id": "$response.body#/data/0/driver_info/driver_id"}


@bp.get("/driver-aggregate/daily")
@ResultEndpoint(params=DailyParams(), response=DailyAggregates(), has_csv=True)
def get_daily_driver_aggregate(**params: Any) -> Result:
    """Summarise a day of up to 20 drivers.

    The response has one element for each driver, in the order of the request. A trip belongs to the date on which
    it started. It counts as soon as it is stored, before it becomes visible in lists of trips. If the fleet does not
    have one of the drivers, the response is a NotFound whose message names all unknown drivers.
    """
    return find_aggregates(get_services().store, get_scope(), DAY, **params)


@bp.get("/driver-aggregate/weekly")
@ResultEndpoint(params=WeeklyParams(), response=WeeklyAggregates(), has_csv=True)
def get_weekly_driver_aggregate(**params: Any) -> Result:
    """Summarise a week of up to 20 drivers.

    The response has one element for each driver, in the order of the request. A week is seven dates from a Monday.
    A week in progress includes all trips stored so far, even those that are not visible in lists of trips yet. If the
    fleet does not have one of the drivers, the response is a NotFound whose message names all unknown drivers.
    """
    return find_aggregates(get_services().store, get_scope(), WEEK, **params)


@bp.get("/driver-aggregate/monthly")
@ResultEndpoint(params=MonthlyParams(), response=MonthlyAggregates(), has_csv=True)
def get_monthly_driver_aggregate(**params: Any) -> Result:
    """Summarise a month of up to 20 drivers.

    The response has one element for each driver, in the order of the request. A month is a calendar month. The
    earliest month has the date six months ago, and it is complete. A month in progress includes all trips stored
    so far, even those that are not visible in lists of trips yet. If the fleet does not have one of the drivers, the
    response is a NotFound whose message names all unknown drivers.
    """
    return find_aggregates(get_services().store, get_scope(), MONTH, **params)


@bp.get("/driver-aggregate/window")
@ResultEndpoint(
    params=WindowAggregateParams(), response=WindowPage(), reads_fields=True, has_csv=True, links=[FIRST_DRIVER]
)
def get_window_driver_aggregate(**params: Any) -> Result:
    """Summarise any window of days: of up to 20 drivers, of a group, or of all drivers of the fleet.

    The response is a page. With `driver_id`, it is of these drivers, in the order of the request. Without, it is of all
    drivers, or with `group` of those in it, in order of `driver_id` by code point. If the fleet does not have one of
    the drivers, the response is a NotFound whose message names all unknown drivers. Over a whole day, week or month, a
    summary has the figures of the Daily, Weekly or Monthly summary. A trip counts as soon as it is stored, before it
    becomes visible in lists of trips.
    """
    return find_window(get_services().store, get_scope(), **params)
