"""Drivers of a fleet."""

from pymongo import ASCENDING
from pymongo.database import Database

from app.store import Document
from app.store.page import find_page
from schemas.derive import Fields, fields_of, projection
from schemas.driver import Driver
from schemas.mask import arranger
from schemas.page import DriverPage

DRIVER = fields_of(Driver)
PAGE = fields_of(DriverPage)
BY_ID = [("driver_id", ASCENDING)]


def find_drivers(db: Database[Document], fleet: str, *, page: int, limit: int, fields: Fields = PAGE) -> Document:
    """Return the `fields` of a Driver page, by driver_id in code point order. Index: (fleet, driver_id)."""
    return find_page(db.drivers, {"fleet": fleet}, BY_ID, page=page, limit=limit, fields=fields, whole=PAGE)


def find_by_id(
    db: Database[Document], fleet: str, driver_ids: list[str], fields: Fields = DRIVER
) -> dict[str, Document]:
    """Return the `fields` of those of the drivers that exist, by driver_id. Index: (fleet, driver_id)."""
    wanted = projection({**fields, "driver_id": None})
    found = db.drivers.find({"fleet": fleet, "driver_id": {"$in": driver_ids}}, wanted)
    arrange = arranger(fields, DRIVER)
    return {driver["driver_id"]: arrange(driver) for driver in found}
