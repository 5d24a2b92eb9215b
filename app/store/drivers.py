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
# The offset of the head of the list, which has the number of a fleet's drivers (schema FleetDrivers).
HEAD_OFFSET = -1
BY_OFFSET = [("offset", ASCENDING)]
NO_DRIVERS: Document = {"driver_count": 0}


def find_drivers(store: Store, fleet: str, *, page: int, limit: int, selection: Selection) -> Result:
    """Return a Driver page, in order of driver_id by code point.

    One query reads the head of the list and the blocks of the page. Index: fleet_drivers (fleet, offset).
    """
    page_request = PageRequest(page, limit)
    offsets: list[Document] = [{"offset": HEAD_OFFSET}]
    if "drivers" in selection.fields:
        before = max(page_request.skip - BLOCK_SIZE, HEAD_OFFSET)
        offsets.append({"offset": {"$gt": before, "$lt": page_request.skip + limit}})
    projection = {"_id": 0, "offset": 1, "version": 1, "driver_count": 1} | selection.projection("drivers")
    with store.snapshot() as session:
        cursor = store.fleet_drivers.find(
            {"fleet": fleet, "$or": offsets}, projection, sort=BY_OFFSET, batch_size=BLOCK_SIZE, session=session
        )
        head, *blocks = list(cursor) or [NO_DRIVERS]
    count = head["driver_count"]
    rows = [row for block in blocks for row in block.get("drivers", ())]
    first = page_request.skip - blocks[0]["offset"] if blocks else 0
    records = render_list(selection.fields.get("drivers"), DRIVER, rows[first : first + limit])
    # A block keeps its version when its offset changes, but then other drivers of the block are on the page.
    version = " ".join([str(count), str(first), *(block["version"] for block in blocks)])
    return page_request.build_result(version, selection.fields, count, {"drivers": records})
