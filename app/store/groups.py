"""The groups of a fleet's drivers, which the profiles of the drivers have."""

from typing import Any

from pymongo.client_session import ClientSession

from app.store import Store, UnknownGroup
from app.store.driver_periods import BY_DRIVER
from app.store.scope import Scope

# The index of the profiles that have groups.
INDEX = "groups"
# More than the drivers of most groups, so that all arrive in the first batch.
MAX_DRIVERS = 10_000


def find_group(store: Store, session: ClientSession, scope: Scope, group: str, limit: int = 0) -> list[str]:
    """Return the driver_ids of a group, in this order, from its index alone. Raises UnknownGroup if there are none.

    `limit` is the largest number of them, 0 for all. No group exists for a driver.

    Index: driver_periods (fleet, groups, driver_id).
    """
    if scope.driver_id is None:
        match = {"fleet": scope.fleet, "groups": group}
        options: Any = {"sort": BY_DRIVER, "limit": limit, "batch_size": MAX_DRIVERS, "session": session}
        found = store.driver_periods.find(match, {"_id": 0, "driver_id": 1}, **options).hint(INDEX)
        if driver_ids := [profile["driver_id"] for profile in found]:
            return driver_ids
    raise UnknownGroup(group)
