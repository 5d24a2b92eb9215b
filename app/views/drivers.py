"""The drivers of a fleet."""

from flask import Blueprint, Response, g, request

from app.db import get_db
from app.responses import page_response
from app.store import drivers
from schemas.page import DriverPage
from schemas.query import DriversQuery

bp = Blueprint("drivers", __name__)


@bp.get("/drivers")
def list_drivers() -> Response:
    """List the fleet's drivers by driver_id."""
    query = DriversQuery().parse(request.query_string)
    page = drivers.find_drivers(get_db(), g.key.fleet, **query)
    return page_response(DriverPage(), page)
