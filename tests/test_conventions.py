"""Conventions of the whole project: every route, every setting, every document."""

import dataclasses
import re

import pytest

from app.config import API, Config
from schemas.error import ErrorBody
from tests.service_process import ROOT

CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text()
# The cells of each setting's row: name, default, unit, meaning, example.
SETTING_ROWS = re.findall(r"^\| `([A-Z_]+)` \| (.+?) \| (.+?) \| (.+?) \| `(.+?)` \|$", CONFIGURATION, re.MULTILINE)
MARKDOWN = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
SAMPLE = {"driver_id": "d1", "filter_param": "trip_id", "filter_value": "t1", "link": "x", "guide": "clients.md"}
PAGES = ("docs.", "explorer.", "discovery.")
REPORT_FILE = "report.get_report_file"
FILES = {"docs.get_file": "docs.js", "explorer.get_file": "main.js"}


def find_routes(service):
    """Return the rule of every route, and a path that it matches."""
    with service.app.test_request_context():
        build = service.app.url_map.bind("").build
        return [
            (rule, build(rule.endpoint, {**SAMPLE, "name": FILES.get(rule.endpoint)}, append_unknown=False))
            for rule in service.app.url_map.iter_rules()
        ]


def test_every_route_requires_a_key_except_pages_health_checks_and_report_files(service):
    open_to_all = {
        rule.endpoint
        for rule, path in find_routes(service)
        if service.open(path, fleet=None, buffered=True).status_code != 401
    }
    assert {endpoint for endpoint in open_to_all if not endpoint.startswith(PAGES)} == {
        "health.get_health",
        "health.get_liveness",
        REPORT_FILE,
    }


def test_every_route_only_reads(service):
    assert {frozenset(rule.methods) for rule, _ in find_routes(service)} == {frozenset({"GET", "HEAD"})}


def test_every_route_of_the_api_refuses_unknown_parameters_and_all_others_ignore_them(service):
    for rule, path in find_routes(service):
        response = service.open(f"{path}?unknown=1&unknown=2", buffered=True)
        if not path.startswith(API):
            assert response.status_code == 200, path
        elif rule.endpoint != REPORT_FILE:
            assert (response.status_code, list(response.json)) == (400, list(ErrorBody().fields)), path
            assert response.json["errors"]["unknown"] == ["Unknown parameter."]


def test_every_route_ignores_unknown_parameters_if_the_setting_says_so(make_service):
    service = make_service(unknown_parameters="ignore")
    for _, path in find_routes(service):
        plain, more = (service.open(path + query, buffered=True) for query in ("", "?no-such-parameter=1"))
        assert (more.status_code, "no-such-parameter" in more.text) == (plain.status_code, False), path


def test_every_route_is_in_the_readme_and_all_but_pages_in_the_openapi_document(service):
    routes = {re.sub(r"<[^>]*?(\w+)>", r"{\1}", rule.rule): rule.endpoint for rule, _ in find_routes(service)}
    readme = (ROOT / "README.md").read_text()
    assert [route for route in routes if f"`{route}`" not in readme] == []
    operations = {route for route, endpoint in routes.items() if not endpoint.startswith(PAGES)}
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
