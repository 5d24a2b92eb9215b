"""The parameters of the change feed."""

from schemas.fields import Text
from schemas.params import IntegerParam
from schemas.query import Params

MAX_CHANGES = 1_000
DEFAULT_CHANGES = 100


class ChangesParams(Params):
    """The parameters of a page of the change feed."""

    cursor = Text("The `cursor` of the last page. Without it, the feed starts with all trips that are visible now.")
    limit = IntegerParam("Maximum number of changes on a page.", high=MAX_CHANGES, default=DEFAULT_CHANGES)
