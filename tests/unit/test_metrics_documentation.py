"""docs/operations.md and deploy/alerts.yml: what they say of the metrics is so."""

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

PAGE = (ROOT / "docs" / "operations.md").read_text()
RULES = yaml.safe_load((ROOT / "deploy" / "alerts.yml").read_text())["groups"][0]["rules"]
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}


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


def test_the_page_lists_every_metric_with_its_labels(series):
    rows = re.findall(r"^\| `(driver_analytics_\w+)` \| (.*?) \|", PAGE, re.MULTILINE)
    metrics = {name: labels for name, labels in series.items() if not name.endswith(("_count", "_sum"))}
    assert {name: set(re.findall(r"\w+", labels)) for name, labels in rows} == {
        name.removesuffix("_bucket"): labels - {"le"} for name, labels in metrics.items()
    }


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
