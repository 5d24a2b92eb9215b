"""The settings of a fleet, which are in its state, and the format of its read models.

The state is a document of `fleets`, whose `_id` is the fleet. Every transaction changes it first: `writes` is the
number of those that wrote to the fleet, and `written_at` MongoDB's time in the last one. `feed_key` is a random secret
that signs cursors, and differs whenever the change feed begins from scratch. `trips_written_at` is when a trip was last
changed (epoch ms), `erasures` the number of drivers erased. `time_zone` is the name of the time zone of its dates, UTC
if it is absent. `implausible_trips` says whether its sums count implausible trips; absent, they do. `format` is the
FORMAT of its read models, and absent while they are built from scratch.
"""

from zoneinfo import ZoneInfo

from app.store import Document, InvalidDocument, OtherFormat, Store
from schemas.periods import UTC, get_zone
from schemas.plausibility import COUNTED

# The number of the format of the read models and of the fleet state. Increment it with each change after which those
# that are stored differ from those that would be built: of a field, its meaning or its rounding, of what identifies a
# document, of the score. Then nothing reads or adds to stored ones until `rollups rebuild` has built them from scratch.
FORMAT = 7
# A digest of the read models, fleet states and indexes of two fleets that a test writes. The test fails if a change
# alters what is stored, and says what to set here.
FORMAT_DIGEST = "984155033634f166"


def get_time_zone(store: Store, fleet: str) -> ZoneInfo:
    """Return the time zone of a fleet: that of its state, or UTC. Index: fleets (_id).

    Read it in the transaction that writes dates: then a change of the time zone at the same time conflicts. Raises
    InvalidDocument if this host does not know the time zone.
    """
    return get_zone_of(store, store.fleets.find_one({"_id": fleet}, {"time_zone": 1}) or {})


def get_zone_of(store: Store, state: Document) -> ZoneInfo:
    """Return the time zone that a fleet state has, or UTC. Raises InvalidDocument as `get_time_zone` does."""
    name = state.get("time_zone")
    if zone := get_zone(name) if name else UTC:
        return zone
    reason = f"this host does not know the time zone {name}. Update its time zone database, or the package tzdata"
    raise InvalidDocument(store.fleets, state, reason)


def get_settings(store: Store, fleet: str) -> tuple[ZoneInfo, str]:
    """Return the time zone of a fleet, as `get_time_zone` does, and what its sums do with implausible trips."""
    state = store.fleets.find_one({"_id": fleet}, {"time_zone": 1, "implausible_trips": 1}) or {}
    return get_zone_of(store, state), state.get("implausible_trips", COUNTED)


def check_format(store: Store, fleet: str | None = None) -> None:
    """Raise OtherFormat if the read models of a fleet, or without one of any fleet, have another format than FORMAT.

    A fleet without a state has no read models. Index: fleets (_id).
    """
    match = {"format": {"$ne": FORMAT}, **({"_id": fleet} if fleet else {})}
    if state := store.fleets.find_one(match, {"format": 1}):
        raise OtherFormat(
            f"The read models of the fleet {state['_id']} are of another version: their format is "
            f"{state.get('format', 'unknown')}, and that of this version is {FORMAT}. Stop the service and whatever "
            "writes, and run 'driver-analytics rollups rebuild', or go back to the version that built them: see "
            "'Upgrades' in docs/deployment.md."
        )


def get_trips_state(store: Store, fleet: str) -> tuple[str, int | None]:
    """Return what the sums of a fleet do with implausible trips, and when a trip last changed (epoch ms), if any did.

    Whoever writes sums reads the first in the transaction that writes them. Index: fleets (_id).
    """
    fields = {"implausible_trips": 1, "trips_written_at": 1}
    state = store.fleets.find_one({"_id": fleet}, fields) or {}
    return state.get("implausible_trips", COUNTED), state.get("trips_written_at")
