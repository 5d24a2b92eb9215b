"""Trips, in summary and in full."""

from typing import Any

from flask import Blueprint, current_app, g

from app.database import get_store
from app.endpoint import Endpoint, Representation
from app.store import Result, trips
from app.store.pagination import Selection
from schemas.geojson import GEO_JSON, TripMap, trip_map
from schemas.page import TripDetailPage, TripSummaryPage
from schemas.params import FILTER_PARAMS, DriverTripsParams, TripParams

bp = Blueprint("trips", __name__)

DETAIL_LIMIT = 5


@bp.get("/driver/<segment:driver_id>/trips")
@Endpoint(DriverTripsParams(), TripSummaryPage())
def list_driver_trips(params: dict[str, Any], selection: Selection) -> Result:
    """List a driver's trips from a date on.

    In summary form, oldest first. A trip is listed, and counted, from four hours after its end on; operators may set
    another delay. A driver who is not in the fleet is NotFound.
    """
    until = _get_max_end_ms()
    return trips.find_driver_trips(get_store(), g.api_key.fleet, **params, max_end_ms=until, selection=selection)


@bp.get(f"/trip/<any({', '.join(FILTER_PARAMS)}):filter_param>/<segment:filter_value>")
@Endpoint(TripParams(), TripDetailPage(), representations={GEO_JSON: Representation(TripMap(), trip_map)})
def list_trips(params: dict[str, Any], selection: Selection) -> Result:
    """List trips in full, by an identifier.

    With trail and events, oldest first, five a page. Several trips may share a `tracking_id`; where none has the
    identifier the page is empty. A trip is listed from four hours after its end on; operators may set another delay.

    `Accept: application/geo+json` asks for the page as a map: GeoJSON (RFC 7946), whole, since `X-Fields` prunes JSON
    alone. It has to be named, and comes unless JSON, or a range such as `*/*` that stands for it, has a higher quality
    value.
    """
    asked = {**params, "limit": DETAIL_LIMIT, "max_end_ms": _get_max_end_ms(), "selection": selection}
    return trips.find_trips(get_store(), g.api_key.fleet, **asked)


def _get_max_end_ms() -> int:
    return trips.get_max_visible_end_ms(current_app.extensions["config"].processing_delay_hours)
