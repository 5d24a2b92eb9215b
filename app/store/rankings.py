"""Rankings: the drivers of a fleet by their score in a week or month."""

from typing import Any

from orjson import Fragment

from app.store import Document, Result, Store
from app.store.driver_periods import SUMMARY_FRAGMENT, find_profiles
from app.store.groups import DRIVERS_A_BATCH, find_drivers_of_group
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

    MongoDB counts the drivers in the index, and skips those before the page. By a `behaviour`, it sorts all drivers,
    and the drivers of a group in any case. Indexes: driver_periods (fleet, period, start_date, fm_score,
    distance_miles, driver_id) in the order, and (fleet, period, driver_id, start_date) for groups and profiles. Raises
    UnknownRecord.
    """
    page_request = PageRequest(page, limit)
    distance = {"distance_miles": {"$gte": min_distance_miles}} if min_distance_miles else {}
    ranking = {"fleet": fleet, "period": period, "start_date": start_date, **RANKED, **distance}
    rows, profiles = list[Document](), dict[str, Document]()
    with store.snapshot():
        count, on_page = _rank(store, ranking, group, order, behaviour, page_request)
        if page_request.skip < count:
            rows = _find_rows(store, ranking, order, on_page, page_request)
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


def _rank(
    store: Store, ranking: Document, group: str | None, order: str, behaviour: str | None, page_request: PageRequest
) -> tuple[int, list[str] | None]:
    """Return the number of drivers in a ranking, and those on the page in order, or None if the index has the order."""
    if group is not None:
        # In the index of the order, MongoDB would look for each driver of the group after each entry.
        members = {"driver_id": {"$in": find_drivers_of_group(store, Scope(ranking["fleet"]), group)}}
        ranked = _sort(store, ranking | members, "period", order, behaviour)
        return len(ranked), ranked[page_request.skip :][: page_request.limit]
    count = store.driver_periods.count_documents(ranking, hint=INDEXES[order])
    if behaviour is None or page_request.skip >= count:
        return count, None
    page: list[Document] = [{"$skip": page_request.skip}, {"$limit": page_request.limit}]
    return count, _sort(store, ranking, INDEXES[order], order, behaviour, *page)


def _find_rows(
    store: Store, ranking: Document, order: str, driver_ids: list[str] | None, page_request: PageRequest
) -> list[Document]:
    """Return the week or month of each driver on the page, in order: driver_id, version and the fragment.

    `driver_ids` are the drivers on the page, or None if the index has the order.
    """
    projection = {"_id": 0, "driver_id": 1, "version": 1, SUMMARY_FRAGMENT: 1}
    options: Any = {"batch_size": page_request.limit + 1}
    if driver_ids is None:
        options |= {"sort": ORDERS[order], "skip": page_request.skip, "limit": page_request.limit}
        return list(store.driver_periods.find(ranking, projection, **options).hint(INDEXES[order]))
    found = store.driver_periods.find({**ranking, "driver_id": {"$in": driver_ids}}, projection, **options)
    rows = {row["driver_id"]: row for row in found}
    return [rows[driver_id] for driver_id in driver_ids]


def _sort(store: Store, ranking: Document, index: str, order: str, behaviour: str | None, *page: Document) -> list[str]:
    """Return the driver_ids in order of the points that a behaviour costs, if any, then of the ranking.

    `page` has the stages that leave those on the page.
    """
    by_points = {f"points_lost.{behaviour}": -1 if order == WORST else 1} if behaviour is not None else {}
    sort = {**by_points, **dict(ORDERS[order])}
    # Without the fragments, so that the sort keeps to its memory.
    light = {"$project": {"_id": 0, **dict.fromkeys(sort, 1)}}
    pipeline = [{"$match": ranking}, light, {"$sort": sort}, *page, {"$project": {"driver_id": 1}}]
    options: Any = {"batchSize": DRIVERS_A_BATCH, "hint": index}
    return [row["driver_id"] for row in store.driver_periods.aggregate(pipeline, **options)]
