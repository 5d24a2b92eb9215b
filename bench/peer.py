"""The peer: the API in FastAPI, with pydantic response models and pymongo's asynchronous client.

It adds summaries up from the trips at each request. It has what users of FastAPI usually add, and what the service has
too: a rate limit for each fleet, counted in Redis, ETags, request ids, and a JSON log line for each request.
"""

import contextlib
import datetime
import hashlib
import math
import multiprocessing
import os
import secrets
import socket
import sys
import time
from typing import Annotated

import orjson
import uvicorn
from fastapi import APIRouter, Depends, FastAPI, Header, HTTPException, Query, Request
from limits import parse
from limits.aio.strategies import FixedWindowRateLimiter
from limits.storage import storage_from_string
from pydantic import create_model
from pymongo import AsyncMongoClient
from starlette.datastructures import Headers, MutableHeaders

rate = parse(os.environ["RATE_LIMIT"])
# redis-py is also the client of the service. By default, `limits` uses another asynchronous client.
storage = storage_from_string(f"async+{os.environ['RATELIMIT_STORAGE_URI']}", implementation="redispy")
limiter = FixedWindowRateLimiter(storage)

OLDEST_FIRST = [("trip_start_time", 1), ("trip_id", 1)]
DETAIL_LIMIT, DELAY_MS = 5, 4 * 3_600_000


def model(name, **types):
    """Return a model with fields of these types."""
    return create_model(name, **{field: (field_type, ...) for field, field_type in types.items()})


def all_of(field_type, *names):
    """Return fields of the same type."""
    return dict.fromkeys(names, field_type)


COUNTS = all_of(int, "phone_use_count", "rapid_acceleration_count", "hard_brake_count", "overspeeding_count")
COUNTS |= all_of(float, "phone_use_time_seconds", "overspeeding_time_seconds")
AMOUNTS = all_of(float, "distance_miles", "duration_seconds", "night_driving_seconds", "highway_miles")
Counts = model("Counts", **COUNTS)
NAMES = all_of(str | None, "first_name", "last_name", "email", "alias", "first_travel_date", "last_travel_date")
Driver = model("Driver", driver_id=str, **NAMES)
TRIP = {
    **all_of(str, "trip_id", "driver_id"),
    **all_of(int, "trip_start_time", "trip_end_time"),
    **AMOUNTS,
    **all_of(float, "start_latitude", "start_longitude", "end_latitude", "end_longitude", "night_driving_miles"),
    "insurance_period": int | None,
    "event_summary": Counts,
}
# Without the trails.
LISTED = {"_id": 0, **dict.fromkeys(TRIP, 1)}
FocusArea = model(
    "FocusArea", **all_of(bool, "is_phone_use", "is_rapid_acceleration", "is_hard_brake", "is_overspeeding")
)
Point = model("Point", timestamp=int, **all_of(float, "latitude", "longitude", "course"))
Event = model(
    "Event",
    event_name=str,
    **all_of(int, "event_type", "event_start_timestamp", "event_end_timestamp"),
    **all_of(float, "event_start_latitude", "event_start_longitude", "event_end_latitude", "event_end_longitude"),
    event_data=dict[str, float],
)
TripDetail = model("TripDetail", **TRIP, focus_area=FocusArea, trail_path=list[Point], events=list[Event])
# For each focus flag its numerator, factor, denominator, cap and weight.
BEHAVIOURS = {
    "is_phone_use": ("phone_use_time_seconds", 1, "duration_seconds", 0.15, 35),
    "is_overspeeding": ("overspeeding_time_seconds", 1, "duration_seconds", 0.20, 30),
    "is_hard_brake": ("hard_brake_count", 100, "distance_miles", 20, 20),
    "is_acceleration": ("rapid_acceleration_count", 100, "distance_miles", 20, 15),
}
GRADES = {"excellent": 85, "good": 70, "fair": 50, "poor": 0}
SUMMARY = {
    "fm_score": float,
    "fm_grade": str,
    "trip_count": int,
    **AMOUNTS,
    "events_summary": Counts,
    "focus_area": model("SummaryFocusArea", **all_of(bool, *BEHAVIOURS)),
}
Day = model("Day", **SUMMARY, date=str)
Week = model("Week", **SUMMARY, start_date=str, end_date=str, daily_summary_breakdown=list[Day])
PAGE = {"count": int, "current_page": int, "next_page": int | None, "limit": int}
DriverPage = model("DriverPage", **PAGE, drivers=list[Driver])
TripPage = model("TripPage", **PAGE, trips=list[model("Trip", **TRIP)])
DetailPage = model("DetailPage", **PAGE, trips=list[TripDetail])
Daily, Weekly = (
    model(f"{kind.__name__}s", data=list[model(f"{kind.__name__}Row", driver_info=Driver, driving_summary=kind)])
    for kind in (Day, Week)
)
Health = model("Health", status=str)


@contextlib.asynccontextmanager
async def lifespan(_):
    global db
    async with AsyncMongoClient(os.environ["MONGODB_URI"]) as client:
        db = client[os.environ["MONGODB_DATABASE"]]
        yield


async def authenticate(request: Request, authorization: Annotated[str, Header()] = "") -> str:
    """Return the fleet of the key, and count the request for its rate limit."""
    digest = hashlib.sha256(authorization.removeprefix("APIKEY ").encode()).hexdigest()
    key = await db.peer_keys.find_one(digest)
    if key is None:
        raise HTTPException(401)
    request.state.fleet = fleet = key["fleet"]
    if not await limiter.hit(rate, fleet):
        raise HTTPException(429, headers={"Retry-After": str(rate.get_expiry())})
    return fleet


Fleet = Annotated[str, Depends(authenticate)]
Limit = Annotated[int, Query(ge=1, le=100)]
PageNumber = Annotated[int, Query(ge=1)]
DriverIds = Annotated[list[str], Query(min_length=1, max_length=20)]
router = APIRouter(prefix="/api/v1")


async def page_of(collection, match, sort, page, limit, projection=None):
    count = await collection.count_documents(match)
    cursor = collection.find(match, projection).sort(sort).skip((page - 1) * limit).limit(limit)
    next_page = page + 1 if page * limit < count else None
    documents = await cursor.to_list()
    return {"count": count, "current_page": page, "next_page": next_page, "limit": limit, collection.name: documents}


def epoch_ms(date):
    """Return the start of a UTC date in epoch milliseconds."""
    return int(datetime.datetime.combine(date, datetime.time(), datetime.UTC).timestamp() * 1000)


def is_visible():
    """Return the condition for trips that ended some hours ago."""
    return {"trip_end_time": {"$lte": int(time.time() * 1000) - DELAY_MS}}


@router.get("/drivers", response_model=DriverPage)
async def drivers(fleet: Fleet, limit: Limit = 50, page: PageNumber = 1):
    return await page_of(db.drivers, {"fleet": fleet}, "driver_id", page, limit)


@router.get("/driver/{driver_id}/trips", response_model=TripPage)
async def trips(fleet: Fleet, driver_id: str, start_date: datetime.date, limit: Limit = 50, page: PageNumber = 1):
    match = {"fleet": fleet, "driver_id": driver_id}
    if await db.drivers.find_one(match, {"_id": 1}) is None:
        raise HTTPException(404)
    match |= {"trip_start_time": {"$gte": epoch_ms(start_date)}, **is_visible()}
    return await page_of(db.trips, match, OLDEST_FIRST, page, limit, LISTED)


@router.get("/trip/trip_id/{trip_id}", response_model=DetailPage)
async def trip(fleet: Fleet, trip_id: str):
    match = {"fleet": fleet, "trip_id": trip_id, **is_visible()}
    return await page_of(db.trips, match, OLDEST_FIRST, 1, DETAIL_LIMIT)


@router.get("/driver-aggregate/daily", response_model=Daily)
async def daily(fleet: Fleet, start_date: datetime.date, driver_id: DriverIds):
    return await aggregate(fleet, driver_id, start_date, start_date, lambda days: days[0])


@router.get("/driver-aggregate/weekly", response_model=Weekly)
async def weekly(fleet: Fleet, start_date: datetime.date, driver_id: DriverIds):
    end_date = start_date + datetime.timedelta(6)

    def summarize(days):
        totals = {name: sum(day[name] for day in days) for name in ("trip_count", *AMOUNTS)}
        totals["events_summary"] = {name: sum(day["events_summary"][name] for day in days) for name in COUNTS}
        dates = {"start_date": str(start_date), "end_date": str(end_date)}
        return {**add_score(totals), **dates, "daily_summary_breakdown": days}

    return await aggregate(fleet, driver_id, start_date, end_date, summarize)


async def aggregate(fleet, driver_ids, start_date, end_date, summarize):
    """Return drivers with their summaries, which `summarize` makes of the summaries of their days."""
    match = {"fleet": fleet, "driver_id": {"$in": driver_ids}}
    drivers = {driver["driver_id"]: driver for driver in await db.drivers.find(match).to_list()}
    if len(drivers) < len(driver_ids):
        raise HTTPException(404)
    times = {"$gte": epoch_ms(start_date), "$lt": epoch_ms(end_date + datetime.timedelta(1))}
    date = {"$dateToString": {"date": {"$toDate": "$trip_start_time"}, "format": "%Y-%m-%d"}}
    amounts = {name: {"$sum": f"${name}"} for name in AMOUNTS}
    counts = {name: {"$sum": f"$event_summary.{name}"} for name in COUNTS}
    ids = {"driver_id": "$driver_id", "date": date}
    pipeline = [
        {"$match": {**match, "trip_start_time": times}},
        {"$group": {"_id": ids, "trip_count": {"$sum": 1}, **amounts, **counts}},
        {"$sort": {"_id": 1}},
    ]
    cursor, days = await db.trips.aggregate(pipeline), {}
    for day in await cursor.to_list():
        totals = {name: day[name] for name in ("trip_count", *AMOUNTS)}
        totals["events_summary"] = {name: day[name] for name in COUNTS}
        days.setdefault(day["_id"]["driver_id"], []).append({**add_score(totals), "date": day["_id"]["date"]})
    summaries = {driver_id: summarize(own) for driver_id, own in days.items()}
    return {"data": [{"driver_info": drivers[one], "driving_summary": summaries[one]} for one in driver_ids]}


def add_score(totals):
    """Return totals with the score that they give."""
    shares = {}
    for flag, (numerator, factor, denominator, cap, _) in BEHAVIOURS.items():
        amount = totals["events_summary"][numerator]
        shares[flag] = (factor * amount / totals[denominator] if totals[denominator] else 0) / cap
    loss = sum(BEHAVIOURS[flag][-1] * min(1, share) for flag, share in shares.items())
    score = math.floor((100 - loss) * 10 + 0.5) / 10
    grade = next(name for name, lowest in GRADES.items() if score >= lowest)
    focus_area = {flag: share >= 0.5 for flag, share in shares.items()}
    return {**totals, "fm_score": score, "fm_grade": grade, "focus_area": focus_area}


@router.get("/healthz", response_model=Health)
async def health():
    await db.command("ping")
    return {"status": "ok"}


class Additions:
    """Pure ASGI middleware: a digest of the body as ETag, 304 to a request with the same ETag, request ids, the log."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, start, request = time.perf_counter(), {"status": 500}, Headers(scope=scope)
        request_id = request.get("x-request-id") or secrets.token_hex(16)

        async def send_more(message):
            nonlocal start
            # Keep the start of the response until the body comes, which FastAPI sends in one piece.
            if message["type"] == "http.response.start":
                start = message
                return
            headers = MutableHeaders(scope=start)
            if start["status"] == 200:
                # The fastest digest of hashlib, because processors have instructions for it.
                etag = f'"{hashlib.sha256(message["body"]).hexdigest()}"'
                if etag in request.get("if-none-match", ""):
                    start, message = {**start, "status": 304, "headers": []}, {**message, "body": b""}
                    headers = MutableHeaders(scope=start)
                headers["ETag"] = etag
            headers["X-Request-ID"] = request_id
            await send(start)
            await send(message)

        try:
            await self.app(scope, receive, send_more)
        finally:
            line = {
                "time": time.time(),
                "method": scope["method"],
                "route": getattr(scope.get("route"), "path", None),
                "status": start["status"],
                "duration_ms": round((time.perf_counter() - started) * 1000, 1),
                "fleet": scope.get("state", {}).get("fleet"),
                "request_id": request_id,
            }
            print(orjson.dumps(line).decode(), file=sys.stderr)


app = FastAPI(lifespan=lifespan)
app.include_router(router)
app.add_middleware(Additions)


def serve():
    """Run a worker with its own socket; the workers of uvicorn would share one."""
    host, _, port = os.environ["BIND"].partition(":")
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((host, int(port)))
        config = uvicorn.Config(app, loop="uvloop", http="httptools", access_log=False, log_level="warning")
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    workers = [multiprocessing.Process(target=serve, daemon=True) for _ in range(int(os.environ["WEB_CONCURRENCY"]))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
