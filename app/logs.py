"""The log: a line a request and whatever goes wrong, on standard error, with every key blotted out."""

import logging
import re
import time
from typing import Any

from flask import Flask, Response, g, request

from app.store.keys import PREFIX

KEY = re.compile(f"{PREFIX}[0-9A-Za-z]{{8,}}")


class RedactingFormatter(logging.Formatter):
    """Formats a record, its traceback included, and blots out what looks like a key."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of the record without keys."""
        return KEY.sub(f"{PREFIX}[redacted]", super().format(record))


def settings(level: str) -> dict[str, Any]:
    """Return the logging configuration (logging.config.dictConfig) of the service and of gunicorn under it."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": RedactingFormatter, "format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
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
        key = g.get("key")
        app.logger.info(
            "%s %s %d %.1fms %sB fleet=%s key=%s request_id=%s",
            request.method,
            request.url_rule or "(unknown path)",
            response.status_code,
            (time.perf_counter() - g.started) * 1000,
            response.content_length or 0,
            key.fleet if key else "-",
            key.key_id if key else "-",
            g.request_id,
        )
        return response
