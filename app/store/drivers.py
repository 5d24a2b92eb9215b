"""The drivers of a fleet."""

from pymongo import ASCENDING

from app.store import Document, Result, Store
from app.store.pagination import PageRequest
from app.store.rendering import Selection, render_list
from schemas.driver import Driver
from schemas.introspection import fields_of

DRIVER = fields_of(Driver)
# The maximum number of drivers in a block. A page of 100 drivers is on few blocks.
BLOCK_SIZE = 100
# The position of the head of the list, which has the number of a fleet's drivers (schema FleetDrivers).
HEAD_POSITION = -1
BY_POSITION = [("position", ASCENDING)]
NO_DRIVERS: Document = {"driver_count": 0}


def find_drivers(store: Store, fleet: str, *, page: int, limit: int, selection: Selection) -> Result:
    """Return a Driver page, in order of driver_id by code point.

    One query reads the head of the list and the blocks of the page. Index: fleet_drivers (fleet, position).
    """
    page_request = PageRequest(page, limit)
    positions: list[Document] = [{"position": HEAD_POSITION}]
    if "drivers" in selection.fields:
        before = max(page_request.skip - BLOCK_SIZE, HEAD_POSITION)
        positions.append({"position": {"$gt": before, "$lt": page_request.skip + limit}})
    projection = {"_id": 0, "position": 1, "version": 1, "driver_count": 1} | selection.projection("drivers")
    with store.snapshot() as session:
        cursor = store.fleet_drivers.find(
            {"fleet": fleet, "$or": positions}, projection, sort=BY_POSITION, batch_size=BLOCK_SIZE, session=session
        )
        head, *blocks = list(cursor) or [NO_DRIVERS]
    count = head["driver_count"]
    rows = [row for block in blocks for row in block.get("drivers", ())]
    offset = page_request.skip - blocks[0]["position"] if blocks else 0
    records = render_list(selection.fields.get("drivers"), DRIVER, rows[offset : offset + limit])
    # A block keeps its version when its position changes, but then other drivers of the block are on the page.
    version = " ".join([str(count), str(offset), *(block["version"] for block in blocks)])
    return page_request.build_result(version, selection.fields, count, {"drivers": records})
