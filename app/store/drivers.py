"""Drivers of a fleet."""

from pymongo import ASCENDING

from app.store import Document, Result, Store
from app.store.pagination import PageRequest, Selection, make_renderer
from schemas.driver import Driver
from schemas.introspection import fields_of

DRIVER = fields_of(Driver)
# Drivers in a block at the most: a page lies on few blocks.
BLOCK_SIZE = 100
# Where the number of a fleet's drivers is.
COUNT_POSITION = -1
BY_POSITION = [("position", ASCENDING)]
NO_DRIVERS: Document = {"driver_count": 0}


def find_page(store: Store, fleet: str, *, page: int, limit: int, selection: Selection) -> Result:
    """Return a Driver page, by driver_id in code point order.

    Reads the number of drivers and the blocks that the page lies on in one query. Index: fleet_drivers (fleet,
    position).
    """
    page_request = PageRequest(page, limit)
    places: list[Document] = [{"position": COUNT_POSITION}]
    if "drivers" in selection.fields:
        places.append(
            {"position": {"$gt": max(page_request.skip - BLOCK_SIZE, COUNT_POSITION), "$lt": page_request.skip + limit}}
        )
    projection = {"_id": 0, "position": 1, "version": 1, "driver_count": 1} | selection.projection("drivers")
    with store.snapshot() as session:
        found = store.fleet_drivers.find(
            {"fleet": fleet, "$or": places}, projection, sort=BY_POSITION, batch_size=BLOCK_SIZE, session=session
        )
        total, *blocks = list(found) or [NO_DRIVERS]
    count = total["driver_count"]
    rows = [row for block in blocks for row in block.get("drivers", ())]
    first = page_request.skip - blocks[0]["position"] if blocks else 0
    records = list(map(make_renderer(selection.fields.get("drivers"), DRIVER), rows[first : first + limit]))
    # The same blocks may lie at other positions, and then others of their drivers are on the page.
    version = " ".join([str(count), str(first), *(block["version"] for block in blocks)])
    return Result(version, page_request.build_content(selection.fields, count, {"drivers": records}))
