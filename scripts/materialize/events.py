"""The read model of events, `trip_events`: a document for each event of a trip."""

from collections.abc import Iterator, Mapping

import orjson
from pymongo.client_session import ClientSession

from app.store import Document, Store
from schemas.identity import make_event_id


def make_events(
    store: Store, session: ClientSession, fleet: str, details: Mapping[str, Document | None]
) -> dict[tuple[str, str], Document | None]:
    """Return the events of trips, by trip_id and `_id`; None is for one that is stored and should not be there.

    Details are by trip_id, and None for a trip that does not exist. Index: trip_events (fleet, trip_id).
    """
    match = {"fleet": fleet, "trip_id": {"$in": list(details)}}
    stored = store.trip_events.find(match, {"trip_id": 1}, session=session)
    events = dict[tuple[str, str], Document | None].fromkeys((event["trip_id"], event["_id"]) for event in stored)
    for detail in filter(None, details.values()):
        events |= {(event["trip_id"], event["_id"]): event for event in _make_events(detail)}
    return events


def _make_events(detail: Document) -> Iterator[Document]:
    """Yield the events of a trip."""
    fleet, trip_id = detail["fleet"], detail["trip_id"]
    for index, event in enumerate(orjson.loads(detail["events"])):
        yield {
            "_id": make_event_id(fleet, event["event_start_timestamp"], trip_id, index),
            "fleet": fleet,
            "trip_id": trip_id,
            "driver_id": detail["driver_id"],
            "event_index": index,
            **event,
            "trip_end_time": detail["trip_end_time"],
            **({"is_implausible": True} if "implausible" in detail else {}),
        }
