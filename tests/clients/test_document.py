"""The OpenAPI document, to the linters of such documents."""

import json

import pytest

from tests.clients.tools import require_npm, run
from tests.operations import DOCUMENT

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    """The document, in a file."""
    require_npm()
    path = tmp_path_factory.mktemp("document") / "openapi.json"
    path.write_text(json.dumps(DOCUMENT))
    return path


def test_redocly_reports_no_problem(document):
    linted = run("redocly", "lint", document, "--config=redocly.yaml", "--format=json")
    assert linted.returncode == 0, linted.stderr
    result = json.loads(linted.stdout)
    assert result["problems"] == []
    assert result["totals"] == {"errors": 0, "warnings": 0, "ignored": 0}


def test_spectral_reports_no_problem(document):
    options = ("--ruleset=spectral.yaml", "--fail-severity=hint", "--format=json", "--quiet")
    linted = run("spectral", "lint", document, *options)
    assert (linted.returncode, json.loads(linted.stdout)) == (0, []), linted.stderr
