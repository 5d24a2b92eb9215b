"""The events of a fleet."""

from typing import Any

from flask import Blueprint

from app.endpoint import Representation, ResultEndpoint
from app.responses import stream_json
from app.services import get_request_max_end_ms, get_scope, get_services
from app.store import Result, events
from schemas.geojson import GEO_JSON, EventMap, make_event_map
from schemas.page import EventPage
from schemas.params import EventsParams

bp = Blueprint("events", __name__)

FIRST_TRIP = {"filter_param": "trip_id", "filter_value": "$response.body#/events/0/trip_id"}
FIRST_DRIVER = {"driver_id": "$response.body#/events/0/driver_id"}
NEXT_PAGE = {"cursor": "$response.body#/next_cursor"}


@bp.get("/events")
@ResultEndpoint(
    params=EventsParams(),
    response=EventPage(),
    has_csv=True,
    representations={GEO_JSON: Representation(lambda page: stream_json(make_event_map(page)), EventMap())},
    links=[FIRST_TRIP, FIRST_DRIVER, NEXT_PAGE],
)
def list_events(**params: Any) -> Result:
    """List the safety events of the fleet from a date on, or between two dates.

    An event belongs to the date on which it starts; after midnight this is the date after that of its trip. The events
    of a trip become visible with it, four hours after its end; the operator can set another delay. They are in order of
    `event_start_timestamp`, then `trip_id`, then `event_index`. If the fleet does not have a driver, the response is a
    NotFound.

    To read the whole list, request the next page with `next_cursor` until that is null. Nothing is listed twice or left
    out that was there all the while. What becomes visible before the position of the cursor is not seen: to keep a
    copy, use the change feed.

    Send `Accept: application/geo+json` to get the page as GeoJSON (RFC 7946) for a map: a point for each event.
    `X-Fields` does not apply to it.
    """
    return events.find_events(get_services().store, get_scope(), **params, max_end_ms=get_request_max_end_ms())
