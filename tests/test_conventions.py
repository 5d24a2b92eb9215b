"""Conventions of the whole project: every route, every setting, every command."""

import dataclasses
import re

import click
import pytest

from app.config import API, Config
from app.middleware.auth import PUBLIC_ENDPOINTS, REPORT_FILE_ENDPOINT
from schemas.error import ErrorBody
from scripts.cli import cli
from tests.service_process import ROOT

CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text()
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
# The cells of each setting's row: name, default, unit, meaning, example.
SETTING_ROWS = re.findall(r"^\| `([A-Z_]+)` \| (.+?) \| (.+?) \| (.+?) \| `(.+?)` \|$", CONFIGURATION, re.MULTILINE)
MARKDOWN = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
SAMPLE = {"driver_id": "d1", "filter_param": "trip_id", "filter_value": "t1", "link": "x", "guide": "clients.md"}
FILES = {"docs.get_file": "docs.js", "explorer.get_file": "main.js"}


def get_routes(service):
    """Return the rule of every route, and a path that it matches."""
    with service.app.test_request_context():
        build = service.app.url_map.bind("").build
        return [
            (rule, build(rule.endpoint, {**SAMPLE, "name": FILES.get(rule.endpoint)}, append_unknown=False))
            for rule in service.app.url_map.iter_rules()
        ]


def test_every_route_requires_a_key_except_public_ones(service):
    open_to_all = {
        rule.endpoint
        for rule, path in get_routes(service)
        if service.open(path, fleet=None, buffered=True).status_code != 401
    }
    assert open_to_all == PUBLIC_ENDPOINTS


def test_every_route_only_reads(service):
    assert {frozenset(rule.methods) for rule, _ in get_routes(service)} == {frozenset({"GET", "HEAD"})}


def test_every_route_of_the_api_refuses_unknown_parameters_and_all_others_ignore_them(service):
    for rule, path in get_routes(service):
        response = service.open(f"{path}?unknown=1&unknown=2", buffered=True)
        if not path.startswith(API):
            assert response.status_code == 200, path
        elif rule.endpoint != REPORT_FILE_ENDPOINT:
            assert (response.status_code, list(response.json)) == (400, list(ErrorBody().fields)), path
            assert response.json["errors"]["unknown"] == ["Unknown parameter."]


def test_every_route_ignores_unknown_parameters_if_the_setting_says_so(make_service):
    service = make_service(unknown_parameters="ignore")
    for _, path in get_routes(service):
        plain, more = (service.open(path + query, buffered=True) for query in ("", "?no-such-parameter=1"))
        assert (more.status_code, "no-such-parameter" in more.text) == (plain.status_code, False), path


def test_every_route_with_an_identifier_hints_at_encoding_its_slashes(service):
    for rule, path in get_routes(service):
        if "<segment:" in rule.rule:
            response = service.open(path.replace(SAMPLE["driver_id"], "a/b").replace(SAMPLE["filter_value"], "a/b"))
            assert "%2F" in response.json["message"], path


def test_every_route_is_in_the_readme_and_all_but_pages_in_the_openapi_document(service):
    routes = {re.sub(r"<[^>]*?(\w+)>", r"{\1}", rule.rule): rule.endpoint for rule, _ in get_routes(service)}
    readme = (ROOT / "README.md").read_text()
    assert [route for route in routes if f"`{route}`" not in readme] == []
    pages = ("docs.", "guides.", "explorer.", "discovery.")
    operations = {route for route, endpoint in routes.items() if not endpoint.startswith(pages)}
    assert operations == set(service.get("/openapi.json").json["paths"])


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


def check_command(command, words):
    """Check that a command, its options and those below it have a help text, and that each is in the documentation."""
    assert command.help, words
    assert [param.name for param in command.params if isinstance(param, click.Option) and not param.help] == []
    if not isinstance(command, click.Group):
        assert f"{words}`" in OPERATIONS
        return
    for name, below in command.commands.items():
        check_command(below, f"{words} {name}")


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


def test_wsgi_contains_only_the_application():
    body = ast.parse((ROOT / "wsgi.py").read_text()).body
    assert [type(node).__name__ for node in body] == ["Expr", "ImportFrom", "ImportFrom", "Expr", "Assign"]


def test_every_package_is_installed():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    folders = [path.parent for name in ("app", "schemas", "scripts") for path in (ROOT / name).rglob("__init__.py")]
    packages = {".".join(path.relative_to(ROOT).parts) for path in folders}
    assert packages == set(setup["options"]["packages"].split())


SOURCES = [
    *(path for folder in ("app", "schemas", "scripts") for path in sorted((ROOT / folder).rglob("*.py"))),
    ROOT / "gunicorn.conf.py",
    ROOT / "wsgi.py",
]
# Names with an underscore that their package documents.
PRIVATE = {
    "super()._deserialize": "marshmallow documents it for fields of one's own, with _serialize",
}
# What may be set on an imported name.
ASSIGNED = {
    "flask.g": "Flask documents it as the place for what belongs to a request",
    "mongomock.collection.BulkOperationBuilder": "mongomock 4.3 fails on bulk writes of pymongo 4.11 and newer (its "
    "issue 912), and has no setting for it; it is for the store in memory alone",
}
# Classes of third parties that may be derived from.
EXTENDED = {
    "apispec.ext.marshmallow.openapi.OpenAPIConverter": "MarshmallowPlugin.Converter is for a class of one's own",
    "click.ClickException": "documented for errors of one's own",
    "click.ParamType": "documented for parameter types of one's own",
    "flask.sessions.SessionInterface": "documented for sessions of one's own; ours opens none",
    "gunicorn.app.base.BaseApplication": "documented for applications of one's own",
    "limits.storage.RedisStorage": "documented for storages of one's own; ours adds a circuit breaker to `incr`",
    "limits.storage.RedisSentinelStorage": "the same",
    "marshmallow.Schema": "declares a shape",
    "marshmallow.fields.Boolean": "documented for fields of one's own",
    "marshmallow.fields.Field": "the same",
    "marshmallow.fields.Float": "the same",
    "marshmallow.fields.Integer": "the same",
    "marshmallow.fields.List": "the same",
    "marshmallow.fields.Nested": "the same",
    "marshmallow.fields.String": "the same",
    "mongomock.MongoClient": "its sessions have no transactions; ours runs what a transaction would",
    "mongomock.collection.BulkOperationBuilder": "see ASSIGNED",
    "pydantic.BaseModel": "declares a shape: the arguments and results of the tools of the MCP server",
    "prometheus_client.registry.Collector": "documented for metrics that are read when they are scraped",
    "pymongo.monitoring.CommandListener": "documented for listeners of one's own",
    "werkzeug.routing.BaseConverter": "documented for converters of one's own",
}


@pytest.fixture(scope="module")
def trees():
    return [ast.parse(path.read_text()) for path in SOURCES]


def test_no_private_name_of_another_package_is_used(trees):
    assert {name for tree in trees for name in private_names(tree)} == PRIVATE.keys()


def test_nothing_is_set_on_what_is_imported(trees):
    assigned = {name for tree in trees for name in assigned_names(tree)}
    assert {"flask.g" if name.startswith("flask.g.") else name for name in assigned} == ASSIGNED.keys()


def test_only_classes_that_are_meant_to_be_are_derived_from(trees):
    assert {name for tree in trees for name in base_classes(tree)} == EXTENDED.keys()


TESTS = [
    path
    for folder in ("tests", "bench")
    for path in sorted((ROOT / folder).rglob("*.py"))
    # Environments of the benchmark, and packages of npm.
    if not any(part.startswith(".") or part == "node_modules" for part in path.relative_to(ROOT).parts)
]
# Attributes that tests and the benchmark set on objects.
SET_BY_TESTS = {
    "Config().bind": "of a class of ours, which refuses it",
    "app.json.sort_keys": "Flask documents it as a setting",
    "case.path_parameters": "Schemathesis documents hooks that change a case",
    "case.query": "the same",
    "TestFeed.settings": "Hypothesis documents it as the place for the settings of a state machine",
    "reference.whole": "of a class of the test's own",
    "start.end": "of a function of the test's own",
    "request.state.fleet": "Starlette documents it as the place for what belongs to a request",
}
# Classes of third parties that tests and the benchmark derive from.
EXTENDED_BY_TESTS = {
    "click.ClickException": "documented for errors of one's own",
    "flask_restx.Resource": "declares an endpoint",
    "flask_restx.fields.Raw": "documented for fields of one's own",
    "hypothesis.stateful.RuleBasedStateMachine": "documented for state machines of one's own",
    "marshmallow.Schema": "declares a shape",
    "pymongo.monitoring.CommandListener": "documented for listeners of one's own",
    "pymongo.monitoring.ConnectionPoolListener": "documented for listeners of one's own",
}


@pytest.fixture(scope="module")
def trees_of_tests():
    return [ast.parse(path.read_text()) for path in TESTS]


def test_tests_use_no_private_name_of_another_package(trees_of_tests):
    assert [name for tree in trees_of_tests for name in private_names(tree)] == []


def test_tests_set_nothing_on_what_is_imported_from_others(trees_of_tests):
    assigned = {name for tree in trees_of_tests for name in assigned_names(tree)}
    # See ASSIGNED.
    assert {name for name in assigned if name.partition(".")[0] not in OWN} == {
        "flask.g.fleet",
        "sys.argv",
        "sys.stdin",
        "sys.stdout",
    }


def test_tests_set_attributes_of_their_own_objects_or_documented_ones(trees_of_tests):
    assert {name for tree in trees_of_tests for name in object_attributes(tree)} == SET_BY_TESTS.keys()


def test_tests_derive_only_from_classes_that_are_meant_to_be_derived_from(trees_of_tests):
    assert {name for tree in trees_of_tests for name in base_classes(tree)} == EXTENDED_BY_TESTS.keys()


def test_tests_import_no_mocks(trees_of_tests):
    imported = {name for tree in trees_of_tests for name in imported_names(tree).values()}
    assert not [name for name in imported if name.startswith("unittest")]


DOCUMENTED = ("app", "schemas", "scripts/ingest", "scripts/materialize")


@pytest.mark.parametrize("path", sorted(path for name in DOCUMENTED for path in (ROOT / name).rglob("*.py")), ids=str)
def test_what_is_public_is_documented(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module) or (
            isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_") and node.col_offset == 0
        ):
            assert ast.get_docstring(node), getattr(node, "name", path)
