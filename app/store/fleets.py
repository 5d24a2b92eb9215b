"""The time zone of a fleet."""

from zoneinfo import ZoneInfo

from pymongo.client_session import ClientSession

from app.store import InvalidDocument, Store
from schemas.periods import UTC, get_zone


def get_time_zone(store: Store, fleet: str, session: ClientSession | None = None) -> ZoneInfo:
    """Return the time zone of a fleet: that of its state, or UTC. Index: fleets (_id).

    Whoever writes dates reads it in the transaction that writes them, which the setting of a time zone conflicts with.
    Raises InvalidDocument if this host does not know the time zone.
    """
    state = store.fleets.find_one({"_id": fleet}, {"time_zone": 1}, session=session) or {}
    name = state.get("time_zone")
    if zone := get_zone(name) if name else UTC:
        return zone
    reason = f"this host does not know the time zone {name}. Update its time zone database, or the package tzdata"
    raise InvalidDocument(store.fleets, state, reason)
