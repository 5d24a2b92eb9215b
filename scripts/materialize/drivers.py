"""The read models of drivers: profiles in `driver_periods`, and the list of a fleet's drivers in `fleet_drivers`.

Their groups have sources of their own, `driver_groups`.
"""

from bisect import bisect_right
from collections.abc import Iterable

from pymongo import ASCENDING, DESCENDING

from app.store import Document, Store
from app.store.driver_periods import find_profiles
from app.store.drivers import BLOCK_SIZE, BY_OFFSET, HEAD_OFFSET
from app.store.groups import MAX_GROUPS_OF_FLEET
from schemas.driver import Driver, make_search_text
from schemas.identity import ids_of_fleet, make_id
from schemas.periods import DAY, PROFILE
from scripts.materialize.sources import read_sources
from scripts.materialize.versions import render_json, version_of

DRIVER = Driver()


def make_profiles(store: Store, fleet: str, driver_ids: Iterable[str]) -> dict[tuple[str, str], Document | None]:
    """Return the profiles of drivers, or None for one without a valid source and without trips.

    They are built from the sources, and from the stored documents of the days.
    """
    ids = list(driver_ids)
    found = read_sources(store.drivers, fleet, ids, [])
    sources = {source["driver_id"]: source for source in found}
    groups = find_groups_of(store, fleet, ids)
    first, last = (_find_travel_dates(store, fleet, ids, order) for order in (ASCENDING, DESCENDING))
    return {
        (driver_id, PROFILE): _make_profile(
            fleet,
            driver_id,
            sources.get(driver_id, {}),
            first.get(driver_id),
            last.get(driver_id),
            groups.get(driver_id, []),
        )
        if driver_id in sources or driver_id in first
        else None
        for driver_id in ids
    }


def _find_travel_dates(store: Store, fleet: str, driver_ids: list[str], order: int) -> dict[str, str]:
    """Return the first date of each driver who drove, or the last date in descending order.

    MongoDB reads one entry per driver of the index (fleet, period, driver_id, start_date), however many days the driver
    drove.
    """
    pipeline: list[Document] = [
        {"$match": {"fleet": fleet, "period": DAY, "driver_id": {"$in": driver_ids}}},
        {"$sort": dict.fromkeys(("fleet", "period", "driver_id", "start_date"), order)},
        {"$group": {"_id": "$driver_id", "date": {"$first": "$start_date"}}},
    ]
    return {day["_id"]: day["date"] for day in store.driver_periods.aggregate(pipeline)}


def _make_profile(
    fleet: str, driver_id: str, source: Document, first: str | None, last: str | None, groups: list[str]
) -> Document:
    """Return the profile of a driver: `source` and `groups` may be empty, `first` and `last` are dates with trips.

    The first travel date is the earlier one of the date in the source and `first`, the last travel date the later one.
    `search_text` is what a search reads. The `groups` are absent without any, and no part of the version.
    """
    dates = {
        "first_travel_date": min(filter(None, (source.get("first_travel_date"), first)), default=None),
        "last_travel_date": max(filter(None, (source.get("last_travel_date"), last)), default=None),
    }
    driver = {**source, "driver_id": driver_id, **dates}
    text = render_json(DRIVER, driver)
    return {
        "fleet": fleet,
        "driver_id": driver_id,
        "period": PROFILE,
        "json": text,
        "search_text": make_search_text(driver),
        **({"groups": groups} if groups else {}),
        "version": version_of(text),
    }


def make_list(store: Store, fleet: str, driver_ids: Iterable[str] | None = None) -> dict[tuple[int], Document | None]:
    """Return the blocks of the list that changed with these drivers, by offset; None for one to delete.

    All blocks are full, but the last one. So a block whose number of drivers changed is returned with all blocks after
    it, and with the head of the list. Without `driver_ids`, all are returned. The list is built from the profiles.
    """
    if driver_ids is None:
        return _find_offsets(store, {"fleet": fleet}) | _make_rest(store, fleet, 0, {"$gte": ""})
    match = {"fleet": fleet, "offset": {"$gt": HEAD_OFFSET}}
    blocks = store.fleet_drivers.find(match, {"first_driver_id": 1}, sort=BY_OFFSET)
    # A driver may come before the first one in the list.
    firsts = ["", *[block["first_driver_id"] for block in blocks][1:]]
    documents: dict[tuple[int], Document | None] = {}
    for index in sorted({bisect_right(firsts, driver_id) - 1 for driver_id in driver_ids}):
        offset, driver_range = index * BLOCK_SIZE, {"$gte": firsts[index]}
        if index + 1 < len(firsts):
            profiles = _find_profiles(store, fleet, driver_range | {"$lt": firsts[index + 1]})
            if len(profiles) == BLOCK_SIZE:
                documents[offset,] = _make_block(fleet, offset, profiles)
                continue
        return documents | _make_rest(store, fleet, offset, driver_range)
    return documents


def _make_rest(store: Store, fleet: str, start: int, driver_range: Document) -> dict[tuple[int], Document | None]:
    """Return the blocks from an offset on, of which `driver_range` matches the drivers, and the head of the list."""
    profiles = _find_profiles(store, fleet, driver_range)
    documents = _find_offsets(store, {"fleet": fleet, "offset": {"$gte": start}})
    for index in range(0, len(profiles), BLOCK_SIZE):
        block = _make_block(fleet, start + index, profiles[index : index + BLOCK_SIZE])
        documents[start + index,] = block
    count = start + len(profiles)
    head = {"fleet": fleet, "offset": HEAD_OFFSET, "driver_count": count} if count else None
    return documents | {(HEAD_OFFSET,): head}


def _find_offsets(store: Store, match: Document) -> dict[tuple[int], Document | None]:
    """Return the offset of each stored block that matches, with None. Those of damaged blocks may be no number."""
    blocks = store.fleet_drivers.find(match, {"offset": 1})
    return {(block["offset"],): None for block in blocks if isinstance(block.get("offset"), int)}


def _find_profiles(store: Store, fleet: str, driver_range: Document) -> list[Document]:
    """Return what a block has of drivers, in its order."""
    drivers = {"fleet": fleet, "driver_id": driver_range}
    return list(find_profiles(store, drivers, "json", "search_text").values())


def _make_block(fleet: str, offset: int, profiles: list[Document]) -> Document:
    """Return the block of the drivers after the first `offset` ones, in order of driver_id: parallel arrays."""
    texts = [profile["json"] for profile in profiles]
    return {
        "fleet": fleet,
        "offset": offset,
        "driver_count": len(profiles),
        "first_driver_id": profiles[0]["driver_id"],
        "driver_ids": [profile["driver_id"] for profile in profiles],
        "drivers": texts,
        "search_texts": [profile["search_text"] for profile in profiles],
        "version": version_of(texts),
    }


def make_groups_source(fleet: str, driver_id: str, groups: Iterable[str]) -> Document | None:
    """Return the source of a driver's groups, or None if there are none."""
    names = sorted(groups)
    return (
        {"_id": make_id(fleet, driver_id), "fleet": fleet, "driver_id": driver_id, "groups": names} if names else None
    )


def find_groups_of(store: Store, fleet: str, driver_ids: Iterable[str]) -> dict[str, list[str]]:
    """Return the groups of each of these drivers who has a valid source of them."""
    sources = read_sources(store.driver_groups, fleet, driver_ids, [])
    return {source["driver_id"]: source["groups"] for source in sources}


def find_groups(store: Store, fleet: str) -> set[str]:
    """Return the groups of a fleet, by the sources."""
    # In a transaction, MongoDB refuses `distinct` on a collection that is sharded.
    pipeline: list[Document] = [
        {"$match": {"_id": ids_of_fleet(fleet)}},
        {"$unwind": "$groups"},
        {"$match": {"groups": {"$type": "string"}}},
        {"$group": {"_id": "$groups"}},
    ]
    return {group["_id"] for group in store.driver_groups.aggregate(pipeline)}


def add_groups(names: set[str], groups: Iterable[str]) -> str:
    """Add the groups of a driver to those of the fleet. Returns why they cannot be, and then adds nothing, or ""."""
    new = {*groups} - names
    if new and len(names) + len(new) > MAX_GROUPS_OF_FLEET:
        return f"{min(new)!r} would be one group too many: a fleet has at most {MAX_GROUPS_OF_FLEET}."
    names |= new
    return ""
