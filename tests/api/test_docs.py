"""The page that shows the document, and its files."""

import re

import pytest


@pytest.fixture
def page(service):
    return service.get("/docs", fleet=None, buffered=True)


def policy(page):
    return dict(rule.split(" ", 1) for rule in page.headers["Content-Security-Policy"].split("; "))


def test_the_page_needs_no_key(page):
    assert (page.status_code, page.content_type) == (200, "text/html; charset=utf-8")


def test_the_page_may_run_scripts_of_and_connect_to_the_service_only(page):
    assert policy(page)["default-src"] == "'none'"
    assert policy(page)["script-src"] == policy(page)["connect-src"] == "'self'"


def test_the_page_has_no_inline_script_or_style(page):
    assert re.findall(r"<script(?![^>]* src=)|<style| on\w+=| style=", page.text) == []


def test_every_file_that_the_page_refers_to_is_served(service, page):
    for name in re.findall(r'(?:href|src)="([^"]*)"', page.text):
        file = service.get(f"/{name}", fleet=None, buffered=True)
        assert (file.status_code, len(file.data) > 0) == (200, True), name


def test_a_file_is_sent_once_and_then_revalidated(service):
    first = service.get("/docs/docs.js", fleet=None, buffered=True)
    again = service.get("/docs/docs.js", fleet=None, buffered=True, headers={"If-None-Match": first.headers["ETag"]})
    assert (first.headers["Cache-Control"], again.status_code, again.data) == ("public, no-cache", 304, b"")


@pytest.mark.parametrize("name", ["index.html", "../auth.py", "..%2Fauth.py", "swagger-ui.js", ""])
def test_no_other_file_is_served(service, name):
    assert service.get(f"/docs/{name}").status_code == 404
