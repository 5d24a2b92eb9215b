"""The change feed of a fleet."""

from typing import Any

from flask import Blueprint, Response

from app.endpoint import Caching, Credential, Endpoint
from app.responses import format_next_link, json_response
from app.services import get_scope, get_services
from app.store.changes import find_changes
from schemas.page import ChangePage
from schemas.params import ChangesParams

bp = Blueprint("changes", __name__)

NEXT_PAGE = {"cursor": "$response.body#/cursor"}
FIRST_TRIP = {"filter_param": "trip_id", "filter_value": "$response.body#/changes/0/trip_id"}


@bp.get("/changes")
@Endpoint(
    params=ChangesParams(),
    response=ChangePage(),
    credential=Credential.FLEET_KEY,
    caching=Caching.NEVER,
    links=[NEXT_PAGE, FIRST_TRIP],
)
def list_changes(**params: Any) -> Response:
    """List the trips that became visible, changed or were deleted since the last request.

    Use it to keep a copy of all visible trips. Without `cursor`, the feed starts with all of them, those older than six
    months included. Apply the changes of a page in their order, store its `cursor`, and request the next page with it:
    at once while `has_more` is true, otherwise after a pause. While it is true, the header `Link` has the `next` page.
    A trip appears again after each change, and may appear twice without one.

    A cursor may be used again. Deletions are reported for 30 days, so a cursor expires if the client was last caught up
    more than 29 days ago: start without a cursor and with an empty copy then.
    """
    services = get_services()
    with services.store_breaker.guard():
        delay_hours = services.config.processing_delay_hours
        page = find_changes(services.store, get_scope().fleet, **params, processing_delay_hours=delay_hours)
    response = json_response(page)
    if page["has_more"] and (link := format_next_link(page["cursor"])):
        response.headers["Link"] = link
    return response
