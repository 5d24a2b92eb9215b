"""What commands print of others: a reader sees all of it, and a terminal obeys none of it."""

import json

import pytest

from app.store import Store
from scripts.admin.keys import issue_key
from scripts.command_line.output import escape, is_visible, make_bar
from tests.factories import make_trip
from tests.following import make_source

# Clears a terminal, sets its title, begins a command as C1, forges a line, reverses text, is a tag, and has no ink.
HOSTILE = "\x1b[2J\x1b]0;x\x07\x9b\r\nforged\u2028\u202e\U000e0041\u3164"
FLEET = f"f{HOSTILE}"
COMMANDS = (
    "rollups rebuild",
    "rollups verify",
    "rollups verify --fleet nobody",
    "fleets list",
    "keys list --fleet f1",
    "export --fleet f1 --out FOLDER/HOSTILE",
    "backup FOLDER/HOSTILE",
    "backup FOLDER/HOSTILE/none",
    "prune --before 2026-01-01",
    "import --fleet f1 --trips FOLDER/HOSTILE.ndjson",
    "HOSTILE",
)


@pytest.fixture
def hostile_texts(mongod, command, tmp_path):
    """Texts of others in what commands read: a fleet, `_id`s, a field, a label, the name and the line of a file."""
    issue_key(Store.of(mongod), "f1")
    mongod.keys.update_one({}, {"$set": {"label": HOSTILE}}, bypass_document_validation=True)
    trips = [
        make_source(make_trip(trip_id=HOSTILE), FLEET),
        {**make_source(make_trip(), "f1"), "_id": f"f1/{HOSTILE}", HOSTILE: 1},
        {**make_source(make_trip(), "f1"), "_id": HOSTILE},
    ]
    mongod.command({"insert": "trips", "documents": trips, "bypassDocumentValidation": True})
    (tmp_path / f"{HOSTILE}.ndjson").write_text(json.dumps({HOSTILE: 1}))


@pytest.mark.usefixtures("hostile_texts")
@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_prints_only_what_a_reader_sees(run_main, tmp_path, words):
    replaced = (word.replace("FOLDER", str(tmp_path)).replace("HOSTILE", HOSTILE) for word in words.split())
    ended = run_main(*replaced)
    *lines, end = (ended.stdout + ended.stderr).split("\n")
    assert [line for line in lines if not is_visible(line.replace("\t", "")) or line.startswith("forged")] == []
    assert ("forged" in "".join(lines), end) == (True, "")


def test_the_label_of_a_progress_bar_is_escaped():
    assert is_visible(make_bar(FLEET, 1).label)


def test_text_in_any_script_is_printed_as_it_is():
    text = "Zoë, 张伟, محمد, हिन्दी, \U0001f697 C:\\users"
    assert escape(text) == text
