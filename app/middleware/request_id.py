"""The id of a request, which is in its response, its error body and its log lines."""

from flask import g, request

from app.logs import choose_request_id


def set_request_id() -> None:
    """Set `g.request_id`."""
    g.request_id = choose_request_id(request.environ.get("HTTP_X_REQUEST_ID", ""))
