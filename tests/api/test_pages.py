"""The pages: the explorer at `/`, the documentation at /docs, and the errors."""

import html
import json
import re
from urllib.parse import urljoin

import pytest

from app.errors import find_error_types
from schemas.score import BEHAVIOURS

EXPLORER, DOCS, ERRORS = "/", "/api/v1/docs", "/api/v1/docs/errors"
FILES = ["/explorer/main.js", "/explorer/leaflet.js", "/api/v1/docs/docs.js", "/api/v1/docs/clients.md", "/llms.txt"]
FILES += ["/.well-known/api-catalog", "/api/v1/openapi.json"]
SCRIPTS = pytest.mark.parametrize("path", [EXPLORER, DOCS])
TILES = "https://tiles.example.com:8443/{z}/{x}/{y}.png?key=abc"
PROBLEM = {"Accept": "application/problem+json"}


@pytest.fixture
def service(shared_service):
    """The service. No test of this module writes."""
    return shared_service


def get_page(service, path, **options):
    return service.open(path, fleet=None, buffered=True, **options)


def policy(page):
    return dict(rule.split(" ", 1) for rule in page.headers["Content-Security-Policy"].split("; "))


def settings(page):
    (content,) = re.findall(r'name="explorer-settings" content="([^"]*)"', page.text)
    return json.loads(html.unescape(content))


@pytest.mark.parametrize("path", [EXPLORER, DOCS, ERRORS, *FILES])
def test_a_page_or_file_needs_no_key_is_not_counted_and_is_sent_once_and_then_revalidated(service, path):
    first = get_page(service, path)
    again = get_page(service, path, headers={"If-None-Match": first.headers["ETag"]})
    assert path in FILES or first.content_type == "text/html; charset=utf-8"
    assert (first.status_code, first.headers["Cache-Control"]) == (200, "public, no-cache")
    assert (again.status_code, again.data) == (304, b"")
    assert "X-RateLimit-Remaining" not in service.open(path, buffered=True).headers


@SCRIPTS
def test_a_page_has_no_inline_script_or_style_and_all_it_refers_to_is_served(service, path):
    page = get_page(service, path)
    assert re.findall(r"<script(?![^>]* src=)|<style| on\w+=| style=", page.text) == []
    links = re.findall(r'(?:href|src)="([^"#]+)"', page.text)
    assert len(links) > 3
    for link in links:
        assert get_page(service, urljoin(path, link)).data, link


def test_a_page_may_run_and_load_what_the_service_serves_and_nothing_else(service):
    explorer, docs, errors = (policy(get_page(service, path)) for path in (EXPLORER, DOCS, ERRORS))
    denied = {name for name, source in explorer.items() if source == "'none'"}
    assert denied == {"default-src", "base-uri", "form-action", "frame-ancestors"}
    assert {source for name, source in explorer.items() if name not in denied} == {"'self'"}
    assert docs["script-src"] == docs["connect-src"] == "'self'"
    assert docs["default-src"] == errors["default-src"] == "'none'"
    assert "script-src" not in errors


def test_map_tiles_of_the_operators_choice_are_allowed_from_their_host_alone(make_service):
    page = make_service(map_tiles_url=TILES, map_tiles_attribution='<b>"Tiles"</b>').open("/")
    assert policy(page)["img-src"] == "'self' data: https://tiles.example.com:8443"
    assert "tiles.example.com" not in policy(page)["connect-src"] + policy(page)["default-src"]
    assert (settings(page)["map_tiles_url"], settings(page)["map_tiles_attribution"]) == (TILES, '<b>"Tiles"</b>')


def test_the_explorer_has_the_table_of_the_score(service):
    table = {row["name"]: (row["cap"], row["weight"]) for row in settings(get_page(service, "/"))["behaviours"]}
    assert table == {behaviour.name: (behaviour.cap, behaviour.weight) for behaviour in BEHAVIOURS}


@pytest.mark.parametrize("folder", ["/explorer", "/api/v1/docs"])
@pytest.mark.parametrize("name", ["index.html", "../config.py", "..%2Fconfig.py", "swagger-ui.js", ""])
def test_no_other_file_is_served(service, folder, name):
    assert service.open(f"{folder}/{name}").status_code == 404


@pytest.mark.parametrize("accept", ["text/html", "*/*", "text/*;q=0.1", ""])
def test_a_client_that_accepts_html_gets_the_explorer(service, accept):
    assert get_page(service, "/", headers={"Accept": accept}).status_code == 200


@pytest.mark.parametrize("accept", ["application/json", "application/problem+json", "text/html;q=0, application/json"])
def test_a_client_that_does_not_accept_html_gets_the_error_of_an_unknown_path(service, accept):
    response, unknown = (get_page(service, path, headers={"Accept": accept}) for path in ("/", "/nothing"))
    assert (response.status_code, response.content_type) == (404, unknown.content_type)
    assert {**response.json, "request_id": ""} == {**unknown.json, "request_id": ""}
    assert "Accept" in response.headers["Vary"]


@pytest.mark.parametrize("error_type", find_error_types(), ids=lambda error_type: error_type.__name__)
def test_the_page_of_errors_describes_status_cause_and_remedy_of_an_error(service, error_type):
    section = re.search(
        rf'<section id="{error_type.__name__}">(.*?)</section>', get_page(service, ERRORS).text, re.DOTALL
    )[1]
    text = re.sub("</?code>", "`", section)
    assert set(re.findall("<[^>]*>", text)) == {"<h2>", "</h2>", "<p>", "</p>", "<strong>", "</strong>"}
    for shown in (f"Status {error_type.status.value} ", *error_type.describe()):
        assert shown in html.unescape(text)


def test_the_type_of_a_problem_links_to_the_section_of_the_error(service):
    assert service.get("/nothing", headers=PROBLEM).json["type"] == f"http://localhost{ERRORS}#NotFound"
