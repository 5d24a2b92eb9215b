"""Pages of records."""

from collections.abc import Iterable
from typing import NamedTuple

from app.store import Document, Result


class PageRequest(NamedTuple):
    """A page of records: number `page` from 1, with up to `limit` records."""

    page: int
    limit: int

    @property
    def skip(self) -> int:
        """The number of records before the page."""
        return (self.page - 1) * self.limit

    def build_result(self, count: int, versions: Iterable[str], records: Document) -> Result:
        """Return the response. `count` is the number of records on all pages.

        `records` has the list of records under its name, and what else the response has; `versions` are those of all
        that is in it.
        """
        page_count = max(1, -(-count // self.limit))
        content = {
            "count": count,
            "limit": self.limit,
            "current_page": self.page,
            "next_page": self.page + 1 if self.page < page_count else None,
            **records,
        }
        return Result(" ".join([str(count), *versions]), content, page_count)
