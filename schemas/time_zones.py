"""The name of a time zone, as an operator gives it."""

import re
import zoneinfo
from typing import Any

from marshmallow import ValidationError

from schemas.fields import Text
from schemas.near_names import find_near_name

OFFSET = re.compile(r"(UTC|GMT)?[+-]?[0-9]", re.IGNORECASE)
# The time zone of the host, which some systems have among the others.
NOT_IANA = {"localtime"}


class TimeZone(Text):
    """The name of a time zone in the IANA database, such as America/Denver."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        names = zoneinfo.available_timezones() - NOT_IANA
        if text in names:
            return text
        if OFFSET.match(text):
            raise ValidationError(
                f"{text} is an offset, which knows no summer time. Give the name of a zone, such as Europe/Berlin."
            )
        # Many know the city of a zone, but not its continent.
        by_city = {name.rpartition("/")[2]: name for name in names}
        near = find_near_name(text, names) or by_city.get(find_near_name(text.replace(" ", "_"), by_city) or "")
        hint = f"; did you mean {near}?" if near else ". Give a name of the IANA database, such as America/Denver."
        raise ValidationError(f"There is no time zone {text}{hint}")
