"""The health check."""

from http import HTTPStatus

from flask import Blueprint, Response, request
from pymongo.errors import PyMongoError

from app import errors
from app.db import ping
from app.responses import json_response
from schemas.query import NoQuery

bp = Blueprint("health", __name__)


@bp.get("/healthz")
def healthz() -> Response:
    """Say whether the store answers."""
    NoQuery().parse(request.query_string)
    try:
        ping()
    except PyMongoError:
        error = errors.StoreUnavailable()
        response = json_response({"status": "unavailable", **errors.body(error)}, HTTPStatus.SERVICE_UNAVAILABLE)
        response.headers.update(error.headers)
        return response
    return json_response({"status": "ok"})
