"""docs/operations.md and deploy/alerts.yml: what they say of the metrics is so."""

import re
from pathlib import Path

import pytest
import yaml
from pymongo import MongoClient

from app import create_app
from app.config import API, Config
from app.metrics import StoreCollector
from app.services import get_services
from app.store import Store
from scripts.ingest.follow_metrics import FollowMetrics
from scripts.mongodb.connection import prepare_collections
from tests.factories import make_trip
from tests.store_contents import issue_key, load

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text()
RULES = yaml.safe_load((ROOT / "deploy" / "alerts.yml").read_text())["groups"][0]["rules"]
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}
# The label of a histogram's buckets.
BUCKET = "le"
# What Prometheus adds by itself, and of a histogram.
OF_ALL = {"job", "instance", BUCKET}


@pytest.fixture(scope="module")
def database(mongod_uri):
    """A database with a trip, whose time is a metric."""
    with MongoClient(mongod_uri) as client:
        prepare_collections(Store.of(client["operations"]))
        load(client["operations"], make_trip())
        yield client["operations"]
        client.drop_database("operations")


@pytest.fixture(scope="module")
def families(database, mongod_uri):
    """The type and the labels of every metric, after a request that read from the store."""
    app = create_app(Config(mongodb_uri=mongod_uri, mongodb_database=database.name, metrics_bind="127.0.0.1:9100"))
    with get_services(app).store.db.client:
        headers = {"Authorization": f"APIKEY {issue_key(database)}"}
        assert app.test_client().get(f"{API}/drivers", headers=headers).status_code == 200
    registry = get_services(app).metrics.registry
    registry.register(StoreCollector(Store.of(database)))
    return {
        family.name: (family.type, {label for sample in family.samples for label in sample.labels} - {BUCKET})
        for family in (*registry.collect(), *FollowMetrics().registry.collect())
    }


@pytest.fixture(scope="module")
def series(families):
    """The labels of every series that Prometheus gets."""
    return {name + end: labels for name, (kind, labels) in families.items() for end in SUFFIXES[kind]}


def test_the_page_lists_every_metric_with_its_labels(families):
    rows = re.findall(r"^\| `(driver_analytics_\w+)` \| (.*?) \|", PAGE, re.MULTILINE)
    assert {name: set(re.findall(r"\w+", labels)) for name, labels in rows} == {
        name + ("_total" if kind == "counter" else ""): labels for name, (kind, labels) in families.items()
    }


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_uses_metrics_and_labels_that_exist(rule, series):
    named = set(re.findall(r"driver_analytics_\w+", rule["expr"]))
    assert named <= {*series}
    assert named or rule["expr"].startswith("up{")
    documented = OF_ALL.union(*(series[name] for name in named))
    grouped = ",".join(re.findall(r"by \((.*?)\)", rule["expr"]))
    used = re.findall(r"[{,](\w+)[!=]~?\"?", rule["expr"]) + re.findall(r"\w+", grouped)
    used += re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])
    assert {*used} <= documented


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_is_whole_and_on_the_page(rule):
    assert rule["labels"]["severity"] in ("page", "ticket")
    assert rule["expr"].count("(") == rule["expr"].count(")")
    assert f"| `{rule['alert']}` |" in PAGE
