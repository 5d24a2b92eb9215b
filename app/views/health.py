"""The health checks."""

import functools
from http import HTTPStatus

from flask import Blueprint, Response, g
from pymongo.errors import PyMongoError

from app import errors
from app.circuit_breaker import CircuitOpen
from app.database import ping
from app.endpoint import Caching, Credential, Endpoint
from app.responses import json_response
from app.services import get_services
from schemas.error import Health, Unhealthy
from schemas.params import NoParams

bp = Blueprint("health", __name__)

HealthCheck = functools.partial(
    Endpoint, params=NoParams(), response=Health(), credential=Credential.NONE, caching=Caching.NEVER, tag="health"
)


@bp.get("/healthz")
@HealthCheck(unavailable_response=Unhealthy())
def get_health() -> Response:
    """Check whether the service can serve requests.

    The status is 200 if the database responds, otherwise 503 within 2 seconds. Both are `application/json`. The check
    needs no key and does not count against the rate limit.
    """
    services = get_services()
    try:
        with services.store_breaker.guard():
            ping(services.store)
    except (PyMongoError, CircuitOpen):
        error = errors.StoreUnavailable()
        body = {"status": "unavailable", **errors.build_body(error, g.request_id)}
        response = json_response(body, HTTPStatus.SERVICE_UNAVAILABLE)
        response.headers.update(error.headers)
        return response
    return json_response({"status": "ok"})


@bp.get("/livez")
@HealthCheck(unavailable_response=None)
def get_liveness() -> Response:
    """Check whether the service is running.

    The check does not use the database. Use it to decide whether to restart the service, which would not help while the
    database does not respond. The check needs no key and does not count against the rate limit.
    """
    return json_response({"status": "ok"})
