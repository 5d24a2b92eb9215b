"""The health check."""

from http import HTTPStatus
from typing import Any

from flask import Blueprint, Response
from pymongo.errors import PyMongoError

from app import errors
from app.db import ping
from app.operations import operation
from app.responses import json_response
from schemas.derive import Fields
from schemas.page import Health
from schemas.query import NoQuery

bp = Blueprint("health", __name__)


@bp.get("/healthz")
@operation(NoQuery(), Health(), masked_by_client=False)
def healthz(query: dict[str, Any], fields: Fields) -> Response:
    """Say whether the store answers."""
    try:
        ping()
    except PyMongoError:
        error = errors.StoreUnavailable()
        response = json_response({"status": "unavailable", **errors.body(error)}, HTTPStatus.SERVICE_UNAVAILABLE)
        response.headers.update(error.headers)
        return response
    return json_response({"status": "ok"})
