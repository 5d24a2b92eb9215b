"""`gunicorn wsgi:app`, with settings that it cannot use."""

import logging
import os
import re
import socket
import subprocess
import sys

import pytest
from gunicorn.app.wsgiapp import run

from scripts.server import checks
from tests.service_process import GUNICORN, ROOT, free_port

NO_STORE = "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=100"


@pytest.fixture
def error_of(run_main, monkeypatch):
    """Run gunicorn with settings, one of which it cannot use; return the one line with which it ends."""

    def check_application(config):
        checks_application(config)
        # The service would run on in the process of the tests.
        pytest.fail("it serves")

    checks_application = checks.check_application
    monkeypatch.setattr(checks, "check_application", check_application)
    # It would change the log of the tests.
    monkeypatch.setattr("app.logs.configure", lambda: None)
    monkeypatch.chdir(ROOT)
    # gunicorn reads the settings from the environment when it imports them.
    monkeypatch.delitem(sys.modules, "scripts.server.gunicorn_conf", raising=False)
    monkeypatch.delenv("SECRET_KEY", raising=False)

    def error_of(**settings):
        plain = {"MONGODB_URI": NO_STORE, "BIND": f"127.0.0.1:{free_port()}"}
        ended = run_main("wsgi:app", program=run, **{**plain, **settings})
        for handler in logging.getLogger("gunicorn.error").handlers:
            handler.close()
        assert (ended.status, ended.stdout) == (1, "")
        (line,) = ended.stderr.splitlines()
        return line

    return error_of


def test_the_program_ends_with_one_line():
    environment = {**os.environ, "MONGODB_URI": "mongodb://h:99999", "BIND": f"127.0.0.1:{free_port()}"}
    ended = subprocess.run(
        [GUNICORN, "wsgi:app"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (1, "", 1)
    assert ended.stderr.startswith("Error: MONGODB_URI cannot be used")


PORT = free_port()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"RATE_LIMIT": "x"}, "RATE_LIMIT=x cannot be used"),
        ({"MONGODB_URI": ""}, "MONGODB_URI is not set"),
        ({"BIND": f"unix:{__file__}"}, f"Cannot serve on unix:{__file__}: {__file__} is not a socket"),
        (
            {"BIND": f"0.0.0.0:{PORT}", "METRICS_BIND": f"127.0.0.1:{PORT}"},
            f"Cannot serve on 127.0.0.1:{PORT}: Address already in use. ",
        ),
    ],
    ids=["RATE_LIMIT", "MONGODB_URI", "no socket", "one port twice"],
)
def test_a_setting_that_cannot_be_used_is_named_in_one_line(error_of, settings, message):
    assert error_of(**settings).startswith(f"Error: {message}")


@pytest.mark.parametrize("setting", ["BIND", "METRICS_BIND"])
def test_a_port_that_another_gunicorn_shares_is_an_error_in_one_line(error_of, setting):
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        bind = f"127.0.0.1:{other.getsockname()[1]}"
        assert re.match(
            rf"Error: Cannot serve on {bind}: Address already in use\. .*{setting}", error_of(**{setting: bind})
        )
