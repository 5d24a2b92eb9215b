"""What ended a command: an invalid setting, what is stored, or MongoDB."""

import re

from pymongo.errors import BulkWriteError, PyMongoError, ServerSelectionTimeoutError

from app.config import ConfigError
from app.database import get_refusal
from app.store import InvalidDocument, OtherFormat

# pymongo appends them to the address and the reason of each server.
CONFIGURED_TIMEOUTS = re.compile(r" \(configured timeouts: [^)]*\)")
# Documents within a message. They may have personal data, and may be long.
BRACES = re.compile(r" ?\{[^{}]*\}")


def describe_failure(error: Exception) -> str | None:
    """Return what happened, in a line, with the setting to correct if it is known, or None for any other error."""
    if isinstance(error, ConfigError | OtherFormat):
        return str(error)
    if isinstance(error, InvalidDocument):
        return f"Invalid document: {error}."
    if not isinstance(error, PyMongoError):
        return None
    if refusal := get_refusal(error):
        return f"{refusal}. deploy/mongodb-roles.js says which user each command needs."
    reason = _shorten(error)
    if isinstance(error, ServerSelectionTimeoutError):
        return f"No MongoDB responds: {CONFIGURED_TIMEOUTS.sub('', reason)}. Start it, or correct MONGODB_URI."
    return f"MongoDB: {reason}"


def _shorten(error: PyMongoError) -> str:
    """Return the message without the topology, command or document that pymongo appends to it."""
    write_errors = error.details["writeErrors"] if isinstance(error, BulkWriteError) else None
    text = write_errors[0]["errmsg"] if write_errors else str(error)
    for suffix in (", Timeout:", ", full error:", "\n"):
        text = text.partition(suffix)[0]
    while (shortened := BRACES.sub("", text)) != text:
        text = shortened
    return text
