"""The groups of a fleet's drivers, which the profiles of the drivers have."""

from collections.abc import Sequence
from typing import Any

from app.store import Document, Result, Store, UnknownRecord
from app.store.driver_periods import BY_DRIVER
from app.store.pagination import PageRequest
from app.store.scope import Scope

# The index of the profiles that have groups.
INDEX = "groups"
# More than the drivers of most groups, so that all arrive in the first batch.
DRIVERS_A_BATCH = 10_000


def find_drivers_of_group(store: Store, scope: Scope, group: str, limit: int = 0) -> list[str]:
    """Return the driver_ids of a group, in this order, from its index alone. Raises UnknownRecord if there are none.

    `limit` is the largest number of them, 0 for all. No group exists for a driver. Index: driver_periods (fleet,
    groups, driver_id).
    """
    if scope.driver_id is None:
        match = {"fleet": scope.fleet, "groups": group}
        options: Any = {"sort": BY_DRIVER, "limit": limit, "batch_size": DRIVERS_A_BATCH}
        found = store.driver_periods.find(match, {"_id": 0, "driver_id": 1}, **options).hint(INDEX)
        if driver_ids := [profile["driver_id"] for profile in found]:
            return driver_ids
    raise UnknownRecord(f"No group of this fleet: {group}")


def check_group(store: Store, scope: Scope, group: str) -> None:
    """Raise UnknownRecord unless the group has a driver."""
    find_drivers_of_group(store, scope, group, limit=1)


def find_drivers_in_group(store: Store, scope: Scope, group: str, driver_ids: Sequence[str]) -> list[str]:
    """Return those of the drivers who are in a group. Index: driver_periods (fleet, groups, driver_id)."""
    match = {**scope.match_drivers(driver_ids), "groups": group}
    found = store.driver_periods.find(match, {"_id": 0, "driver_id": 1}, batch_size=DRIVERS_A_BATCH).hint(INDEX)
    return [profile["driver_id"] for profile in found]


def find_groups(store: Store, fleet: str, *, page: int, limit: int) -> Result:
    """Return a GroupPage: the groups in order of the name by code point."""
    with store.snapshot():
        counts = count_drivers(store, fleet)
    page_request = PageRequest(page, limit)
    on_page = list(counts.items())[page_request.skip :][:limit]
    records = [{"group": group, "driver_count": count} for group, count in on_page]
    versions = [f"{count} {group}" for group, count in on_page]
    return page_request.build_result(len(counts), versions, {"groups": records})


def count_drivers(store: Store, fleet: str) -> dict[str, int]:
    """Return the number of drivers of each group, in order of the name by code point.

    It reads the profiles of all drivers in groups. Index: driver_periods (fleet, groups, driver_id).
    """
    pipeline: list[Document] = [
        {"$match": {"fleet": fleet, "groups": {"$exists": True}}},
        {"$project": {"_id": 0, "groups": 1}},
        {"$unwind": "$groups"},
        {"$group": {"_id": "$groups", "driver_count": {"$sum": 1}}},
        {"$sort": {"_id": 1}},
    ]
    found = store.driver_periods.aggregate(pipeline, hint=INDEX)
    return {group["_id"]: group["driver_count"] for group in found}
