"""The drivers of a fleet."""

from typing import Any

from flask import Blueprint, Response, g

from app.db import get_db
from app.operations import Operation
from app.responses import json_response
from app.store import drivers
from schemas.derive import Fields
from schemas.page import DriverPage
from schemas.query import DriversQuery

bp = Blueprint("drivers", __name__)


@bp.get("/drivers")
@Operation(DriversQuery(), DriverPage())
def list_drivers(query: dict[str, Any], fields: Fields) -> Response:
    """List the drivers of the fleet.

    Drivers of any status, by `driver_id` in code point order.
    """
    return json_response(drivers.find_drivers(get_db(), g.key.fleet, **query, fields=fields))
