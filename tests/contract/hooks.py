"""What Schemathesis is told beside the OpenAPI document, in its own process; schemathesis.toml names this module."""

import atexit
import json
import os
import zlib
from collections import Counter
from pathlib import Path
from urllib.parse import quote, unquote

import schemathesis
from hypothesis import strategies as st
from schemathesis.generation.meta import TestPhase
from schemathesis.openapi.checks import JsonSchemaError, RejectedPositiveData

from tests.contract.fleet import DATES, DRIVER_IDS, MONDAYS, REPORT_DATE, TRACKING_IDS, TRIP_IDS

MASKS = os.environ["CONTRACT_MASKS"] == "yes"
ANSWERS = Path(os.environ["CONTRACT_ANSWERS"])
MASK_HEADER = "X-Fields"
MAX_IDENTIFIER_BYTES = 128
REAL = {
    "driver_id": DRIVER_IDS,
    "filter_value": TRIP_IDS + TRACKING_IDS,
    "start_date": DATES,
    "report_time": [f"{REPORT_DATE}T00:00:00", f"{REPORT_DATE}T23:59:59"],
    "link": [os.environ["CONTRACT_LINK"]],
}
# Of so many valid values one is sent as generated.
ONE_AS_GENERATED = 8
FAULTS = ["{", "}", ",", ",,", "{nope}", "{{", "},{", ":", "*", " "]

answers = Counter()


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Take the mask out of the document in the run without masks."""
    if not MASKS:
        for path in raw_schema["paths"].values():
            kept = [found for found in path["get"]["parameters"] if not found.get("$ref", "").endswith(MASK_HEADER)]
            path["get"]["parameters"] = kept


@schemathesis.hook
def after_load_schema(context, schema):
    """Let nothing be drawn from earlier answers: links and this module know real values.

    What Schemathesis 4.32.5 draws of them depends on how often it did, in which Hypothesis sees an inconsistency; the
    operation, or the stateful phase, then ends after a few examples, without a word.
    """
    schema.create_extra_data_source = lambda: None


@schemathesis.hook
def map_case(context, case):
    """Put real identifiers and dates in the place of most valid ones, so that requests reach the store.

    What is invalid stays, and is all that is wrong with a negative case: no date out of the window hides it.
    """
    mode = case.meta.generation.mode
    path = {name: unquote(value) for name, value in case.path_parameters.items()}
    real_path = {name: _real(case, name, value) for name, value in path.items()}
    # A path that is set is judged anew in its encoded form, in which what was invalid may pass, or be too long.
    if real_path != path:
        case.path_parameters = {name: quote(value, safe="") for name, value in real_path.items()}
    case.query = {name: _real(case, name, value) for name, value in case.query.items()}
    assert case.meta.generation.mode == mode, case
    return case


@schemathesis.hook
def before_add_examples(context, examples):
    """Do so to examples too, which map_case is not asked about."""
    examples[:] = [map_case(context, case) for case in examples]


def _real(case, name, value):
    """Return what to send for a generated value, the same each time the case is generated."""
    parameter = next((found for found in case.operation.iter_parameters() if found.name == name), None)
    if parameter is None or name not in REAL:
        return value
    schema = parameter.validation_schema
    if case.meta.generation.mode.is_positive and schema["type"] == "array" and isinstance(value, str):
        # A link hands over one driver where a list is due: the same, once it is sent.
        value = [value]
    if not parameter.get_validator().is_valid(value):
        return value
    choices = MONDAYS if name == "start_date" and case.operation.path.endswith("/weekly") else REAL[name]
    texts = value if isinstance(value, list) else [value]
    # A schema counts characters, not bytes.
    too_long = any(len(text.encode()) > MAX_IDENTIFIER_BYTES for text in texts)
    if set(texts) <= set(choices) or (_stays(case, name) and not too_long):
        return value
    chosen = [choices[_number(case, text, place) % len(choices)] for place, text in enumerate(texts)]
    return chosen if isinstance(value, list) else chosen[0]


def _stays(case, name):
    """Whether a valid value is sent as generated: what the case is there for, such as the longest, and some others."""
    phase = case.meta.phase
    if phase.name is TestPhase.COVERAGE:
        return phase.data.parameter == name
    return phase.name is not TestPhase.EXAMPLES and _number(case, name) % ONE_AS_GENERATED == 0


def _number(case, *more):
    """Return a number that follows from the values of the case."""
    return zlib.crc32(repr((case.path_parameters, case.query, more)).encode())


@schemathesis.hook
def flatmap_headers(context, headers):
    """Generate masks of the answer's own fields in the place of any text."""
    if not headers or MASK_HEADER not in headers:
        return st.just(headers)
    content = context.operation.definition.raw["responses"]["200"]["content"]
    return _masks(content["application/json"]["example"]).map(lambda mask: {**headers, MASK_HEADER: mask})


def _masks(answer):
    """Generate masks for answers such as this: most are right, some broken."""
    right = _names(answer)
    broken = st.tuples(right, st.sampled_from(FAULTS), right).map("".join)
    return right | right.map("{{{}}}".format) | right.map("{{{}}}".format) | broken


def _names(value):
    """Generate what may stand between the brackets of a value: names, of which some have brackets in turn."""
    fields = value[0] if isinstance(value, list) else value
    nested = [
        _names(below).map(lambda inner, name=name: f"{name}{{{inner}}}")
        for name, below in fields.items()
        if below and isinstance(below, dict | list)
    ]
    return st.lists(st.one_of(st.sampled_from([*fields, "*", "nope"]), *nested), min_size=1, max_size=4).map(",".join)


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Drop what no schema can say: dates out of the moving window, wrong masks, wrong links, the shape of a mask."""
    error = response.json() if response.status_code == 400 else {}
    if isinstance(failure, RejectedPositiveData):
        if response.status_code == 403:
            return False
        wrong_mask = MASK_HEADER in case.headers and error.get("error") in ("MaskError", "ParseError")
        return not wrong_mask and set(error.get("errors", ())) not in ({"start_date"}, {"report_time"})
    masked = MASK_HEADER in case.headers and response.status_code == 200
    # Of headers it is another title.
    return not (masked and isinstance(failure, JsonSchemaError) and failure.title == JsonSchemaError.kind_title)


@schemathesis.hook
def before_call(context, case, kwargs):
    """Ask for all the media types of an answer, but where the headers are what the case is there for."""
    kinds = list(case.operation.definition.raw["responses"]["200"]["content"])
    if case.meta and case.meta.phase.name is not TestPhase.COVERAGE and len(kinds) > 1:
        case.headers["Accept"] = kinds[_number(case, "Accept") % len(kinds)]


@schemathesis.hook
def after_call(context, case, response):
    """Count the answers to what was generated."""
    if case.meta:
        kind = (case.operation.label, case.meta.phase.name.value, case.meta.generation.mode.value)
        answers[*kind, response.status_code] += 1


@atexit.register
def write_answers():
    """Hand the counts to the test: operation, phase, mode, status and how many."""
    ANSWERS.write_text(json.dumps([[*kind, count] for kind, count in sorted(answers.items())]))
