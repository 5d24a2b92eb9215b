"""A peer: the API in FastAPI, with pydantic response models and pymongo's asynchronous client."""

import contextlib
import datetime
import os
import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, FastAPI, Header, HTTPException, Path, Query
from pydantic import BaseModel
from pymongo import AsyncMongoClient
from shared import DAYS_A_WEEK, daily, digest, epoch_ms, is_live, pipeline, rows_of, weekly

DELAY_MS = 4 * 3_600_000
DETAIL_LIMIT = 5
OLDEST_FIRST = [("trip_start_time", 1), ("trip_id", 1)]


class Driver(BaseModel):
    driver_id: str
    first_name: str | None
    last_name: str | None
    email: str | None
    alias: str | None
    first_travel_date: str | None
    last_travel_date: str | None


class EventSummary(BaseModel):
    phone_use_count: int
    rapid_acceleration_count: int
    hard_brake_count: int
    overspeeding_count: int
    phone_use_time_seconds: float
    overspeeding_time_seconds: float


class Trip(BaseModel):
    trip_id: str
    driver_id: str
    trip_start_time: int
    trip_end_time: int
    duration_seconds: float
    distance_miles: float
    insurance_period: int | None
    start_latitude: float
    start_longitude: float
    end_latitude: float
    end_longitude: float
    night_driving_seconds: float
    highway_miles: float
    night_driving_miles: float
    event_summary: EventSummary


class FocusArea(BaseModel):
    is_phone_use: bool
    is_rapid_acceleration: bool
    is_hard_brake: bool
    is_overspeeding: bool


class TrailPoint(BaseModel):
    timestamp: int
    latitude: float
    longitude: float
    course: float


class Event(BaseModel):
    event_type: int
    event_name: str
    event_start_timestamp: int
    event_end_timestamp: int
    event_start_latitude: float
    event_start_longitude: float
    event_end_latitude: float
    event_end_longitude: float
    event_data: dict[str, float]


class TripDetail(Trip):
    focus_area: FocusArea
    trail_path: list[TrailPoint]
    events: list[Event]


class Page(BaseModel):
    count: int
    current_page: int
    next_page: int | None
    limit: int


class DriverPage(Page):
    drivers: list[Driver]


class TripPage(Page):
    trips: list[Trip]


class TripDetailPage(Page):
    trips: list[TripDetail]


class SummaryFocusArea(BaseModel):
    is_phone_use: bool
    is_overspeeding: bool
    is_hard_brake: bool
    is_acceleration: bool


class DrivingSummary(BaseModel):
    fm_score: float
    fm_grade: str
    trip_count: int
    distance_miles: float
    duration_seconds: float
    night_driving_seconds: float
    highway_miles: float
    events_summary: EventSummary
    focus_area: SummaryFocusArea


class DailySummary(DrivingSummary):
    date: str


class WeeklySummary(DrivingSummary):
    start_date: str
    end_date: str
    daily_summary_breakdown: list[DailySummary]


class DailyAggregate(BaseModel):
    driver_info: Driver
    driving_summary: DailySummary | None = None


class WeeklyAggregate(BaseModel):
    driver_info: Driver
    driving_summary: WeeklySummary | None = None


class DailyAggregates(BaseModel):
    data: list[DailyAggregate]


class WeeklyAggregates(BaseModel):
    data: list[WeeklyAggregate]


class Health(BaseModel):
    status: str


@contextlib.asynccontextmanager
async def lifespan(_):
    global db
    async with AsyncMongoClient(os.environ["MONGODB_URI"]) as client:
        db = client[os.environ["MONGODB_DATABASE"]]
        yield


router = APIRouter()


async def authenticate(authorization: Annotated[str, Header()] = "") -> str:
    key = await db["keys"].find_one({"digest": digest(authorization)})
    if not is_live(key):
        raise HTTPException(401)
    return key["fleet"]


Fleet = Annotated[str, Depends(authenticate)]
Limit = Annotated[int, Query(ge=1, le=100)]
PageNumber = Annotated[int, Query(ge=1)]
DriverIds = Annotated[list[str], Query(min_length=1, max_length=20)]


async def page_of(name, collection, match, sort, page, limit, projection=None) -> dict[str, Any]:
    count = await collection.count_documents(match)
    cursor = collection.find(match, projection).sort(sort).skip((page - 1) * limit).limit(limit)
    return {
        "count": count,
        "current_page": page,
        "next_page": page + 1 if page * limit < count else None,
        "limit": limit,
        name: await cursor.to_list(),
    }


@router.get("/api/v1/drivers", response_model=DriverPage)
async def drivers(fleet: Fleet, limit: Limit = 50, page: PageNumber = 1):
    return await page_of("drivers", db.drivers, {"fleet": fleet}, "driver_id", page, limit)


LISTED = {"_id": 0, **dict.fromkeys(Trip.model_fields, 1)}


@router.get("/api/v1/driver/{driver_id}/trips", response_model=TripPage)
async def trips(fleet: Fleet, driver_id: str, start_date: datetime.date, limit: Limit = 50, page: PageNumber = 1):
    match = {"fleet": fleet, "driver_id": driver_id}
    if await db.drivers.find_one(match, {"_id": 1}) is None:
        raise HTTPException(404)
    match["trip_start_time"] = {"$gte": epoch_ms(start_date)}
    match["trip_end_time"] = {"$lte": int(time.time() * 1000) - DELAY_MS}
    return await page_of("trips", db.trips, match, OLDEST_FIRST, page, limit, LISTED)


@router.get("/api/v1/trip/{param}/{value}", response_model=TripDetailPage)
async def trip(
    fleet: Fleet, param: Literal["trip_id", "tracking_id"], value: Annotated[str, Path()], page: PageNumber = 1
):
    match = {"fleet": fleet, param: value, "trip_end_time": {"$lte": int(time.time() * 1000) - DELAY_MS}}
    return await page_of("trips", db.trips, match, OLDEST_FIRST, page, DETAIL_LIMIT)


async def aggregates(fleet, start, driver_ids, days, summarise):
    driver_cursor = db.drivers.find({"fleet": fleet, "driver_id": {"$in": driver_ids}})
    drivers_by_id = {doc["driver_id"]: doc for doc in await driver_cursor.to_list()}
    if len(drivers_by_id) < len(set(driver_ids)):
        raise HTTPException(404)
    cursor = await db.trips.aggregate(pipeline(fleet, driver_ids, start, days))
    summaries = summarise(await cursor.to_list(), start)
    return {"data": rows_of(drivers_by_id, summaries, driver_ids)}


@router.get("/api/v1/driver-aggregate/daily", response_model=DailyAggregates, response_model_exclude_unset=True)
async def daily_aggregate(fleet: Fleet, start_date: datetime.date, driver_id: DriverIds):
    return await aggregates(fleet, start_date, driver_id, 1, lambda rows, start: daily(rows))


@router.get("/api/v1/driver-aggregate/weekly", response_model=WeeklyAggregates, response_model_exclude_unset=True)
async def weekly_aggregate(fleet: Fleet, start_date: datetime.date, driver_id: DriverIds):
    return await aggregates(fleet, start_date, driver_id, DAYS_A_WEEK, weekly)


async def health():
    await db.command("ping")
    return {"status": "ok"}


def create_app(dependencies=()):
    """Return the application. The dependencies apply to all endpoints that need a key."""
    app = FastAPI(lifespan=lifespan)
    app.include_router(router, dependencies=dependencies)
    app.add_api_route("/api/v1/healthz", health, response_model=Health)
    return app


app = create_app()
