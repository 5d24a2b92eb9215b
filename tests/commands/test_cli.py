"""The command line as a whole."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("driver-analytics")


def run(*words, **environment):
    return subprocess.run(
        [COMMAND, *words], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["import"], 2),
        (["import", "--fleet", "f"], 2),
        (["import", "--fleet", "", "--trips", "setup.cfg"], 2),
        (["keys", "issue", "--fleet", "f", "--expires-in-days", "0"], 2),
        (["rollups", "rebuild", "--since", "today"], 2),
        (["nothing"], 2),
        (["keys", "list", "--fleet", "f"], 1),
    ],
)
def test_an_error_is_one_line_and_a_status(words, status):
    result = run(*words, MONGODB_URI="mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=100")
    assert (result.returncode, result.stdout) == (status, "")
    assert [line[:7] for line in result.stderr.splitlines()] == ["Error: "]


def test_a_setting_is_checked_by_every_command():
    result = run("keys", "list", "--fleet", "f", WEB_CONCURRENCY="abc")
    assert (result.returncode, result.stderr[:36]) == (1, "Error: WEB_CONCURRENCY=abc cannot be")


def test_a_uri_is_never_printed_with_its_password():
    result = run("keys", "list", "--fleet", "f", MONGODB_URI="mongodb://user:12/secret@host/db")
    assert "secret" not in result.stderr
    assert result.stderr.startswith("Error: MONGODB_URI cannot be used")


def test_without_arguments_it_prints_its_help():
    result = run()
    assert result.returncode == 2
    assert "Usage: driver-analytics" in result.stderr
