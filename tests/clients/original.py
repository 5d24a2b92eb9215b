"""The OpenAPI description of the original service's interface: its field names, types and required fields.

Every field is required, and none may be null, unless it says so. Trip detail has one path for each kind of identifier.
"""

from typing import Any

Schema = dict[str, Any]

STRING, INTEGER, NUMBER, BOOLEAN = ({"type": name} for name in ("string", "integer", "number", "boolean"))
DATE = {"type": "string", "format": "date"}
EPOCH_MS = {"type": "integer", "format": "int64"}


def nullable(schema: Schema) -> Schema:
    """Return the schema of a value that may be null."""
    return {**schema, "nullable": True}


def array(items: Schema) -> Schema:
    """Return the schema of an array."""
    return {"type": "array", "items": items}


def record(*optional: str, **properties: Schema) -> Schema:
    """Return the schema of an object; all but the optional properties are required."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def ref(name: str) -> Schema:
    """Return a reference to a schema."""
    return {"$ref": f"#/components/schemas/{name}"}


TRIP_SUMMARY = {
    "trip_id": STRING,
    "driver_id": STRING,
    "trip_start_time": EPOCH_MS,
    "trip_end_time": EPOCH_MS,
    "duration_seconds": NUMBER,
    "distance_miles": NUMBER,
    "insurance_period": nullable(INTEGER),
    "start_latitude": NUMBER,
    "start_longitude": NUMBER,
    "end_latitude": NUMBER,
    "end_longitude": NUMBER,
    "night_driving_seconds": NUMBER,
    "highway_miles": NUMBER,
    "night_driving_miles": NUMBER,
    "event_summary": ref("EventSummary"),
}
DRIVING_SUMMARY = {
    "fm_score": NUMBER,
    "fm_grade": STRING,
    "trip_count": INTEGER,
    "distance_miles": NUMBER,
    "duration_seconds": NUMBER,
    "night_driving_seconds": NUMBER,
    "highway_miles": NUMBER,
    "events_summary": ref("EventSummary"),
    "focus_area": ref("SummaryFocusArea"),
}
PAGE = {"count": INTEGER, "current_page": INTEGER, "next_page": nullable(INTEGER), "limit": INTEGER}
SPEEDS = {"user_speed_mph": NUMBER, "speed_limit_mph": NUMBER, "max_user_speed_mph": NUMBER}

SCHEMAS = {
    "Driver": record(
        driver_id=STRING,
        first_name=nullable(STRING),
        last_name=nullable(STRING),
        email=nullable(STRING),
        alias=nullable(STRING),
        first_travel_date=nullable(DATE),
        last_travel_date=nullable(DATE),
    ),
    "EventSummary": record(
        phone_use_count=INTEGER,
        rapid_acceleration_count=INTEGER,
        hard_brake_count=INTEGER,
        overspeeding_count=INTEGER,
        phone_use_time_seconds=NUMBER,
        overspeeding_time_seconds=NUMBER,
    ),
    "TripSummary": record(**TRIP_SUMMARY),
    "TripDetail": record(
        **TRIP_SUMMARY,
        focus_area=ref("TripFocusArea"),
        trail_path=array(ref("TrailPoint")),
        events=array(ref("Event")),
    ),
    "TripFocusArea": record(
        is_phone_use=BOOLEAN, is_rapid_acceleration=BOOLEAN, is_hard_brake=BOOLEAN, is_overspeeding=BOOLEAN
    ),
    "TrailPoint": record(timestamp=EPOCH_MS, latitude=NUMBER, longitude=NUMBER, course=NUMBER),
    "Event": record(
        event_type=INTEGER,
        event_name=STRING,
        event_start_timestamp=EPOCH_MS,
        event_end_timestamp=EPOCH_MS,
        event_start_latitude=NUMBER,
        event_start_longitude=NUMBER,
        event_end_latitude=NUMBER,
        event_end_longitude=NUMBER,
        event_data=ref("EventData"),
    ),
    "EventData": record(*SPEEDS, **SPEEDS),
    "SummaryFocusArea": record(
        is_phone_use=BOOLEAN, is_overspeeding=BOOLEAN, is_hard_brake=BOOLEAN, is_acceleration=BOOLEAN
    ),
    "DailySummary": record(**DRIVING_SUMMARY, date=DATE),
    "WeeklySummary": record(
        **DRIVING_SUMMARY, start_date=DATE, end_date=DATE, daily_summary_breakdown=array(ref("DailySummary"))
    ),
    "DailyAggregate": record("driving_summary", driver_info=ref("Driver"), driving_summary=ref("DailySummary")),
    "WeeklyAggregate": record("driving_summary", driver_info=ref("Driver"), driving_summary=ref("WeeklySummary")),
    "DriverPage": record(**PAGE, drivers=array(ref("Driver"))),
    "TripPage": record(**PAGE, trips=array(ref("TripSummary"))),
    "TripDetailPage": record(**PAGE, trips=array(ref("TripDetail"))),
    "DailyAggregates": record(data=array(ref("DailyAggregate"))),
    "WeeklyAggregates": record(data=array(ref("WeeklyAggregate"))),
    "Report": record(report_link=STRING, report_page=STRING, expires_at=EPOCH_MS),
    "Health": record(status=STRING),
}


def parameter(name: str, schema: Schema, *, required: bool = True) -> Schema:
    """Return a parameter of the query; an array is given as one parameter for each item."""
    return {"name": name, "in": "query", "required": required, "schema": schema}


PAGE_NUMBER, LIMIT = (parameter(name, INTEGER, required=False) for name in ("page", "limit"))
START_DATE, DRIVER_IDS = parameter("start_date", DATE), parameter("driver_id", array(STRING))


def get(operation_id: str, response: str, *parameters: Schema, in_path: str = "", tag: str = "external") -> Schema:
    """Return a path with one operation, which has a response 200 of a named schema and perhaps an identifier."""
    identifiers = [{"name": in_path, "in": "path", "required": True, "schema": STRING}] if in_path else []
    content = {"application/json": {"schema": ref(response)}}
    responses = {"200": {"description": response, "content": content}}
    described = {"operationId": operation_id, "tags": [tag], "responses": responses}
    return {"get": {**described, "parameters": [*identifiers, *parameters]}}


PATHS = {
    "/drivers": get("get_drivers", "DriverPage", LIMIT, PAGE_NUMBER),
    "/driver/{driver_id}/trips": get(
        "get_driver_trips", "TripPage", START_DATE, LIMIT, PAGE_NUMBER, in_path="driver_id"
    ),
    "/trip/trip_id/{trip_id}": get("get_trip_by_trip_id", "TripDetailPage", PAGE_NUMBER, in_path="trip_id"),
    "/trip/tracking_id/{tracking_id}": get(
        "get_trips_by_tracking_id", "TripDetailPage", PAGE_NUMBER, in_path="tracking_id"
    ),
    "/driver-aggregate/daily": get("get_daily_aggregates", "DailyAggregates", START_DATE, DRIVER_IDS),
    "/driver-aggregate/weekly": get("get_weekly_aggregates", "WeeklyAggregates", START_DATE, DRIVER_IDS),
    "/report": get("get_report", "Report", parameter("report_time", STRING)),
    "/healthz": get("get_health", "Health", tag="health"),
}
DESCRIPTION = {
    "openapi": "3.0.3",
    "info": {"title": "Driver Analytics API", "version": "1.0"},
    "servers": [{"url": "/api/v1"}],
    "security": [{"APIKEY": []}],
    "paths": PATHS,
    "components": {
        "schemas": SCHEMAS,
        "securitySchemes": {"APIKEY": {"type": "apiKey", "in": "header", "name": "Authorization"}},
    },
}
