"""Rankings of the drivers of the fleet."""

from typing import Any

from flask import Blueprint, g

from app.database import get_store
from app.endpoint import Endpoint
from app.store import Result, rankings
from app.store.pagination import Selection
from schemas.page import RankingPage
from schemas.ranking_params import RankingParams

bp = Blueprint("rankings", __name__)

FIRST_DRIVER = {"driver_id": "$response.body#/drivers/0/driver_info/driver_id"}
LINKS = dict.fromkeys(("getDriverScore", "listDriverTrips"), FIRST_DRIVER)


@bp.get("/ranking")
@Endpoint(RankingParams(), RankingPage(), links=LINKS)
def get_ranking(params: dict[str, Any], selection: Selection) -> Result:
    """Rank the drivers of the fleet by their score in a week or month.

    The ranking has the drivers who drove in the week or month. The lowest score comes first, or with `order=best` the
    highest. Of drivers with the same score, the longer distance comes first, then the lower `driver_id` by code point.
    `rank` is the place among the drivers that `min_distance_miles` leaves, on all pages together; no two drivers share
    one. A week or month in progress includes all trips stored so far, even those that are not visible in lists of trips
    yet.
    """
    return rankings.find_page(get_store(), g.api_key.fleet, **params, selection=selection)
