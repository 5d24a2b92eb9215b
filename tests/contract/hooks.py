"""Hooks of Schemathesis, which run in its own process; schemathesis.toml names this module."""

import atexit
import json
import os
import re
import zlib
from collections import Counter
from pathlib import Path
from urllib.parse import quote, unquote

import schemathesis
from jsonschema import Draft202012Validator, FormatChecker

from tests.contract.fleet import (
    DATES,
    DRIVER_IDS,
    GROUPS,
    MONDAYS,
    MONTHS,
    REPORT_DATE,
    TIMES,
    TRACKING_IDS,
    TRIP_IDS,
)

RESPONSES_FILE = Path(os.environ["CONTRACT_RESPONSES"])
MASK_HEADER = "X-Fields"
MAX_IDENTIFIER_BYTES = 128
REAL = {
    "driver_id": DRIVER_IDS,
    "filter_value": TRIP_IDS + TRACKING_IDS,
    "start_date": DATES,
    "end_date": DATES,
    "search": ["amina", "DEMO 0", "å"],
    "report_time": [f"{REPORT_DATE}T00:00:00", f"{REPORT_DATE}T23:59:59"],
    "group": GROUPS,
    "link": [os.environ["CONTRACT_LINK"]],
    "cursor": [os.environ["CONTRACT_CURSOR"]],
    "bbox": ["-180,-90,180,90", "-96.2,41,-95.8,41.4", "179.5,-1e-7,-179.5,0"],
    "at": ["none", *TIMES],
}
# Of which no generated value is sent: a schema cannot say which latitude is lower, or when six months ago was.
ALWAYS_REAL = {"bbox", "at"}
# A cursor of a list goes with one list alone, so that links alone know one.
LIST_CURSORS, LIST_CURSOR = ["start"], re.compile("[A-Za-z0-9_-]{60,}")
# The choices of start_date, by the parameter `interval` or `period`, or else the last part of a path.
FIRST_DAYS = {"week": MONDAYS, "weekly": MONDAYS, "month": MONTHS, "monthly": MONTHS}
# Of so many valid values one is sent as generated.
ONE_AS_GENERATED = 8
# The title that Schemathesis gives to the failures which may be dropped, and the parameters that they are about.
REJECTED = "Schema-valid request rejected"
UNSAID = {"start_date", "end_date", "report_time", "cursor", "search"}

# By path: the schemas of the parameters with real values, by name, and the content of a good response.
parameters, contents = {}, {}
response_counts = Counter()


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Keep what the other hooks need of the document, and take the mask out of it: tests/api has a reference for it."""
    for path, item in raw_schema["paths"].items():
        operation = item["get"]
        operation["parameters"] = [
            parameter for parameter in operation["parameters"] if not parameter.get("$ref", "").endswith(MASK_HEADER)
        ]
        named = {parameter["name"]: parameter["schema"] for parameter in operation["parameters"] if "name" in parameter}
        parameters[path] = {name: schema for name, schema in named.items() if name in REAL}
        contents[path] = operation["responses"]["200"]["content"]


@schemathesis.hook
def map_case(context, case):
    """Put real identifiers and dates in the place of most valid ones, so that requests reach the store."""
    return _with_real_values(case, stays=lambda name: _number(case, name) % ONE_AS_GENERATED == 0)


@schemathesis.hook
def before_add_examples(context, examples):
    """Put them in the place of all valid ones of the examples, which map_case is not called for."""
    examples[:] = [_with_real_values(case, stays=lambda name: False) for case in examples]


def _with_real_values(case, stays):
    """Return the case with real values, but for valid ones of parameters that are to stay.

    What is invalid stays, and is all that is wrong with a negative case: no date out of the window hides it.
    """
    mode = case.meta.generation.mode
    path = {name: unquote(value) for name, value in case.path_parameters.items()}
    real_path = {name: _real(case, name, value, stays) for name, value in path.items()}
    # A path that is set is validated again in its encoded form, in which what was invalid may pass, or be too long.
    if real_path != path:
        case.path_parameters = {name: quote(value, safe="") for name, value in real_path.items()}
    case.query = {name: _real(case, name, value, stays) for name, value in case.query.items()}
    case.query = _with_window(case)
    if case.meta.generation.mode.is_positive and {"group", "driver_id"} <= case.query.keys():
        # In place of drivers.
        case.query.pop("driver_id" if _number(case) % 2 else "group", None)
    assert case.meta.generation.mode == mode, case
    return case


def _with_window(case):
    """Return the query with a window as no schema can say it: it ends after it starts, and may have to be short."""
    query, has_time = dict(case.query), "at" in parameters[case.operation.path]
    # In a negative case, what is invalid stays.
    is_valid, is_dated = case.meta.generation.mode.is_positive, query.get("at", "none") == "none"
    if has_time and is_valid and not is_dated:
        # A time is in place of dates.
        query = {name: value for name, value in query.items() if name not in ("start_date", "end_date")}
    elif has_time and is_dated:
        query.setdefault("start_date", DATES[0])
    start, end = query.get("start_date"), query.get("end_date")
    if start in (*DATES, *MONDAYS, *MONTHS) and end in DATES and end < start:
        query["end_date"] = end = DATES[0]
    if has_time and is_valid and query.get("order") == "worst" and start in DATES:
        # At most 31 days: the dates are a week apart, and without an end it is today.
        last = DATES[max(DATES.index(start) - 4, 0)]
        query |= {"end_date": min(end or last, last)} if end or last != DATES[0] else {}
    return query


def _real(case, name, value, stays):
    """Return what to send for a generated value, the same each time the case is generated."""
    schema = parameters[case.operation.path].get(name)
    if schema is None:
        return value
    if case.meta.generation.mode.is_positive and schema["type"] == "array" and isinstance(value, str):
        # A link hands over one driver where a list is due: the same, once it is sent.
        value = [value]
    if not Draft202012Validator(schema, format_checker=FormatChecker()).is_valid(value):
        return value
    path = case.operation.path.rpartition("/")[2]
    period = str(case.query.get("interval", "week") if path == "fleet-aggregate" else case.query.get("period", path))
    choices = FIRST_DAYS.get(period, REAL[name]) if name == "start_date" else REAL[name]
    if name == "cursor" and path != "changes":
        choices = [value] if LIST_CURSOR.fullmatch(value) else LIST_CURSORS
    texts = value if isinstance(value, list) else [value]
    # A schema counts characters, not bytes.
    too_long = any(len(text.encode()) > MAX_IDENTIFIER_BYTES for text in texts)
    if set(texts) <= set(choices) or (stays(name) and not too_long and name not in ALWAYS_REAL):
        return value
    chosen = [choices[_number(case, text, place) % len(choices)] for place, text in enumerate(texts)]
    return chosen if isinstance(value, list) else chosen[0]


def _number(case, *more):
    """Return a number that follows from the values of the case."""
    return zlib.crc32(repr((case.path_parameters, case.query, more)).encode())


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Drop what no schema can say: dates out of the moving window, links, cursors, searches without a word."""
    if failure.title != REJECTED:
        return True
    errors = response.json().get("errors", {}) if response.status_code == 400 else {}
    return response.status_code != 403 and not (errors and errors.keys() <= UNSAID)


@schemathesis.hook
def before_call(context, case, kwargs):
    """Accept each media type of a response, except where the headers are what the case is there for."""
    kinds = list(contents[case.operation.path])
    if case.meta and case.meta.phase.name.value != "coverage" and len(kinds) > 1:
        case.headers["Accept"] = kinds[_number(case, "Accept") % len(kinds)]


@schemathesis.hook
def after_call(context, case, response):
    """Count the responses to generated requests."""
    if case.meta:
        kind = (case.operation.label, case.meta.phase.name.value, case.meta.generation.mode.value)
        response_counts[*kind, response.status_code] += 1


@atexit.register
def write_response_counts():
    """Write the counts to a file for the test: operation, phase, mode, status and how many."""
    RESPONSES_FILE.write_text(json.dumps([[*kind, count] for kind, count in sorted(response_counts.items())]))
