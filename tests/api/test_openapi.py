"""The OpenAPI document: valid, complete, and in agreement with the responses of the service."""

import functools
import json
import types

import jsonschema
import pytest
from openapi_spec_validator import validate

from app import errors
from app.store.trips import DETAIL_FRAGMENTS
from schemas.driver import Driver
from schemas.fields import EXAMPLE_REQUEST_ID, example
from schemas.page import ChangePage, TripDetailPage
from schemas.report import ReportWindow
from schemas.trip import EventData
from scripts.materialize.write_sources import delete_trips
from scripts.reports.build import build_report
from tests.factories import make_driver, make_event, make_trip
from tests.operations import (
    CHANGES,
    DOCUMENT,
    MONDAY,
    OPERATIONS,
    REPORT,
    REPORT_FILE,
    make_target,
    parameters_of,
    resolved,
)
from tests.store_contents import load as load_documents

SCHEMAS = DOCUMENT["components"]["schemas"]
OBJECTS = {name: schema for name, schema in SCHEMAS.items() if schema["type"] == "object"}
JSON = "application/json"
# Links to a report are signed, so that no two are the same.
OF_RECORDS = [path for path in OPERATIONS if path not in (REPORT, REPORT_FILE)]


def assert_valid(schema, value):
    """Hold a value against a schema of the document."""
    root = {"$schema": "https://json-schema.org/draft/2020-12/schema", "components": DOCUMENT["components"], **schema}
    checker = jsonschema.Draft202012Validator(root, format_checker=jsonschema.FormatChecker())
    assert [error.message for error in checker.iter_errors(value)] == []


def responses():
    """Yield every response that has a body."""
    for path, operation in OPERATIONS.items():
        for status, response in operation["responses"].items():
            if status != "304":
                yield path, status, resolved(response)


def described():
    """Yield every part that has a schema of its own: properties, parameters, headers."""
    yield from (part for schema in OBJECTS.values() for part in schema["properties"].values())
    yield from (resolved(part) for operation in OPERATIONS.values() for part in operation["parameters"])
    yield from DOCUMENT["components"]["headers"].values()


def test_it_is_a_valid_openapi_3_1_document():
    validate(DOCUMENT)
    assert (DOCUMENT["openapi"], DOCUMENT["info"]["version"]) == ("3.1.0", "1.0")


def test_it_is_what_the_service_serves(service):
    response = service.get("/openapi.json")
    assert (response.content_type, response.json) == (JSON, DOCUMENT)


def test_the_command_prints_the_bytes_that_are_served(command, make_service, monkeypatch):
    monkeypatch.setenv("PUBLIC_BASE_URL", "https://api.example.com/driving")
    response = make_service(public_base_url="https://api.example.com/driving").get("/openapi.json")
    assert command("openapi").stdout_bytes == response.data
    assert response.json["servers"][0]["url"] == "https://api.example.com/driving"


def test_every_status_is_described_with_its_body():
    statuses = {path: list(operation["responses"]) for path, operation in OPERATIONS.items()}
    assert statuses.pop("/api/v1/healthz") == ["200", "400", "405", "500", "503"]
    assert statuses.pop("/api/v1/livez") == ["200", "400", "405", "500"]
    assert statuses.pop(REPORT_FILE) == ["200", "304", "400", "403", "404", "405", "500", "503"]
    for path, described in statuses.items():
        not_modified = ["304"] if "If-None-Match" in parameters_of(path) else []
        # tests/api/test_driver_keys.py says of which.
        forbidden = ["403"] if "403" in described else []
        assert described == ["200", *not_modified, "400", "401", *forbidden, "404", "405", "429", "500", "503"], path
    assert [path for path, _, response in responses() if JSON not in response["content"]] == [REPORT_FILE]
    assert {status for _, status, response in responses() if "Retry-After" in response["headers"]} == {"429", "503"}
    assert list(OPERATIONS[REPORT_FILE]["responses"]["200"]["content"]) == ["text/csv", "text/html"]


def kinds_below(kind):
    return {kind.__name__ for kind in kind.__subclasses__()}.union(*map(kinds_below, kind.__subclasses__()))


def test_every_kind_of_error_is_in_it_with_an_example():
    kinds = kinds_below(errors.BaseExtApiException)
    assert set(SCHEMAS["ErrorName"]["enum"]) == kinds
    assert {
        name for _, _, response in responses() for name in response["content"].get(JSON, {}).get("examples", ())
    } == kinds


def test_every_part_says_what_it_means():
    parts = [*SCHEMAS.values(), *DOCUMENT["components"]["headers"].values()]
    parts += [part for schema in OBJECTS.values() for part in schema["properties"].values()]
    parts += [resolved(part) for operation in OPERATIONS.values() for part in operation["parameters"]]
    assert [part for part in parts if not part.get("description")] == []


def test_every_response_field_is_required_except_speeds_reasons_summaries_and_those_of_a_form():
    optional = [{*schema["properties"]} - {*schema.get("required", ())} for schema in OBJECTS.values()]
    assert set().union(*optional) == {"errors", "driving_summary", *EventData().fields, *DETAIL_FRAGMENTS}
    assert {schema["additionalProperties"] for schema in OBJECTS.values()} == {False}


def find_all(keyword, part, path=()):
    """Yield the path and the value of each such keyword in a part of the document."""
    if isinstance(part, dict) and keyword in part:
        yield path, part[keyword]
    parts = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for name, below in parts:
        yield from find_all(keyword, below, (*path, name))


def test_only_counts_of_64_bits_are_in_the_format_of_64_bits():
    counts = {"phone_use_count", "rapid_acceleration_count", "hard_brake_count", "overspeeding_count", "count"}
    large = {path[2:] for path, value in find_all("format", DOCUMENT) if value == "int64"}
    assert {schema for schema, *_ in large} == {"EventSummary", "BehaviourExplanation"}
    assert {name for *_, name in large} == counts


def test_an_enum_that_is_in_it_twice_has_a_name_and_those_of_numbers_have_names():
    enums = [tuple(values) for _, values in find_all("enum", DOCUMENT)]
    assert len(enums) == len(set(enums))
    assert {"Grade", "EventType", "EventName", "ErrorName"} <= SCHEMAS.keys()
    assert SCHEMAS["EventType"]["x-enum-varnames"] == SCHEMAS["EventName"]["enum"]


def test_every_union_says_which_of_its_schemas_an_object_has():
    unions = [path for path, schemas in find_all("oneOf", DOCUMENT)]
    assert unions
    assert unions == [path for path, _ in find_all("discriminator", DOCUMENT)]
    for _, discriminator in find_all("discriminator", DOCUMENT):
        for value, reference in discriminator["mapping"].items():
            schema = resolved({"$ref": reference})
            assert schema["properties"][discriminator["propertyName"]]["const"] == value


def test_a_pattern_has_no_escape_that_a_generator_writes_as_a_control_character():
    assert [path for path, pattern in find_all("pattern", DOCUMENT) if r"\u" in pattern] == []


@pytest.fixture(scope="module")
def example_fleet(shared_service):
    """The service to the fleet that the examples speak of."""
    tracking_id = example(ChangePage())["changes"][0]["tracking_id"]
    trip = {**example(TripDetailPage())["trips"][0], "tracking_id": tracking_id}
    load_documents(shared_service.db, trip, drivers=[{**example(Driver()), "groups": ["North"]}], fleet="demo")
    build_report(shared_service.store, "demo", ReportWindow("2026-03-16"))
    return types.SimpleNamespace(get=functools.partial(shared_service.get, fleet="demo"))


def make_example(path):
    """Return the path and query, and the headers, of the request with the examples of all parameters."""
    examples = {"header": {}, "query": {}, "path": {}}
    for name, parameter in parameters_of(path).items():
        if "example" in parameter:
            examples[parameter["in"]][name] = parameter["example"]
    return make_target(path, **examples["query"], **examples["path"]), examples["header"]


@pytest.mark.parametrize("path", OF_RECORDS)
def test_the_example_of_a_response_is_the_response_to_the_examples_of_all_parameters(example_fleet, path):
    target, headers = make_example(path)
    response = example_fleet.get(target, headers=headers)
    shown = OPERATIONS[path]["responses"]["200"]["content"][JSON]["example"]
    # The cursor of each feed has a random part, and the trips were loaded just now.
    received = response.json | {name: shown[name] for name in ("cursor", "last_trip_received_at") if name in shown}
    assert (response.status_code, json.dumps(received)) == (200, json.dumps(shown))


@pytest.mark.parametrize("today", ["2026-05-04", "2026-05-10"])
def test_the_examples_of_the_parameters_are_valid_on_any_day(service, load, clock, today):
    clock.move_to(f"{today}T12:00Z")
    load(drivers=[make_driver("demo-01", groups=["North"])])
    paths = service.get("/openapi.json").json["paths"]
    for path in OF_RECORDS:
        parameters = paths[path]["get"]["parameters"]
        examples = {parameter["name"]: parameter["example"] for parameter in parameters if "example" in parameter}
        assert service.get(make_target(path, **examples)).status_code == 200, path


def test_the_response_to_the_example_of_a_report_is_valid_against_its_schema(example_fleet):
    target, headers = make_example(REPORT)
    response = example_fleet.get(target, headers=headers)
    assert response.status_code == 200
    assert_valid(OPERATIONS[REPORT]["responses"]["200"]["content"][JSON]["schema"], response.json)


def test_a_deletion_in_the_change_feed_is_valid_against_its_schema(service, store, load):
    load(make_trip(trip_id="t1"))
    cursor = service.get("/changes").json["cursor"]
    delete_trips(store, "f1", ["t1"])
    response = service.get("/changes", cursor=cursor)
    assert [change["trip"] for change in response.json["changes"]] == [None]
    assert_valid(OPERATIONS[CHANGES]["responses"]["200"]["content"][JSON]["schema"], response.json)


WRONG = {
    "ValidationError": ("/drivers?page=0", {}),
    "MaskError": ("/drivers", {"X-Fields": "count{x}"}),
    "ParseError": ("/drivers", {"X-Fields": "{count"}),
    "Unauthorized": ("/drivers", {"Authorization": ""}),
    "NotFound": (f"/driver/demo-99/trips?start_date={MONDAY}", {}),
    "MethodNotAllowed": ("/drivers", {}),
}


@pytest.mark.parametrize("kind", WRONG)
def test_the_example_of_an_error_is_the_response_of_the_service(service, kind):
    path, headers = WRONG[kind]
    headers, method = {**headers, "X-Request-ID": EXAMPLE_REQUEST_ID}, "POST" if kind == "MethodNotAllowed" else "GET"
    plain = service.get(path, method=method, headers=headers)
    shown = resolved(OPERATIONS["/api/v1/drivers"]["responses"][str(plain.status_code)])["content"]
    assert plain.json == shown[JSON]["examples"][kind]["value"]
    problem = service.get(path, method=method, headers={**headers, "Accept": "application/problem+json"})
    # Without PUBLIC_BASE_URL the document does not know the host of the service.
    problem_type = problem.json["type"].removeprefix("http://localhost")
    assert {**problem.json, "type": problem_type} == shown["application/problem+json"]["examples"][kind]["value"]


def links(fleet):
    """Return the links to the report of the fleet that the examples speak of, as paths."""
    schema = fleet.get(make_target(REPORT)).json
    return [schema[name].partition("/api/v1")[2] for name in ("report_link", "report_page")]


def get_target(fleet, path):
    """Return a request to an operation: of report files, the link to one."""
    return links(fleet)[0] if path == REPORT_FILE else make_target(path)


def test_every_response_header_is_described(example_fleet):
    common = {"Content-Type", "Content-Length", "X-Content-Type-Options", "Vary"}
    common |= {"Content-Security-Policy", "Referrer-Policy"}
    for path, operation in OPERATIONS.items():
        received = example_fleet.get(get_target(example_fleet, path))
        described = resolved(operation["responses"]["200"])
        assert {*received.headers.keys()} - common <= {*described["headers"]}, path


BOUNDS = [
    (path, name, parameter["schema"])
    for path in OPERATIONS
    for name, parameter in parameters_of(path).items()
    if "maximum" in parameter["schema"]
]


@pytest.mark.parametrize(("path", "name", "schema"), BOUNDS, ids=lambda value: value if isinstance(value, str) else "")
def test_only_numbers_within_their_bounds_are_accepted(example_fleet, path, name, schema):
    low, high = schema["minimum"], schema["maximum"]
    values = (low - 1, low, high, high + 1)
    statuses = [example_fleet.get(make_target(path, **{name: value})).status_code for value in values]
    assert statuses == [400, 200, 200, 400]


def test_a_parameter_left_out_has_its_default(example_fleet):
    for path, name, schema in BOUNDS:
        targets = make_target(path, **{name: schema["default"]}), make_target(path)
        given, left_out = map(example_fleet.get, targets)
        assert given.data == left_out.data


def test_every_endpoint_is_in_it_under_its_tag():
    tags = {path: operation["tags"] for path, operation in OPERATIONS.items()}
    assert tags.pop("/api/v1/healthz") == tags.pop("/api/v1/livez") == ["health"]
    assert set(map(tuple, tags.values())) == {("external",)}


def test_all_but_the_health_checks_and_links_takes_the_key():
    assert DOCUMENT["security"] == [{"APIKEY": []}]
    assert [path for path, operation in OPERATIONS.items() if operation.get("security") == []] == [
        REPORT_FILE,
        "/api/v1/healthz",
        "/api/v1/livez",
    ]


def test_examples_are_valid_against_their_schemas():
    for part in described():
        for value in part.get("examples", part.get("schema", {}).get("examples", ())):
            assert_valid(part.get("schema", part), value)
    for _, _, response in responses():
        for content in response["content"].values():
            values = (
                [content["example"]]
                if "example" in content
                else [e["value"] for e in content.get("examples", {}).values()]
            )
            for value in values:
                assert_valid(content["schema"], value)


def test_the_description_of_a_report_file_lists_its_columns(example_fleet):
    header, *_ = example_fleet.get(links(example_fleet)[0], fleet=None).data.decode("utf-8-sig").splitlines()
    listed = ", ".join(f"`{name}`" for name in header.replace('"', "").split(","))
    assert listed in OPERATIONS[REPORT_FILE]["description"]


@pytest.fixture(scope="module")
def sparse_fleet(shared_service):
    """The service to a fleet whose drivers and trips have nulls and empty lists."""
    load_documents(
        shared_service.db,
        make_trip(f"{MONDAY}T08:00", "demo-01", trip_id="demo-01-54-1", events=[make_event(1_773_100_000_000)]),
        make_trip(f"{MONDAY}T10:00", "demo-01", insurance_period=3),
        drivers=[make_driver("demo-01"), make_driver("demo-02")],
    )
    return shared_service


@pytest.mark.parametrize("path", OF_RECORDS)
def test_responses_with_nulls_and_empty_lists_are_valid_against_their_schemas(sparse_fleet, path):
    are_several = parameters_of(path).get("driver_id", {}).get("in") == "query"
    drivers = {"driver_id": ["demo-01", "demo-02"]} if are_several else {}
    response = sparse_fleet.get(make_target(path, drivers))
    assert response.status_code == 200
    assert_valid(OPERATIONS[path]["responses"]["200"]["content"][JSON]["schema"], response.json)


def test_the_304_response_is_described(example_fleet):
    for path, operation in OPERATIONS.items():
        if "304" not in operation["responses"]:
            continue
        described = resolved(operation["responses"]["304"])
        response = example_fleet.get(get_target(example_fleet, path), headers={"If-None-Match": "*"})
        assert (response.status_code, response.data) == (304, b""), path
        assert {*response.headers.keys()} - {"X-Content-Type-Options", "Vary"} <= {*described["headers"]}, path
        assert "content" not in described
