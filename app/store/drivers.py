"""Drivers of a fleet."""

from pymongo import ASCENDING
from pymongo.database import Database

from app.store import Document, OutOfShape, UnknownDrivers
from app.store.buckets import VERSION_BYTES
from app.store.page import Asked, find_counted_page, find_page
from app.store.reading import find
from app.store.served import COUNT, PAGE_ROWS, Found, Seen, from_served, joined
from schemas.derive import Fields, fields_of, fits, projection
from schemas.driver import Driver
from schemas.mask import arranger
from schemas.page import DriverPage

DRIVER = fields_of(Driver)
PAGE = fields_of(DriverPage)
BY_ID = [("driver_id", ASCENDING)]
BY_NUMBER = [("number", ASCENDING)]
ABOUT = {"_id": 0, "number": 1, "stale": 1, "count": 1, "first": 1, "version": 1}
ALL = {**ABOUT, "rows": 1}


def find_drivers(
    db: Database[Document], fleet: str, *, page: int, limit: int, fields: Fields = PAGE, seen: Seen | None = None
) -> Found:
    """Find the `fields` of a Driver page, by driver_id in code point order.

    Indexes: (fleet, number, first), and where masked or stale (fleet, driver_id).
    """
    asked = Asked(page, limit, fields, DriverPage)
    served = _find_served(db, fleet, asked, seen)
    return served or Found(find_page(db.drivers, {"fleet": fleet}, BY_ID, asked), None)


@from_served
def _find_served(db: Database[Document], fleet: str, asked: Asked, seen: Seen | None) -> Found | None:
    whole = asked.fields is PAGE
    pages = _pages(db, fleet, asked, ALL if seen is None and whole else ABOUT)
    if pages is None:
        return None
    (count, *listed), first = pages, asked.skip % PAGE_ROWS
    version = b"".join([count["count"].to_bytes(VERSION_BYTES), *(doc["version"] for doc in listed)])
    if seen is not None:
        return Found(None, version) if seen(version) else _find_served(db, fleet, asked, None)
    if not whole:
        match = {"fleet": fleet, "driver_id": {"$gte": listed[0]["first"] if listed else ""}}
        content = find_counted_page(db.drivers, match, BY_ID, asked, count["count"], first)
        return None if content is None else Found(content, version)
    rows = [row for doc in listed for row in doc["rows"]][first : first + asked.limit]
    return Found(asked.content(joined(rows), count["count"]), version) if asked.fits(rows, count["count"]) else None


def find_by_id(
    db: Database[Document], fleet: str, driver_ids: list[str], fields: Fields = DRIVER
) -> dict[str, Document]:
    """Return the `fields` of the drivers, by driver_id. Index: (fleet, driver_id).

    Raises UnknownDrivers, and OutOfShape.
    """
    wanted = projection({**fields, "driver_id": None})
    arrange, sound = arranger(fields, DRIVER), fits(Driver, fields)
    match = {"fleet": fleet, "driver_id": {"$in": driver_ids}}
    found = {driver["driver_id"]: driver for driver in find(db.drivers, match, wanted)}
    if unknown := [driver_id for driver_id in driver_ids if driver_id not in found]:
        raise UnknownDrivers(unknown)
    for driver_id, driver in found.items():
        if not sound(driver):
            raise OutOfShape(db.drivers, {"fleet": fleet, "driver_id": driver_id})
    return {driver_id: arrange(driver) for driver_id, driver in found.items()}


def _pages(db: Database[Document], fleet: str, asked: Asked, fields: dict[str, int]) -> list[Document] | None:
    """Return how long the list is, then the stored pages that the one asked for lies on; None where one is stale."""
    last = (asked.skip + asked.limit - 1) // PAGE_ROWS
    numbers = [COUNT, *range(asked.skip // PAGE_ROWS, last + 1)]
    found = find(db.served_drivers, {"fleet": fleet, "number": {"$in": numbers}}, fields, BY_NUMBER)
    if not found or found[0]["number"] != COUNT or any("stale" in doc for doc in found):
        return None
    pages = -(-found[0]["count"] // PAGE_ROWS)
    return found if len(found) == sum(number < pages for number in numbers) else None
