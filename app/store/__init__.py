"""The data layer: every read. Functions take the database and the fleet first, and raise pymongo's errors."""

from typing import Any

Document = dict[str, Any]


class UnknownDrivers(LookupError):
    """Drivers who are not in the fleet, `driver_ids`."""

    def __init__(self, driver_ids: list[str]) -> None:
        super().__init__(driver_ids)
        self.driver_ids = driver_ids
