"""`driver-analytics follow` as a process, and the example of docs/data.md."""

import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest
from pymongo import MongoClient

from app.store import Store
from scripts.mongodb.collections import prepare_collections
from tests.factories import make_trip
from tests.fleet_states import differences
from tests.following import Following, make_source
from tests.service_process import COMMAND, ROOT, ServiceProcess, free_port, wait_until

PAGE = (ROOT / "docs" / "data.md").read_text()
(EXAMPLE,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
TRIP = re.findall(r"^```json\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)[1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_applies_what_is_written_until_a_signal_ends_it(mongod_uri, mongod, tmp_path, number):
    bind = f"127.0.0.1:{free_port()}"
    settings = {"MONGODB_URI": mongod_uri, "MONGODB_DATABASE": mongod.name, "METRICS_BIND": bind}
    with ServiceProcess(tmp_path, words=(COMMAND, "follow"), **settings) as process:
        process.read(1)
        mongod.trips.insert_one(make_source(make_trip(trip_id="t1")))
        wait_until(lambda: mongod.trip_details.find_one({"trip_id": "t1"}))
        with urllib.request.urlopen(f"http://{bind}/metrics", timeout=10) as response:
            assert "driver_analytics_follow_lag_seconds " in response.read().decode()
        process.process.send_signal(number)
        assert process.process.wait(60) == 0
    assert process.output == ["Following test.drivers, test.driver_groups, test.trips"]
    assert "Traceback" not in process.errors


def test_a_metrics_port_in_use_is_an_error_in_one_line(run_main):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run_main("follow", METRICS_BIND=f"127.0.0.1:{taken.getsockname()[1]}")
    assert (result.status, result.stdout) == (1, "")
    assert result.stderr.endswith("set METRICS_BIND to another ADDRESS:PORT.\n")


@pytest.fixture
def printed_line(mongod_uri, data_folder):
    """The line for a shell that `serve` prints about its MongoDB."""
    with ServiceProcess(data_folder / "printed") as service:
        yield service.read(2)[1].removeprefix("The embedded MongoDB: ")


def test_the_example_in_data_md_runs_with_the_line_that_serve_prints(printed_line):
    _, setting = shlex.split(printed_line)
    with MongoClient(setting.removeprefix("MONGODB_URI=")) as client:
        db = client["driver_analytics"]
        prepare_collections(Store.of(db))
        # If MongoDB refuses a document, standard error names the field.
        program = ["bash", "-c", f'{printed_line}\n"$0" -c "$1"', sys.executable, EXAMPLE]
        subprocess.run(program, input=TRIP, text=True, check=True)
        Following(db).catch_up()
        assert [trip["distance_miles"] for trip in db.trip_details.find()] == [4.1]
        assert '"first_name":"Amina"' in db.driver_periods.find_one({"period": "profile"})["json"]
        assert differences(db) == []
