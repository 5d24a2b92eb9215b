"""The data layer: every read. Functions take the database and the fleet first, and raise pymongo's errors."""

from typing import Any

Document = dict[str, Any]
