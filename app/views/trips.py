"""Trips, in summary and in full."""

from flask import Blueprint, Response, current_app, g, request

from app.db import get_db
from app.errors import NotFound
from app.responses import page_response
from app.store import drivers, trips
from schemas.page import TripDetailPage, TripSummaryPage
from schemas.query import DriverTripsQuery, TripQuery

bp = Blueprint("trips", __name__)

DETAIL_LIMIT = 5


@bp.get("/driver/<segment:driver_id>/trips")
def list_driver_trips(driver_id: str) -> Response:
    """List one driver's visible trips from a date on, oldest first."""
    query = DriverTripsQuery().parse(request.query_string, driver_id=driver_id)
    if not drivers.find_by_id(get_db(), g.key.fleet, [driver_id]):
        raise NotFound(f"Not in this fleet: {driver_id}")
    page = trips.find_driver_trips(get_db(), g.key.fleet, **query, ended_by=_visible_until())
    return page_response(TripSummaryPage(), page)


@bp.get("/trip/<any(trip_id, tracking_id):filter_param>/<segment:filter_value>")
def list_trips(filter_param: str, filter_value: str) -> Response:
    """List in full the visible trips that have this trip_id or tracking_id, oldest first."""
    query = TripQuery().parse(request.query_string, filter_value=filter_value)
    page = trips.find_trips(get_db(), g.key.fleet, filter_param, **query, limit=DETAIL_LIMIT, ended_by=_visible_until())
    return page_response(TripDetailPage(), page)


def _visible_until() -> int:
    return trips.visible_until(current_app.extensions["config"].processing_delay_hours)
