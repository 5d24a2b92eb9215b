"""The id of a request, which its response, its errors and its log lines carry."""

import re
import secrets

from flask import g, request

VALID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def set_request_id() -> None:
    """Set `g.request_id`: the client's X-Request-ID if it is valid, or a new id."""
    sent = request.environ.get("HTTP_X_REQUEST_ID", "")
    g.request_id = sent if VALID.fullmatch(sent) else secrets.token_hex(16)
