"""What a client may ask. Path and query arrive as text; a query schema makes of them what the store takes."""

import datetime
import functools
import re
from collections.abc import Iterator
from typing import Any, ClassVar, Literal
from urllib.parse import parse_qsl

from dateutil.relativedelta import relativedelta
from marshmallow import Schema, ValidationError, fields, post_load
from marshmallow.validate import OneOf

from schemas.fields import Date, Identifier, Messages, Text, field_metadata

MAX_LIMIT = 100
DEFAULT_LIMIT = 50
MAX_PAGE = 1_000_000_000
MAX_DRIVERS = 20
# What trips are asked for by, in full.
FILTER_PARAMS = ("trip_id", "tracking_id")
PAGE = "Which page, from 1."
REPORT_TIME_FORMAT = "%Y-%m-%dT%H:%M:%S"
REQUIRED: Messages = {"required": "Must be given."}
# How far back a start_date may lie.
HISTORY = relativedelta(months=6)
# What to do with a query parameter that the endpoint does not have.
UnknownParameters = Literal["reject", "ignore"]


class IntegerParam(fields.Integer):
    """A whole number in ASCII digits, without sign or leading zero, from 1 to `high`."""

    digits = re.compile(r"[1-9][0-9]*")

    def __init__(self, description: str, *, high: int, default: int) -> None:
        self.high = high
        self.json_schema_keywords = {"minimum": 1, "maximum": high}
        super().__init__(metadata=field_metadata(description, default), load_default=default)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> int:
        # No more digits than `high` has: a longer number is out of bounds whatever its digits say.
        if not self.digits.fullmatch(value) or len(value) > len(str(self.high)) or int(value) > self.high:
            raise ValidationError(
                f"Must be a whole number from 1 to {self.high}, in digits without sign or leading zero."
            )
        return int(value)


class StartDate(Date):
    """A date within the last six months (UTC), which may be today or not."""

    def __init__(self, description: str, *, today_allowed: bool, monday: bool = False) -> None:
        self.today_allowed, self.monday = today_allowed, monday
        super().__init__(description, required=True, error_messages=REQUIRED)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        date = datetime.date.fromisoformat(text)
        today = datetime.datetime.now(datetime.UTC).date()
        first = _first_date(today)
        last = today if self.today_allowed else today - datetime.timedelta(days=1)
        if not first <= date <= last:
            raise ValidationError(f"Must be from {first} to {last}.")
        if self.monday and date.weekday() != 0:
            monday = date - datetime.timedelta(days=date.weekday())
            raise ValidationError(f"Must be a Monday, such as {monday}.")
        return text


@functools.lru_cache(2)
def _first_date(today: datetime.date) -> datetime.date:
    return today - HISTORY


class RepeatedParam(fields.List[Any]):
    """A parameter that is given 1 to `high` times; values count as sent, repetitions included."""

    def __init__(self, inner: fields.Field[Any], description: str, *, high: int) -> None:
        self.high = high
        self.json_schema_keywords = {"minItems": 1, "maxItems": high}
        super().__init__(
            inner,
            required=True,
            error_messages=REQUIRED,
            metadata=field_metadata(description, inner.metadata["examples"]),
        )

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> list[Any]:
        if len(value) > self.high:
            raise ValidationError(f"Must be given 1 to {self.high} times; it is given {len(value)} times.")
        try:
            return super()._deserialize(value, attr, data, **kwargs)
        except ValidationError as error:
            # Several identifiers joined by commas are soon longer than one may be.
            for index, reasons in error.messages_dict.items():
                if "," in value[index]:
                    reasons.append(repeat_hint(attr))
            raise


class Params(Schema):
    """The parameters of an endpoint. Lists take a parameter several times, all others once."""

    def parse(
        self, query_string: bytes, unknown_parameters: UnknownParameters = "reject", /, **path: str
    ) -> dict[str, Any]:
        """Return the validated values of a raw query string and of the identifiers in the path.

        A parameter named like an identifier in the path is an unknown one. Raises marshmallow.ValidationError with the
        reasons for each parameter; a reason never repeats what was sent.
        """
        given: dict[str, list[str]] = {}
        for name, value in _pairs(query_string):
            given.setdefault(name, []).append(value)
        similar = {_letters(name): name for name in self.fields if name not in path}
        # The known parameter that each unknown one may be meant to be.
        unknown = {name: similar.get(_letters(name)) for name in given if name not in similar.values()}
        known = {name: values for name, values in given.items() if name not in unknown}
        loaded, faults = self._load_known(known, path)
        if unknown_parameters == "reject":
            faults |= {name: [self._unknown_reason(meant)] for name, meant in unknown.items()}
        else:
            for name in faults.keys() & set(unknown.values()) - known.keys():
                faults[name] = [f"Must be given; a parameter with a similar name was ignored.{self._usage(name)}"]
        if faults:
            raise ValidationError({name: _reasons(found) for name, found in faults.items()})
        return loaded

    def _load_known(self, known: dict[str, list[str]], path: dict[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the validated values, and the reasons for each parameter that is wrong."""
        several = {name for name in known if isinstance(self.fields[name], fields.List)}
        faults: dict[str, Any] = {
            name: [f"Must be given once; it is given {len(values)} times."]
            for name, values in known.items()
            if len(values) > 1 and name not in several
        }
        asked = {name: values if name in several else values[0] for name, values in known.items() if name not in faults}
        try:
            return self.load({**path, **asked}), faults
        except ValidationError as error:
            return {}, {**dict(error.messages_dict), **faults}

    def _unknown_reason(self, meant: str | None) -> str:
        return f"Unknown parameter; did you mean {meant}?{self._usage(meant)}" if meant else "Unknown parameter."

    def _usage(self, name: str) -> str:
        return f" {repeat_hint(name)}" if isinstance(self.fields[name], fields.List) else ""


def repeat_hint(name: str) -> str:
    """Return how to give a parameter several values."""
    return f"Repeat {name} for several values: {name}=a&{name}=b."


def _letters(name: str) -> str:
    """Return what `driver_id`, `driver_ids`, `driver_id[]` and `driverId` have in common."""
    return re.sub("[^a-z]", "", name.lower()).removesuffix("s")


def _reasons(found: list[str] | dict[int, list[str]]) -> list[str]:
    if isinstance(found, dict):
        return [f"Value {index + 1}: {reason}" for index, reasons in found.items() for reason in reasons]
    return found


def _pairs(query_string: bytes) -> Iterator[tuple[str, str]]:
    # Bytes that are no UTF-8 become lone surrogates, which no field accepts.
    text = query_string.decode("utf-8", "surrogateescape")
    for name, value in parse_qsl(text, keep_blank_values=True, errors="surrogateescape"):
        # An error names the parameter, and JSON cannot hold a surrogate.
        yield name.encode(errors="replace").decode(), value


class _PageParams(Params):
    limit = IntegerParam("Records a page.", high=MAX_LIMIT, default=DEFAULT_LIMIT)
    page = IntegerParam(PAGE, high=MAX_PAGE, default=1)


class DriversParams(_PageParams):
    """Of the driver list."""


class DriverTripsParams(_PageParams):
    """Of a driver's trips."""

    driver_id = Identifier("Who drove.", example="demo-01", required=True)
    start_date = StartDate(
        "UTC date from which on trips started, `YYYY-MM-DD`: from six months ago up to today.", today_allowed=True
    )


class TripParams(Params):
    """Of trips in full, by one of their identifiers."""

    filter_param = fields.String(
        required=True,
        validate=OneOf(FILTER_PARAMS),
        metadata=field_metadata("Which identifier to go by; several trips may share a `tracking_id`.", "trip_id"),
    )
    filter_value = Identifier("The identifier.", example="demo-01-54-1", required=True)
    page = IntegerParam(PAGE, high=MAX_PAGE, default=1)


class _AggregateParams(Params):
    driver_id = RepeatedParam(
        Identifier(example="demo-01"),
        f"Whose summaries: given 1 to {MAX_DRIVERS} times. Repetitions count, and are answered once.",
        high=MAX_DRIVERS,
    )

    @post_load
    def drop_repetitions(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Keep each driver once, where it was first asked for."""
        return {**data, "driver_id": list(dict.fromkeys(data["driver_id"]))}


class DailyParams(_AggregateParams):
    """Of daily summaries: a date before today."""

    start_date = StartDate("The UTC date, `YYYY-MM-DD`: from six months ago up to yesterday.", today_allowed=False)


class WeeklyParams(_AggregateParams):
    """Of weekly summaries: a Monday before today."""

    start_date = StartDate(
        "The Monday that the week begins on (UTC), `YYYY-MM-DD`: from six months ago up to yesterday.",
        today_allowed=False,
        monday=True,
    )


class ReportTime(Text):
    """A time of the calendar in one spelling, `YYYY-MM-DDTHH:MM:SS`, in UTC."""

    spelling = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}")
    openapi_keywords: ClassVar[dict[str, Any]] = {"pattern": f"^{spelling.pattern}$"}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text: str = super()._deserialize(value, attr, data, **kwargs)
        try:
            if self.spelling.fullmatch(text):
                datetime.datetime.strptime(text, REPORT_TIME_FORMAT)  # noqa: DTZ007
                return text
        except ValueError:
            pass
        raise ValidationError("Must be a time such as 2026-03-16T00:00:00, in UTC.")


class ReportParams(Params):
    """Of a report; `report_date` is the date of `report_time`."""

    report_time = ReportTime(
        "A time (UTC), `YYYY-MM-DDTHH:MM:SS`. Its date selects the report, which covers the seven days before that "
        "date; the time of day has no effect.",
        example="2026-03-16T00:00:00",
        required=True,
        error_messages=REQUIRED,
    )

    @post_load
    def date_of_report(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Replace the time by its date."""
        return {"report_date": data["report_time"].partition("T")[0]}


class LinkParams(Params):
    """Of a report's file."""

    link = Text("What the link ends with.", example="WyJhY21lIl0.c2lnbmVk", required=True)


class NoParams(Params):
    """Of an endpoint without parameters."""
