"""The OpenAPI document, to the linters of such documents and to Postman."""

import json
import re

import pytest

from tests.clients.test_clients_page import PAGE
from tests.clients.tools import generate, require_npm, run
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


# Requests that may have drivers or a group.
EITHER = ("api/v1/trips", "api/v1/events", "api/v1/driver-aggregate/window")


def test_postman_gets_a_200_for_each_request_with_examples_that_go_together(live, tmp_path):
    (tmp_path / "node_modules").symlink_to(require_npm())
    (commands,) = re.findall(r"^```shell\n([^`]*newman.*?)^```$", PAGE, re.M | re.S)
    commands = commands.rstrip() + " -r json --reporter-json-export ran.json"
    generate("sh", "-euc", commands, cwd=tmp_path, SERVICE=live.url, KEY=live.key)
    executions = json.loads((tmp_path / "ran.json").read_text())["run"]["executions"]
    statuses = {"/".join(ran["item"]["request"]["url"]["path"]): ran["response"]["code"] for ran in executions}
    refused = {"api/v1/report/:link": 403, **dict.fromkeys(EITHER, 400)}
    assert statuses == {path: refused.get(path, 200) for path in statuses}
    assert {"api/v1/report/:link", "api/v1/changes"} < statuses.keys()
