"""The parameters of the change feed."""

from typing import Any

from schemas.cursor import decode_cursor
from schemas.fields import Text
from schemas.params import IntegerParam
from schemas.query import FLEET, Params

MAX_CHANGES = 1_000
DEFAULT_CHANGES = 100


class CursorParam(Text):
    """A cursor of the feed of the fleet, as a FeedCursor."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        return decode_cursor(data[FLEET], super()._deserialize(value, attr, data, **kwargs))


class ChangesParams(Params):
    """The parameters of a page of the change feed."""

    cursor = CursorParam(
        "The `cursor` of the last page. Without it, the feed starts with all trips that are visible now; start with an "
        "empty copy then.",
        required=False,
    )
    limit = IntegerParam("Maximum number of changes on a page.", high=MAX_CHANGES, default=DEFAULT_CHANGES)
