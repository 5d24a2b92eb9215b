"""The drivers of a fleet."""

from typing import Any

from flask import Blueprint

from app.endpoint import ResultEndpoint
from app.services import get_scope, get_services
from app.store import Result, drivers
from schemas.page import DriverPage
from schemas.params import DriversParams

bp = Blueprint("drivers", __name__)

FIRST_DRIVER = {"driver_id": "$response.body#/drivers/0/driver_id"}


@bp.get("/drivers")
@ResultEndpoint(params=DriversParams(), response=DriverPage(), has_csv=True, links=[FIRST_DRIVER])
def list_drivers(**params: Any) -> Result:
    """List the drivers of the fleet.

    The drivers are in order of `driver_id` by code point. With `search`, they are those who match all of its words.
    """
    return drivers.find_drivers(get_services().store, get_scope(), **params)
