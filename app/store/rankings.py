"""Rankings: the drivers of a fleet by their score in a week or month."""

import dataclasses
import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from orjson import Fragment
from pymongo import ASCENDING, DESCENDING
from pymongo.client_session import ClientSession

from app.store import Document, Result, Store
from app.store.dates import FIRST_AND_LAST_DATE
from app.store.driver_periods import SUMMARY_FRAGMENT
from app.store.pagination import PageRequest
from app.store.rendering import Selection, make_renderer
from schemas.introspection import Fields, fields_of
from schemas.page import RankingPage
from schemas.periods import ANY_DATE, PROFILE

DRIVERS: Fields = fields_of(RankingPage)["drivers"] or {}
# The mean number of drivers between two bounds. MongoDB skips as many in 0.4 ms.
DRIVERS_PER_BOUND = 256


@dataclasses.dataclass(frozen=True)
class Order:
    """An order of a ranking: the index, the direction of the scores, and MongoDB's operators for what follows."""

    index: str
    direction: int
    after: str
    from_: str

    @property
    def sort(self) -> list[tuple[str, int]]:
        """The order of `driver_periods`. Of equal scores, the longer distance comes first in every order."""
        return [("fm_score", self.direction), ("distance_miles", DESCENDING), ("driver_id", ASCENDING)]


ORDERS = {
    "worst": Order("ranking_worst", ASCENDING, "$gt", "$gte"),
    "best": Order("ranking_best", DESCENDING, "$lt", "$lte"),
}


@dataclasses.dataclass(frozen=True)
class _Start:
    """The number of drivers in a ranking, and where a page begins: a filter, and how many of its drivers to skip."""

    count: int
    match: Document
    skip: int


def find_ranking(
    store: Store,
    fleet: str,
    *,
    period: str,
    start_date: str,
    order: str,
    min_distance_miles: float,
    page: int,
    limit: int,
    selection: Selection,
) -> Result:
    """Return a page of the ranking of the drivers who drove in the week or month that starts on `start_date`.

    `ranking_counts` leads to the first driver of the page. With `min_distance_miles`, the query scans the index up to
    there. Indexes: ranking_counts (fleet, period, start_date); driver_periods (fleet, period, start_date, fm_score,
    distance_miles, driver_id) in the order, and (fleet, period, driver_id, start_date) for the profiles.
    """
    page_request = PageRequest(page, limit)
    with store.snapshot() as session:
        ranking = _Ranking(store, session, fleet, {"period": period, "start_date": start_date}, ORDERS[order])
        count, rows, profiles = ranking.read(page_request, min_distance_miles, selection)
    version = " ".join([str(count), *(document["version"] for document in (*rows, *profiles.values()))])
    if not selection.include_content:
        return page_request.build_result(version, {}, count, {})
    _, last_of = FIRST_AND_LAST_DATE[period]
    render = _make_driver_renderer(selection.fields.get("drivers") or {}, profiles)
    content = {
        "period": period,
        "start_date": start_date,
        "end_date": last_of(start_date),
        "drivers": [render(rank, row) for rank, row in enumerate(rows, page_request.skip + 1)],
    }
    return page_request.build_result(version, selection.fields, count, content)


class _Ranking(NamedTuple):
    """The ranking of a fleet in a period, as a session sees it. `period` has its name and `start_date`."""

    store: Store
    session: ClientSession
    fleet: str
    period: Document
    order: Order

    @property
    def key(self) -> Document:
        """The filter for the documents of the ranking."""
        return {"fleet": self.fleet, **self.period}

    def read(
        self, page_request: PageRequest, min_distance_miles: float, selection: Selection
    ) -> tuple[int, list[Document], dict[str, Document]]:
        """Return the number of drivers in the ranking, and of those on the page the weeks or months and the profiles.

        The profiles are by driver_id. Reads neither if the selection has no drivers, and no profiles it does not need.
        """
        element, skip = selection.fields.get("drivers"), page_request.skip
        start = (
            self.get_start_with_distance(min_distance_miles, skip) if min_distance_miles else self.get_start_after(skip)
        )
        if element is None or skip >= start.count:
            return start.count, [], {}
        rows = self.find_rows(start, page_request.limit, element, selection)
        return start.count, rows, self.find_profiles(rows, selection) if "driver_info" in element else {}

    def get_start_with_distance(self, min_distance_miles: float, skip: int) -> _Start:
        """Return the start of a page of the drivers with this distance or a longer one. Scans the index."""
        match = {**match_ranked(self.key), "distance_miles": {"$gte": min_distance_miles}}
        options: Any = {"hint": self.order.index, "session": self.session}
        return _Start(self.store.driver_periods.count_documents(match, **options), match, skip)

    def get_start_after(self, skip: int) -> _Start:
        """Return the start of the page that `skip` drivers come before."""
        names = ("driver_count", "fm_scores", "counts") if skip else ("driver_count",)
        projection = {"_id": 0, **dict.fromkeys(names, 1)}
        counts = self.store.ranking_counts.find_one(self.key, projection, session=self.session)
        count = counts["driver_count"] if counts else 0
        if not counts or not 0 < skip < count:
            return _Start(count, match_ranked(self.key), 0)
        score, offset = self._locate_score(counts, skip)
        bound = self._get_bound(score, offset) if offset >= DRIVERS_PER_BOUND else None
        if bound is None:
            return _Start(count, {**self.key, "fm_score": {self.order.from_: score}}, offset)
        branches = [*match_from_bound(self.key, bound), {**self.key, "fm_score": {self.order.after: score}}]
        return _Start(count, {"$or": branches}, offset - bound["position"])

    def _locate_score(self, counts: Document, skip: int) -> tuple[float, int]:
        """Return the score of the driver that `skip` drivers come before, and how many of these have the same score."""
        pairs = list(zip(counts["fm_scores"], counts["counts"], strict=True))
        ordered = pairs[:: self.order.direction]
        ends = list(itertools.accumulate(count for _, count in ordered))
        index = bisect_right(ends, skip)
        score, count = ordered[index]
        return score, skip - ends[index] + count

    def _get_bound(self, score: float, offset: int) -> Document | None:
        """Return the last bound (schema RankingBound) of a score with at most `offset` as its position, or None."""
        within = {"$and": [{"$eq": ["$$bound.fm_score", score]}, {"$lte": ["$$bound.position", offset]}]}
        bounds = {"$slice": [{"$filter": {"input": "$bounds", "as": "bound", "cond": within}}, -1]}
        pipeline: list[Document] = [{"$match": self.key}, {"$project": {"_id": 0, "bounds": bounds}}]
        counts = _get_first(self.store.ranking_counts.aggregate(pipeline, session=self.session))
        return _get_first(counts["bounds"]) if counts else None

    def find_rows(self, start: _Start, limit: int, element: Fields, selection: Selection) -> list[Document]:
        """Return the week or month of each driver on the page, in order: driver_id, version and the fragment."""
        fragments = [SUMMARY_FRAGMENT] if "driving_summary" in element else []
        projection = {"_id": 0, "driver_id": 1, "version": 1} | selection.projection(*fragments)
        options: Any = {"sort": self.order.sort, "skip": start.skip, "limit": limit, "batch_size": limit + 1}
        cursor = self.store.driver_periods.find(start.match, projection, session=self.session, **options)
        return list(cursor.hint(self.order.index))

    def find_profiles(self, rows: list[Document], selection: Selection) -> dict[str, Document]:
        """Return the profiles of the drivers on the page, by driver_id and in its order."""
        ids = [row["driver_id"] for row in rows]
        match = {"fleet": self.fleet, "period": PROFILE, "driver_id": {"$in": ids}, "start_date": ANY_DATE}
        projection = {"_id": 0, "driver_id": 1, "version": 1} | selection.projection("json")
        options: Any = {"batch_size": len(ids) + 1, "session": self.session}
        profiles = {
            profile["driver_id"]: profile for profile in self.store.driver_periods.find(match, projection, **options)
        }
        return {driver_id: profiles[driver_id] for driver_id in ids}


def match_ranked(key: Document) -> Document:
    """Return the filter for the drivers of a ranking. `key` has the fleet, the period and the start_date.

    The indexes of rankings have only documents with a score, so a filter has to name the score.
    """
    return {**key, "fm_score": {"$gte": 0}}


def match_from_bound(key: Document, bound: Mapping[str, Any]) -> list[Document]:
    """Return filters that together match a bound (schema RankingBound) and what follows it with the same score."""
    score, distance, driver_id = (bound[name] for name in ("fm_score", "distance_miles", "driver_id"))
    return [
        {**key, "fm_score": score, "distance_miles": distance, "driver_id": {"$gte": driver_id}},
        {**key, "fm_score": score, "distance_miles": {"$lt": distance}},
    ]


def _make_driver_renderer(element: Fields, profiles: Mapping[str, Document]) -> Callable[[int, Document], Any]:
    """Return a function that makes an element for orjson from a rank and a week or month."""
    if element is DRIVERS:
        return lambda rank, row: Fragment(
            f'{{"rank":{rank},"driver_info":{profiles[row["driver_id"]]["json"]},'
            f'"driving_summary":{row[SUMMARY_FRAGMENT]}}}'
        )
    render_info = make_renderer(element.get("driver_info"), DRIVERS["driver_info"])
    render_summary = make_renderer(element.get("driving_summary"), DRIVERS["driving_summary"])
    values: dict[str, Callable[[int, Document], Any]] = {
        "rank": lambda rank, row: rank,
        "driver_info": lambda rank, row: render_info(profiles[row["driver_id"]]["json"]),
        "driving_summary": lambda rank, row: render_summary(row[SUMMARY_FRAGMENT]),
    }
    selected = {name: values[name] for name in element}
    return lambda rank, row: {name: get(rank, row) for name, get in selected.items()}


def _get_first(documents: Iterable[Document]) -> Document | None:
    """Return the first document of a query, or None. Exhausts the cursor, which then needs no closing."""
    return next(iter(list(documents)), None)
