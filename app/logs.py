"""The log: a line a request and whatever goes wrong, on standard error, with every key and link blotted out."""

import logging
import os
import re
import time
from typing import Any

from flask import Flask, Response, g, request

from app.config import API
from app.store.keys import PREFIX

STANDARD_ERROR = 2
# What lets in: keys, and report links.
SECRETS = re.compile(rf"({PREFIX})[0-9A-Za-z]{{8,}}|({API}/report/)[^\s<]\S*")


class RedactingFormatter(logging.Formatter):
    """Formats a record, its traceback included, and blots out what looks like a key or a report link."""

    _second, _told = -1, ""

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of the record without keys and links."""
        return SECRETS.sub(r"\1\2[redacted]", super().format(record))

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """Return the time of the record; what it has in common with the record before is not made anew."""
        second = int(record.created)
        if second != self._second:
            self._told, self._second = super().formatTime(record, "%Y-%m-%d %H:%M:%S"), second
        return f"{self._told},{record.msecs:03.0f}"


class LineHandler(logging.Handler):
    """Writes each record to standard error at once, in one piece, so that threads need no lock between them."""

    def createLock(self) -> None:
        """Make none."""
        self.lock = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        try:
            os.write(STANDARD_ERROR, (self.format(record) + "\n").encode(errors="backslashreplace"))
        except Exception:
            self.handleError(record)


def settings(level: str) -> dict[str, Any]:
    """Return the logging configuration (logging.config.dictConfig) of the service and of gunicorn under it."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": RedactingFormatter, "format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
        "handlers": {"stderr": {"()": LineHandler, "formatter": "line"}},
        "root": {"level": "WARNING", "handlers": ["stderr"]},
        "loggers": {
            "app": {"level": level},
            "gunicorn.error": {"level": "WARNING", "handlers": ["stderr"], "propagate": False},
        },
    }


def register(app: Flask) -> None:
    """Log a line for every answer of `app`. It names the route, not the path, which may hold anything."""

    @app.before_request
    def start() -> None:
        g.started = time.perf_counter()

    @app.after_request
    def log(response: Response) -> Response:
        if app.logger.isEnabledFor(logging.INFO):
            own, asked = g._get_current_object(), request._get_current_object()  # type: ignore[attr-defined]
            key = own.get("key") or own.get("link")
            message = (
                f"{asked.method} {asked.url_rule or '(unknown path)'} {response.status_code} "
                f"{(time.perf_counter() - own.started) * 1000:.1f}ms {response.headers.get('Content-Length', 0)}B "
                f"fleet={key.fleet if key else '-'} key={key.key_id if key else '-'} request_id={own.request_id}"
            )
            # Where in the code a request's line comes from need not be found out each time.
            app.logger.handle(app.logger.makeRecord(app.logger.name, logging.INFO, __file__, 0, message, (), None))
        return response
