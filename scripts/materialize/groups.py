"""The sources of groups, `driver_groups`: what a driver's say, and how many drivers each group of a fleet has."""

from collections import Counter
from collections.abc import Iterable

from pymongo.client_session import ClientSession

from app.store import Document, Store
from schemas.identity import ids_of_fleet, make_id
from scripts.materialize.sources import read_sources

MAX_GROUPS_OF_FLEET = 1_000


def make_groups_source(fleet: str, driver_id: str, groups: Iterable[str]) -> Document | None:
    """Return the source of a driver's groups, or None if there are none."""
    names = sorted(groups)
    return (
        {"_id": make_id(fleet, driver_id), "fleet": fleet, "driver_id": driver_id, "groups": names} if names else None
    )


def find_groups_of(store: Store, session: ClientSession, fleet: str, driver_ids: Iterable[str]) -> dict[str, list[str]]:
    """Return the groups of each of these drivers who has a valid source of them."""
    ids = [make_id(fleet, driver_id) for driver_id in driver_ids]
    return {source["driver_id"]: source["groups"] for source in read_sources(store.driver_groups, session, ids, [])}


class Members:
    """How many drivers each group of a fleet has, by the sources."""

    def __init__(self, store: Store, session: ClientSession, fleet: str) -> None:
        pipeline: list[Document] = [
            {"$match": {"_id": ids_of_fleet(fleet)}},
            {"$unwind": "$groups"},
            {"$match": {"groups": {"$type": "string"}}},
            {"$group": {"_id": "$groups", "count": {"$sum": 1}}},
        ]
        found = store.driver_groups.aggregate(pipeline, session=session)
        self._counts = Counter({group["_id"]: group["count"] for group in found})

    def move(self, left: Iterable[str], joined: Iterable[str]) -> str:
        """Count a driver who leaves and joins groups. Returns why that cannot be, and then counts nothing, or "".

        A driver may leave and join the same group.
        """
        before = len(self._counts)
        self._count(left, joined)
        if len(self._counts) <= max(before, MAX_GROUPS_OF_FLEET):
            return ""
        self._count(joined, left)
        new = min(name for name in joined if name not in self._counts)
        return f"{new!r} would be one group too many: a fleet has at most {MAX_GROUPS_OF_FLEET}."

    def _count(self, left: Iterable[str], joined: Iterable[str]) -> None:
        self._counts.update(joined)
        self._counts.subtract(left)
        for name in left:
            if not self._counts[name]:
                del self._counts[name]
