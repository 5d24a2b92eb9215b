"""Conventions of the whole project: every route, every setting, every command."""

import dataclasses
import re
from pathlib import Path

import pytest

from app.config import Config
from app.middleware.auth import PUBLIC_ENDPOINTS, REPORT_FILE_ENDPOINT
from schemas.error import ErrorBody
from scripts.cli import cli

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text()
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
# The cells of each setting's row: name, default, unit, meaning, example.
SETTING_ROWS = re.findall(r"^\| `([A-Z_]+)` \| (.+?) \| (.+?) \| (.+?) \| `(.+?)` \|$", CONFIGURATION, re.MULTILINE)
MARKDOWN = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
SAMPLE = {"driver_id": "d1", "filter_param": "trip_id", "filter_value": "t1", "link": "x", "guide": "clients.md"}
FILES = {"docs.get_file": "docs.js", "explorer.get_file": "main.js"}


def rules(service):
    return list(service.app.url_map.iter_rules())


def make_arguments(rule):
    values = {**SAMPLE, "name": FILES.get(rule.endpoint)}
    return {name: values[name] for name in rule.arguments}


def paths(service):
    with service.app.test_request_context():
        adapter = service.app.url_map.bind("")
        return {rule.endpoint: adapter.build(rule.endpoint, make_arguments(rule)) for rule in rules(service)}


def test_every_route_requires_a_key_except_public_ones(service):
    client = service.app.test_client()
    open_to_all = {
        endpoint for endpoint, path in paths(service).items() if client.get(path, buffered=True).status_code != 401
    }
    assert open_to_all == PUBLIC_ENDPOINTS


def test_every_route_only_reads(service):
    assert {frozenset(rule.methods) for rule in rules(service)} == {frozenset({"GET", "HEAD"})}


def test_every_route_of_the_api_refuses_unknown_parameters_with_the_one_error_body(service):
    for endpoint, path in paths(service).items():
        if endpoint == REPORT_FILE_ENDPOINT or not path.startswith("/api/v1/"):
            continue
        response = service.open(f"{path}?no-such-parameter=1")
        assert (response.status_code, list(response.json)) == (400, list(ErrorBody().fields)), path
        assert response.json["errors"]["no-such-parameter"] == ["Unknown parameter."]


def test_every_route_outside_the_api_ignores_unknown_parameters(service):
    for path in paths(service).values():
        if not path.startswith("/api/v1/"):
            assert service.open(f"{path}?utm_source=x&v=1&v=2").status_code == 200, path


def test_every_route_ignores_unknown_parameters_if_the_setting_says_so(make_service):
    service = make_service(unknown_parameters="ignore")
    for path in paths(service).values():
        plain, more = (service.open(path + query) for query in ("", "?no-such-parameter=1"))
        assert (more.status_code, "no-such-parameter" in more.text) == (plain.status_code, False), path


def test_every_route_with_an_identifier_hints_at_encoding_its_slashes(service):
    for rule in rules(service):
        if "<segment:" in rule.rule:
            path = re.sub("<any.*?>", SAMPLE["filter_param"], re.sub("<segment.*?>", "a/b", rule.rule))
            assert "%2F" in service.get(path.removeprefix("/api/v1")).json["message"], path


def written(rule):
    """Return a route as documents write it."""
    return re.sub(r"<[^>]*?(\w+)>", r"{\1}", rule.rule)


def test_every_route_is_in_the_readme(service):
    for rule in rules(service):
        assert f"`{written(rule)}`" in README


def test_every_route_but_those_of_the_document_and_of_pages_is_in_the_openapi_document(service):
    pages = ("docs.", "guides.", "explorer.", "discovery.")
    routes = {written(rule) for rule in rules(service) if not rule.endpoint.startswith(pages)}
    assert routes == set(service.get("/openapi.json").json["paths"])


def test_the_documentation_lists_every_setting_with_its_default():
    documented = [(name, default) for name, default, *_ in SETTING_ROWS]
    assert documented == [
        (field.name.upper(), f"`{field.metadata['default']}`" if field.metadata["default"] else "empty")
        for field in dataclasses.fields(Config)
    ]


@pytest.mark.parametrize(("name", "example"), [(row[0], row[-1]) for row in SETTING_ROWS])
def test_every_example_of_a_setting_is_valid(name, example):
    redis = {"RATELIMIT_STORAGE_URI": "redis://localhost"}
    assert Config.from_environment({**redis, name: example}) != Config.from_environment(redis)


def anchors(path):
    """Return the anchors of the headings of a Markdown file, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: path.name)
def test_every_link_between_documents_leads_somewhere(path):
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", path.read_text()):
        linked = (path.parent / target) if target else path
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), f"{target}#{anchor}"


def commands(group, words=()):
    for name, command in group.commands.items():
        yield (*words, name), command
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))


@pytest.mark.parametrize(
    ("words", "command"), list(commands(cli)), ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_every_command_and_option_has_a_help_text(words, command):
    assert command.help
    for option in command.params:
        assert option.param_type_name == "argument" or option.help, option.name


def test_every_command_is_documented():
    for words, command in commands(cli):
        if not hasattr(command, "commands"):
            assert f"driver-analytics {' '.join(words)}`" in OPERATIONS
