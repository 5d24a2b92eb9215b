"""The OpenAPI document, to the linters of such documents."""

import json

import pytest

pytestmark = pytest.mark.clients


def test_redocly_reports_no_problem(document, node_modules, run):
    linted = run("redocly", "lint", document, "--config=redocly.yaml", "--format=json")
    assert linted.returncode == 0, linted.stderr
    result = json.loads(linted.stdout)
    assert result["problems"] == []
    assert result["totals"] == {"errors": 0, "warnings": 0, "ignored": 0}


def test_spectral_reports_no_problem(document, node_modules, run):
    options = ("--ruleset=spectral.yaml", "--fail-severity=hint", "--format=json", "--quiet")
    linted = run("spectral", "lint", document, *options)
    assert (linted.returncode, json.loads(linted.stdout)) == (0, []), linted.stderr
