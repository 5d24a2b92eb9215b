"""docs/operations.md and deploy/alerts.yml: what they say of the metrics is so."""

import re
from pathlib import Path

import pytest
import yaml
from prometheus_client.metrics import MetricWrapperBase

from app.middleware.metrics import Metrics, StoreCollector
from app.store import Store
from scripts.mongodb.memory_store import memory_client
from tests.factories import make_trip
from tests.stores import load

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text()
RULES = yaml.safe_load((ROOT / "deploy" / "alerts.yml").read_text())["groups"][0]["rules"]
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}
# What Prometheus adds by itself, and of a histogram.
OF_ALL = {"job", "instance", "le"}


@pytest.fixture(scope="module")
def families():
    """The kind and the labels of every metric, with a trip to tell of."""
    db = memory_client()["test"]
    load(db, make_trip())
    own = [found for found in vars(Metrics()).values() if isinstance(found, MetricWrapperBase)]
    counted = {told.name: (told.type, {*found._labelnames}) for found in own for told in found.describe()}
    return counted | {
        told.name: (told.type, {*told.samples[0].labels}) for told in StoreCollector(Store.of(db)).collect()
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
def test_an_alert_asks_for_metrics_and_labels_that_there_are(rule, series):
    named = set(re.findall(r"driver_analytics_\w+", rule["expr"]))
    assert named <= {*series}
    assert named or rule["expr"].startswith("up{")
    known = OF_ALL.union(*(series[name] for name in named))
    grouped = ",".join(re.findall(r"by \((.*?)\)", rule["expr"]))
    used = re.findall(r"[{,](\w+)[!=]~?\"?", rule["expr"]) + re.findall(r"\w+", grouped)
    used += re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])
    assert {*used} <= known


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_is_whole_and_on_the_page(rule):
    assert rule["labels"]["severity"] in ("page", "ticket")
    assert rule["expr"].count("(") == rule["expr"].count(")")
    assert f"| `{rule['alert']}` |" in PAGE
