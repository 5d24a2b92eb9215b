"""The live service keeps to its OpenAPI document, whatever Schemathesis sends."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from app.store import Store
from schemas.report import ReportWindow
from scripts.reports.build import build_report
from tests import operations
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
EXAMPLES = 300
# All that take a key. Of the others, health takes no parameters, so there is but one request to make, and any text has
# the shape of a link.
OPERATIONS = {f"GET {path}" for path, operation in operations.OPERATIONS.items() if operation.get("security") != []}
LINK = "GET /api/v1/report/{link}"
LEAST_SHARE_ACCEPTED = 0.6


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


@pytest.fixture(scope="module")
def runs(live, tmp_path_factory):
    """The finished runs of Schemathesis, and their responses: (operation, phase, mode, status) and how many."""
    bind, known = live
    folder = tmp_path_factory.mktemp("schemathesis")
    environment = {**os.environ, **known, "PYTHONPATH": str(ROOT), "CONTRACT_RESPONSES": str(folder / "responses.json")}
    document = f"http://{bind}/api/v1/openapi.json"
    finished, responses = [], []
    for phases in PHASES:
        command = [SCHEMATHESIS, "--config-file", CONFIG, "run", document, "--phases", phases, "--no-color"]
        options = {"capture_output": True, "text": True, "check": False}
        finished.append(subprocess.run(command, cwd=folder, env=environment, **options))
        responses += json.loads((folder / "responses.json").read_text())
    return finished, [(tuple(kind), count) for *kind, count in responses]


def test_no_check_fails(runs, report):
    finished, responses = runs
    positive, accepted = valid(responses)
    report(f"Schemathesis: {accepted.total()} of {positive.total()} valid requests got 200 or 304")
    for run in finished:
        assert run.returncode == 0, run.stdout + run.stderr


def test_every_operation_gets_the_configured_number_of_examples(runs):
    generated = counted(runs[1], phase="fuzzing")
    enough = {operation for operation, count in generated.items() if count >= EXAMPLES}
    assert enough == {*OPERATIONS, LINK}


def test_most_valid_requests_succeed(runs):
    positive, accepted = valid(runs[1])
    assert min(accepted[operation] / positive[operation] for operation in OPERATIONS) > LEAST_SHARE_ACCEPTED


def valid(responses):
    """Count the responses to valid requests by operation: all, and those with status 200 or 304."""
    accepted = [counted(responses, mode="positive", status=status) for status in (200, 304)]
    return counted(responses, mode="positive"), sum(accepted, Counter())


def counted(responses, **kind_filter):
    """Count responses by operation."""
    counts = Counter()
    for (operation, *rest), count in responses:
        kind = dict(zip(("phase", "mode", "status"), rest, strict=True))
        counts[operation] += count if kind_filter.items() <= kind.items() else 0
    return +counts
