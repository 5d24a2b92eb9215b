"""The parameters of a ranking."""

import math
import re
from typing import Any, ClassVar

from marshmallow import ValidationError, fields
from marshmallow.validate import OneOf

from schemas.date_params import REQUIRED, check_start_date
from schemas.fields import MAX_INT, Choice, Date, field_metadata
from schemas.params import PageParams
from schemas.periods import LONG_PERIODS, WEEK

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


class PeriodStartDate(Date):
    """The first UTC date of a week or month, as the parameter `period` says."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        period = data.get("period")
        reasons = list[str]()
        # If the period is invalid, the date is wrong only if it is wrong for every period.
        for name in [period] if period in LONG_PERIODS else LONG_PERIODS:
            try:
                check_start_date(text, name)
            except ValidationError as error:
                reasons += error.messages
            else:
                return text
        raise ValidationError(reasons)


class RankingParams(PageParams):
    """The parameters of a ranking."""

    period = Choice(
        "Rank the drivers of a `week` or of a `month`.",
        component="RankingPeriod",
        choices=LONG_PERIODS,
        example=WEEK,
        required=True,
        error_messages=REQUIRED,
    )
    start_date = PeriodStartDate(
        "The first UTC date of the week or month, `YYYY-MM-DD`. For a week, a Monday from six months ago to yesterday. "
        "For a month, its first day: from the month of the date six months ago to yesterday.",
        required=True,
        error_messages=REQUIRED,
    )
    order = fields.String(
        load_default=DEFAULT_ORDER,
        validate=OneOf(list(ORDERS)),
        metadata=field_metadata("`worst`: the lowest score first. `best`: the highest score first.", DEFAULT_ORDER),
    )
    min_distance_miles = DistanceParam("Leave out drivers with a shorter distance in the week or month, in miles.")
