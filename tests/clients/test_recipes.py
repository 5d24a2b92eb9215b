"""The recipes of docs/clients.md for other tools, as far as they run without these tools."""

import json
import re
import string

import httpx
import pytest
import yaml

from schemas.page import ChangePage
from tests.clients.test_clients_page import PAGE, SECTIONS
from tests.clients.tools import generate, require_npm, run
from tests.operations import CHANGES, parameters_of

pytestmark = pytest.mark.clients

SHELL, PYTHON, YAML = (re.findall(rf"^```{name}\n(.*?)^```$", PAGE, re.M | re.S) for name in ("shell", "py", "yaml"))
# The examples that a recipe in Python builds on.
CLIENT = "".join(SECTIONS[title]["python"] for title in ("Make a request", "Rate limits and retries"))
# dlt is large. This has what the recipe calls, and prints what it would load.
DLT = """\
def resource(**options):
    return lambda function: function

class current:
    resource_state = dict

class pipeline:
    def __init__(self, *args, **options):
        pass

    def run(self, resource):
        print(*("loaded " + row["trip_id"] for row in resource()), sep="\\n")
"""


@pytest.fixture
def run_python(live, tmp_path):
    """Run a recipe in Python; return the lines that it prints."""

    def run_python(recipe):
        (tmp_path / "recipe.py").write_text(CLIENT + recipe)
        ran = run("python", "recipe.py", cwd=tmp_path, SERVICE=live.url, KEY=live.key)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.splitlines()

    return run_python


def test_postman_gets_a_200_for_each_request_with_the_examples_but_for_a_link_without_signature(live, tmp_path):
    (tmp_path / "node_modules").symlink_to(require_npm())
    commands = next(block for block in SHELL if "newman" in block).rstrip() + " -r json --reporter-json-export ran.json"
    generate("sh", "-euc", commands, cwd=tmp_path, SERVICE=live.url, KEY=live.key)
    executions = json.loads((tmp_path / "ran.json").read_text())["run"]["executions"]
    statuses = {"/".join(ran["item"]["request"]["url"]["path"]): ran["response"]["code"] for ran in executions}
    assert statuses == {path: 403 if path.endswith(":link") else 200 for path in statuses}
    assert {"api/v1/report/:link", "api/v1/changes"} < statuses.keys()


def test_the_resource_for_dlt_yields_every_change(run_python, tmp_path):
    (tmp_path / "dlt.py").write_text(DLT)
    assert sum(line.startswith("loaded demo-") for line in run_python(PYTHON[0])) == 17


def test_the_tap_prints_every_change_and_goes_on_from_its_last_state(run_python, tmp_path):
    kinds = []
    for _ in range(2):
        messages = [json.loads(line) for line in run_python(PYTHON[1]) if line.startswith('{"type"')]
        (tmp_path / "state.json").write_text(json.dumps(messages[-1]["value"]))
        kinds.append([message["type"] for message in messages])
    assert kinds == [["SCHEMA", *["RECORD"] * 17, "STATE"], ["SCHEMA", "STATE"]]


def test_the_stream_for_airbyte_has_parameters_and_fields_of_the_feed():
    ((stream,),) = map(yaml.safe_load, YAML)
    retriever, fields = stream["retriever"], ChangePage().fields
    paginator, requester = retriever["paginator"], retriever["requester"]
    assert requester["url_base"].endswith("/api/v1/")
    assert f"/api/v1/{requester['path']}" == CHANGES
    assert {*requester["request_parameters"], paginator["page_token_option"]["field_name"]} == {*parameters_of(CHANGES)}
    read = re.findall(r"response\.(\w+)", str(paginator)) + retriever["record_selector"]["extractor"]["field_path"]
    assert {*read} == {*fields}


def test_gdal_gets_geojson_with_the_headers_of_the_recipe(live):
    recipe = string.Template(next(block for block in SHELL if "GDAL" in block))
    headers, url = re.search(
        r'HEADERS="(.*)"\n.*"(http.*)"', recipe.substitute(SERVICE=live.url, KEY=live.key)
    ).groups()
    response = httpx.get(url, headers=dict(header.split(": ") for header in headers.split(",")))
    assert response.json()["type"] == "FeatureCollection"
