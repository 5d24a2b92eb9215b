"""The drivers of a fleet."""

from pymongo import ASCENDING
from pymongo.client_session import ClientSession

from app.store import Document, Result, Store
from app.store.pagination import PageRequest
from app.store.rendering import Selection, render_list
from app.store.scope import Scope
from schemas.driver import Driver
from schemas.introspection import fields_of
from schemas.periods import ANY_DATE, PROFILE

DRIVER = fields_of(Driver)
# The maximum number of drivers in a block. A page of 100 drivers is on few blocks.
BLOCK_SIZE = 100
# The offset of the head of the list, which has the number of a fleet's drivers (schema FleetDrivers).
HEAD_OFFSET = -1
BY_OFFSET = [("offset", ASCENDING)]
NO_DRIVERS: Document = {"driver_count": 0}


def find_drivers(store: Store, scope: Scope, *, page: int, limit: int, selection: Selection) -> Result:
    """Return a Driver page, in order of driver_id by code point.

    One query reads the head of the list and the blocks of the page, or the profile of the only driver in the scope.
    """
    page_request = PageRequest(page, limit)
    read = _read_blocks if scope.driver_id is None else _read_profile
    with store.snapshot() as session:
        head, *blocks = read(store, session, scope, page_request, selection)
    count = head["driver_count"]
    rows = [row for block in blocks for row in block.get("drivers", ())]
    first = page_request.skip - blocks[0]["offset"] if blocks else 0
    records = render_list(selection.fields.get("drivers"), DRIVER, rows[first : first + limit])
    # A block keeps its version when its offset changes, but then other drivers of the block are on the page.
    version = " ".join([str(count), str(first), *(block["version"] for block in blocks)])
    return page_request.build_result(version, selection.fields, count, {"drivers": records})


def _read_blocks(
    store: Store, session: ClientSession, scope: Scope, page_request: PageRequest, selection: Selection
) -> list[Document]:
    """Return the head of a fleet's list, then the blocks of the page. Index: fleet_drivers (fleet, offset)."""
    offsets: list[Document] = [{"offset": HEAD_OFFSET}]
    if "drivers" in selection.fields:
        before = max(page_request.skip - BLOCK_SIZE, HEAD_OFFSET)
        offsets.append({"offset": {"$gt": before, "$lt": page_request.skip + page_request.limit}})
    match = {"fleet": scope.fleet, "$or": offsets}
    projection = {"_id": 0, "offset": 1, "version": 1, "driver_count": 1} | selection.projection("drivers")
    blocks = store.fleet_drivers.find(match, projection, sort=BY_OFFSET, batch_size=BLOCK_SIZE, session=session)
    return list(blocks) or [NO_DRIVERS]


def _read_profile(
    store: Store, session: ClientSession, scope: Scope, page_request: PageRequest, selection: Selection
) -> list[Document]:
    """Return the same for the list of one driver: its head, then its only block, whatever the page.

    Index: driver_periods (fleet, period, driver_id, start_date).
    """
    match = {**scope.match(), "period": PROFILE, "start_date": ANY_DATE}
    projection = {"_id": 0, "version": 1} | (selection.projection("json") if "drivers" in selection.fields else {})
    profile = store.driver_periods.find_one(match, projection, session=session)
    if profile is None:
        return [NO_DRIVERS]
    drivers = [profile["json"]] if "json" in profile else []
    return [{"driver_count": 1}, {"offset": 0, "version": profile["version"], "drivers": drivers}]
