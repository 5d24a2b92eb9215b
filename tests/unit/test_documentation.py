"""docs/architecture.md and docs/operations.md: they list every index, every stored field and every event of the log."""

import ast
import re
from pathlib import Path

import pytest

from app.store import SOURCES
from app.store.indexes import INDEXES, VALIDATORS

ROOT = Path(__file__).parents[2]
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
# The sections of the architecture that list fields beside the tables of collections.
FIELD_SECTIONS = ("The periods of a driver", "The fleet state")
LEVELS = ("debug", "info", "warning", "error", "critical")


def rows_of(collection):
    """Return the rows of a collection in the tables of the architecture."""
    return re.findall(rf"^\| `{collection}` \|.*$", ARCHITECTURE, re.MULTILINE)


@pytest.mark.parametrize("collection", INDEXES)
def test_every_index_is_listed_with_its_fields(collection):
    for index in INDEXES[collection]:
        name, fields = index.document["name"], ", ".join(index.document["key"])
        assert any(f"`{name}`" in row and f"`{fields}`" in row for row in rows_of(collection)), name


# Drivers and trips are as imported: docs/data.md describes them.
@pytest.mark.parametrize("collection", sorted(VALIDATORS.keys() - {*SOURCES}))
def test_every_field_is_listed(collection):
    sections = [ARCHITECTURE.partition(f"### {title}\n")[2].partition("###")[0] for title in FIELD_SECTIONS]
    listed = re.findall(r"\w+", " ".join([*rows_of(collection), *sections]))
    assert VALIDATORS[collection]["$jsonSchema"]["properties"].keys() - {*listed} == set()


def log_events(tree):
    """Yield the event and the level of each call such as `log.error("invalid document")`."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=level), args=[ast.Constant(value=str(event))]) if level in LEVELS:
                yield event, level


def test_every_event_of_the_log_is_listed_with_its_level():
    trees = [ast.parse(path.read_text()) for folder in ("app", "scripts") for path in (ROOT / folder).rglob("*.py")]
    listed = re.findall(r"^\| `(.+?)` \| (\w+) \|", OPERATIONS, re.MULTILINE)
    assert {event for tree in trees for event in log_events(tree)} <= {*listed}
