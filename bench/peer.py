"""The peer: the API in FastAPI, with pydantic response models and pymongo's asynchronous client.

Its models are made of the schemas of the service, which compute its scores, too. It adds summaries up from the trips at
each request. It has what users of FastAPI usually add, and what the service has too: a rate limit for each fleet,
counted in Redis, ETags, request ids, and a JSON log line for each request.
"""

import contextlib
import datetime
import hashlib
import multiprocessing
import os
import secrets
import socket
import sys
import time
from typing import Annotated

import orjson
import uvicorn
from fastapi import APIRouter, Depends, FastAPI, Header, HTTPException, Query, Request, Response
from fastapi.routing import APIRoute
from limits import parse
from limits.aio.strategies import FixedWindowRateLimiter
from limits.storage import storage_from_string
from marshmallow import fields
from pydantic import create_model
from pymongo import AsyncMongoClient

from schemas.fields import RawObject
from schemas.page import DailyAggregates, DriverPage, TripDetailPage, TripSummaryPage, WeeklyAggregates
from schemas.score import make_driving_summary
from schemas.summary import AMOUNTS, EVENT_TOTALS
from schemas.trip import TripSummary

rate = parse(os.environ["RATE_LIMIT"])
# redis-py is also the client of the service. By default, `limits` uses another asynchronous client.
storage = storage_from_string(f"async+{os.environ['RATELIMIT_STORAGE_URI']}", implementation="redispy")
limiter = FixedWindowRateLimiter(storage)

OLDEST_FIRST = [("trip_start_time", 1), ("trip_id", 1)]
DETAIL_LIMIT, DELAY_MS = 5, 4 * 3_600_000
# Without the trails.
LISTED = {"_id": 0, **dict.fromkeys(TripSummary().fields, 1)}
# The types of the values of fields.
TYPES = {fields.Integer: int, fields.Float: float, fields.Boolean: bool, fields.String: str}


def make_model(schema):
    """Return the pydantic model of a schema of the service."""
    return create_model(type(schema).__name__, **{name: (type_of(field), ...) for name, field in schema.fields.items()})


def type_of(field):
    """Return the type of the values of a field."""
    if isinstance(field, fields.List):
        return list[type_of(field.inner)]
    if isinstance(field, fields.Nested):
        # Any field of a raw object may be absent.
        return dict[str, float] if isinstance(field, RawObject) else make_model(field.schema)
    found = next(type_ for kind, type_ in TYPES.items() if isinstance(field, kind))
    return found | None if field.allow_none else found


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


class Route(APIRoute):
    """Adds to responses a digest of the body as ETag, 304 to a request with the same ETag, and a request id. Logs."""

    def get_route_handler(self):
        handle = super().get_route_handler()

        async def respond(request):
            started, request_id = time.perf_counter(), request.headers.get("x-request-id") or secrets.token_hex(16)
            response = await handle(request)
            # The fastest digest of hashlib, because processors have instructions for it.
            etag = f'"{hashlib.sha256(response.body).hexdigest()}"'
            if etag in request.headers.get("if-none-match", ""):
                response = Response(status_code=304)
            response.headers.update({"ETag": etag, "X-Request-ID": request_id})
            line = {
                "time": time.time(),
                "method": request.method,
                "route": self.path,
                "status": response.status_code,
                "duration_ms": round((time.perf_counter() - started) * 1000, 1),
                "fleet": getattr(request.state, "fleet", None),
                "request_id": request_id,
            }
            print(orjson.dumps(line).decode(), file=sys.stderr)
            return response

        return respond


router = APIRouter(prefix="/api/v1", route_class=Route)


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


@router.get("/drivers", response_model=make_model(DriverPage()))
async def drivers(fleet: Fleet, limit: Limit = 50, page: PageNumber = 1):
    return await page_of(db.drivers, {"fleet": fleet}, "driver_id", page, limit)


@router.get("/driver/{driver_id}/trips", response_model=make_model(TripSummaryPage()))
async def trips(fleet: Fleet, driver_id: str, start_date: datetime.date, limit: Limit = 50, page: PageNumber = 1):
    match = {"fleet": fleet, "driver_id": driver_id}
    if await db.drivers.find_one(match, {"_id": 1}) is None:
        raise HTTPException(404)
    match |= {"trip_start_time": {"$gte": epoch_ms(start_date)}, **is_visible()}
    return await page_of(db.trips, match, OLDEST_FIRST, page, limit, LISTED)


@router.get("/trip/trip_id/{trip_id}", response_model=make_model(TripDetailPage()))
async def trip(fleet: Fleet, trip_id: str):
    match = {"fleet": fleet, "trip_id": trip_id, **is_visible()}
    return await page_of(db.trips, match, OLDEST_FIRST, 1, DETAIL_LIMIT)


@router.get("/driver-aggregate/daily", response_model=make_model(DailyAggregates()))
async def daily(fleet: Fleet, start_date: datetime.date, driver_id: DriverIds):
    return await aggregate(fleet, driver_id, start_date, start_date, lambda days: days[0])


@router.get("/driver-aggregate/weekly", response_model=make_model(WeeklyAggregates()))
async def weekly(fleet: Fleet, start_date: datetime.date, driver_id: DriverIds):
    end_date = start_date + datetime.timedelta(6)

    def summarize(days):
        totals = {name: sum(day[name] for day in days) for name in ("trip_count", *AMOUNTS)}
        totals["events_summary"] = {name: sum(day["events_summary"][name] for day in days) for name in EVENT_TOTALS}
        dates = {"start_date": str(start_date), "end_date": str(end_date)}
        return {**make_driving_summary(totals), **dates, "daily_summary_breakdown": days}

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
    counts = {name: {"$sum": f"$event_summary.{name}"} for name in EVENT_TOTALS}
    ids = {"driver_id": "$driver_id", "date": date}
    pipeline = [
        {"$match": {**match, "trip_start_time": times}},
        {"$group": {"_id": ids, "trip_count": {"$sum": 1}, **amounts, **counts}},
        {"$sort": {"_id": 1}},
    ]
    cursor, days = await db.trips.aggregate(pipeline), {}
    for day in await cursor.to_list():
        totals = {name: day[name] for name in ("trip_count", *AMOUNTS)}
        totals["events_summary"] = {name: day[name] for name in EVENT_TOTALS}
        days.setdefault(day["_id"]["driver_id"], []).append(
            {**make_driving_summary(totals), "date": day["_id"]["date"]}
        )
    summaries = {driver_id: summarize(own) for driver_id, own in days.items()}
    return {"data": [{"driver_info": drivers[one], "driving_summary": summaries[one]} for one in driver_ids]}


@router.get("/healthz", response_model=create_model("Health", status=str))
async def health():
    await db.command("ping")
    return {"status": "ok"}


app = FastAPI(lifespan=lifespan)
app.include_router(router)


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
