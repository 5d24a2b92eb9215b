"""The fleet: what a key opens, and the fleet as a whole."""

from typing import Any

import orjson
from flask import Blueprint

from app.endpoint import Credential, ResultEndpoint
from app.services import get_request_time_zone, get_request_today, get_scope, get_services
from app.store import Result
from app.store.fleet_periods import find_fleet_aggregate
from app.store.fleets import get_trips_state
from schemas.fleet import FleetAggregate, FleetInfo
from schemas.params import FleetAggregateParams, NoParams

bp = Blueprint("fleet", __name__)


@bp.get("/fleet")
@ResultEndpoint(params=NoParams(), response=FleetInfo())
def get_fleet_info() -> Result:
    """Get what the key opens, and which day it is there.

    Use it to find out whether a key is of a fleet or of one driver, and which dates are allowed.
    """
    scope = get_scope()
    implausible_trips, received_at = get_trips_state(get_services().store, scope.fleet)
    info = {
        "fleet": scope.fleet,
        "driver_id": scope.driver_id,
        "time_zone": get_request_time_zone().key,
        "today": str(get_request_today()),
        "processing_delay_hours": get_services().config.processing_delay_hours,
        "implausible_trips": implausible_trips,
        "last_trip_received_at": received_at if scope.driver_id is None else None,
    }
    return Result(orjson.dumps(info).decode(), info)


@bp.get("/fleet-aggregate")
@ResultEndpoint(params=FleetAggregateParams(), response=FleetAggregate(), has_csv=True, credential=Credential.FLEET_KEY)
def get_fleet_aggregate(**params: Any) -> Result:
    """Get the driving of the fleet as a whole, by day, week or month.

    The response has the intervals that begin from `start_date` to `end_date`, each whole, and only those in which
    somebody drove. A trip counts as soon as it is stored, before it becomes visible in lists of trips. The amounts are
    sums over the drivers; the score follows from the sums, and is not an average of drivers.

    With `group` or `insurance_period`, the response is about this part of the fleet. The four insurance periods, `none`
    included, add up to the whole.
    """
    return find_fleet_aggregate(get_services().store, get_scope().fleet, **params)
