"""What runs the service elsewhere agrees with it: the image, compose.yaml, units for systemd, alerts and dashboard."""

import configparser
import dataclasses
import json
import re
import shutil
import subprocess

import pytest
import yaml

from app import create_app
from app.config import API, Config
from app.services import get_services
from app.store import Store
from scripts.ingest.follow import FollowMetrics
from scripts.server.collectors import StoreCollector
from tests.factories import make_trip
from tests.service_process import ROOT

COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
COMPOSE_SETTINGS = COMPOSE["service"]["environment"]
PAGE = (ROOT / "docs" / "operations.md").read_text()
RULES = yaml.safe_load((ROOT / "deploy" / "alerts.yml").read_text())["groups"][0]["rules"]
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}


def test_the_lock_file_of_production_pins_all_that_setup_cfg_names():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    extras = setup["options.extras_require"]
    needed = setup["options"]["install_requires"] + extras["mirror"] + extras["mcp"]
    names = {name.lower() for name in re.findall(r"^([\w.-]+)", needed, re.MULTILINE)}
    pinned = re.findall(r"^([\w.-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert {name.replace(".", "-") for name in names} <= {*pinned}


def test_compose_sets_nothing_but_settings_that_can_be_used():
    assert COMPOSE_SETTINGS.keys() <= {field.name.upper() for field in dataclasses.fields(Config)}
    filled = {name: re.sub(r"\$\{\w+:[?-].*?\}", "", value) for name, value in COMPOSE_SETTINGS.items()}
    assert Config.from_environment(filled).counts_in_redis


def test_the_folder_of_restrictions_is_that_of_each_unit():
    """To systemd, driver-analytics-.service.d is a folder of driver-analytics-serve@, and not of driver-analytics@."""
    (folder,) = (ROOT / "deploy").glob("*.service.d")
    units = [path.name for path in (ROOT / "deploy").glob("*.service")]
    assert [name for name in units if not name.startswith(folder.name.removesuffix(".service.d"))] == []
    assert "NoNewPrivileges=yes" in (folder / "hardening.conf").read_text()


@pytest.fixture
def series(mongod, mongod_uri, load):
    """The labels of every series that Prometheus gets, after a request that read from the store."""
    load(make_trip())
    app = create_app(Config(mongodb_uri=mongod_uri, mongodb_database=mongod.name, metrics_bind="127.0.0.1:9100"))
    with get_services(app).store.db.client:
        assert app.test_client().get(f"{API}/healthz").status_code == 200
    registry = get_services(app).metrics.registry
    registry.register(StoreCollector(Store.of(mongod)))
    families = [*registry.collect(), *FollowMetrics().registry.collect()]
    labels = {family.name: {label for sample in family.samples for label in sample.labels} for family in families}
    return {family.name + end: labels[family.name] for family in families for end in SUFFIXES[family.type]}


def check_names(series, expression, shown):
    """Check that the metrics of an expression exist, and have the labels in it and those that are shown."""
    named = set(re.findall(r"driver_analytics_\w+", expression))
    assert named <= {*series}, expression
    grouped = ",".join(re.findall(r"by \((.*?)\)", expression))
    used = [*re.findall(r"[{,](\w+)[!=]~?\"?", expression), *re.findall(r"\w+", grouped), *shown]
    # Prometheus adds the job and the instance by itself, and the others to alerts.
    labels = {"alertname", "alertstate"} if "ALERTS" in expression else {"job", "instance"}
    assert {*used} <= labels.union(*(series[name] for name in named)), expression
    return named


def test_alerts_are_on_the_page_and_use_metrics_and_labels_that_exist(series):
    for rule in RULES:
        assert f"| `{rule['alert']}` |" in PAGE
        check_names(series, rule["expr"], re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))


def test_the_dashboard_shows_each_metric_of_the_page(series):
    named = set()
    for panel in json.loads((ROOT / "deploy" / "grafana" / "dashboard.json").read_text())["panels"]:
        for target in panel["targets"]:
            shown = re.findall(r"\{\{(\w+)", target.get("legendFormat", ""))
            named |= check_names(series, target["expr"], shown)
    assert {re.sub("_(bucket|count)$", "", name) for name in named} == {*re.findall(r"^\| `(driver_\w+)`", PAGE, re.M)}


def test_the_files_that_compose_mounts_exist():
    mounts = [mount.split(":") for service in COMPOSE.values() for mount in service.get("volumes", ())]
    files = [ROOT / source for source, *_ in mounts if source.startswith("./")]
    assert files
    assert [file for file in files if not file.is_file()] == []


def test_slowness_after_an_outage_raises_no_alert(tmp_path):
    promtool = shutil.which("promtool") or pytest.skip("there is no promtool: apt-get install prometheus")
    bucket = "driver_analytics_http_request_duration_seconds_bucket"
    # MongoDB is down for 12 intervals of half a minute, and all requests take more than 0.1 seconds.
    values = {f'{bucket}{{le="{le}"}}': "0+9x20 180+9x112" for le in ("2", "+Inf")}
    values |= {f'{bucket}{{le="0.1"}}': "0+9x20 180+0x12 180+9x100", "driver_analytics_store_up": "1x20 0x12 1x100"}
    series = [{"series": name, "values": text} for name, text in values.items()]
    alerts = [{"alertname": "DriverAnalyticsSlow", "eval_time": f"{minute}m", "exp_alerts": []} for minute in range(60)]
    test = {"interval": "30s", "input_series": series, "alert_rule_test": alerts}
    rules = {"rule_files": [str(ROOT / "deploy" / "alerts.yml")], "evaluation_interval": "30s", "tests": [test]}
    (tmp_path / "test.yml").write_text(json.dumps(rules))
    subprocess.run([promtool, "test", "rules", tmp_path / "test.yml"], check=True)
