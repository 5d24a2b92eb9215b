"""The explanation of a driver's score."""

from typing import Any

from flask import Blueprint

from app.endpoint import ResultEndpoint
from app.services import get_scope, get_services
from app.store import Result
from app.store.scores import get_explanation
from schemas.params import ScoreParams
from schemas.score import DriverScore

bp = Blueprint("scores", __name__)


@bp.get("/driver/<segment:driver_id>/score")
@ResultEndpoint(params=ScoreParams(), response=DriverScore())
def get_driver_score(**params: Any) -> Result:
    """Explain the score of a driver in a window of days.

    The response shows how many points each behaviour costs: in the window, and in each day, week or month in which the
    driver drove. The first and the last of these intervals have only the days that are in the window. A trip counts as
    soon as it is stored, before it becomes visible in lists of trips. If the fleet does not have the driver, the
    response is a NotFound.
    """
    return get_explanation(get_services().store, get_scope(), **params)
