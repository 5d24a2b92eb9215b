"""The health checks."""

from http import HTTPStatus
from typing import Any

from flask import Blueprint, Response, g
from pymongo.errors import PyMongoError

from app import errors
from app.circuit_breaker import CircuitOpen
from app.database import guard_store, ping
from app.endpoint import Endpoint
from app.responses import json_response
from schemas.page import Health, Unhealthy
from schemas.params import NoParams

bp = Blueprint("health", __name__)


@bp.get("/healthz")
@Endpoint(NoParams(), Health(), accepts_mask=False, reads_store=False, unavailable_response=Unhealthy())
def get_health(params: dict[str, Any]) -> Response:
    """Say whether the service can answer.

    200 while the store answers, else 503 within 2 seconds, both as `application/json`. Needs no key and is not counted.
    """
    try:
        with guard_store():
            ping()
    except (PyMongoError, CircuitOpen):
        error = errors.StoreUnavailable()
        body = Unhealthy().dump({"status": "unavailable", **errors.build_body(error, g.request_id)})
        response = json_response(body, HTTPStatus.SERVICE_UNAVAILABLE)
        response.headers.update(error.headers)
        return response
    return json_response({"status": "ok"})


@bp.get("/livez")
@Endpoint(NoParams(), Health(), accepts_mask=False, reads_store=False)
def get_liveness(params: dict[str, Any]) -> Response:
    """Say that the service runs.

    Asks nothing of the store: for what starts anew a service that hangs, which would not help against a store that
    does. Needs no key and is not counted.
    """
    return json_response({"status": "ok"})
