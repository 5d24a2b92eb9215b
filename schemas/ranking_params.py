"""The parameters of a ranking."""

import math
import re
from typing import Any, ClassVar

from marshmallow import ValidationError, fields
from marshmallow.validate import OneOf

from schemas.date_params import PeriodStartDate
from schemas.fields import MAX_INT, Choice, field_metadata
from schemas.params import PageParams
from schemas.periods import LONG_PERIODS, WEEK
from schemas.score import COUNTED_BEHAVIOURS

# The orders of a ranking, as MongoDB sorts: 1 is ascending. Of equal scores, the longer distance comes first in both.
ORDERS = {
    name: [("fm_score", direction), ("distance_miles", -1), ("driver_id", 1)]
    for name, direction in (("worst", 1), ("best", -1))
}
DEFAULT_ORDER = "worst"

# More than the 309 digits of the largest double. Without a limit, a page's links, which repeat the query, could be
# larger than the headers that a proxy accepts.
MAX_NUMBER_LENGTH = 400


class DistanceParam(fields.Float):
    """A distance from 0, in ASCII digits without sign or leading zero, as JSON writes a number."""

    pattern = re.compile(r"(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
    json_schema_keywords: ClassVar[dict[str, Any]] = {"minimum": 0}

    def __init__(self, description: str) -> None:
        super().__init__(metadata=field_metadata(description, 0), load_default=0)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> int | float:
        match = len(value) <= MAX_NUMBER_LENGTH and self.pattern.fullmatch(value)
        if not match or not math.isfinite(float(value)):
            raise ValidationError("Must be a number from 0, in digits without sign or leading zero, such as 12.5.")
        # A double cannot represent every integer of 64 bits, and a distance may be one.
        is_whole = match[2] is match[3] is None and len(value) <= len(str(MAX_INT)) and int(value) <= MAX_INT
        return int(value) if is_whole else float(value)


class RankingParams(PageParams):
    """The parameters of a ranking."""

    period = Choice(
        "Rank the drivers of a `week` or of a `month`.",
        component="RankingPeriod",
        choices=LONG_PERIODS,
        example=WEEK,
    )
    start_date = PeriodStartDate(
        "The first date of the week or month, `YYYY-MM-DD`. For a week, a Monday from six months ago to yesterday. "
        "For a month, its first day: from the month of the date six months ago to yesterday.",
        param="period",
        periods=LONG_PERIODS,
    )
    behaviour = Choice(
        "Rank by the points that this behaviour costs, in place of the score. `worst`: the most points first. Among "
        "drivers with the same points, the lower score comes first, or with `best` the higher score.",
        component="BehaviourName",
        choices=COUNTED_BEHAVIOURS,
        example="overspeeding",
        load_default=None,
    )
    order = fields.String(
        load_default=DEFAULT_ORDER,
        validate=OneOf(list(ORDERS)),
        metadata=field_metadata("`worst`: the lowest score first. `best`: the highest score first.", DEFAULT_ORDER),
    )
    min_distance_miles = DistanceParam("Leave out drivers with a shorter distance in the week or month, in miles.")
