"""The groups of a fleet's drivers."""

from typing import Any

from flask import Blueprint

from app.endpoint import Credential, ResultEndpoint
from app.services import get_scope, get_services
from app.store import Result
from app.store.groups import find_groups
from schemas.page import GroupPage
from schemas.params import PageParams

bp = Blueprint("groups", __name__)

FIRST_GROUP = {"group": "$response.body#/groups/0/group"}


@bp.get("/groups")
@ResultEndpoint(params=PageParams(), response=GroupPage(), credential=Credential.FLEET_KEY, links=[FIRST_GROUP])
def list_groups(**params: Any) -> Result:
    """List the groups of the fleet, such as depots or teams.

    The groups are in order of their names by code point. A driver may be in several. The operator of the service says
    who is in a group. With `group`, other endpoints are about the drivers of a group, for all dates those who are in it
    now.
    """
    return find_groups(get_services().store, get_scope().fleet, **params)
