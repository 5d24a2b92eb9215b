"""The read model `ranking_counts`: how many drivers of a fleet have each score in a week or month.

A bound is a driver whose identifier has a certain hash, about one in DRIVERS_PER_BOUND. So the same drivers always give
the same document, in whichever order they were written.
"""

import hashlib
import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pymongo import DeleteOne, ReplaceOne
from pymongo.client_session import ClientSession

from app.store import Document, Store, rankings
from app.store.rankings import ORDERS, match_from_bound, match_ranked
from schemas.periods import LONG_PERIODS
from scripts.materialize.dates import Day, group_by_dates
from scripts.materialize.documents import DocumentKey, DocumentsByKey

WORST = ORDERS["worst"]
PLACE_FIELDS = ("fm_score", "distance_miles", "driver_id")
BOUND_BYTES = 8
NO_COUNTS: Mapping[str, Any] = {"fm_scores": (), "counts": (), "bounds": ()}


class Place(NamedTuple):
    """The place of a driver in a ranking. Places sort as the ranking does from the lowest score."""

    fm_score: float
    negative_miles: float
    driver_id: str


def place_of(document: Mapping[str, Any]) -> Place:
    """Return the place of a week, a month or a bound."""
    return Place(document["fm_score"], -document["distance_miles"], document["driver_id"])


def find_ranked(
    store: Store, session: ClientSession, fleet: str, period: str, keys: Iterable[DocumentKey]
) -> list[Document]:
    """Return the stored weeks or months with these keys, with the fields of a place and `start_date`.

    Index: driver_periods (fleet, period, driver_id, start_date).
    """
    projection = {"_id": 0, "start_date": 1, **dict.fromkeys(PLACE_FIELDS, 1)}
    ranked = list[Document]()
    for driver_ids, dates in group_by_dates(Day(driver_id, date) for driver_id, _, date in keys):
        key = {"fleet": fleet, "period": period, "start_date": {"$in": dates}}
        match = {**match_ranked(key), "driver_id": {"$in": driver_ids}}
        ranked += store.driver_periods.find(match, projection, session=session).hint("period")
    return ranked


def update_counts(
    store: Store,
    session: ClientSession,
    fleet: str,
    period: str,
    removed: Iterable[Document],
    added: Iterable[Document],
) -> None:
    """Update the counts after weeks or months were replaced: `removed` are those before, `added` those after."""
    places: defaultdict[str, tuple[list[Place], list[Place]]] = defaultdict(lambda: ([], []))
    for index, documents in enumerate((removed, added)):
        for document in documents:
            places[document["start_date"]][index].append(place_of(document))
    if not places:
        return
    match = {"fleet": fleet, "period": period, "start_date": {"$in": sorted(places)}}
    stored = {counts["start_date"]: counts for counts in store.ranking_counts.find(match, session=session)}
    writes = list[DeleteOne | ReplaceOne[Document]]()
    for start_date, (old, new) in places.items():
        key = {"fleet": fleet, "period": period, "start_date": start_date}
        counts = _change(store, session, key, stored.get(start_date, NO_COUNTS), sorted(old), sorted(new))
        writes.append(ReplaceOne(key, counts, upsert=True) if counts else DeleteOne(key))
    store.ranking_counts.bulk_write(writes, ordered=False, session=session)


def _change(
    store: Store,
    session: ClientSession,
    key: Document,
    counts: Mapping[str, Any],
    removed: list[Place],
    added: list[Place],
) -> Document | None:
    """Return counts after a change, or None if no driver is left. The places are sorted."""
    numbers = Counter(dict(zip(counts["fm_scores"], counts["counts"], strict=False)))
    numbers.subtract(place.fm_score for place in removed)
    numbers.update(place.fm_score for place in added)
    gone, changed_scores = set(removed), {place.fm_score for place in (*removed, *added)}
    positions = dict[Place, int]()
    for bound in counts["bounds"]:
        if (place := place_of(bound)) not in gone:
            has_moved = place.fm_score in changed_scores
            moved = _count_before(added, place) - _count_before(removed, place) if has_moved else 0
            positions[place] = max(0, bound["position"] + moved)
    for place in filter(_is_bound, added):
        positions[place] = _get_position(store, session, key, place, positions)
    return _make_counts(key, numbers, positions)


def _count_before(places: list[Place], place: Place) -> int:
    """Return how many of the sorted places have the same score as `place` and come before it."""
    return bisect_left(places, place) - bisect_left(places, Place(place.fm_score, -math.inf, ""))


def _is_bound(place: Place) -> bool:
    digest = hashlib.blake2b(place.driver_id.encode(), digest_size=BOUND_BYTES).digest()
    return int.from_bytes(digest) % rankings.DRIVERS_PER_BOUND == 0


def _get_position(
    store: Store, session: ClientSession, key: Document, place: Place, positions: Mapping[Place, int]
) -> int:
    """Return how many drivers with the same score come before a driver. Counts from the bound before."""
    before = [other for other in positions if other.fm_score == place.fm_score and other < place]
    match: Document = {**key, "fm_score": place.fm_score}
    first = 0
    if before:
        bound = max(before)
        first = positions[bound]
        match = {"$or": match_from_bound(key, _make_bound(bound, first))}
    for position, other in enumerate(_find_places(store, session, match), first):
        if other.driver_id == place.driver_id:
            return position
    # Only invalid counts lead here. A rebuild corrects them.
    return first


def make_counts(store: Store, session: ClientSession, fleet: str, period: str, start_date: str) -> Document | None:
    """Return the counts of a week or month, or None if nobody drove. Scans the index of the ranking."""
    key = {"fleet": fleet, "period": period, "start_date": start_date}
    numbers, positions = Counter[float](), dict[Place, int]()
    for place in _find_places(store, session, match_ranked(key)):
        if _is_bound(place):
            positions[place] = numbers[place.fm_score]
        numbers[place.fm_score] += 1
    return _make_counts(key, numbers, positions)


def _find_places(store: Store, session: ClientSession, match: Document) -> Iterator[Place]:
    """Yield places in order. Index: (fleet, period, start_date, fm_score, distance_miles, driver_id)."""
    projection = {"_id": 0, **dict.fromkeys(PLACE_FIELDS, 1)}
    documents = store.driver_periods.find(match, projection, sort=WORST.sort, session=session)
    yield from map(place_of, documents.hint(WORST.index))


def _make_bound(place: Place, position: int) -> Document:
    """Return a bound (schema RankingBound)."""
    score, negative_miles, driver_id = place
    return {"fm_score": score, "distance_miles": -negative_miles, "driver_id": driver_id, "position": position}


def _make_counts(key: Document, numbers: Mapping[float, int], positions: Mapping[Place, int]) -> Document | None:
    """Return the document of the numbers of drivers by score and the positions of bounds, or None without drivers."""
    scores = sorted(score for score, number in numbers.items() if number > 0)
    counts = [numbers[score] for score in scores]
    if not counts:
        return None
    bounds = [_make_bound(place, positions[place]) for place in sorted(positions)]
    return {**key, "driver_count": sum(counts), "fm_scores": scores, "counts": counts, "bounds": bounds}


def find_rankings(store: Store, fleet: str) -> list[DocumentKey]:
    """Return the period and start_date of each week and month that has a driver or a document of counts."""
    stored = store.ranking_counts.find({"fleet": fleet}, {"_id": 0, "period": 1, "start_date": 1})
    keys = {(counts["period"], counts["start_date"]) for counts in stored}
    for period in LONG_PERIODS:
        match = match_ranked({"fleet": fleet, "period": period})
        pipeline: list[Document] = [{"$match": match}, {"$group": {"_id": "$start_date"}}]
        dates = store.driver_periods.aggregate(pipeline, hint=WORST.index)
        keys |= {(period, date["_id"]) for date in dates}
    return sorted(keys)


def find_expected(store: Store, session: ClientSession, fleet: str, period: str, start_date: str) -> DocumentsByKey:
    """Return the counts of a week or month by their key, or nothing if nobody drove."""
    counts = make_counts(store, session, fleet, period, start_date)
    return {(period, start_date): counts} if counts else {}


def rebuild_counts(store: Store, session: ClientSession, fleet: str, period: str, start_date: str) -> None:
    """Write the counts of a week or month if they differ from its drivers."""
    key = {"fleet": fleet, "period": period, "start_date": start_date}
    counts = make_counts(store, session, fleet, period, start_date)
    if counts == store.ranking_counts.find_one(key, {"_id": 0}, session=session):
        return
    if counts:
        store.ranking_counts.replace_one(key, counts, upsert=True, session=session)
    else:
        store.ranking_counts.delete_one(key, session=session)
