"""The requests of each row, and the query of the store that its responses need at least."""

import datetime
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import orjson

from app.config import API
from app.store import Document
from app.store.drivers import BLOCK_SIZE, HEAD_POSITION
from app.store.rankings import ORDERS, RANKED
from app.store.trips import DETAIL_FRAGMENTS
from bench import fleet
from schemas.driver import Driver
from schemas.introspection import fields_of
from schemas.periods import ANY_DATE, DAY, PROFILE, WEEK
from schemas.trip import TripDetail, TripSummary

FLEET = "bench"
MASK = "{trips{trip_id,distance_miles}}"
PAGE, AGGREGATED = 100, 20
# Enough that no document is in use all the time; few enough that the prepared bodies of the floor fit in memory.
REQUESTS = 200
DAYS_A_WEEK = 7

DRIVER = dict.fromkeys(["_id"], 0) | dict.fromkeys(fields_of(Driver), 1)
SUMMARY = dict.fromkeys(["_id"], 0) | dict.fromkeys(fields_of(TripSummary), 1)
DETAIL = dict.fromkeys(["_id"], 0) | dict.fromkeys(fields_of(TripDetail), 1)
MASKED = {"_id": 0, "trip_id": 1, "distance_miles": 1}
FRAGMENTS = ("summary", *DETAIL_FRAGMENTS)
# The document with the number of drivers, and three blocks: a new block is half full.
MAX_BLOCKS = 4


class Query(NamedTuple):
    """A query of the floor. Without a collection, it is a ping."""

    collection: str | None
    filter: Document
    projection: dict[str, int] | None = None
    sort: list[tuple[str, int]] | None = None
    limit: int = 0


class Request(NamedTuple):
    """A request to the service. `about` has the arguments for the functions in QUERIES, TEXT_QUERIES and EVE_PATHS."""

    path: str
    about: dict[str, Any]
    headers: dict[str, str]


# The query of the floor: for the documents of the response.
QUERIES: dict[str, Callable[..., Query]] = {
    "drivers": lambda first, **_: Query(
        "drivers", {"fleet": FLEET, "driver_id": {"$gte": first}}, DRIVER, [("driver_id", 1)], PAGE
    ),
    "trips": lambda driver, start, until, **_: Query(
        "trips",
        {"fleet": FLEET, "driver_id": driver, "trip_start_time": {"$gte": start}, "trip_end_time": {"$lte": until}},
        SUMMARY,
        [("trip_start_time", 1), ("trip_id", 1)],
        PAGE,
    ),
    "detail": lambda trip, **_: Query("trips", {"fleet": FLEET, "trip_id": trip}, DETAIL, limit=1),
    "detail, masked": lambda trip, **_: Query("trips", {"fleet": FLEET, "trip_id": trip}, MASKED, limit=1),
    "detail, unchanged": lambda trip, **_: Query("trips", {"fleet": FLEET, "trip_id": trip}, {"_id": 1}, limit=1),
    "daily": lambda drivers, date, **_: _days(drivers, [date]),
    "weekly": lambda drivers, dates, **_: _days(drivers, dates),
    "score": lambda driver, date, **_: _days_since(driver, date),
    "ranking": lambda date, **_: _ranked(date),
    "healthz": lambda **_: Query(None, {}),
}
# The query of the text floor: the service's query for the read models. For a driver's trips, the service makes two
# queries; this is the larger one.
TEXT_QUERIES: dict[str, Callable[..., Query]] = {
    "drivers": lambda skip, **_: Query(
        "fleet_drivers",
        {
            "fleet": FLEET,
            "$or": [{"position": HEAD_POSITION}, {"position": {"$gt": skip - BLOCK_SIZE, "$lt": skip + PAGE}}],
        },
        {"_id": 0, "position": 1, "version": 1, "driver_count": 1, "drivers": 1},
        [("position", 1)],
        MAX_BLOCKS,
    ),
    "trips": lambda driver, date, days, **_: Query(
        "driver_periods",
        {"fleet": FLEET, "driver_id": driver, "period": DAY, "start_date": {"$gte": date}},
        {"_id": 0, "start_date": 1, "trips": 1},
        [("start_date", 1)],
        days,
    ),
    "detail": lambda trip, **_: _detail(trip, *FRAGMENTS),
    "detail, masked": lambda trip, **_: _detail(trip, "summary"),
    "detail, unchanged": lambda trip, **_: _detail(trip),
    "daily": lambda drivers, date, **_: _periods(drivers, DAY, date),
    "weekly": lambda drivers, date, **_: _periods(drivers, WEEK, date),
    "score": lambda driver, date, **_: _days_since(driver, date),
    "ranking": lambda date, **_: _ranked(date),
    "healthz": lambda **_: Query(None, {}),
}


def _days(drivers: list[str], dates: list[str]) -> Query:
    match = {"fleet": FLEET, "period": DAY, "driver_id": {"$in": drivers}, "start_date": {"$in": dates}}
    return Query(
        "driver_periods",
        match,
        {"_id": 0, "driver_id": 1, "start_date": 1, "summary": 1},
        limit=AGGREGATED * len(dates),
    )


def _days_since(driver: str, date: str) -> Query:
    match = {"fleet": FLEET, "period": DAY, "driver_id": driver, "start_date": {"$gte": date}}
    return Query("driver_periods", match, {"_id": 0, "start_date": 1, "summary": 1}, limit=fleet.DAYS)


def _periods(drivers: list[str], period: str, date: str) -> Query:
    match = {
        "fleet": FLEET,
        "period": {"$in": [PROFILE, period]},
        "driver_id": {"$in": drivers},
        "start_date": {"$in": [ANY_DATE, date]},
    }
    projection = {"_id": 0, "period": 1, "driver_id": 1, "version": 1, "json": 1}
    return Query("driver_periods", match, projection, limit=2 * AGGREGATED)


def _ranked(date: str) -> Query:
    match = {"fleet": FLEET, "period": WEEK, "start_date": date, **RANKED}
    projection = {"_id": 0, "driver_id": 1, "version": 1, "driving_summary": 1}
    return Query("driver_periods", match, projection, ORDERS["worst"], PAGE)


def _detail(trip: str, *fragments: str) -> Query:
    projection = {"_id": 0, "version": 1, **dict.fromkeys(fragments, 1)}
    return Query("trip_details", {"fleet": FLEET, "trip_id": trip}, projection, limit=1)


TITLES = {
    "drivers": f"drivers, a page of {PAGE}",
    "trips": f"a driver's trips, a page of {PAGE}",
    "detail": "one trip in full, 600 trail points",
    "detail, masked": f"the same with `X-Fields: {MASK}`",
    "detail, unchanged": "the same with `If-None-Match`, response 304",
    "daily": f"daily summaries of {AGGREGATED} drivers",
    "weekly": f"weekly summaries of {AGGREGATED} drivers",
    "score": f"the score of a driver in {fleet.DAYS} days, by week",
    "ranking": f"a ranking by week, a page of {PAGE}",
    "healthz": "health check",
}


def requests(row: str, shape: fleet.Shape, base: datetime.date) -> list[Request]:
    """Return the requests of a row, distributed over drivers, trips, dates and pages."""
    numbers = range(REQUESTS)
    ids = [fleet.driver_id(number) for number in range(shape.drivers)]
    if row == "drivers":
        pages = max(1, shape.drivers // PAGE)
        return [
            request_of("/drivers", {"limit": PAGE, "page": page + 1}, skip=page * PAGE, first=ids[page * PAGE])
            for page in range(pages)
        ]
    if row == "trips":
        date = base - datetime.timedelta(shape.days)
        times = {"start": epoch_ms(date), "until": epoch_ms(base)}
        days = -(-PAGE // shape.trips_a_day)
        query = {"start_date": date, "limit": PAGE}
        return [
            request_of(f"/driver/{one}/trips", query, driver=one, date=str(date), days=days, **times)
            for one in ids[:REQUESTS]
        ]
    if row.startswith("detail"):
        return [detail(_select_trip(number, shape, base), row) for number in numbers]
    if row == "daily":
        week = [monday(base) + datetime.timedelta(day) for day in range(DAYS_A_WEEK)]
        return [aggregates("daily", _select_drivers(ids, number), week[number % DAYS_A_WEEK]) for number in numbers]
    if row == "weekly":
        return [aggregates("weekly", _select_drivers(ids, number), monday(base)) for number in numbers]
    if row == "score":
        date = base - datetime.timedelta(shape.days)
        return [request_of(f"/driver/{one}/score", {"start_date": date}, driver=one, date=str(date)) for one in ids]
    if row == "ranking":
        return [ranking(monday(base))]
    return [request_of("/healthz", {})]


def detail(trip: str, row: str = "detail") -> Request:
    """Return the request for one trip."""
    request = request_of(f"/trip/trip_id/{trip}", {}, trip=trip)
    return request._replace(headers={"X-Fields": MASK}) if row == "detail, masked" else request


def aggregates(kind: str, drivers: list[str], date: datetime.date) -> Request:
    """Return the request for `daily` or `weekly` summaries."""
    dates = [str(date + datetime.timedelta(day)) for day in range(DAYS_A_WEEK)]
    query = [("start_date", date), *(("driver_id", driver) for driver in drivers)]
    return request_of(f"/driver-aggregate/{kind}", query, drivers=drivers, date=str(date), dates=dates)


def ranking(date: datetime.date, page: int = 1, order: str = "worst") -> Request:
    """Return the request for a page of the ranking of a week."""
    query = {"period": WEEK, "start_date": date, "order": order, "limit": PAGE, "page": page}
    return request_of("/ranking", query, date=str(date))


def request_of(path: str, query: Any, **about: Any) -> Request:
    """Return the request for a path of the API."""
    return Request(API + path + (f"?{urlencode(query)}" if query else ""), about, {})


def monday(base: datetime.date) -> datetime.date:
    """Return the Monday of the last complete week. The trails of its trips are complete too."""
    yesterday = base - datetime.timedelta(1)
    return yesterday - datetime.timedelta((yesterday.weekday() + 1) % DAYS_A_WEEK + DAYS_A_WEEK - 1)


def epoch_ms(date: datetime.date) -> int:
    """Return the start of a UTC date in epoch milliseconds."""
    return int(datetime.datetime.combine(date, datetime.time(), datetime.UTC).timestamp() * 1000)


def _select_trip(number: int, shape: fleet.Shape, base: datetime.date) -> str:
    date = base - datetime.timedelta(1 + number % fleet.RECENT_DAYS)
    return fleet.trip_id(number % shape.drivers, date, number % shape.trips_a_day)


def _select_drivers(ids: list[str], number: int) -> list[str]:
    return [ids[(number + index) % len(ids)] for index in range(AGGREGATED)]


# python-eve has its own paths and shapes, and supports only these rows.
def _where(**conditions: Any) -> str:
    return quote(orjson.dumps(conditions))


EVE_PATHS: dict[str, Callable[..., str]] = {
    "drivers": lambda first, **_: (
        f"/drivers?sort=driver_id&max_results={PAGE}&page={int(first.rpartition('-')[2]) // PAGE + 1}"
    ),
    "trips": lambda driver, start, until, **_: (
        f"/trips?sort=trip_start_time,trip_id&max_results={PAGE}&where="
        + _where(driver_id=driver, trip_start_time={"$gte": start}, trip_end_time={"$lte": until})
    ),
    "detail": lambda trip, **_: f"/trip/{trip}",
}
