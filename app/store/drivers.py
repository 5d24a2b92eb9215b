"""Drivers of a fleet."""

from pymongo import ASCENDING
from pymongo.database import Database

from app.store import Document
from app.store.page import Page, find_page
from schemas.derive import projection
from schemas.driver import Driver

FIELDS = {"_id": 0, **projection(Driver())}


def find_drivers(db: Database[Document], fleet: str, *, page: int, limit: int) -> Page:
    """Return one Page of the fleet's drivers by driver_id in code point order. Index: (fleet, driver_id)."""
    return find_page(db.drivers, {"fleet": fleet}, [("driver_id", ASCENDING)], FIELDS, page=page, limit=limit)


def find_by_id(db: Database[Document], fleet: str, driver_ids: list[str]) -> dict[str, Document]:
    """Return those of the drivers that exist, by driver_id. Index: (fleet, driver_id)."""
    found = db.drivers.find({"fleet": fleet, "driver_id": {"$in": driver_ids}}, FIELDS)
    return {driver["driver_id"]: driver for driver in found}
