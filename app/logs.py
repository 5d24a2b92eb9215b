"""The log: a JSON object a line on standard error, for each request and whatever goes wrong, without keys and links."""

import contextlib
import datetime
import logging
import os
import re
import time
from collections.abc import MutableMapping
from typing import Any

import orjson
import structlog
from flask import Flask, Response, current_app, g, has_app_context, request

from app.config import API
from app.store.keys import PREFIX

STANDARD_ERROR = 2
# What lets in: keys, and report links, also without their path; they begin with a list as base64 has it.
SECRETS = re.compile(rf"({PREFIX})[0-9A-Za-z]{{8,}}|({API}/report/)[^\s<]\S*|WyJ[0-9A-Za-z_-]{{8}}[0-9A-Za-z_.-]*")
# How gunicorn tells of a request that it does not understand: where from, what is wrong, and how it reads.
REFUSED = "Invalid request from ip="
REDACTED = r"\1\2[redacted]"
# One of these is in every text that the pattern finds something in, and is found much sooner.
MARKS = tuple(mark.encode() for mark in (PREFIX, f"{API}/report/", "WyJ"))

FIRST = ("timestamp", "level", "event")

Event = MutableMapping[str, Any]


def get_log() -> Any:
    """Return the log of the running app: a structlog logger, `get_log().warning("what happened", more=...)`."""
    return current_app.extensions["log"]


def name_request(logger: Any, method: str, event: Event) -> Event:
    """Add the id of the request that an event belongs to, if any."""
    if has_app_context() and "request_id" in g:
        event["request_id"] = g.request_id
    return event


def render(logger: Any, method: str, event: Event) -> bytes:
    """Return the line of an event: JSON, with what looks like a key or a report link blotted out."""
    try:
        line = orjson.dumps(event, default=str)
    except TypeError:
        # A client may send what is no UTF-8.
        line = orjson.dumps({name: _utf8(str(value)) for name, value in event.items()})
    if any(mark in line for mark in MARKS):
        line = orjson.dumps(_blotted(orjson.loads(line)))
    return line


def _ordered(logger: Any, method: str, event: Event) -> Event:
    return {**{name: event.pop(name) for name in FIRST}, **event}


def _blotted(told: Any) -> Any:
    if isinstance(told, dict):
        return {_blotted(name): _blotted(value) for name, value in told.items()}
    if isinstance(told, list):
        return [_blotted(value) for value in told]
    return SECRETS.sub(REDACTED, told) if isinstance(told, str) else told


def _utf8(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


PROCESSORS = (
    name_request,
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper("iso"),
    structlog.processors.format_exc_info,
    _ordered,
    render,
)


def _write(line: bytes) -> None:
    # In one piece, so that threads need no lock between them. Nobody may be there to read it any more.
    with contextlib.suppress(OSError):
        os.write(STANDARD_ERROR, line + b"\n")


class _StandardError:
    debug = info = warning = error = critical = staticmethod(_write)


def make_logger(level: int) -> Any:
    """Return a structlog logger that writes what is of a level (of `logging`) or above it."""
    wrapper = structlog.make_filtering_bound_logger(level)
    return structlog.wrap_logger(_StandardError(), PROCESSORS, wrapper, dict, cache_logger_on_first_use=True).bind()


class JsonHandler(logging.Handler):
    """Writes what libraries log, in the same form."""

    def __init__(self) -> None:
        super().__init__()
        self._logger = make_logger(logging.NOTSET)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        try:
            # Levels in between are those below them.
            level = max(logging.DEBUG, record.levelno // 10 * 10)
            about = {"exc_info": record.exc_info} if record.exc_info else {}
            message = record.getMessage()
            if message.startswith(REFUSED):
                # What follows was sent, in whichever spelling.
                message = ": ".join(message.split(": ", 2)[:2])
            self._logger.log(min(level, logging.CRITICAL), "%s", message, logger=record.name, **about)
        except Exception:
            self.handleError(record)


def settings() -> dict[str, Any]:
    """Return the logging configuration (logging.config.dictConfig) of gunicorn, and of what it runs."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "handlers": {"stderr": {"()": JsonHandler}},
        "root": {"level": "WARNING", "handlers": ["stderr"]},
        "loggers": {"gunicorn.error": {"level": "WARNING", "handlers": ["stderr"], "propagate": False}},
    }


def register(app: Flask, level: str) -> None:
    """Make the log of `app`, at a level of `logging`."""
    # What the store logs, which knows no application.
    library = logging.getLogger(__package__)
    library.handlers, library.propagate = [JsonHandler()], False
    app.extensions["log"] = make_logger(logging.getLevelNamesMapping()[level])


def start() -> None:
    """Note when the request began."""
    g.started = time.perf_counter()


def tell(response: Response) -> None:
    """Log a line for a response, at INFO. It names the route, not the path, which may hold anything."""
    if logging.getLevelNamesMapping()[current_app.extensions["config"].log_level] > logging.INFO:
        return
    key = g.get("key") or g.get("link")
    event = {
        "timestamp": f"{datetime.datetime.now(datetime.UTC).replace(tzinfo=None).isoformat()}Z",
        "level": "info",
        "event": "request",
        "method": request.method,
        "route": request.url_rule and request.url_rule.rule,
        "status": response.status_code,
        "duration_ms": round((time.perf_counter() - g.started) * 1000, 1),
        "bytes": response.content_length,
        "fleet": key and key.fleet,
        "key_id": key and key.key_id,
        "client": g.get("client"),
        "request_id": g.request_id,
    }
    log = current_app.extensions["log"]
    # By itself: what structlog does for events of any kind takes as long as all of the other hooks.
    _write(render(log, "info", event))
