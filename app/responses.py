"""JSON answers and pages."""

from http import HTTPStatus
from typing import Any

import orjson
from flask import Response
from marshmallow import Schema

from app.store.page import Page


def json_response(content: Any, status: HTTPStatus = HTTPStatus.OK, mimetype: str = "application/json") -> Response:
    """Return `content`, which is in served shape and order, as JSON."""
    return Response(orjson.dumps(content), status=status, mimetype=mimetype)


def page_response(shape: Schema, page: Page) -> Response:
    """Return a page in the shape of its schema, whose one list takes the records."""
    values = {
        "count": page.count,
        "limit": page.limit,
        "current_page": page.number,
        "next_page": page.number + 1 if page.number * page.limit < page.count else None,
    }
    return json_response({name: values[name] if name in values else page.records for name in shape.fields})
