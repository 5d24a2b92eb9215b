"""The data layer: every read. Functions take the database and the fleet first, and raise pymongo's errors."""

from typing import Any

from pymongo.collection import Collection

Document = dict[str, Any]
# What a document is known by, of which each collection has some.
NAMES = dict.fromkeys(("fleet", "driver_id", "trip_id", "day", "key_id", "report_date"), 1)


class UnknownDrivers(LookupError):
    """Drivers who are not in the fleet, `driver_ids`."""

    def __init__(self, driver_ids: list[str]) -> None:
        super().__init__(driver_ids)
        self.driver_ids = driver_ids


class OutOfShape(Exception):
    """A document that the store's validators would have refused; the text names it."""

    def __init__(self, collection: Collection[Document], match: Document, **which: Any) -> None:
        super().__init__(f"{collection.name} {collection.find_one(match, NAMES, **which)}")
