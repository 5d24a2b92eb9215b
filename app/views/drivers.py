"""The drivers of a fleet."""

from typing import Any

from flask import Blueprint, g

from app.db import get_db
from app.operations import Operation
from app.store import drivers
from app.store.served import Found, Seen
from schemas.derive import Fields
from schemas.page import DriverPage
from schemas.query import DriversQuery

bp = Blueprint("drivers", __name__)


@bp.get("/drivers")
@Operation(DriversQuery(), DriverPage())
def list_drivers(query: dict[str, Any], fields: Fields, seen: Seen | None) -> Found:
    """List the drivers of the fleet.

    Drivers of any status, by `driver_id` in code point order.
    """
    return drivers.find_drivers(get_db(), g.key.fleet, **query, fields=fields, seen=seen)
