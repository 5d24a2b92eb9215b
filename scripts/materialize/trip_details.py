"""The read model `trip_details`: a trip in fragments of its detail form, and what finds, orders and adds it up."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from marshmallow import ValidationError
from pymongo.client_session import ClientSession

from app.store import Document, Store
from app.store.trips import DETAIL_FRAGMENTS, TRIP_SUMMARY
from schemas.periods import utc_date
from schemas.score import compute_focus_area
from schemas.stored import TripTotals, make_id
from schemas.trip import ImportedTrip, TripDetail
from scripts.materialize.days import Day, days_of
from scripts.materialize.render import version_of_texts
from scripts.materialize.sources import InvalidSource, check_size, describe_errors, read_sources

TRIP_DETAIL = TripDetail()
# Such as `tracking_id`.
NOT_RETURNED = [name for name in ImportedTrip().fields if name not in TRIP_DETAIL.fields]
TRIP_TOTALS_FIELDS = tuple(TripTotals().fields)
# The document of a day contains the summaries of its trips, up to 1.5 kB each. MongoDB limits it to 16 MB, and a
# batch of an import may add 2,000 trips before this limit is checked.
MAX_TRIPS_A_DAY = 5_000


def make_trip_detail(fleet: str, trip: Mapping[str, Any]) -> Document:
    """Return the details of a trip (schema ImportedTrip). If it has no focus area, its event summary gives it.

    Raises ValidationError if they are too large for MongoDB.
    """
    detail = TRIP_DETAIL.dump(trip if "focus_area" in trip else {**trip, "focus_area": compute_focus_area(trip)})
    summary = {name: detail[name] for name in TRIP_SUMMARY}
    fragments = {"summary": orjson.dumps(summary), **{name: orjson.dumps(detail[name]) for name in DETAIL_FRAGMENTS}}
    # Part of the version, because they are stored in `trips` but not in the detail form.
    source = orjson.dumps([*map(trip.get, NOT_RETURNED), "focus_area" in trip])
    document = {
        "_id": make_id(fleet, trip["trip_id"]),
        "fleet": fleet,
        "trip_id": trip["trip_id"],
        "tracking_id": trip["tracking_id"],
        "driver_id": trip["driver_id"],
        "date": utc_date(trip["trip_start_time"]),
        "trip_start_time": trip["trip_start_time"],
        "trip_end_time": trip["trip_end_time"],
        # As plain numbers of JSON: MongoDB adds up a 64-bit integer with other rounding errors than a 32-bit one, and a
        # trip that is exported and imported again has lost the difference.
        "totals": orjson.loads(orjson.dumps({name: detail[name] for name in TRIP_TOTALS_FIELDS})),
        **{name: text.decode() for name, text in fragments.items()},
        "version": version_of_texts([source, *fragments.values()]),
    }
    check_size(document, sum(map(len, fragments.values())))
    return document


def read_trips(
    store: Store, session: ClientSession, fleet: str, trip_ids: Iterable[str], invalid: list[InvalidSource]
) -> dict[str, Document | None]:
    """Return the details that follow from the sources of trips, by trip_id, or None without a valid source.

    Adds the invalid sources to `invalid`.
    """
    details: dict[str, Document | None] = dict.fromkeys(trip_ids)
    for trip in read_sources(store.trips, session, [make_id(fleet, trip_id) for trip_id in details], invalid):
        try:
            details[trip["trip_id"]] = make_trip_detail(fleet, trip)
        except ValidationError as error:
            invalid.append(InvalidSource("trips", make_id(fleet, trip["trip_id"]), describe_errors(error)))
    for trip_id in _find_excess(store, session, fleet, [detail for detail in details.values() if detail]):
        details[trip_id] = None
        reason = f"driver_id: Has {MAX_TRIPS_A_DAY} other trips on this date, which is the maximum."
        invalid.append(InvalidSource("trips", make_id(fleet, trip_id), reason))
    return details


def _find_excess(store: Store, session: ClientSession, fleet: str, details: list[Document]) -> list[str]:
    """Return the trips for which their day has no room: it would have more than MAX_TRIPS_A_DAY trips with them.

    The trips that are stored on the day keep their places, also one that leaves it in the same batch.

    Index: trip_details (fleet, driver_id, date, trip_start_time, trip_id).
    """
    match = {"fleet": fleet, **{name: {"$in": sorted({d[name] for d in details})} for name in ("driver_id", "date")}}
    group = {"_id": {"driver_id": "$driver_id", "date": "$date"}, "count": {"$sum": 1}}
    found = store.trip_details.aggregate([{"$match": match}, {"$group": group}], session=session, hint="day_trips")
    counts = Counter({Day(**day["_id"]): day["count"] for day in found})
    if max(counts.values(), default=0) + len(details) <= MAX_TRIPS_A_DAY:
        return []
    ids = [detail["_id"] for detail in details]
    stored = {detail["_id"]: detail for detail in store.trip_details.find({"_id": {"$in": ids}}, session=session)}
    excess = list[str]()
    for detail in details:
        (day,) = days_of([detail])
        if detail["_id"] not in stored or days_of([stored[detail["_id"]]]) != {day}:
            counts[day] += 1
            if counts[day] > MAX_TRIPS_A_DAY:
                excess.append(detail["trip_id"])
    return excess
