"""A peer: the API in FastAPI, with pydantic response models and pymongo's asynchronous client.

It has what users of FastAPI usually add, and what the service has too: a rate limit for each fleet, counted in Redis,
ETags, request ids, and a JSON log line for each request.
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
import shared
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


def model(name, shape):
    """Return the pydantic model of a shape."""
    return create_model(name, **{field: (annotation(f"{name}_{field}", value), ...) for field, value in shape.items()})


def annotation(name, shape):
    """Return the type of a shape."""
    if isinstance(shape, dict):
        return model(name, shape)
    return list[annotation(name, shape[0])] if isinstance(shape, list) else shape


MODELS = {name: model(name, shape) for name, shape in shared.RESPONSES.items()}


@contextlib.asynccontextmanager
async def lifespan(_):
    global db
    async with AsyncMongoClient(shared.MONGODB_URI) as client:
        db = client[shared.DATABASE]
        yield


async def authenticate(request: Request, authorization: Annotated[str, Header()] = "") -> str:
    """Return the fleet of the key, and count the request for its rate limit."""
    key = await db[shared.KEYS].find_one(shared.digest(authorization))
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
    return shared.page_of(collection.name, await cursor.to_list(), count, page, limit)


@router.get("/drivers", response_model=MODELS["drivers"])
async def drivers(fleet: Fleet, limit: Limit = 50, page: PageNumber = 1):
    return await page_of(db.drivers, {"fleet": fleet}, "driver_id", page, limit)


@router.get("/driver/{driver_id}/trips", response_model=MODELS["trips"])
async def trips(fleet: Fleet, driver_id: str, start_date: datetime.date, limit: Limit = 50, page: PageNumber = 1):
    match = {"fleet": fleet, "driver_id": driver_id}
    if await db.drivers.find_one(match, {"_id": 1}) is None:
        raise HTTPException(404)
    match |= {"trip_start_time": {"$gte": shared.epoch_ms(start_date)}, **shared.is_visible()}
    return await page_of(db.trips, match, shared.OLDEST_FIRST, page, limit, shared.LISTED)


@router.get("/trip/trip_id/{trip_id}", response_model=MODELS["detail"])
async def trip(fleet: Fleet, trip_id: str):
    match = {"fleet": fleet, "trip_id": trip_id, **shared.is_visible()}
    return await page_of(db.trips, match, shared.OLDEST_FIRST, 1, shared.DETAIL_LIMIT)


async def aggregate(kind, fleet, start, driver_ids):
    drivers = await db.drivers.find({"fleet": fleet, "driver_id": {"$in": driver_ids}}).to_list()
    if len(drivers) < len(driver_ids):
        raise HTTPException(404)
    days = await db.trips.aggregate(shared.pipeline(fleet, driver_ids, kind, start))
    return shared.aggregate(kind, start, driver_ids, drivers, await days.to_list())


@router.get("/driver-aggregate/daily", response_model=MODELS["daily"])
async def daily(fleet: Fleet, start_date: datetime.date, driver_id: DriverIds):
    return await aggregate("daily", fleet, start_date, driver_id)


@router.get("/driver-aggregate/weekly", response_model=MODELS["weekly"])
async def weekly(fleet: Fleet, start_date: datetime.date, driver_id: DriverIds):
    return await aggregate("weekly", fleet, start_date, driver_id)


@router.get("/healthz", response_model=MODELS["health"])
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
