"""A peer: the API as it is usually written with Flask. marshmallow dumps pymongo's documents, jsonify renders them."""

import datetime

import shared
from flask import Flask, abort, g, jsonify, request
from marshmallow import Schema, fields, validate
from pymongo import MongoClient

FIELDS = {**Schema.TYPE_MAPPING, str | None: fields.String, int | None: fields.Integer, dict[str, float]: fields.Dict}


def schema(shape):
    """Return the marshmallow schema of a shape."""
    return Schema.from_dict({name: field(value) for name, value in shape.items()})


def field(shape):
    """Return the marshmallow field of a shape."""
    if isinstance(shape, list):
        return fields.Nested(schema(shape[0]), many=True)
    return fields.Nested(schema(shape)) if isinstance(shape, dict) else FIELDS[shape]()


class Paged(Schema):
    limit = fields.Integer(load_default=50, validate=validate.Range(1, 100))
    page = fields.Integer(load_default=1, validate=validate.Range(1))


class TripsQuery(Paged):
    start_date = fields.Date(required=True)


app = Flask(__name__)
app.json.sort_keys = False
db = MongoClient(shared.MONGODB_URI)[shared.DATABASE]
schemas = {name: schema(shape)() for name, shape in shared.RESPONSES.items()}


@app.before_request
def authenticate():
    if request.endpoint != "health":
        key = db[shared.KEYS].find_one(shared.digest(request.headers.get("Authorization", "")))
        g.fleet = key["fleet"] if key else abort(401)


def page_of(schema_name, collection, match, sort, page, limit, projection=None):
    name, count = collection.name, collection.count_documents(match)
    documents = collection.find(match, projection).sort(sort).skip((page - 1) * limit).limit(limit)
    return jsonify(schemas[schema_name].dump(shared.page_of(name, documents, count, page, limit)))


@app.get("/api/v1/drivers")
def drivers():
    return page_of("drivers", db.drivers, {"fleet": g.fleet}, "driver_id", **Paged().load(request.args))


@app.get("/api/v1/driver/<driver_id>/trips")
def trips(driver_id):
    query = TripsQuery().load(request.args)
    match = {"fleet": g.fleet, "driver_id": driver_id}
    if db.drivers.find_one(match, {"_id": 1}) is None:
        abort(404)
    match |= {"trip_start_time": {"$gte": shared.epoch_ms(query["start_date"])}, **shared.is_visible()}
    return page_of("trips", db.trips, match, shared.OLDEST_FIRST, query["page"], query["limit"], shared.LISTED)


@app.get("/api/v1/trip/trip_id/<trip_id>")
def trip(trip_id):
    match = {"fleet": g.fleet, "trip_id": trip_id, **shared.is_visible()}
    return page_of("detail", db.trips, match, shared.OLDEST_FIRST, 1, shared.DETAIL_LIMIT)


@app.get("/api/v1/driver-aggregate/<any(daily, weekly):kind>")
def aggregate(kind):
    start, driver_ids = datetime.date.fromisoformat(request.args["start_date"]), request.args.getlist("driver_id")
    drivers = list(db.drivers.find({"fleet": g.fleet, "driver_id": {"$in": driver_ids}}))
    if len(drivers) < len(driver_ids):
        abort(404)
    days = db.trips.aggregate(shared.pipeline(g.fleet, driver_ids, kind, start))
    return jsonify(schemas[kind].dump(shared.aggregate(kind, start, driver_ids, drivers, days)))


@app.get("/api/v1/healthz")
def health():
    db.command("ping")
    return jsonify({"status": "ok"})
