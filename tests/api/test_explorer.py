"""The explorer, the page at `/`, and its files."""

import html
import json
import re

import pytest

from app.store.score import BEHAVIOURS
from app.views.explorer import FILES

TILES = "https://tiles.example.com:8443/{z}/{x}/{y}.png?key=abc"


@pytest.fixture
def page(service):
    return service.open("/", fleet=None)


def policy(page):
    return dict(rule.split(" ", 1) for rule in page.headers["Content-Security-Policy"].split("; "))


def settings(page):
    (content,) = re.findall(r'name="explorer-settings" content="([^"]*)"', page.text)
    return json.loads(html.unescape(content))


def test_the_page_needs_no_key(page):
    assert (page.status_code, page.content_type) == (200, "text/html; charset=utf-8")


def test_the_page_may_load_files_and_data_of_the_service_and_nothing_else(page):
    sources = policy(page)
    denied = {name for name, source in sources.items() if source == "'none'"}
    assert denied == {"default-src", "base-uri", "form-action", "frame-ancestors"}
    assert {source for name, source in sources.items() if name not in denied} == {"'self'"}


def test_the_page_has_no_inline_script_or_style(page):
    assert re.findall(r"<script(?![^>]* src=)|<style| on\w+=| style=", page.text) == []


def test_every_file_and_link_of_the_page_is_served(service, page):
    links = re.findall(r'(?:href|src)="([^"#]+)"', page.text)
    assert {"explorer/main.js", "explorer/explorer.css", "api/v1/docs", "api/v1/healthz"} < {*links}
    for link in links:
        assert service.open(f"/{link}", fleet=None, buffered=True).status_code == 200, link


def test_the_page_has_the_table_of_the_score(page):
    table = {row["name"]: (row["cap"], row["weight"]) for row in settings(page)["behaviours"]}
    assert table == {behaviour.name: (behaviour.cap, behaviour.weight) for behaviour in BEHAVIOURS}


def test_map_tiles_of_the_operators_choice_are_allowed_from_their_host_alone(make_service):
    page = make_service(map_tiles_url=TILES, map_tiles_attribution='<b>"Tiles"</b>').open("/")
    assert policy(page)["img-src"] == "'self' data: https://tiles.example.com:8443"
    assert "tiles.example.com" not in policy(page)["connect-src"] + policy(page)["default-src"]
    assert (settings(page)["map_tiles_url"], settings(page)["map_tiles_attribution"]) == (TILES, '<b>"Tiles"</b>')


@pytest.mark.parametrize("name", FILES)
def test_a_file_needs_no_key_and_is_sent_once_and_then_revalidated(service, name):
    first = service.open(f"/explorer/{name}", fleet=None, buffered=True)
    again = service.open(f"/explorer/{name}", fleet=None, headers={"If-None-Match": first.headers["ETag"]})
    assert first.headers["Cache-Control"] == "public, no-cache"
    assert (first.status_code, again.status_code, again.data) == (200, 304, b"")


def test_the_page_is_sent_once_and_then_revalidated(service, page):
    again = service.open("/", fleet=None, headers={"If-None-Match": page.headers["ETag"]})
    assert (page.headers["Cache-Control"], again.status_code, again.data) == ("public, no-cache", 304, b"")


@pytest.mark.parametrize("path", ["/", "/explorer/main.js"])
def test_the_page_and_its_files_do_not_count_as_requests_of_the_fleet(service, path):
    assert "X-RateLimit-Remaining" not in service.open(path).headers


@pytest.mark.parametrize("name", ["index.html", "../config.py", "..%2Fconfig.py", "leaflet-src.js", ""])
def test_no_other_file_is_served(service, name):
    assert service.open(f"/explorer/{name}").status_code == 404


@pytest.mark.parametrize("accept", ["text/html", "*/*", "text/*;q=0.1", "application/json, */*;q=0.5", ""])
def test_a_client_that_accepts_html_gets_the_page(service, accept):
    assert service.open("/", fleet=None, headers={"Accept": accept}).status_code == 200


@pytest.mark.parametrize("accept", ["application/json", "application/problem+json", "text/html;q=0, application/json"])
def test_a_client_that_does_not_accept_html_gets_the_error_of_an_unknown_path(service, accept):
    headers = {"Accept": accept}
    response, unknown = (service.open(path, fleet=None, headers=headers) for path in ("/", "/nothing"))
    assert (response.status_code, response.content_type) == (404, unknown.content_type)
    assert {**response.json, "request_id": ""} == {**unknown.json, "request_id": ""}
    assert "Accept" in response.headers["Vary"]
