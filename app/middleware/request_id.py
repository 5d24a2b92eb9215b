"""The id of a request, which is in its response, its error body and its log lines."""

import re
import secrets

from flask import g, request

VALID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def set_request_id() -> None:
    """Set `g.request_id`: the client's X-Request-ID if it is valid, or a new id."""
    client_id = request.environ.get("HTTP_X_REQUEST_ID", "")
    g.request_id = client_id if VALID.fullmatch(client_id) else secrets.token_hex(16)
