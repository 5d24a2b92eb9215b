"""A peer: the API in python-eve, with eve's paths and shapes, and nothing but its settings."""

import os

from eve import Eve
from eve.auth import BasicAuth
from flask import request
from shared import digest, is_live

TRIP = (
    "trip_id",
    "driver_id",
    "trip_start_time",
    "trip_end_time",
    "duration_seconds",
    "distance_miles",
    "insurance_period",
    "start_latitude",
    "start_longitude",
    "end_latitude",
    "end_longitude",
    "night_driving_seconds",
    "highway_miles",
    "night_driving_miles",
    "event_summary",
)
DRIVER = ("driver_id", "first_name", "last_name", "email", "alias", "first_travel_date", "last_travel_date")


class KeyAuth(BasicAuth):
    """An API key gives access to one fleet, which eve adds to each query as the `auth_field`."""

    def authorized(self, allowed_roles, resource, method):
        key = app.data.driver.db["keys"].find_one({"digest": digest(request.headers.get("Authorization", ""))})
        if not is_live(key):
            return False
        self.set_request_auth_value(key["fleet"])
        return True


def resource(source, fields, **more):
    return {
        "datasource": {"source": source, "projection": dict.fromkeys(fields, 1)},
        "schema": {name: {"type": "string", "nullable": True} for name in fields},
        "auth_field": "fleet",
        **more,
    }


SETTINGS = {
    "MONGO_URI": os.environ["MONGODB_URI"],
    "MONGO_DBNAME": os.environ["MONGODB_DATABASE"],
    "RESOURCE_METHODS": ["GET"],
    "ITEM_METHODS": ["GET"],
    "PAGINATION_LIMIT": 100,
    "RENDERERS": ["eve.render.JSONRenderer"],
    # These features take time for each document, and the other contestants do not have them.
    "HATEOAS": False,
    "IF_MATCH": False,
    "DOMAIN": {
        "drivers": resource("drivers", DRIVER),
        "trips": resource("trips", TRIP),
        "trip": resource(
            "trips",
            (*TRIP, "focus_area", "trail_path", "events"),
            additional_lookup={"url": 'regex("[^/]+")', "field": "trip_id"},
        ),
    },
}

app = Eve(settings=SETTINGS, auth=KeyAuth)


@app.get("/ping")
def ping():
    """Respond when the server is ready."""
    return "ok"
