"""Drivers of a fleet."""

from collections.abc import Mapping

from pymongo import ASCENDING, DESCENDING
from pymongo.collection import Collection
from pymongo.database import Database

from app.store import Document, OutOfShape, UnknownDrivers, pipelines
from app.store.buckets import VERSION_BYTES
from app.store.page import Asked, find_counted_page, find_page
from app.store.reading import Find, Order, find
from app.store.served import COUNT, PAGE_ROWS, Found, Seen, from_served, joined
from schemas.derive import Fields, fields_of, fits, projection
from schemas.driver import Driver
from schemas.mask import arranger
from schemas.page import DriverPage
from schemas.stored import StoredDriver, TravelDates

DRIVER = fields_of(Driver)
PAGE = fields_of(DriverPage)
DATES = tuple(fields_of(TravelDates))
has_dates = fits(StoredDriver, {"driver_id": None, "imported": fields_of(TravelDates)})
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
    return served or Found(find_page(db.drivers, {"fleet": fleet}, BY_ID, asked, find_while_stale), None)


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
    db: Database[Document], fleet: str, driver_ids: list[str], fields: Fields = DRIVER, read: Find = find
) -> dict[str, Document]:
    """Return the `fields` of the drivers, by driver_id; where these are stale, `read` by find_while_stale.

    Index: (fleet, driver_id).

    Raises UnknownDrivers, and OutOfShape.
    """
    wanted = projection({**fields, "driver_id": None})
    arrange, sound = arranger(fields, DRIVER), fits(Driver, fields)
    match = {"fleet": fleet, "driver_id": {"$in": driver_ids}}
    found = {driver["driver_id"]: driver for driver in read(db.drivers, match, wanted)}
    if unknown := [driver_id for driver_id in driver_ids if driver_id not in found]:
        raise UnknownDrivers(unknown)
    for driver_id, driver in found.items():
        if not sound(driver):
            raise OutOfShape(db.drivers, {"fleet": fleet, "driver_id": driver_id})
    return {driver_id: arrange(driver) for driver_id, driver in found.items()}


def find_while_stale(
    drivers: Collection[Document],
    match: Document,
    wanted: Document,
    order: Order = (),
    **bounds: int,
) -> list[Document]:
    """Find drivers, as find does, whose trips are being written: with the travel dates that follow from the trips."""
    if wanted.keys().isdisjoint(DATES):
        return find(drivers, match, wanted, order, **bounds)
    found = find(drivers, match, {**wanted, "driver_id": 1, "imported": 1}, order, **bounds)
    imported = {driver["driver_id"]: driver["imported"] for driver in filter(has_dates, found)}
    dates = travel_dates(drivers.database, match["fleet"], imported)
    due = [{**driver, **dates[driver["driver_id"]]} if has_dates(driver) else driver for driver in found]
    return [{name: value for name, value in driver.items() if name in wanted} for driver in due]


def travel_dates(
    db: Database[Document], fleet: str, imported: Mapping[str, Document]
) -> dict[str, dict[str, str | None]]:
    """Return the travel dates of drivers, by driver_id: the widest of the imported ones and those of their trips."""
    first, last = (
        {doc["_id"]: doc["date"] for doc in db.trips.aggregate(pipelines.trip_dates(fleet, list(imported), direction))}
        for direction in (ASCENDING, DESCENDING)
    )
    return {
        driver_id: {
            "first_travel_date": min(_given(dates["first_travel_date"], first.get(driver_id)), default=None),
            "last_travel_date": max(_given(dates["last_travel_date"], last.get(driver_id)), default=None),
        }
        for driver_id, dates in imported.items()
    }


def _given(*dates: str | None) -> list[str]:
    return [date for date in dates if date is not None]


def _pages(db: Database[Document], fleet: str, asked: Asked, fields: dict[str, int]) -> list[Document] | None:
    """Return how long the list is, then the stored pages that the one asked for lies on; None where one is stale."""
    last = (asked.skip + asked.limit - 1) // PAGE_ROWS
    numbers = [COUNT, *range(asked.skip // PAGE_ROWS, last + 1)]
    found = find(db.served_drivers, {"fleet": fleet, "number": {"$in": numbers}}, fields, BY_NUMBER)
    if not found or found[0]["number"] != COUNT or any("stale" in doc for doc in found):
        return None
    pages = -(-found[0]["count"] // PAGE_ROWS)
    return found if len(found) == sum(number < pages for number in numbers) else None
