"""Drivers of a fleet."""

import itertools
from bisect import bisect_right
from typing import Any

from pymongo import ASCENDING

from app.store import Document, Result, Store, UnknownDrivers
from app.store.pages import Page, first, renderer
from schemas.derive import Fields, fields_of
from schemas.driver import Driver

DRIVER = fields_of(Driver)
BY_ID = [("driver_id", ASCENDING)]
NO_DRIVERS: Document = {"driver_count": 0, "version": ""}


def find_page(store: Store, fleet: str, *, page: int, limit: int, fields: Fields) -> Result:
    """Return the `fields` of a Driver page, by driver_id in code point order.

    The fleet's bookmarks tell where the page begins, so every page costs the same. Indexes: fleets (fleet),
    driver_profiles (fleet, driver_id).
    """
    wanted, records = Page(page, limit), list[Any]()
    projection = {"_id": 0, "driver_count": 1, "version": 1} | ({"bookmarks": 1} if "drivers" in fields else {})
    with store.snapshot() as session:
        known = first(store.fleets.find({"fleet": fleet}, projection, limit=1, session=session)) or NO_DRIVERS
        count = known["driver_count"]
        if "drivers" in fields and wanted.skip < count:
            start, skip = _seek(known["bookmarks"], wanted.skip)
            match = {"fleet": fleet, "driver_id": {"$gte": start}}
            profiles = store.driver_profiles.find(
                match, {"_id": 0, "json": 1}, sort=BY_ID, skip=skip, limit=limit, session=session
            )
            render = renderer(fields["drivers"], DRIVER)
            records = [render(profile["json"]) for profile in profiles]
    return Result(known["version"], wanted.content(fields, count, {"drivers": records}))


def _seek(bookmarks: Document, skip: int) -> tuple[str, int]:
    """Return the bookmark before the driver at an offset, and how many drivers lie between them."""
    before = list(itertools.accumulate(bookmarks["counts"], initial=0))
    index = bisect_right(before, skip) - 1
    return bookmarks["driver_ids"][index], skip - before[index]


def get_profiles(
    store: Store, fleet: str, driver_ids: list[str], session: Any, *, rendered: bool
) -> dict[str, Document]:
    """Return each driver's version and, where `rendered`, JSON, by driver_id.

    Index: driver_profiles (fleet, driver_id). Raises UnknownDrivers.
    """
    wanted = {"_id": 0, "driver_id": 1, "version": 1} | ({"json": 1} if rendered else {})
    match = {"fleet": fleet, "driver_id": {"$in": driver_ids}}
    found = {profile["driver_id"]: profile for profile in store.driver_profiles.find(match, wanted, session=session)}
    if unknown := [driver_id for driver_id in driver_ids if driver_id not in found]:
        raise UnknownDrivers(unknown)
    return found
