"""The OpenAPI document, to the linters of such documents."""

import json

import pytest

pytestmark = pytest.mark.clients


def test_redocly_has_nothing_to_say(document, node_modules, run):
    linted = run("redocly", "lint", document, "--config=redocly.yaml", "--format=json")
    assert linted.returncode == 0, linted.stderr
    found = json.loads(linted.stdout)
    assert found["problems"] == []
    assert found["totals"] == {"errors": 0, "warnings": 0, "ignored": 0}


def test_spectral_has_nothing_to_say(document, node_modules, run):
    options = ("--ruleset=spectral.yaml", "--fail-severity=hint", "--format=json", "--quiet")
    linted = run("spectral", "lint", document, *options)
    assert (linted.returncode, json.loads(linted.stdout)) == (0, []), linted.stderr
