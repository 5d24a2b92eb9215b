"""The drivers of a fleet."""

from collections.abc import Sequence
from typing import NamedTuple

from orjson import Fragment
from pymongo import ASCENDING

from app.store import Document, Result, Store
from app.store.driver_periods import find_profiles
from app.store.groups import find_page_of_group
from app.store.pagination import PageRequest
from app.store.scope import Scope
from schemas.driver import split_words

# The maximum number of drivers in a block. A page of 100 drivers is on few blocks.
BLOCK_SIZE = 100
# The offset of the head of the list, which has the number of a fleet's drivers, and no other field.
HEAD_OFFSET = -1
BY_OFFSET = [("offset", ASCENDING)]
NO_DRIVERS: Document = {"driver_count": 0}
# For each array of a block, the field of a driver's profile that has the same value.
IN_PROFILE = {"drivers": "json", "driver_ids": "driver_id", "search_texts": "search_text"}


class ListPage(NamedTuple):
    """A page of the list: the number of drivers on all pages, its versions, and a value of each driver on the page."""

    driver_count: int
    versions: list[str]
    values: list[str]


def find_drivers(
    store: Store, scope: Scope, *, group: str | None = None, page: int, limit: int, search: str = ""
) -> Result:
    """Return a Driver page, in order of driver_id by code point: all drivers, or those of a group.

    With `search`, they are those who match its words. Raises UnknownRecord.
    """
    page_request, words = PageRequest(page, limit), split_words(search)
    with store.snapshot():
        if group is not None:
            listed = _list_group(store, scope, group, page_request, words)
        elif words:
            listed = _search_list(store, scope, page_request, words)
        else:
            listed = read_list(store, scope, page_request, "drivers")
    drivers = list(map(Fragment, listed.values))
    return page_request.build_result(listed.driver_count, listed.versions, {"drivers": drivers})


def read_list(store: Store, scope: Scope, page_request: PageRequest, array: str) -> ListPage:
    """Return a page of all drivers, with the value of each in an `array` of a block, such as `driver_ids`.

    One query reads the head of the list and the blocks of the page.
    """
    before = max(page_request.skip - BLOCK_SIZE, HEAD_OFFSET)
    on_page = {"offset": {"$gt": before, "$lt": page_request.skip + page_request.limit}}
    head, *blocks = _find_blocks(store, scope, {"$or": [{"offset": HEAD_OFFSET}, on_page]}, array) or [NO_DRIVERS]
    values = [value for block in blocks for value in block[array]]
    first = page_request.skip - blocks[0]["offset"] if blocks else 0
    # A block keeps its version when its offset changes, but then other drivers of the block are on the page.
    versions = [str(first), *(block["version"] for block in blocks)]
    return ListPage(head["driver_count"], versions, values[first : first + page_request.limit])


def _list_group(store: Store, scope: Scope, group: str, page_request: PageRequest, words: Sequence[str]) -> ListPage:
    """Return a page of the drivers of a group, with values as `read_list` returns them.

    With `words`, they are those whose search text contains all of them. Only the profiles on the page are read.
    """
    count, on_page = find_page_of_group(store, scope, group, page_request, words)
    profiles = find_profiles(store, scope.match_drivers(on_page), "json").values()
    versions = [profile["version"] for profile in profiles]
    return ListPage(count, versions, [profile["json"] for profile in profiles])


def _search_list(store: Store, scope: Scope, page_request: PageRequest, words: Sequence[str]) -> ListPage:
    """Return a page of the drivers whose search text contains all words, with values as `read_list` returns them.

    It reads the search texts of all drivers, then the blocks of those on the page.
    """
    # For each match its block, and its place in the block.
    matches = list[tuple[Document, int]]()
    for block in _find_blocks(store, scope, {"offset": {"$gt": HEAD_OFFSET}}, "search_texts"):
        if block["offset"] == HEAD_OFFSET:
            continue
        texts: list[str] = block["search_texts"]
        places = list(range(len(texts)))
        for word in words:
            places = [place for place in places if word in texts[place]]
        matches += [(block, place) for place in places]
    on_page = matches[page_request.skip : page_request.skip + page_request.limit]
    versions = [f"{place}:{block['version']}" for block, place in on_page]
    values = list[str]()
    if on_page:
        match = {"offset": {"$in": list({block["offset"] for block, _ in on_page})}}
        blocks = {block["offset"]: block for block in _find_blocks(store, scope, match, "drivers")}
        values = [blocks[block["offset"]]["drivers"][place] for block, place in on_page]
    return ListPage(len(matches), versions, values)


def _find_blocks(store: Store, scope: Scope, match: Document, array: str) -> list[Document]:
    """Return the matching blocks of the list in order, each with this array; also the head of the list if it matches.

    The list of one driver has a head and a single block, which is made of the driver's profile. For it, `match` is not
    used, and both are returned. Indexes: fleet_drivers (fleet, offset), driver_periods (fleet, period, driver_id,
    start_date).
    """
    if scope.driver_id is None:
        match = {"fleet": scope.fleet, **match}
        projection = {"_id": 0, "offset": 1, "version": 1, "driver_count": 1, array: 1}
        return list(store.fleet_drivers.find(match, projection, sort=BY_OFFSET))
    profiles = find_profiles(store, scope.match(), IN_PROFILE[array])
    if not profiles:
        return []
    profile = profiles[scope.driver_id]
    block = {"offset": 0, "version": profile["version"], array: [profile[IN_PROFILE[array]]]}
    return [{"offset": HEAD_OFFSET, "driver_count": 1}, block]
