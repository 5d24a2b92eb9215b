"""X-Fields against its reference: Flask-RESTX, given our schemas and our complete responses, prunes them as we do."""

import json

import marshmallow
import pytest
from flask import Flask
from flask_restx import Api, Model, Resource, fields
from flask_restx.mask import Mask
from hypothesis import given, settings
from hypothesis import strategies as st

from app.config import API
from schemas.fields import RawObject
from schemas.page import TripSummaryPage
from schemas.trip import EventData
from tests.factories import make_driver, make_trip
from tests.operations import OF_DATA, find_endpoints, make_target
from tests.store_contents import load
from tests.whole_trip import make_whole_trip

# `make test` checks the first masks of those that `make test-large` checks.
EXAMPLES = [20, pytest.param(150, marks=pytest.mark.large)]
KINDS = {"Mask parse error": "ParseError", "Mask error": "MaskError"}
MASK_ERROR = (400, "Mask error: Mask is inconsistent with model", "MaskError")


class Plain(fields.Raw):
    """A value as it is. The typed fields of the reference are subclasses of Raw too, which is why they take no mask."""


def field_of(field):
    """Return the field of the reference that corresponds to one of ours."""
    if isinstance(field, RawObject):
        return fields.Raw()
    if isinstance(field, marshmallow.fields.List):
        return fields.List(field_of(field.inner))
    if isinstance(field, marshmallow.fields.Nested):
        return fields.Nested(model_of(field.schema), allow_null=field.allow_none or not field.required)
    return Plain()


def model_of(schema):
    return Model(type(schema).__name__, {name: field_of(field) for name, field in schema.fields.items()})


def inside(field):
    """Return the model of what lies in a field of the reference, None where nothing does."""
    field = getattr(field, "container", field)
    return field.model if isinstance(field, fields.Nested) else None


class Reference:
    """A service of Flask-RESTX with one response, `whole`, that has the shape of a schema."""

    def __init__(self, schema):
        self.model, self.whole = model_of(schema), None
        app = Flask("reference")
        api = Api(app)

        @api.route("/answer")
        class Response(Resource):
            @api.marshal_with(self.model)
            def get(resource):
                return self.whole

        self._client = app.test_client()

    def get_response(self, mask):
        """Return the expected response of our service: the status, and the message or the JSON text."""
        # Where ours differs on purpose: nothing but spaces is an IndexError there, and is no mask here.
        response = self._client.get("/answer", headers={"X-Fields": mask if mask.strip() else ""})
        # A bracket below a key of a raw object is for the value of that key to understand there, and never fits here.
        if response.status_code != 400 and goes_below_raw_keys(self.model, as_nested(Mask(mask.strip()))):
            return MASK_ERROR
        return outcome(response, hook=without_null_summary)


def as_nested(mask):
    """Return a mask of the reference as we read it."""
    return {name: as_nested(below) if isinstance(below, Mask) else None for name, below in mask.items()}


def goes_below_raw_keys(model, mask):
    """Return whether a mask, as read, has brackets within those of a raw object."""
    masks = [(name, below) for name, below in mask.items() if below and name in model]
    return any(
        any(part is not None for part in below.values())
        if type(model[name]) is fields.Raw
        else goes_below_raw_keys(inside(model[name]), below)
        for name, below in masks
    )


def without_null_summary(document):
    """Return an object of the reference as ours is: the reference makes an absent member null."""
    return {name: value for name, value in document.items() if (name, value) != ("driving_summary", None)}


def outcome(response, hook=None):
    """Return the status, and the JSON text, or the message and the kind, which the reference gives in its message."""
    body = json.loads(response.data, object_hook=hook)
    if response.status_code == 200:
        return 200, json.dumps(body)
    return response.status_code, body["message"], body.get("error", KINDS.get(body["message"].partition(":")[0]))


STRANGE = ["*", "nope", "COUNT", "$where", "count:limit", "-x", "_id", "fleet", "n\xe4me", "**", "\xb5", "0"]
SEPARATORS = [","] * 8 + [", ", " ", ";", ".", "\t", " , ", "\xa0", "$", "\x85"]


def shape_of(model):
    """Return the fields of a model down to the leaves, for the making of masks."""
    raw = dict.fromkeys(EventData().fields)
    return {
        name: raw if type(field) is fields.Raw else shape_of(inside(field)) if inside(field) else None
        for name, field in model.items()
    }


def contents(shape):
    """Make what stands within brackets: names, those with a shape with more of it in brackets, and strange ones."""
    words = [st.sampled_from([*shape, *STRANGE])]
    words += [st.builds("{}{{{}}}".format, st.just(name), contents(below)) for name, below in shape.items() if below]
    return st.builds(str.join, st.sampled_from(SEPARATORS), st.lists(st.one_of(words), max_size=3))


@st.composite
def damaged(draw, masks):
    """Make a mask with a bracket or a comma too many or in place of a character."""
    text = draw(masks)
    place = draw(st.integers(0, len(text)))
    return text[:place] + draw(st.sampled_from("{},")) + text[place + draw(st.integers(0, 1)) :]


def names_of(shape):
    for name, below in shape.items():
        yield name
        yield from names_of(below or {})


def masks(shape):
    """Make masks for a shape: right, nearly right, a jumble of tokens, any text that a header may contain."""
    right = contents(shape) | contents(shape).map("{{{}}}".format)
    jumble = st.lists(st.sampled_from([*"{},{}, *", *STRANGE, *names_of(shape)]), max_size=8).map("".join)
    text = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=8)
    return right | right | right | damaged(right) | jumble | text


DRIVERS = [
    make_driver("d1", first_name="Ada", email="ada@example.com", first_travel_date="2025-11-01", groups=["North"]),
    make_driver("d2", last_name="Über", groups=["North", "South"]),
    make_driver("idle"),
]


def make_trips():
    """Return the trips of two drivers in a week: with every type of event, and with neither events nor a trail."""
    return [
        make_whole_trip(trip_id="full", tracking_id="k"),
        make_trip("2026-03-10T09:00", trip_id="bare", tracking_id="k", trail_path=[]),
        *(make_trip(f"2026-03-1{day}T10:00", trip_id=f"more{day}", tracking_id="k") for day in range(5)),
        make_trip("2026-03-10T08:00", "d2", trip_id="other", distance_miles=0, duration_seconds=0),
    ]


REQUIRED = {"driver_id": "d1", "filter_value": "full"}
SEVERAL = {"driver_id": ["d2", "idle", "d1"], "start_date": "2026-03-10"}
# Parameters of more requests: those whose responses have several trips, nulls, empty lists, or no summary.
MORE = {
    "/driver/{driver_id}/trips": [{"driver_id": "idle"}],
    "/trip/{filter_param}/{filter_value}": [{"filter_param": "tracking_id", "filter_value": "k"}],
    "/driver-aggregate/daily": [SEVERAL],
    "/driver-aggregate/window": [SEVERAL],
    "/driver/{driver_id}/score": [{"driver_id": "idle"}],
}


@pytest.fixture(scope="module")
def loaded(shared_service):
    """The service with those drivers and their trips."""
    load(shared_service.db, *make_trips(), drivers=DRIVERS)
    return shared_service


# Those of the contract's table, and their kind.
TABLE = [
    "",
    "   ",
    "\t\xa0",
    "*",
    "{*}",
    "count",
    "{count}",
    " { count } ",
    "count,",
    "count,limit",
    "count limit",
    "{}",
]
TABLE += ["count;limit", "count.limit", "count\xa0limit", "count:limit", "nope", "COUNT", "$where", "limit,count"]
TABLE += ["{count,trips{trip_id,event_summary{hard_brake_count}}}", "trips{*,event_summary{hard_brake_count}}"]
TABLE += ["trips", "trips{}", "trips{*}", "trips{trip_id},*", "trips{nope}", "trips{trip_id,}", "trips{trip_id}limit"]
TABLE += ["count,,limit", ",count", "{,count}", ",", "{count", "{", "trips{trip_id", "{count},", "count}", "{count}}"]
TABLE += ["{count},{limit}", "{{count}}", "count,{limit}", "trips{a}{b}", "count{x}", "trips{trip_id{x}}"]


@pytest.mark.parametrize("mask", TABLE)
def test_a_mask_of_the_contract_has_the_outcome_of_flask_restx(loaded, mask):
    reference, target = Reference(TripSummaryPage()), "/driver/d1/trips?start_date=2026-03-01"
    reference.whole = loaded.get(target).json
    assert outcome(loaded.get(target, headers={"X-Fields": mask})) == reference.get_response(mask)


@pytest.mark.parametrize("examples", EXAMPLES)
@pytest.mark.parametrize("path", OF_DATA)
def test_a_masked_response_equals_that_of_flask_restx(loaded, path, examples):
    # The summary form lacks fields, which the reference returns as null.
    targets = [
        make_target(path, REQUIRED, form="detail", **more) for more in [{}, *MORE.get(path.removeprefix(API), [])]
    ]
    reference = Reference(find_endpoints(loaded.app)[path].response)
    wholes = {target: loaded.get(target).json for target in targets}

    @settings(max_examples=examples, derandomize=True, deadline=None)
    @given(st.sampled_from(targets), masks(shape_of(reference.model)))
    def check(target, mask):
        reference.whole = wholes[target]
        assert outcome(loaded.get(target, headers={"X-Fields": mask})) == reference.get_response(mask)

    check()
