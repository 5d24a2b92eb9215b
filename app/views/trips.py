"""Trips in summary form and in detail form."""

from typing import Any

from flask import Blueprint

from app.endpoint import Representation, ResultEndpoint
from app.responses import stream_json
from app.services import get_request_max_end_ms, get_scope, get_services
from app.store import Result, fleet_trips, trips
from schemas.geojson import GEO_JSON, RatedTripMap, TripMap, make_map, make_rated_map
from schemas.gpx import GPX, write_gpx
from schemas.page import RatedTripPage, TripDetailPage, TripSummaryPage
from schemas.params import DETAIL, FILTER_PARAMS, DriverTripsParams, TripParams, TripsParams

bp = Blueprint("trips", __name__)

FIRST_TRIP = {"filter_param": "trip_id", "filter_value": "$response.body#/trips/0/trip_id"}
FIRST_DRIVER = {"driver_id": "$response.body#/trips/0/driver_id"}


@bp.get("/driver/<segment:driver_id>/trips")
@ResultEndpoint(params=DriverTripsParams(), response=TripSummaryPage(), has_csv=True, links=[FIRST_TRIP])
def list_driver_trips(**params: Any) -> Result:
    """List a driver's trips from a date on, or between two dates.

    The trips are in summary form, oldest first. A trip becomes visible, and is counted, four hours after its end; the
    operator can set another delay. If the fleet does not have the driver, the response is a NotFound.
    """
    return trips.find_driver_trips(get_services().store, get_scope(), **params, max_end_ms=get_request_max_end_ms())


@bp.get("/trips")
@ResultEndpoint(
    params=TripsParams(),
    response=RatedTripPage(),
    reads_fields=True,
    has_csv=True,
    representations={
        GEO_JSON: Representation(lambda page: stream_json(make_rated_map(page)), RatedTripMap(), {"form": DETAIL})
    },
    links=[
        {"filter_param": "trip_id", "filter_value": "$response.body#/trips/0/trip/trip_id"},
        {"driver_id": "$response.body#/trips/0/trip/driver_id"},
        {"cursor": "$response.body#/next_cursor"},
    ],
)
def list_fleet_trips(**params: Any) -> Result:
    """List the trips of the fleet from a date on, between two dates, or in progress at a time.

    Each trip has its own score, and the kinds of values that cannot be. A trip becomes visible four hours after its
    end; the operator can set another delay. If the fleet does not have a driver, the response is a NotFound.

    To read the whole list, request the next page with `next_cursor` until that is null. Nothing is listed twice or left
    out that was there all the while. What becomes visible before the position of the cursor is not seen: to keep a
    copy, use the change feed.

    Send `Accept: application/geo+json` to get the page in detail form as GeoJSON (RFC 7946) for a map. `X-Fields` and
    `form` do not apply to it.
    """
    max_end_ms = get_request_max_end_ms()
    return fleet_trips.find_fleet_trips(get_services().store, get_scope(), **params, max_end_ms=max_end_ms)


@bp.get(f"/trip/<any({', '.join(FILTER_PARAMS)}):filter_param>/<segment:filter_value>")
@ResultEndpoint(
    params=TripParams(),
    response=TripDetailPage(),
    reads_fields=True,
    representations={
        GEO_JSON: Representation(lambda page: stream_json(make_map(page)), TripMap()),
        GPX: Representation(write_gpx),
    },
    links=[FIRST_DRIVER],
)
def list_trips(**params: Any) -> Result:
    """List trips in detail form, by an identifier.

    A page has five trips with their trails and events, oldest first. Several trips may share a `tracking_id`. If no
    trip has the identifier, the page is empty. A trip becomes visible four hours after its end; the operator can set
    another delay.

    Send `Accept: application/geo+json` to get the page as GeoJSON (RFC 7946) for a map, or `application/gpx+xml` to get
    it as GPX 1.1 for a map program. `X-Fields` does not apply to them. The response is JSON if `Accept` gives
    the same or a higher quality value to `application/json`, or to a range that includes it such as `*/*`.

    If several trips of a page have more than 16 MB together, such a map is a ValidationError, and so is an `X-Fields`
    that selects some fields of points: request each trip by its `trip_id`.
    """
    return trips.find_trips(get_services().store, get_scope(), **params, max_end_ms=get_request_max_end_ms())
