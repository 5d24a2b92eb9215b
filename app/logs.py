"""The log: one JSON object a line on standard error, with API keys and report links redacted."""

import contextlib
import json
import logging
import os
import re
import secrets
from collections.abc import MutableMapping
from typing import Any

import orjson
import structlog
from flask import g, has_app_context
from structlog.stdlib import ProcessorFormatter
from structlog.typing import FilteringBoundLogger

from app.config import API
from app.store.api_keys import PREFIX

STANDARD_ERROR = 2
# In a line of JSON: API keys, and report links with or without their path. A link begins with `["` and the fleet in
# base64, or, if itsdangerous compressed it, with a dot and zlib's first bytes in base64.
SECRETS = re.compile(
    rf'({PREFIX})[0-9A-Za-z]{{8,}}|({API}/report/)[^\s<"\\](?:[^\s"\\]|\\.)*|'
    r"(?:Wy[I-L]|\.eJ)[0-9A-Za-z_-]{8}[0-9A-Za-z_.-]*"
)
REDACTED = r"\1\2[redacted]"
# Every text that matches the pattern contains one of these, and searching for them is much faster.
SECRET_MARKERS = (PREFIX, f"{API}/report/", "Wy", ".eJ")

VALID_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
LEADING_FIELDS = ("timestamp", "level", "event")

Event = MutableMapping[str, Any]


def choose_request_id(client_id: str) -> str:
    """Return the id of a request: that of the client, its X-Request-ID, if it is valid, or a new one."""
    return client_id if VALID_REQUEST_ID.fullmatch(client_id) else secrets.token_hex(16)


def add_request_id(logger: Any, method: str, event: Event) -> Event:
    """Add the id of the current request, if any, to an event."""
    if has_app_context() and "request_id" in g:
        event["request_id"] = g.request_id
    return event


def render(logger: Any, method: str, event: Event) -> str:
    """Return the line of an event: JSON with API keys and report links redacted."""
    try:
        line = orjson.dumps(event, default=str).decode()
    except TypeError:
        # A client may send bytes that are not UTF-8, which orjson refuses.
        line = json.dumps(event, default=str)
    return SECRETS.sub(REDACTED, line) if any(mark in line for mark in SECRET_MARKERS) else line


def _order_fields(logger: Any, method: str, event: Event) -> Event:
    return {**{name: event.pop(name) for name in LEADING_FIELDS}, **event}


PROCESSORS = (
    add_request_id,
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper("iso"),
    structlog.processors.format_exc_info,
    _order_fields,
    render,
)


def _write(line: str) -> None:
    # One write call for a line needs no lock between threads. It fails if the reader of the pipe has ended.
    with contextlib.suppress(OSError):
        os.write(STANDARD_ERROR, f"{line}\n".encode())


class _StandardError:
    debug = info = warning = error = critical = staticmethod(_write)


def make_logger(level: int) -> FilteringBoundLogger:
    """Return a logger that writes events from a level of `logging` upwards.

    Example: `make_logger(logging.INFO).warning("the database does not respond", error="...")`.
    """
    wrapper = structlog.make_filtering_bound_logger(level)
    proxy = structlog.wrap_logger(_StandardError(), PROCESSORS, wrapper, dict, cache_logger_on_first_use=True)
    logger: FilteringBoundLogger = proxy.bind()
    return logger


class JsonHandler(logging.Handler):
    """A handler that writes the records of libraries in the same format."""

    def __init__(self) -> None:
        super().__init__()
        processors = (ProcessorFormatter.remove_processors_meta, *PROCESSORS)
        pre_chain = (structlog.stdlib.add_logger_name,)
        self.setFormatter(ProcessorFormatter(processors=processors, foreign_pre_chain=pre_chain))

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        try:
            _write(self.format(record))
        except Exception:
            self.handleError(record)


def configure() -> None:
    """Write the records of libraries and of gunicorn, and Python's warnings, to the log."""
    handler = JsonHandler()
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    gunicorn = logging.getLogger("gunicorn.error")
    gunicorn.handlers, gunicorn.propagate = [handler], False
    # gunicorn's warnings quote malformed requests, which may contain a key in a form that is not recognised.
    gunicorn.setLevel(logging.ERROR)
    logging.captureWarnings(True)
