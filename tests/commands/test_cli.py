"""The command line as a whole."""

import re
import signal
import subprocess
import sys

import click
import pytest

from scripts.cli import cli
from tests.service_process import COMMAND, ROOT, reset_ctrl_c

# The program, which Ctrl-C interrupts while it loads.
INTERRUPT = """
import os, signal, sys
from scripts.entry_point import main

class Interrupt:
    def find_spec(self, name, *_):
        if name == "scripts.cli":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
main()
"""

USAGE_ERRORS = {
    "nothing": "No such command",
    "import": "Missing option '--fleet'",
    "import --fleet f": "Give --drivers, --trips or both",
    "import --fleet  --trips setup.cfg": "Invalid value for '--fleet'",
    "import --fleet f --trips .": "Invalid value for '--trips'",
    "import --fleet f --drivers - --trips -": "Inputs and files of rejected lines must differ",
    "import --fleet f --drivers setup.cfg --trips setup.cfg": "Inputs and files of rejected lines must differ",
    "import --fleet f --trips setup.cfg --rejects nowhere": "Invalid value for '--rejects'",
    "import --fleet f --trips setup.cfg --trips README.md": "Give --trips once",
    "erase --fleet f --driver a --driver b --yes": "Give --driver once",
    "fleets set --fleet f --time-zone America/Dever": "Invalid value for '--time-zone': There is no time zone",
    "fleets set --fleet f --time-zone +02:00": "Invalid value for '--time-zone': +02:00 is an offset",
    "keys issue --fleet f --expires-in-days 0": "Invalid value for '--expires-in-days'",
    "keys issue --fleet f --expires-in-days 36501": "Invalid value for '--expires-in-days'",
    "keys issue --fleet f --expires-in-days 1.5": "Invalid value for '--expires-in-days'",
    "keys revoke ": "Invalid value for 'KEY_ID': Must",
    "keys revoke a\tb": "Invalid value for 'KEY_ID': Must",
    "keys revoke \udcff": "Invalid value for 'KEY_ID': Must",
    "prune": "Missing option '--before'",
    "rollups rebuild --since 2026-02-30": "Invalid value for '--since'",
}


@pytest.mark.parametrize(("words", "message"), USAGE_ERRORS.items(), ids=USAGE_ERRORS)
def test_a_usage_error_is_one_line_that_names_the_fix(run_main, words, message):
    result = run_main(*words.split(" "))
    assert (result.status, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"Error: {message}")


def commands_of(command, *words):
    """Yield the words and the object of a command, and of all below it."""
    yield words, command
    if isinstance(command, click.Group):
        for name in command.list_commands(None):
            yield from commands_of(command.get_command(None, name), *words, name)


WITH_FLEET = [words for words, found in commands_of(cli) if any("--fleet" in param.opts for param in found.params)]


@pytest.mark.parametrize("words", WITH_FLEET, ids=" ".join)
def test_a_fleet_with_a_slash_is_refused(command, words):
    result = command(*words, "--fleet", "a/b")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Invalid value for '--fleet': Must not contain a slash." in result.stderr


def test_every_command_has_a_help_text_and_is_documented():
    page = (ROOT / "docs" / "operations.md").read_text()
    for words, found in commands_of(cli, "driver-analytics"):
        assert found.help, words
        assert [param.name for param in found.params if isinstance(param, click.Option) and not param.help] == []
        assert isinstance(found, click.Group) or f"{' '.join(words)}`" in page


def test_a_setting_is_checked_by_every_command(run_main):
    result = run_main("keys", "list", "--fleet", "f", WEB_CONCURRENCY="abc")
    assert (result.status, result.stderr[:36]) == (1, "Error: WEB_CONCURRENCY=abc cannot be")


def test_a_variable_that_is_nearly_a_setting_is_named(run_main):
    warning = "Warning: MONGODB_URL is not a setting: did you mean MONGODB_URI?\n"
    assert run_main("openapi", MONGODB_URL="mongodb://db").stderr == warning


def test_a_mongodb_that_does_not_respond_is_named_with_what_to_do(run_main):
    result = run_main("keys", "list", "--fleet", "f", MONGODB_URI="mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=100")
    message = r"Error: No MongoDB responds: 127\.0\.0\.1:1: [^()]*\. Start it, or correct MONGODB_URI\.\n"
    assert (result.status, result.stdout) == (1, "")
    assert re.fullmatch(message, result.stderr)


@pytest.mark.parametrize(
    "words", ["rollups verify", "rollups rebuild", "prune --before 2026-01-01", "reports build --due", "fleets list"]
)
def test_a_command_on_all_fleets_says_if_the_database_has_none(command, mongod, words):
    result = command(*words.split())
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "Nothing is stored in the database test.\n")


def test_it_prints_its_help_without_arguments(run_main):
    result = run_main()
    assert result.status == 2
    assert "Usage: driver-analytics" in result.stderr


def test_a_missing_extra_is_named_with_the_way_to_install_it(run_main, monkeypatch):
    monkeypatch.setitem(sys.modules, "anyio", None)
    result = run_main("mcp")
    assert (result.status, result.stderr.count("\n")) == (1, 1)
    assert result.stderr.startswith("Error: The extra mcp is not installed (")
    assert "pip install '/path/to/clone[mcp]'" in result.stderr


def test_a_full_standard_output_is_an_error_in_one_line(monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    with open("/dev/full", "w") as full:
        result = subprocess.run([COMMAND, "openapi"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (result.returncode, result.stderr) == (1, "Error: [Errno 28] No space left on device\n")


def test_the_installed_program_prints_an_error_in_one_line():
    result = subprocess.run([COMMAND, "keys", "list"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert result.stderr.startswith("Error: ")


def test_ctrl_c_while_it_loads_ends_it_without_a_traceback():
    words = [sys.executable, "-c", INTERRUPT]
    result = subprocess.run(words, capture_output=True, text=True, check=False, preexec_fn=reset_ctrl_c)
    assert (result.returncode, result.stderr) == (-signal.SIGINT, "")
