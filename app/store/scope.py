"""What a request may see."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from app.store import Document
from schemas.identity import make_id


class Scope(NamedTuple):
    """What a request may see: the data of a fleet or, with a `driver_id`, of this driver of the fleet alone.

    Whatever reads data of drivers makes its filter with `match` or `match_drivers`. So with a driver, a response is
    that of a fleet that has this driver alone.
    """

    fleet: str
    driver_id: str | None = None

    @property
    def kind(self) -> Literal["fleet", "driver"]:
        """What the scope is about, as limits, metrics and the log name it."""
        return "fleet" if self.driver_id is None else "driver"

    @property
    def identity(self) -> str:
        """A text that no other scope has: the name of a fleet has no slash."""
        return self.fleet if self.driver_id is None else make_id(self.fleet, self.driver_id)

    def match(self) -> Document:
        """Return a filter for all documents of the scope that have a `driver_id`."""
        return {"fleet": self.fleet} if self.driver_id is None else {"fleet": self.fleet, "driver_id": self.driver_id}

    def match_drivers(self, driver_ids: Iterable[str]) -> Document:
        """Return a filter for the documents of these drivers. It matches none of a driver outside the scope."""
        within = [driver_id for driver_id in driver_ids if self.driver_id in (None, driver_id)]
        return {"fleet": self.fleet, "driver_id": {"$in": within}}
