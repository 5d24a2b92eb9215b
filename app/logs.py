"""The log: a JSON object a line on standard error, for each request and whatever goes wrong, without keys and links."""

import contextlib
import logging
import logging.config
import os
import re
from collections.abc import MutableMapping
from typing import Any

import orjson
import structlog
from flask import Flask, current_app, g, has_app_context
from structlog.stdlib import ProcessorFormatter

from app.config import API
from app.store.api_keys import PREFIX

STANDARD_ERROR = 2
# What lets in: keys, and report links, also without their path; they begin with a list as base64 has it.
SECRETS = re.compile(rf"({PREFIX})[0-9A-Za-z]{{8,}}|({API}/report/)[^\s<]\S*|WyJ[0-9A-Za-z_-]{{8}}[0-9A-Za-z_.-]*")
REDACTED = r"\1\2[redacted]"
# One of these is in every text that the pattern finds something in, and is found much sooner.
SECRET_MARKERS = tuple(mark.encode() for mark in (PREFIX, f"{API}/report/", "WyJ"))

LEADING_FIELDS = ("timestamp", "level", "event")

Event = MutableMapping[str, Any]


def get_log() -> Any:
    """Return the log of the running app: a structlog logger, `get_log().warning("what happened", more=...)`."""
    return current_app.extensions["log"]


def add_request_id(logger: Any, method: str, event: Event) -> Event:
    """Add the id of the request that an event belongs to, if any."""
    if has_app_context() and "request_id" in g:
        event["request_id"] = g.request_id
    return event


def render(logger: Any, method: str, event: Event) -> str:
    """Return the line of an event: JSON, in which keys and report links are redacted."""
    try:
        line = orjson.dumps(event, default=str)
    except TypeError:
        # A client may send what is no UTF-8.
        line = orjson.dumps({name: _utf8(str(value)) for name, value in event.items()})
    if any(mark in line for mark in SECRET_MARKERS):
        line = orjson.dumps(_redacted(orjson.loads(line)))
    return line.decode()


def _ordered(logger: Any, method: str, event: Event) -> Event:
    return {**{name: event.pop(name) for name in LEADING_FIELDS}, **event}


def _redacted(value: Any) -> Any:
    if isinstance(value, dict):
        return {_redacted(name): _redacted(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_redacted(inner) for inner in value]
    return SECRETS.sub(REDACTED, value) if isinstance(value, str) else value


def _utf8(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


PROCESSORS = (
    add_request_id,
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper("iso"),
    structlog.processors.format_exc_info,
    _ordered,
    render,
)


def _write(line: str) -> None:
    # In one piece, so that threads need no lock between them. Nobody may be there to read it any more.
    with contextlib.suppress(OSError):
        os.write(STANDARD_ERROR, f"{line}\n".encode())


class _StandardError:
    debug = info = warning = error = critical = staticmethod(_write)


def make_logger(level: int) -> Any:
    """Return a structlog logger that writes what is of a level (of `logging`) or above it."""
    wrapper = structlog.make_filtering_bound_logger(level)
    return structlog.wrap_logger(_StandardError(), PROCESSORS, wrapper, dict, cache_logger_on_first_use=True).bind()


class JsonHandler(logging.Handler):
    """Writes what libraries log through `logging` as structlog renders it."""

    def __init__(self) -> None:
        super().__init__()
        processors = (ProcessorFormatter.remove_processors_meta, *PROCESSORS)
        named = (structlog.stdlib.add_logger_name,)
        self.setFormatter(ProcessorFormatter(processors=processors, foreign_pre_chain=named))

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        try:
            _write(self.format(record))
        except Exception:
            self.handleError(record)


def build_config() -> dict[str, Any]:
    """Return the configuration (of logging.config.dictConfig) of what libraries log, gunicorn included."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "handlers": {"stderr": {"()": JsonHandler}},
        "root": {"level": "WARNING", "handlers": ["stderr"]},
        # Its warnings quote requests that are no HTTP, which may hold a key in a spelling that nothing recognises.
        "loggers": {"gunicorn.error": {"level": "ERROR", "handlers": ["stderr"], "propagate": False}},
    }


def register(app: Flask, level: str) -> None:
    """Make the log of `app`, at a level of `logging`, and send there what libraries log in this process."""
    logging.config.dictConfig(build_config())
    app.extensions["log"] = make_logger(logging.getLevelNamesMapping()[level])
