"""Rankings of the drivers of the fleet."""

from typing import Any

from flask import Blueprint

from app.endpoint import Credential, ResultEndpoint
from app.services import get_scope, get_services
from app.store import Result, rankings
from schemas.page import RankingPage
from schemas.params import RankingParams

bp = Blueprint("rankings", __name__)

FIRST_DRIVER = {"driver_id": "$response.body#/drivers/0/driver_info/driver_id"}


@bp.get("/ranking")
@ResultEndpoint(
    params=RankingParams(), response=RankingPage(), has_csv=True, credential=Credential.FLEET_KEY, links=[FIRST_DRIVER]
)
def get_ranking(**params: Any) -> Result:
    """Rank the drivers of the fleet by their score in a week or month.

    The ranking has the drivers who drove in the week or month. The lowest score comes first, or with `order=best` the
    highest. Among drivers with the same score, those with a longer distance come first, then those with a lower
    `driver_id` by code point. `min_distance_miles` leaves out drivers with a shorter distance. `rank` counts the other
    drivers, on all pages together; no two drivers have the same rank. A week or month in progress includes all trips
    stored so far, even those that are not visible in lists of trips yet.
    """
    return rankings.find_ranking(get_services().store, get_scope().fleet, **params)
