"""The types of the arguments of tools, and what agents read of them."""

import datetime
from typing import Annotated, Any, Literal

from marshmallow import ValidationError
from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema

from schemas import fields
from schemas.fleet import INSURANCE_PERIODS


def _parse_date(value: Any) -> datetime.date | None:
    """Return a date as the service reads it, or None. Pydantic takes a number for seconds since 1970."""
    try:
        return None if value is None else datetime.date.fromisoformat(fields.Date().deserialize(value))
    except ValidationError as error:
        raise ValueError(*error.messages) from None


# An argument may be null, its default. That is not worth its place in the list of the tools.
Null = SkipJsonSchema[None]
GroupName = Annotated[str | Null, Field(description="Only its drivers. See list_groups.")]
# The service checks it.
InsurancePeriod = Annotated[str | None, WithJsonSchema({"type": "string", "enum": INSURANCE_PERIODS})]
BehaviourName = Literal["phone_use", "overspeeding", "hard_brake", "rapid_acceleration"] | Null
FleetOrDriver = Annotated[str | Null, Field(description="Default: the whole fleet.")]
PageNumber = Annotated[int, Field(ge=1, le=1_000_000)]
# The bounds keep the dates around it in the calendar; the service has its own.
Date = Annotated[
    Annotated[datetime.date, Field(ge=datetime.date(1900, 1, 1), le=datetime.date(2999, 12, 31))] | None,
    BeforeValidator(_parse_date),
    WithJsonSchema({"type": "string", "format": "date"}),
]
PeriodDate = Annotated[Date, Field(description="Any date in the period. Default: the last complete one.")]
StartDate = Annotated[Date, Field(description="Default: the Monday of last week.")]
EndDate = Annotated[Date, Field(description="At most today. Default: yesterday, or start_date if that is today.")]
# A time without an offset is in the time zone of the fleet.
Time = Annotated[datetime.datetime | None, WithJsonSchema({"type": "string"})]
