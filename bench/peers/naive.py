"""A peer: the API as it is usually written with Flask. marshmallow dumps pymongo's documents, jsonify renders them."""

import datetime
import os
import time

from flask import Flask, abort, g, jsonify, request
from marshmallow import Schema, fields, validate
from pymongo import MongoClient
from shared import DAYS_A_WEEK, daily, digest, epoch_ms, is_live, pipeline, rows_of, weekly

DELAY_MS = 4 * 3_600_000
DETAIL_LIMIT = 5


class Driver(Schema):
    driver_id = fields.String()
    first_name = fields.String()
    last_name = fields.String()
    email = fields.String()
    alias = fields.String()
    first_travel_date = fields.String()
    last_travel_date = fields.String()


class EventSummary(Schema):
    phone_use_count = fields.Integer()
    rapid_acceleration_count = fields.Integer()
    hard_brake_count = fields.Integer()
    overspeeding_count = fields.Integer()
    phone_use_time_seconds = fields.Float()
    overspeeding_time_seconds = fields.Float()


class Trip(Schema):
    trip_id = fields.String()
    driver_id = fields.String()
    trip_start_time = fields.Integer()
    trip_end_time = fields.Integer()
    duration_seconds = fields.Float()
    distance_miles = fields.Float()
    insurance_period = fields.Integer()
    start_latitude = fields.Float()
    start_longitude = fields.Float()
    end_latitude = fields.Float()
    end_longitude = fields.Float()
    night_driving_seconds = fields.Float()
    highway_miles = fields.Float()
    night_driving_miles = fields.Float()
    event_summary = fields.Nested(EventSummary)


class FocusArea(Schema):
    is_phone_use = fields.Boolean()
    is_rapid_acceleration = fields.Boolean()
    is_hard_brake = fields.Boolean()
    is_overspeeding = fields.Boolean()


class TrailPoint(Schema):
    timestamp = fields.Integer()
    latitude = fields.Float()
    longitude = fields.Float()
    course = fields.Float()


class Event(Schema):
    event_type = fields.Integer()
    event_name = fields.String()
    event_start_timestamp = fields.Integer()
    event_end_timestamp = fields.Integer()
    event_start_latitude = fields.Float()
    event_start_longitude = fields.Float()
    event_end_latitude = fields.Float()
    event_end_longitude = fields.Float()
    event_data = fields.Dict()


class TripDetail(Trip):
    focus_area = fields.Nested(FocusArea)
    trail_path = fields.List(fields.Nested(TrailPoint))
    events = fields.List(fields.Nested(Event))


class SummaryFocusArea(Schema):
    is_phone_use = fields.Boolean()
    is_overspeeding = fields.Boolean()
    is_hard_brake = fields.Boolean()
    is_acceleration = fields.Boolean()


class DailySummary(Schema):
    fm_score = fields.Float()
    fm_grade = fields.String()
    trip_count = fields.Integer()
    distance_miles = fields.Float()
    duration_seconds = fields.Float()
    night_driving_seconds = fields.Float()
    highway_miles = fields.Float()
    events_summary = fields.Nested(EventSummary)
    focus_area = fields.Nested(SummaryFocusArea)
    date = fields.String()


class WeeklySummary(DailySummary):
    class Meta:
        exclude = ("date",)

    start_date = fields.String()
    end_date = fields.String()
    daily_summary_breakdown = fields.List(fields.Nested(DailySummary))


class DailyAggregate(Schema):
    driver_info = fields.Nested(Driver)
    driving_summary = fields.Nested(DailySummary)


class WeeklyAggregate(Schema):
    driver_info = fields.Nested(Driver)
    driving_summary = fields.Nested(WeeklySummary)


class Paged(Schema):
    limit = fields.Integer(load_default=50, validate=validate.Range(1, 100))
    page = fields.Integer(load_default=1, validate=validate.Range(1))


class TripsQuery(Paged):
    start_date = fields.Date(required=True)


app = Flask(__name__)
app.json.sort_keys = False
db = MongoClient(os.environ["MONGODB_URI"])[os.environ["MONGODB_DATABASE"]]
summaries, details = Trip(), TripDetail()
listed = {"_id": 0, **dict.fromkeys(summaries.fields, 1)}


@app.before_request
def authenticate():
    if request.endpoint == "health":
        return
    key = db["keys"].find_one({"digest": digest(request.headers.get("Authorization", ""))})
    if not is_live(key):
        abort(401)
    g.fleet = key["fleet"]


def page_of(name, schema, collection, match, sort, page, limit, projection=None):
    count = collection.count_documents(match)
    documents = collection.find(match, projection).sort(sort).skip((page - 1) * limit).limit(limit)
    return jsonify(
        {
            "count": count,
            "current_page": page,
            "next_page": page + 1 if page * limit < count else None,
            "limit": limit,
            name: schema.dump(documents, many=True),
        }
    )


@app.get("/api/v1/drivers")
def drivers():
    return page_of("drivers", Driver(), db.drivers, {"fleet": g.fleet}, "driver_id", **Paged().load(request.args))


@app.get("/api/v1/driver/<driver_id>/trips")
def trips(driver_id):
    query = TripsQuery().load(request.args)
    match = {"fleet": g.fleet, "driver_id": driver_id}
    if db.drivers.find_one(match, {"_id": 1}) is None:
        abort(404)
    match["trip_start_time"] = {"$gte": epoch_ms(query["start_date"])}
    match["trip_end_time"] = {"$lte": int(time.time() * 1000) - DELAY_MS}
    sort = [("trip_start_time", 1), ("trip_id", 1)]
    return page_of("trips", summaries, db.trips, match, sort, query["page"], query["limit"], listed)


@app.get("/api/v1/trip/<any(trip_id, tracking_id):param>/<value>")
def trip(param, value):
    match = {"fleet": g.fleet, param: value, "trip_end_time": {"$lte": int(time.time() * 1000) - DELAY_MS}}
    sort = [("trip_start_time", 1), ("trip_id", 1)]
    return page_of("trips", details, db.trips, match, sort, Paged().load(request.args)["page"], DETAIL_LIMIT)


def aggregates(schema, days, summarise):
    start, driver_ids = datetime.date.fromisoformat(request.args["start_date"]), request.args.getlist("driver_id")
    drivers = {doc["driver_id"]: doc for doc in db.drivers.find({"fleet": g.fleet, "driver_id": {"$in": driver_ids}})}
    if len(drivers) < len(set(driver_ids)):
        abort(404)
    summaries = summarise(db.trips.aggregate(pipeline(g.fleet, driver_ids, start, days)), start)
    return jsonify({"data": schema.dump(rows_of(drivers, summaries, driver_ids), many=True)})


@app.get("/api/v1/driver-aggregate/daily")
def daily_aggregate():
    return aggregates(DailyAggregate(), 1, lambda rows, start: daily(rows))


@app.get("/api/v1/driver-aggregate/weekly")
def weekly_aggregate():
    return aggregates(WeeklyAggregate(), DAYS_A_WEEK, weekly)


@app.get("/api/v1/healthz")
def health():
    db.command("ping")
    return jsonify({"status": "ok"})
