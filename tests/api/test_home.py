"""The page at `/`."""

import re

import pytest


@pytest.fixture
def page(service):
    return service.open("/", fleet=None)


def test_it_is_a_page_for_everyone(page):
    assert (page.status_code, page.content_type) == (200, "text/html; charset=utf-8")


def test_no_script_runs_on_it_and_only_its_own_stylesheet_and_icon_load(page):
    policy = dict(rule.split(" ", 1) for rule in page.headers["Content-Security-Policy"].split("; "))
    assert policy.pop("default-src") == policy["base-uri"] == policy["form-action"] == "'none'"
    assert {name for name, source in policy.items() if source == "'self'"} == {"style-src", "img-src"}
    assert re.findall(r"<script|<style| on\w+=| style=", page.text) == []


def test_every_link_of_it_leads_somewhere(service, page):
    links = re.findall(r'(?:href|src)="([^"]*)"', page.text)
    assert {"api/v1/docs", "api/v1/healthz", "api/v1/openapi.json"} < {*links}
    for link in links:
        assert service.open(f"/{link}", fleet=None, buffered=True).status_code == 200, link


def test_its_example_is_a_request_that_works(service, page, load):
    (path,) = re.findall(r"http://127.0.0.1:8000(/api/[^\"]*)", page.text)
    assert list(service.open(path).json) == ["count", "limit", "current_page", "next_page", "drivers"]


def test_it_names_the_file_of_the_demo_key(page):
    assert "APIKEY $(cat .data/demo.key)" in page.text
    assert "DATA_DIR/demo.key" in page.text


def test_it_does_not_count_as_a_request_of_the_fleet(service):
    assert "X-RateLimit-Remaining" not in service.open("/").headers


def test_it_is_sent_once_and_then_revalidated(service, page):
    again = service.open("/", fleet=None, headers={"If-None-Match": page.headers["ETag"]})
    assert (page.headers["Cache-Control"], again.status_code, again.data) == ("public, no-cache", 304, b"")


@pytest.mark.parametrize("accept", ["text/html", "*/*", "text/*;q=0.1", "application/json, */*;q=0.5", ""])
def test_a_client_that_accepts_html_gets_it(service, accept):
    assert service.open("/", fleet=None, headers={"Accept": accept}).status_code == 200


@pytest.mark.parametrize("accept", ["application/json", "application/problem+json", "text/html;q=0, application/json"])
def test_a_client_that_does_not_accept_html_gets_the_error_of_an_unknown_path(service, accept):
    headers = {"Accept": accept}
    response, unknown = (service.open(path, fleet=None, headers=headers) for path in ("/", "/nothing"))
    assert (response.status_code, response.content_type) == (404, unknown.content_type)
    assert {**response.json, "request_id": ""} == {**unknown.json, "request_id": ""}
    assert "Accept" in response.headers["Vary"]
