"""What runs the service elsewhere agrees with it: the image, compose.yaml, the units for systemd and the alerts."""

import configparser
import dataclasses
import re

import pytest
import yaml

from app import create_app
from app.config import API, Config
from app.services import get_services
from app.store import Store
from scripts.ingest.follow_metrics import FollowMetrics
from scripts.server.store_collector import StoreCollector
from tests.factories import make_trip
from tests.service_process import ROOT

COMPOSE_SETTINGS = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["service"]["environment"]
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


def test_alerts_are_on_the_page_and_use_metrics_and_labels_that_exist(series):
    for rule in RULES:
        assert f"| `{rule['alert']}` |" in PAGE
        named = set(re.findall(r"driver_analytics_\w+", rule["expr"]))
        assert named <= {*series}, rule
        grouped = ",".join(re.findall(r"by \((.*?)\)", rule["expr"]))
        used = re.findall(r"[{,](\w+)[!=]~?\"?", rule["expr"]) + re.findall(r"\w+", grouped)
        used += re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])
        # Prometheus adds the job and the instance by itself.
        assert {*used} <= {"job", "instance"}.union(*(series[name] for name in named)), rule
