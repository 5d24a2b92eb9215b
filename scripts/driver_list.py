"""The driver list as it is served: pages of JSON, and how long it is. Derived from `drivers`."""

import bisect
import itertools
from collections.abc import Iterator

import orjson
from pymongo import ReplaceOne

from app.store import Document
from app.store.drivers import BY_ID
from app.store.served import COUNT, PAGE_ROWS, version_of
from schemas.derive import fields_of, projection
from schemas.driver import Driver
from scripts.store import Store

DRIVER = projection(fields_of(Driver))
# Pages a bulk write.
CHUNK = 50


def mark_driver_list(db: Store, fleet: str, changed: set[str], new: set[str]) -> None:
    """Mark what changes with these drivers: their pages, and with new ones all further pages and the count."""
    firsts = _firsts(db, fleet)
    stale = {_page_of(firsts, driver_id) for driver_id in changed}
    if new:
        stale |= {COUNT, *range(min(_page_of(firsts, driver_id) for driver_id in new), len(firsts))}
        db.served_drivers.update_one({"fleet": fleet, "number": COUNT}, {"$set": {"stale": True}}, upsert=True)
    db.served_drivers.update_many({"fleet": fleet, "number": {"$in": list(stale)}}, {"$set": {"stale": True}})


def drop_driver_list(db: Store, fleet: str) -> None:
    """Mark all of it, to be made anew from its first page on, whatever pages are stored."""
    db.served_drivers.update_one({"fleet": fleet, "number": COUNT}, {"$set": {"stale": True}}, upsert=True)
    db.served_drivers.delete_many({"fleet": fleet, "number": {"$gt": COUNT}})


def derive_driver_list(db: Store, fleet: str) -> None:
    """Write the stale pages anew. Index: (fleet, stale, number)."""
    stale = [doc["number"] for doc in db.served_drivers.find({"fleet": fleet, "stale": True}, {"_id": 0, "number": 1})]
    if not stale:
        return
    pages = make_pages(db, fleet, sorted(stale))
    # As long as drivers move from page to page, no page is right by itself.
    mark = {"stale": True} if COUNT in stale else {}
    while chunk := list(itertools.islice(pages, CHUNK)):
        db.served_drivers.bulk_write([ReplaceOne(_key(page), {**page, **mark}, upsert=True) for page in chunk])
    if COUNT in stale:
        count: Document = {"fleet": fleet, "number": COUNT, "count": db.drivers.count_documents({"fleet": fleet})}
        db.served_drivers.delete_many({"fleet": fleet, "number": {"$gte": -(-count["count"] // PAGE_ROWS)}})
        db.served_drivers.update_many({"fleet": fleet, "number": {"$ne": COUNT}}, {"$unset": {"stale": ""}})
        db.served_drivers.replace_one(_key(count), count)


def make_pages(db: Store, fleet: str, numbers: list[int], *, anew: bool = False) -> Iterator[Document]:
    """Yield these pages, in order, and where COUNT is one of them all that follow, to the end of the list.

    Made `anew` they begin with the first driver, whatever pages are stored.
    """
    firsts = [] if anew else _firsts(db, fleet)
    pages = [number for number in numbers if number != COUNT]
    # With no page to be made, those that are stored are right.
    grows = COUNT in numbers and (pages or not firsts)
    further = itertools.count(pages[-1] + 1 if pages else 0) if grows else ()
    done, last = COUNT, ""
    for number in itertools.chain(pages, further):
        # What follows a page that was made anew begins where that ends; other pages begin as they did.
        start = {"$gt": last} if number == done + 1 else {"$gte": firsts[number]}
        found = list(db.drivers.find({"fleet": fleet, "driver_id": start}, DRIVER).sort(BY_ID).limit(PAGE_ROWS))
        if not found:
            return
        done, last = number, found[-1]["driver_id"]
        rows = [orjson.dumps(driver) for driver in found]
        yield {
            "fleet": fleet,
            "number": number,
            "first": found[0]["driver_id"],
            "version": version_of(*rows),
            "rows": rows,
        }


def _firsts(db: Store, fleet: str) -> list[str]:
    """Return the first driver of each page. Index: (fleet, number, first), without reading a page."""
    fields = {"_id": 0, "number": 1, "first": 1}
    found = db.served_drivers.find({"fleet": fleet, "number": {"$gt": COUNT}}, fields).sort("number")
    return [page["first"] for page in found]


def _page_of(firsts: list[str], driver_id: str) -> int:
    return max(0, bisect.bisect_right(firsts, driver_id) - 1)


def _key(page: Document) -> Document:
    return {"fleet": page["fleet"], "number": page["number"]}
