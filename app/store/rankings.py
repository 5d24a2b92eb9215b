"""Rankings: the drivers of a fleet by their score in a week or month."""

from typing import Any

from orjson import Fragment

from app.store import Document, Result, Store
from app.store.driver_periods import SUMMARY_FRAGMENT, find_profiles
from app.store.groups import INDEX, check_group
from app.store.pagination import PageRequest
from app.store.scope import Scope
from schemas.params import BEST, WORST
from schemas.periods import FIRST_AND_LAST_DATE

# The orders of a ranking, as MongoDB sorts: 1 is ascending. Of equal scores, the longer distance comes first in both.
ORDERS = {
    name: [("fm_score", direction), ("distance_miles", -1), ("driver_id", 1)]
    for name, direction in ((WORST, 1), (BEST, -1))
}
INDEXES = {name: f"ranking_{name}" for name in ORDERS}
GROUP_INDEXES = {WORST: INDEX, BEST: "group_ranking_best"}
# The indexes of rankings have only documents with a score, so a filter has to name the score.
RANKED: Document = {"fm_score": {"$gte": 0}}


def find_ranking(
    store: Store,
    fleet: str,
    *,
    group: str | None = None,
    period: str,
    start_date: str,
    order: str,
    behaviour: str | None,
    min_distance_miles: float,
    page: int,
    limit: int,
) -> Result:
    """Return a page of the ranking of the drivers who drove in the week or month that starts on `start_date`.

    MongoDB counts the drivers in the index, and skips those before the page. By a `behaviour`, it sorts all drivers.
    Indexes: driver_periods (fleet, period, start_date, fm_score, distance_miles, driver_id) in the order, for a group
    with the groups after the fleet, and (fleet, period, driver_id, start_date). Raises UnknownRecord.
    """
    page_request = PageRequest(page, limit)
    distance = {"distance_miles": {"$gte": min_distance_miles}} if min_distance_miles else {}
    of_group = {} if group is None else {"groups": group}
    ranking = {"fleet": fleet, "period": period, "start_date": start_date, **RANKED, **distance, **of_group}
    index = (INDEXES if group is None else GROUP_INDEXES)[order]
    rows, profiles = list[Document](), dict[str, Document]()
    with store.snapshot():
        if group is not None:
            check_group(store, Scope(fleet), group)
        count = store.driver_periods.count_documents(ranking, hint=index)
        if page_request.skip < count:
            rows = _find_rows(store, ranking, index, order, behaviour, page_request)
            driver_ids = [row["driver_id"] for row in rows]
            profiles = find_profiles(store, {"fleet": fleet, "driver_id": {"$in": driver_ids}}, "json")
    versions = [document["version"] for document in (*rows, *profiles.values())]
    _, last_of = FIRST_AND_LAST_DATE[period]
    drivers = [_render(rank, profiles[row["driver_id"]], row) for rank, row in enumerate(rows, page_request.skip + 1)]
    content = {"period": period, "start_date": start_date, "end_date": last_of(start_date), "drivers": drivers}
    return page_request.build_result(count, versions, content)


def _render(rank: int, profile: Document, row: Document) -> Document:
    summary = Fragment(row[SUMMARY_FRAGMENT])
    return {"rank": rank, "driver_info": Fragment(profile["json"]), "driving_summary": summary}


def _find_rows(
    store: Store, ranking: Document, index: str, order: str, behaviour: str | None, page_request: PageRequest
) -> list[Document]:
    """Return the week or month of each driver on the page, in order: driver_id, version and the fragment."""
    projection = {"_id": 0, "driver_id": 1, "version": 1, SUMMARY_FRAGMENT: 1}
    options: Any = {"batch_size": page_request.limit + 1}
    if behaviour is None:
        options |= {"sort": ORDERS[order], "skip": page_request.skip, "limit": page_request.limit}
        return list(store.driver_periods.find(ranking, projection, **options).hint(index))
    driver_ids = _sort(store, ranking, index, order, behaviour, page_request)
    match = {**ranking, "driver_id": {"$in": driver_ids}}
    rows = {row["driver_id"]: row for row in store.driver_periods.find(match, projection, **options).hint("period")}
    return [rows[driver_id] for driver_id in driver_ids]


def _sort(
    store: Store, ranking: Document, index: str, order: str, behaviour: str, page_request: PageRequest
) -> list[str]:
    """Return the driver_ids on the page, in order of the points that a behaviour costs, then of the ranking."""
    sort = {f"points_lost.{behaviour}": -1 if order == WORST else 1, **dict(ORDERS[order])}
    pipeline: list[Document] = [
        {"$match": ranking},
        # Without the fragments, so that the sort keeps to its memory.
        {"$project": {"_id": 0, **dict.fromkeys(sort, 1)}},
        {"$sort": sort},
        {"$skip": page_request.skip},
        {"$limit": page_request.limit},
        {"$project": {"driver_id": 1}},
    ]
    options: Any = {"batchSize": page_request.limit + 1, "hint": index}
    return [row["driver_id"] for row in store.driver_periods.aggregate(pipeline, **options)]
