"""Reading the parameters of a request from its path and its query string."""

import datetime
import difflib
from collections.abc import Collection, Iterable
from typing import Any, Literal
from urllib.parse import parse_qsl

from marshmallow import EXCLUDE, Schema, ValidationError, fields

# Under which names a field that depends on the scope of the request, or on the date of today in it, finds them in the
# data. No parameter has them.
SCOPE, TODAY = "scope", "today"
# What clients of similar services send, and the parameter that means the same here.
OTHER_NAMES = {
    "behaviour": "event_type",
    "behavior": "event_type",
    "type": "event_type",
    "from": "start_date",
    "since": "start_date",
    "to": "end_date",
    "until": "end_date",
    "page": "cursor",
    **dict.fromkeys(("depot", "depots", "group_id", "tag", "tags", "team", "teams"), "group"),
    "period": "insurance_period",
}
# What to do with a query parameter that the endpoint does not have.
UnknownParameters = Literal["reject", "ignore"]
# A request line has room for thousands of unknown parameters, and a comparison with the declared names takes time: the
# errors name the first ones.
MAX_NAMED = 5
# From which ratio of difflib on a name counts as misspelt: `limit[]` has 0.83 to `limit`, `limt` has 0.89.
MIN_SIMILARITY = 0.8


class Params(Schema):
    """The parameters of an endpoint. Only a list may be given more than once."""

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """Say in terms of a request that a required parameter is missing."""
        field_obj.error_messages["required"] = "Must be given."

    def parse(
        self,
        query_string: bytes,
        today: datetime.date,
        unknown_parameters: UnknownParameters = "reject",
        scope: str = "",
        /,
        **path: str,
    ) -> dict[str, Any]:
        """Return the validated values of a raw query string and of the identifiers in the path.

        `today` is the date in the fleet. `scope` is the identity of what the request may see, if there is a cursor.
        A query parameter with the name of an identifier in the path is unknown. Raises marshmallow.ValidationError with
        the reasons for each parameter. A reason never repeats what the client sent.
        """
        known = [name for name in self.fields if name not in path]
        given = _parse_query(query_string)
        unknown = [name for name in given if name not in known]
        # For each of the first unknown parameters the declared one with a similar name, or None.
        similar = {name: _get_likely_name(name, known) for name in unknown[:MAX_NAMED]}
        declared = {name: given[name] for name in known if name in given}
        params, errors = self._load_declared(
            declared, {SCOPE: scope, TODAY: self.choose_today(declared, today), **path}
        )
        if unknown_parameters == "ignore":
            for name in errors.keys() & set(similar.values()) - declared.keys():
                errors[name] = [f"Must be given; a parameter with a similar name was ignored.{self._get_usage(name)}"]
        elif unknown:
            errors |= {name: [self._get_unknown_reason(meant)] for name, meant in similar.items()}
            if len(unknown) > MAX_NAMED:
                errors[unknown[MAX_NAMED - 1]][0] += f" More unknown parameters: {len(unknown) - MAX_NAMED}."
        if errors:
            raise ValidationError({name: _flatten(reasons) for name, reasons in errors.items()})
        return params

    def choose_today(self, declared: dict[str, list[str]], today: datetime.date) -> datetime.date:
        """Return the day whose rules on dates the parameters follow, which is today. `declared` are their texts."""
        return today

    def _load_declared(
        self, declared: dict[str, list[str]], others: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the validated values, and the reasons for each invalid parameter.

        `declared` has the query parameters; `others` has the scope, the date of today and the identifiers in the path.
        """
        raw, errors = others, dict[str, Any]()
        for name, values in declared.items():
            if isinstance(self.fields[name], fields.List):
                raw[name] = values
            elif len(values) == 1:
                raw[name] = values[0]
            else:
                errors[name] = [f"Must be given once; it is given {len(values)} times."]
        try:
            return self.load(raw, unknown=EXCLUDE), errors
        except ValidationError as error:
            return {}, {**error.messages_dict, **errors}

    def _get_unknown_reason(self, meant: str | None) -> str:
        if meant is None:
            return "Unknown parameter."
        return f"Unknown parameter; did you mean {meant}?{self._get_usage(meant)}"

    def _get_usage(self, name: str) -> str:
        return f" {repeat_hint(name)}" if isinstance(self.fields[name], fields.List) else ""


def _parse_query(query_string: bytes) -> dict[str, list[str]]:
    """Return the values of each parameter.

    Bytes that are not UTF-8 become lone surrogates in a value, which no field accepts, and a question mark in a name,
    which an error in JSON may repeat.
    """
    text = query_string.decode("utf-8", "surrogateescape")
    given: dict[str, list[str]] = {}
    for name, value in parse_qsl(text, keep_blank_values=True, errors="surrogateescape"):
        given.setdefault(name.encode(errors="replace").decode(), []).append(value)
    return given


def _get_likely_name(name: str, known: Collection[str]) -> str | None:
    """Return the one of the `known` parameters that an unknown one probably stands for, or None."""
    other = OTHER_NAMES.get(name.lower())
    return other if other in known else get_near_name(name, known)


def get_near_name(name: str, names: Iterable[str]) -> str | None:
    """Return the one of `names` that is most similar to `name`, whatever their case, or None."""
    by_lower_case = {known.lower(): known for known in names}
    nearest = difflib.get_close_matches(name.lower(), by_lower_case, 1, MIN_SIMILARITY)
    return by_lower_case[nearest[0]] if nearest else None


def repeat_hint(name: str) -> str:
    """Return a sentence that says how to give a parameter several values."""
    return f"Repeat {name} for several values: {name}=a&{name}=b."


def _flatten(reasons: list[str] | dict[int, list[str]]) -> list[str]:
    if isinstance(reasons, dict):
        return [f"Value {index + 1}: {reason}" for index, of_value in reasons.items() for reason in of_value]
    return reasons
