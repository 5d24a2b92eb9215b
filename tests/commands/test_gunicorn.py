"""`gunicorn wsgi:app`, as a process of its own, with settings that it cannot use."""

import os
import re
import socket
import subprocess

import pytest

from tests.service_process import GUNICORN, ROOT, free_port

NO_STORE = "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=100"
UNSET = ("PROMETHEUS_MULTIPROC_DIR", "SECRET_KEY")


def error_of(**settings):
    """Run gunicorn with settings, one of which it cannot use; return the one line with which it ends."""
    plain = {name: value for name, value in os.environ.items() if name not in UNSET}
    environment = {**plain, "MONGODB_URI": NO_STORE, "BIND": f"127.0.0.1:{free_port()}", **settings}
    ended = subprocess.run(
        [GUNICORN, "wsgi:app"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    (line,) = ended.stderr.splitlines()
    return line


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"RATE_LIMIT": "x"}, "RATE_LIMIT=x cannot be used"),
        ({"MONGODB_URI": ""}, "MONGODB_URI is not set"),
        ({"MONGODB_URI": "mongodb://h:99999"}, "MONGODB_URI cannot be used"),
        ({"BIND": f"unix:{__file__}"}, f"Cannot serve on unix:{__file__}: {__file__} is not a socket"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named_in_one_line(settings, message):
    assert error_of(**settings).startswith(f"Error: {message}")


@pytest.mark.parametrize("folder", ["", "/nowhere"])
def test_metrics_without_a_folder_are_an_error_in_one_line(folder):
    line = error_of(METRICS_BIND=f"127.0.0.1:{free_port()}", PROMETHEUS_MULTIPROC_DIR=folder)
    assert line.startswith(f"Error: PROMETHEUS_MULTIPROC_DIR={folder} cannot be used: METRICS_BIND needs")


@pytest.mark.parametrize("setting", ["BIND", "METRICS_BIND"])
def test_a_port_that_another_gunicorn_shares_is_an_error_in_one_line(setting):
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        bind = f"127.0.0.1:{other.getsockname()[1]}"
        assert re.match(
            rf"Error: Cannot serve on {bind}: Address already in use\. .*{setting}", error_of(**{setting: bind})
        )
