"""Whether what is derived is what would be derived from the stored drivers and trips."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from app.store import Document
from app.store.served import COUNT
from scripts.derive import changed_drivers
from scripts.driver_list import make_pages
from scripts.served import DETAIL_FIELDS, Day, make_days, make_drivers, make_summaries, make_weeks, trip_text
from scripts.sharing import make_trackings
from scripts.store import Store, Writer


def verify_fleet(db: Store, fleet: str, writer: Writer, chunks: Iterable[Mapping[str, list[Day]]]) -> list[str]:
    """Return what differs in a fleet whose drivers, with their days, come in chunks: a line each."""
    differences, known = list[str](), set[str]()
    for days in chunks:
        writer.renew()
        known.update(days)
        differences += _wrong_drivers(db, fleet, days)
        differences += _wrong_texts(db, fleet, days)
        differences += _wrong_spans(db, fleet, days)
    for driver_id in unknown_served(db, fleet, known):
        differences.append(f"driver {driver_id}, what is served: should not be there")
    return [*differences, *_wrong_trackings(db, fleet), *_wrong_pages(db, fleet)]


def unknown_served(db: Store, fleet: str, known: Iterable[str]) -> list[str]:
    """Return the drivers of whom something is served, but for those known. Index: (fleet, driver_id, span)."""
    served = db.served_spans.aggregate([{"$match": {"fleet": fleet}}, {"$group": {"_id": "$driver_id"}}])
    return sorted({doc["_id"] for doc in served}.difference(known))


def _wrong_drivers(db: Store, fleet: str, days: Mapping[str, list[Day]]) -> Iterator[str]:
    for driver_id in changed_drivers(db, fleet, dict.fromkeys(days))[0]:
        yield f"driver {driver_id}: travel dates differ from those of the trips"


def _wrong_texts(db: Store, fleet: str, days: Mapping[str, list[Day]]) -> Iterator[str]:
    match = {"fleet": fleet, "day": {"$in": [day._asdict() for of_driver in days.values() for day in of_driver]}}
    for trip in db.trips.find(match, {**DETAIL_FIELDS, "version": 1, "text": 1}):
        stored = {name: trip.pop(name) for name in ("version", "text") if name in trip}
        if stored != trip_text(trip):
            yield f"trip {trip['trip_id']}: its text differs from the trip"


def _wrong_spans(db: Store, fleet: str, days: Mapping[str, list[Day]]) -> Iterator[str]:
    wanted = {day for of_driver in days.values() for day in of_driver}
    summaries = make_summaries(db, fleet, wanted)
    match = {"fleet": fleet, "day": {"$in": [day._asdict() for day in wanted]}}
    stored = {Day(**doc["day"]): doc for doc in db.daily_summaries.find(match, {"_id": 0, "fleet": 0})}
    for day in wanted:
        due = {"day": day._asdict(), "summary": summaries[day]} if day in summaries else None
        if stored.get(day) != due:
            yield f"driver {day.driver_id}, {day.date}: the daily summary differs from the trips"
    of_drivers = {"fleet": fleet, "driver_id": {"$in": list(days)}}
    yield from _differences(
        {(doc["driver_id"], doc["span"]): doc for doc in _made(db, fleet, days, summaries)},
        {(doc["driver_id"], doc["span"]): doc for doc in db.served_spans.find(of_drivers, {"_id": 0})},
    )


def _made(
    db: Store, fleet: str, days: Mapping[str, list[Day]], summaries: Mapping[Day, Document]
) -> Iterator[Document]:
    buckets: dict[str, dict[str, list[Document]]] = defaultdict(dict)
    for day, documents in make_days(db, fleet, summaries):
        buckets[day.driver_id][day.date] = documents
        yield from documents
    yield from filter(None, make_weeks(db, fleet, summaries).values())
    yield from make_drivers(db, fleet, days, buckets, anew=True)


def _differences(due: Mapping[tuple[str, str], Document], stored: Mapping[tuple[str, str], Document]) -> Iterator[str]:
    for key in sorted(due.keys() | stored.keys()):
        if due.get(key) != stored.get(key):
            driver_id, span = key
            what = "is missing" if key not in stored else "should not be there" if key not in due else "differs"
            yield f"driver {driver_id}, what is served of {span or 'the driver'}: {what}"


def _wrong_trackings(db: Store, fleet: str) -> Iterator[str]:
    stored = {doc["tracking_id"]: doc for doc in db.served_trackings.find({"fleet": fleet}, {"_id": 0})}
    due = {doc["tracking_id"]: doc for doc in make_trackings(db, fleet)}
    for tracking_id in sorted(due.keys() | stored.keys()):
        if due.get(tracking_id) != stored.get(tracking_id):
            yield f"tracking id {tracking_id}: the count differs"


def _wrong_pages(db: Store, fleet: str) -> Iterator[str]:
    stored: dict[int, Any] = {doc["number"]: doc for doc in db.served_drivers.find({"fleet": fleet}, {"_id": 0})}
    count = {"fleet": fleet, "number": COUNT, "count": db.drivers.count_documents({"fleet": fleet})}
    if stored.pop(COUNT, None) != count:
        yield "driver list: the count differs"
    for page in make_pages(db, fleet, [COUNT], anew=True):
        if stored.pop(page["number"], None) != page:
            yield f"driver list: page {page['number']} differs"
    for number in stored:
        yield f"driver list: page {number} should not be there"
