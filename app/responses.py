"""JSON answers."""

from http import HTTPStatus
from typing import Any

import orjson
from flask import Response


def json_response(content: Any, status: HTTPStatus = HTTPStatus.OK, mimetype: str = "application/json") -> Response:
    """Return `content`, which is in served shape and order, as JSON."""
    return Response(orjson.dumps(content), status=status, mimetype=mimetype)
