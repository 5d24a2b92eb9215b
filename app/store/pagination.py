"""Pages of records."""

from typing import NamedTuple

from app.store import Document, Result
from schemas.introspection import Fields


class PageRequest(NamedTuple):
    """A page of records: number `page` from 1, with up to `limit` records."""

    page: int
    limit: int

    @property
    def skip(self) -> int:
        """The number of records before the page."""
        return (self.page - 1) * self.limit

    def build_result(self, version: str, fields: Fields, count: int, records: Document) -> Result:
        """Return the `fields` of the response, with its version.

        `records` has the list of records under its name, and `count` is the number of records on all pages.
        """
        page_count = max(1, -(-count // self.limit))
        values = {
            "count": count,
            "limit": self.limit,
            "current_page": self.page,
            "next_page": self.page + 1 if self.page < page_count else None,
            **records,
        }
        return Result(version, {name: values[name] for name in fields}, page_count)
