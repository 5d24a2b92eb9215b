"""The change feed: what a client has to apply to its copy of a fleet's visible trips.

A client that applies every page misses nothing. Here is why.

**Numbers.** The number of a change is the fleet's counter `writes` in its transaction. The transactions of a fleet run
one after the other, so the order of the numbers is the order of the commits. `trip_changes` has one entry for each
trip, with the number of the last change of its content. The entry is written in the same transaction.

**Cursor.** A cursor has a change c and a time e. Its meaning, whenever the client has read all changes: the copy has
those trips that ended at e or before, and each of them is as it was after change c. For example, c is 7 and e is 10:00:
the copy has the trips that ended until 10:00, as they were after the seventh change. A new client starts with c = 0,
when the fleet had no trips, and e = the latest end that is visible now. The cursor also has the caught-up change: the
last change of the feed when the client had last read all of them, or began. A page reads one snapshot, in two steps:

1. Changes. It reads the entries after c, in order, and moves c forward. A tombstone after the caught-up change is a
   deletion. An entry with an end until e is a trip of the copy. An entry with a later end is left out, because step 2
   will find it, unless the copy may have an earlier version of the trip: then it is a deletion. The entry has the
   earliest end of these versions for this, and when the last one was replaced. The copy may have a version that ended
   until e and was replaced after the caught-up change.
2. Time. When c is the last change, it reads the trips that end after e and are visible now, in the order of their
   ends, and moves e forward.

When `has_more` is false, c is the last change of the snapshot and e the latest visible end: the copy has exactly the
visible trips. c and e are pairs with a trip_id, because several trips may have the same change or end.

Why step 1 does not compare with c: a trip may change again while a client is between two pages. Its entry gets a new
number, so the client never reads the earlier change of this trip, although c has passed the number that it had.

The cursor also has the end of the next trip that will become visible. So an empty page costs one look-up: if `writes`
is the same and that trip is not visible yet, nothing is new.

What may happen, and why the copy stays right:

- A transaction commits late: its number is higher than those of all that committed before.
- A trip is written before it is visible, or changed before: step 1 leaves it out, and step 2 finds it by its end.
- A correction hides a trip: an earlier version ended until e and was replaced after the caught-up change, so step 1
  reports a deletion. Step 2 returns the trip again.
- A trip moves, is deleted, or is loaded again: each is a change with a new number. A tombstone and the entry after it
  keep the earlier versions.
- A client loses the cursor of a page that it applied, and uses an older one again: it reads everything since then
  again. A correction may have hidden a trip of the lost page since. So step 1 also reports a deletion for each version
  that was visible when it was replaced, by the writer's clock, with a margin of CLOCK_MARGIN_MS.
- Clocks differ: only hosts of the service decide what is visible, and e never goes back.
- A failover, or a member that lags: snapshots show only what a majority has, so no change is undone. If a member has
  fewer changes than the cursor, or than its caught-up change, the response is a 503. If it does not even have the
  beginning of the feed, the cursor is invalid there, and the client begins again.
- A client comes back when tombstones are gone: the cursor has the time of the caught-up change, and is invalid
  CURSOR_DAYS after it.
- `restore`, or an empty database: the feed begins from scratch with another random `feed_key`.
- A client makes up a cursor, to read tombstones from before its first request: it lacks the signature by `feed_key`.
- A client begins before the feed does: its cursor cannot be signed, so it counts as none until the feed has begun.
- PROCESSING_DELAY_HOURS is changed: if shorter, the next page has the trips that are visible now; if longer, e stays
  until the latest visible end has passed it, and the copy keeps the trips that it has.

A trip may come twice. An entry has one description of all earlier versions, so the feed may report a deletion of a trip
that the copy does not have.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from marshmallow import ValidationError
from orjson import Fragment
from pymongo import ASCENDING

from app.store import Document, Store, StoreLags
from app.store.visibility import get_delay_ms, get_max_visible_end_ms
from schemas.cursor import CURSOR_DAYS, EXPIRED, INVALID, FeedCursor, encode_cursor, is_signed, sign_cursor
from schemas.fields import MAX_EPOCH_MS, MIN_EPOCH_MS
from schemas.periods import MS_PER_DAY, now_ms

BY_CHANGE = [("change", ASCENDING), ("trip_id", ASCENDING)]
BY_END = [("trip_end_time", ASCENDING), ("trip_id", ASCENDING)]
# A query for changes reads at least this many entries: a page leaves out those of trips that are not visible yet.
BATCH_SIZE = 100
# A page ends after this many entries, even if it has fewer changes than its limit.
MAX_SCANNED = 1_000
# The clocks of two hosts differ by at most this.
CLOCK_MARGIN_MS = 90_000
# Before the first transaction of the fleet. No change has this number, so a page reads none.
NO_FEED: Document = {"feed_key": "", "writes": -1}
FLEET_STATE_FIELDS = {"_id": 0, "feed_key": 1, "writes": 1}
# `next_end_time` if that is not known, and if there is no trip that is not visible yet.
UNKNOWN_END, NO_END = MIN_EPOCH_MS, MAX_EPOCH_MS


def find_changes(
    store: Store, fleet: str, *, cursor: FeedCursor | None = None, limit: int, processing_delay_hours: float
) -> Document:
    """Return a page of the change feed (schema ChangePage): up to `limit` changes after the cursor.

    Trips are visible so many hours after their end. If nothing is new, it reads one document. Indexes: fleets (_id),
    trip_changes (fleet, change, trip_id), (fleet, trip_end_time, trip_id). Raises StoreLags, and
    marshmallow.ValidationError if the cursor has expired, or the feed began from scratch since.
    """
    max_end_ms, delay_ms = get_max_visible_end_ms(processing_delay_hours), get_delay_ms(processing_delay_hours)
    with store.snapshot():
        feed = _Feed(store, fleet)
        state = feed.get_fleet_state()
        # A cursor from before the feed began is not signed. Its client has an empty copy.
        start = cursor if cursor and cursor.signature else _make_first_cursor(state, max_end_ms)
        if start is cursor and not is_signed(start, state["feed_key"], fleet):
            raise ValidationError({"cursor": [INVALID]})
        if max(start.caught_up_change, start.change - 1) > state["writes"]:
            raise StoreLags
        if start.caught_up_at < now_ms() - CURSOR_DAYS * MS_PER_DAY:
            raise ValidationError({"cursor": [EXPIRED]})
        changes, next_cursor = list[Document](), start
        has_more = start.change <= state["writes"]
        if has_more:
            changes, next_cursor, has_more = feed.read_changed(start, limit, state["writes"], delay_ms)
        if not has_more and max_end_ms >= next_cursor.next_end_time:
            trips, next_cursor, has_more = feed.read_ended(next_cursor, limit - len(changes), max_end_ms)
            changes += trips
        if not has_more:
            next_cursor = _pass_time(next_cursor, max_end_ms)
    signed = sign_cursor(state["feed_key"], fleet, next_cursor)
    return {"changes": changes, "cursor": encode_cursor(fleet, signed), "has_more": has_more}


def _make_first_cursor(state: Document, max_end_ms: int) -> FeedCursor:
    """Return the cursor of a client that has read nothing; the trips that end by `max_end_ms` are visible."""
    return FeedCursor(
        signature="",
        caught_up_change=state["writes"],
        caught_up_at=now_ms(),
        change=0,
        trip_id="",
        trip_end_time=max_end_ms + 1,
        end_trip_id="",
        next_end_time=UNKNOWN_END,
    )


def _pass_time(cursor: FeedCursor, max_end_ms: int) -> FeedCursor:
    """Return the cursor of a client that is caught up: after all trips that ended by `max_end_ms`.

    It is after later ones if it has been there before.
    """
    end = max((cursor.trip_end_time, cursor.end_trip_id), (max_end_ms + 1, ""))
    return cursor._replace(trip_end_time=end[0], end_trip_id=end[1], caught_up_at=now_ms())


class _Feed(NamedTuple):
    """The change feed of a fleet, as the bound session sees it."""

    store: Store
    fleet: str

    def get_fleet_state(self) -> Document:
        """Return two fields of the fleet state: `feed_key`, and `writes`, the number of the feed's last change."""
        state = self.store.fleets.find_one({"_id": self.fleet}, FLEET_STATE_FIELDS)
        return {**NO_FEED, **(state or {})}

    def find(self, after: Document, order: list[tuple[str, int]], limit: int) -> list[Document]:
        """Return the first entries, in this order, that match `after`."""
        options: dict[str, Any] = {"sort": order, "limit": limit, "batch_size": limit}
        return list(self.store.trip_changes.find({"fleet": self.fleet, **after}, {"_id": 0}, **options))

    def read_changed(
        self, start: FeedCursor, limit: int, writes: int, delay_ms: int
    ) -> tuple[list[Document], FeedCursor, bool]:
        """Return up to `limit` changes, the cursor after them, and whether there are more.

        Trips that are changed, but neither visible nor shown before, are left out: they come when they are visible.
        """
        changes, size = list[Document](), max(limit, BATCH_SIZE) + 1
        cursor = start._replace(next_end_time=UNKNOWN_END)
        for _ in range(0, MAX_SCANNED, size):
            entries = self.find(_after("change", cursor.change, cursor.trip_id, writes), BY_CHANGE, size)
            for entry in entries:
                if len(changes) == limit:
                    return changes, cursor, True
                changes += _make_changes(entry, start, delay_ms)
                cursor = cursor._replace(change=entry["change"], trip_id=entry["trip_id"])
            if len(entries) < size:
                return changes, cursor._replace(caught_up_change=writes, change=writes + 1, trip_id=""), False
        return changes, cursor, True

    def read_ended(self, start: FeedCursor, limit: int, max_end_ms: int) -> tuple[list[Document], FeedCursor, bool]:
        """Return up to `limit` trips that became visible, the cursor after them, and whether there are more."""
        visible, cursor = list[Document](), start
        if start.trip_end_time <= max_end_ms:
            after = _after("trip_end_time", start.trip_end_time, start.end_trip_id, max_end_ms)
            visible = self.find(after, BY_END, limit + 1)
        shown = visible[:limit]
        if shown:
            cursor = cursor._replace(trip_end_time=shown[-1]["trip_end_time"], end_trip_id=shown[-1]["trip_id"])
        if len(visible) <= limit:
            cursor = cursor._replace(next_end_time=self.get_next_end(max(start.trip_end_time, max_end_ms + 1)))
        return list(map(_make_change, shown)), cursor, len(visible) > limit

    def get_next_end(self, end_ms: int) -> int:
        """Return the first end of a trip at `end_ms` or later, or NO_END."""
        entries = self.find({"trip_end_time": {"$gte": end_ms}}, BY_END, 1)
        return next((int(entry["trip_end_time"]) for entry in entries), NO_END)


def _after(field: str, value: int, trip_id: str, last: int) -> Document:
    """Return the condition that (`field`, trip_id) comes after these values, and that `field` is at most `last`."""
    return {"$or": [{field: value, "trip_id": {"$gt": trip_id}}, {field: {"$gt": value, "$lte": last}}]}


def _make_changes(entry: Document, cursor: FeedCursor, delay_ms: int) -> Iterator[Document]:
    """Yield the change that an entry is for a client with this cursor, if it is one.

    A client must not get identifiers of drivers who were erased before it began.
    """
    if "deleted_at" in entry:
        if entry["change"] > cursor.caught_up_change:
            yield _make_change(entry, deleted=True)
    elif (entry["trip_end_time"], entry["trip_id"]) <= (cursor.trip_end_time, cursor.end_trip_id):
        yield _make_change(entry)
    elif entry["replaced"] and _was_shown(entry["replaced"], entry["trip_id"], cursor, delay_ms):
        yield _make_change(entry, deleted=True)


def _was_shown(replaced: Document, trip_id: str, cursor: FeedCursor, delay_ms: int) -> bool:
    """Return whether a client with this cursor may have an earlier version of a trip.

    A version that was replaced up to `caught_up_change` is not in the copy: the client has applied the replacement, or
    had no copy then. It may not have applied a later one, even if the cursor has passed it, because a change after that
    moved the entry of the trip ahead of the cursor. A client that lost its last cursor may have any version that was
    visible.
    """
    if replaced["change"] <= cursor.caught_up_change:
        return False
    ended = (replaced["trip_end_time"], trip_id) <= (cursor.trip_end_time, cursor.end_trip_id)
    return bool(ended or replaced["replaced_at"] - replaced["trip_end_time"] >= delay_ms - CLOCK_MARGIN_MS)


def _make_change(entry: Document, *, deleted: bool = False) -> Document:
    return {
        "trip_id": entry["trip_id"],
        "driver_id": entry["driver_id"],
        "tracking_id": None if deleted else entry["tracking_id"],
        "deleted": deleted,
        "trip": None if deleted else Fragment(entry["json"]),
    }
