"""The live service keeps to its OpenAPI document, whatever Schemathesis sends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.store import Store
from schemas.report import ReportWindow
from scripts.reports.build import build_report
from tests.contract.fleet import DRIVERS, REPORT_DATE, TRIPS
from tests.service_process import run_service
from tests.store_contents import issue_key, load

pytestmark = pytest.mark.large

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
ROOT = Path(__file__).parent.parent.parent
CONFIG = Path(__file__).with_name("schemathesis.toml")
# The stateful phase has a run of its own. No setting keeps it from drawing from the responses to earlier phases, as
# schemathesis.toml does for these, and for the same reason it may then end after a few examples.
PHASES = ("examples,coverage,fuzzing", "stateful")


@pytest.fixture(scope="module")
def live(tmp_path_factory, mongod_uri):
    """The address of the service as in production, with a fleet and no limit to speak of, and what requests know."""
    limits = dict.fromkeys(("RATE_LIMIT", "AUTH_FAILURE_LIMIT"), "1000000 per minute")
    folder = tmp_path_factory.mktemp("live")
    settings = {**limits, "LOG_LEVEL": "ERROR", "REPORT_LINK_MINUTES": "60"}
    with run_service(mongod_uri, folder, "contract", **settings) as (process, db):
        load(db, *TRIPS, drivers=DRIVERS)
        build_report(Store.of(db), "f1", ReportWindow(REPORT_DATE))
        key = issue_key(db, "f1")
        link = process.get(f"/report?report_time={REPORT_DATE}T00:00:00", key)[1]["report_link"]
        cursor = process.get("/changes?limit=1", key)[1]["cursor"]
        known = {"CONTRACT_KEY": key, "CONTRACT_LINK": link.rpartition("/")[2], "CONTRACT_CURSOR": cursor}
        yield process.bind, known


@pytest.mark.parametrize("phases", PHASES)
def test_no_check_fails(live, tmp_path, phases):
    bind, known = live
    document = f"http://{bind}/api/v1/openapi.json"
    command = [SCHEMATHESIS, "--config-file", CONFIG, "run", document, "--phases", phases, "--no-color"]
    environment = {**os.environ, **known, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
