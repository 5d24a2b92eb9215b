"""The groups of a fleet's drivers, which the profiles of the drivers have.

The number of a group's drivers is stored in `fleet_periods`, beside the sums of its days, weeks and months.
"""

from collections.abc import Sequence
from typing import Any

from pymongo import ASCENDING, DESCENDING

from app.store import Document, Result, Store, UnknownRecord
from app.store.pagination import PageRequest
from app.store.scope import Scope
from schemas.fleet import make_segment
from schemas.periods import PROFILE

# The index of what has groups, in the order of a ranking, and that of profiles in it, which have only the last field.
INDEX = "group_ranking_worst"
BY_DRIVER_IN_GROUP = [
    ("start_date", ASCENDING),
    ("fm_score", ASCENDING),
    ("distance_miles", DESCENDING),
    ("driver_id", ASCENDING),
]
# What the document with the number of a group's drivers has in `fleet_periods` besides the segment, and its index.
OF_COUNT = {"period": PROFILE, "start_date": ""}
COUNT_INDEX = "driver_count"
MAX_GROUPS_OF_FLEET = 1_000
# More than the drivers of most groups, so that all arrive in the first batch.
DRIVERS_A_BATCH = 10_000


def find_page_of_group(
    store: Store, scope: Scope, group: str, page_request: PageRequest, words: Sequence[str] = ()
) -> tuple[int, list[str]]:
    """Return the number of drivers of a group, and the driver_ids of those on the page, in this order.

    With `words`, these are the drivers whose search text contains each of them. Reads the index alone, up to the end of
    the page, or with `words` all of the group. Index: driver_periods (fleet, groups, period, ..., driver_id,
    search_text). Raises UnknownRecord.
    """
    count = get_driver_count(store, scope, group)
    match = {"fleet": scope.fleet, "groups": group, "period": PROFILE}
    fields: Document = {"_id": 0, "driver_id": 1}
    options: Any = {"sort": BY_DRIVER_IN_GROUP, "batch_size": DRIVERS_A_BATCH}
    if words:
        # MongoDB would read the documents to find the words itself, because a driver may be in several groups.
        found = store.driver_periods.find(match, {**fields, "search_text": 1}, **options).hint(INDEX)
        matches = [driver["driver_id"] for driver in found if all(map(driver["search_text"].__contains__, words))]
        return len(matches), matches[page_request.skip :][: page_request.limit]
    options |= {"skip": page_request.skip, "limit": page_request.limit}
    return count, [driver["driver_id"] for driver in store.driver_periods.find(match, fields, **options).hint(INDEX)]


def check_group(store: Store, scope: Scope, group: str) -> None:
    """Raise UnknownRecord unless the group has a driver."""
    get_driver_count(store, scope, group)


def get_driver_count(store: Store, scope: Scope, group: str) -> int:
    """Return the number of drivers of a group. Raises UnknownRecord if there are none.

    No group exists for a driver. Index: fleet_periods (fleet, segment, period, start_date).
    """
    if scope.driver_id is None:
        match = {"fleet": scope.fleet, "segment": make_segment(group), **OF_COUNT}
        if found := store.fleet_periods.find_one(match, {"_id": 0, "driver_count": 1}):
            return int(found["driver_count"])
    raise UnknownRecord(f"No group of this fleet: {group}")


def find_drivers_in_group(store: Store, scope: Scope, group: str, driver_ids: Sequence[str]) -> list[str]:
    """Return those of the drivers who are in a group.

    Index: driver_periods (fleet, groups, period, ..., driver_id, search_text).
    """
    match = {**scope.match_drivers(driver_ids), "groups": group, "period": PROFILE}
    found = store.driver_periods.find(match, {"_id": 0, "driver_id": 1}, batch_size=DRIVERS_A_BATCH).hint(INDEX)
    return [profile["driver_id"] for profile in found]


def find_groups(store: Store, fleet: str, *, page: int, limit: int) -> Result:
    """Return a GroupPage: the groups in order of the name by code point.

    Reads the index alone: fleet_periods (fleet, segment, driver_count).
    """
    page_request = PageRequest(page, limit)
    with store.snapshot():
        count = store.fleet_periods.count_documents(_match_counts(fleet), hint=COUNT_INDEX)
        counts = find_driver_counts(store, fleet, skip=page_request.skip, limit=limit)
    records = [{"group": group, "driver_count": count} for group, count in counts.items()]
    versions = [f"{count} {group}" for group, count in counts.items()]
    return page_request.build_result(count, versions, {"groups": records})


def find_driver_counts(store: Store, fleet: str, **page: int) -> dict[str, int]:
    """Return the number of drivers of each group, in order of the name by code point.

    `page` may have the number of groups to `skip`, and the `limit`.
    """
    fields, order = {"_id": 0, "segment": 1, "driver_count": 1}, [("segment", ASCENDING)]
    options: Any = {"sort": order, "batch_size": MAX_GROUPS_OF_FLEET, **page}
    found = store.fleet_periods.find(_match_counts(fleet), fields, **options).hint(COUNT_INDEX)
    return {count["segment"].removeprefix(make_segment("")): count["driver_count"] for count in found}


def _match_counts(fleet: str) -> Document:
    """Return a filter for the numbers of drivers of all groups: nothing else has a `driver_count`."""
    return {"fleet": fleet, "driver_count": {"$gt": 0}}
