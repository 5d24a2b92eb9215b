"""The documentation of the errors: the page that the `type` of a problem links to, and docs/errors.md."""

import html
import inspect
import re
from pathlib import Path

import pytest

from app.errors import find_error_types

MARKDOWN = (Path(__file__).parents[2] / "docs" / "errors.md").read_text()
PROBLEM = {"Accept": "application/problem+json"}


def flat(text):
    return " ".join(text.split())


@pytest.fixture
def page(service):
    return service.get("/docs/errors", fleet=None)


@pytest.mark.parametrize("error_type", find_error_types(), ids=lambda error_type: error_type.__name__)
def test_the_page_describes_the_cause_and_the_remedy_of_an_error(page, error_type):
    section = re.search(rf'<section id="{error_type.__name__}">(.*?)</section>', page.text, re.DOTALL).group(1)
    text = html.unescape(re.sub("</?code>", "`", section))
    assert inspect.getdoc(error_type) in text
    assert error_type.remedy in text


def test_the_errors_in_the_documentation_are_those_of_the_service():
    sections = [
        f"## {error_type.__name__} Status {error_type.status.value} {error_type.status.phrase}. "
        f"**Cause:** {flat(inspect.getdoc(error_type))} **Remedy:** {error_type.remedy}"
        for error_type in find_error_types()
    ]
    assert flat(MARKDOWN).partition(" ## ")[2] == " ".join(sections).removeprefix("## ")


def test_the_page_of_errors_needs_no_key_and_runs_no_script(page):
    assert (page.status_code, page.content_type) == (200, "text/html; charset=utf-8")
    policy = page.headers["Content-Security-Policy"].split("; ")
    assert ("default-src 'none'" in policy, "style-src 'unsafe-inline'" in policy) == (True, True)
    assert not [directive for directive in policy if directive.startswith("script-src")]


def test_the_page_of_errors_is_revalidated(service, page):
    second = service.get("/docs/errors", fleet=None, headers={"If-None-Match": page.headers["ETag"]})
    assert (page.headers["Cache-Control"], second.status_code) == ("public, no-cache", 304)


def test_the_type_of_a_problem_links_to_the_section_of_the_error(service, page):
    problem = service.get("/nothing", headers=PROBLEM).json
    url, _, anchor = problem["type"].partition("#")
    assert (url, anchor) == ("http://localhost/api/v1/docs/errors", problem["error"])
    assert f'id="{anchor}"' in page.text


def test_the_type_of_a_problem_is_under_the_public_base_url(make_service):
    service = make_service(public_base_url="https://api.example.com/driving")
    problem = service.get("/drivers", fleet=None, headers=PROBLEM).json
    assert problem["type"] == "https://api.example.com/driving/api/v1/docs/errors#Unauthorized"
