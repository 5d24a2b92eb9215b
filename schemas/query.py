"""Reading the parameters of a request from its path and its query string."""

import datetime
from collections.abc import Collection, Iterator
from typing import Any, Literal
from urllib.parse import unquote_plus

from marshmallow import EXCLUDE, Schema, ValidationError, fields

from schemas.near_names import get_near_name

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
# A request line has room for thousands of unknown parameters: of how many the names are decoded and compared with the
# declared ones, which takes time, and how many the errors name.
MAX_COMPARED, MAX_NAMED = 20, 5


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
        values_by_name: dict[str, list[str]] = {}
        for name, value in _pairs(query_string, known):
            values_by_name.setdefault(name, []).append(value)
        declared = {name: [*map(_decode, values_by_name[name])] for name in known if name in values_by_name}
        unknown = [name for name in values_by_name if name not in declared]
        # For each of the first unknown parameters the declared one with a similar name, or None.
        similar = {name: _get_likely_name(name, known) for name in unknown[:MAX_COMPARED]}
        params, errors = self._load_declared(declared, {SCOPE: scope, TODAY: today, **path})
        if unknown_parameters == "reject":
            errors |= self._describe_unknown(similar, len(unknown))
        else:
            for name in errors.keys() & set(similar.values()) - declared.keys():
                errors[name] = [f"Must be given; a parameter with a similar name was ignored.{self._get_usage(name)}"]
        if errors:
            raise ValidationError({name: _flatten(reasons) for name, reasons in errors.items()})
        return params

    def _load_declared(
        self, declared: dict[str, list[str]], others: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the validated values, and the reasons for each invalid parameter.

        `declared` has the query parameters; `others` has the scope, the date of today and the identifiers in the path.
        """
        repeatable = {name for name in declared if isinstance(self.fields[name], fields.List)}
        errors: dict[str, Any] = {
            name: [f"Must be given once; it is given {len(values)} times."]
            for name, values in declared.items()
            if len(values) > 1 and name not in repeatable
        }
        raw = {
            name: values if name in repeatable else values[0] for name, values in declared.items() if name not in errors
        }
        try:
            return self.load({**others, **raw}, unknown=EXCLUDE), errors
        except ValidationError as error:
            return {}, {**dict(error.messages_dict), **errors}

    def _describe_unknown(self, similar: dict[str, str | None], count: int) -> dict[str, list[str]]:
        """Return the reasons for the first unknown parameters; the last of them says how many more there are."""
        errors: dict[str, list[str]] = {}
        for name in list(similar)[:MAX_NAMED]:
            errors[name] = [self._get_unknown_reason(similar[name])]
        if count > MAX_NAMED:
            errors[name][0] += f" More unknown parameters: {count - MAX_NAMED}."
        return errors

    def _get_unknown_reason(self, suggestion: str | None) -> str:
        if suggestion is None:
            return "Unknown parameter."
        return f"Unknown parameter; did you mean {suggestion}?{self._get_usage(suggestion)}"

    def _get_usage(self, name: str) -> str:
        return f" {repeat_hint(name)}" if isinstance(self.fields[name], fields.List) else ""


def _get_likely_name(name: str, known: Collection[str]) -> str | None:
    """Return the one of the `known` parameters that an unknown one probably stands for, or None."""
    other = OTHER_NAMES.get(name.lower())
    return other if other in known else get_near_name(name, known)


def repeat_hint(name: str) -> str:
    """Return a sentence that says how to give a parameter several values."""
    return f"Repeat {name} for several values: {name}=a&{name}=b."


def _flatten(reasons: list[str] | dict[int, list[str]]) -> list[str]:
    if isinstance(reasons, dict):
        return [f"Value {index + 1}: {reason}" for index, of_value in reasons.items() for reason in of_value]
    return reasons


def _pairs(query_string: bytes, known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the encoded value of each parameter. Past MAX_COMPARED, unknown names stay encoded."""
    names = {name: name for name in known}
    for pair in query_string.decode("utf-8", "surrogateescape").split("&"):
        if not pair:
            continue
        encoded, _, value = pair.partition("=")
        if encoded not in names:
            name = _decode(encoded) if len(names) < len(known) + MAX_COMPARED else encoded
            # An error message names the parameter, and JSON cannot contain a surrogate.
            names[encoded] = name.encode(errors="replace").decode()
        yield names[encoded], value


def _decode(text: str) -> str:
    # Bytes that are not UTF-8 become lone surrogates, which no field accepts.
    return unquote_plus(text, errors="surrogateescape")
