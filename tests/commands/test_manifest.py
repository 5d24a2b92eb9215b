"""What `driver-analytics restore` refuses before it loads anything: malformed manifests, and files of other kinds."""

import copy
import gzip
import hashlib
import json
import os
import shutil
import struct

import bson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from schemas.periods import get_zone
from scripts.admin.manifest import COLLECTIONS

EXAMPLES = 300
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
NO_OBJECT = JSON.filter(lambda value: not isinstance(value, dict))
NO_FLEETS = st.sampled_from(["", ".", "..", "a/b", "/", "a\n", "\x85", "\ud800", "x" * 129]) | st.text().map(
    "{}/".format
)
FIELDS = ("format", "database", "began_at", "settings", "collections")
SETTINGS = ("time_zone", "implausible_trips")
UNKNOWN = st.text() | st.sampled_from(["_id", "format", "feed_key", "writes", "written_at", "fleet"])


def unknown(known):
    return st.dictionaries(UNKNOWN.filter(lambda name: name not in known), JSON, min_size=1, max_size=3)


def is_zone(value):
    return isinstance(value, str) and get_zone(value) is not None


# For each place in a manifest what it must not have there.
MALFORMED = {
    (): NO_OBJECT | unknown(FIELDS),
    ("format",): JSON.filter(lambda value: type(value) is not int or value != 4),
    ("database",): JSON.filter(lambda value: not isinstance(value, str)),
    ("settings",): NO_OBJECT | st.dictionaries(NO_FLEETS, st.just({}), min_size=1),
    ("settings", "f1"): NO_OBJECT | unknown(SETTINGS),
    ("settings", "f1", "time_zone"): JSON.filter(lambda value: not is_zone(value)),
    ("settings", "f1", "implausible_trips"): JSON.filter(lambda value: value not in ("counted", "left_out")),
    ("collections",): JSON | unknown(COLLECTIONS),
    ("collections", "trips"): NO_OBJECT | unknown(("documents", "sha256")),
    ("collections", "trips", "documents"): JSON.filter(lambda value: type(value) is not int or value != 0),
    ("collections", "trips", "sha256"): JSON,
}
REQUIRED = [*((name,) for name in FIELDS), *(("collections", name) for name in COLLECTIONS)]
REQUIRED += [("collections", "keys", name) for name in ("documents", "sha256")]
GONE = object()


def replace(manifest, path, value):
    """Return the manifest with another value at a path, or without the field."""
    if not path:
        return value
    *names, last = path
    changed = inner = copy.deepcopy(manifest)
    for name in names:
        inner = inner[name]
    if value is GONE:
        del inner[last]
    else:
        inner[last] = value
    return changed


def changes():
    """Return a strategy for a path of the manifest and what is wrong there."""
    wrong = [st.tuples(st.just(path), values) for path, values in MALFORMED.items()]
    return st.one_of(st.tuples(st.sampled_from(REQUIRED), st.just(GONE)), *wrong)


@pytest.fixture
def saved(command, tmp_path):
    """A backup of an empty database."""
    folder = tmp_path / "saved"
    assert command("backup", str(folder)).exit_code == 0
    return folder


@pytest.fixture
def refuse(saved, run_main, mongod, mongod_uri):
    """Restore the backup in vain, and return the line with which the command ends."""

    def restore():
        ended = run_main("restore", str(saved), MONGODB_URI=mongod_uri, MONGODB_DATABASE="restored")
        assert (ended.status, ended.stdout, ended.stderr.count("\n")) == (1, "", 1), ended
        assert ended.stderr.startswith("Error: ")
        assert mongod.client["restored"].list_collection_names() == []
        return ended.stderr

    return restore


def read(folder):
    return json.loads((folder / "manifest.json").read_text()) | {"settings": {"f1": {"time_zone": "UTC"}}}


def test_any_malformed_manifest_is_refused_in_one_line_and_nothing_is_loaded(saved, refuse):
    manifest = read(saved)

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(changes())
    @example((("collections",), []))
    @example((("collections", "trips"), 7))
    @example((("collections", "trips", "documents"), "0"))
    @example((("collections", "trips", "documents"), -1))
    @example((("collections", "trips", "documents"), False))
    @example((("settings",), []))
    @example((("settings", "f1", "format"), 7))
    @example((("settings", "f1", "feed_key"), "k"))
    @example((("settings", "f1", "writes"), 1))
    @example((("settings", "f1", "implausible_trips"), "ignored"))
    @example((("settings", "f1", "time_zone"), "Mars/Olympus"))
    @example((("settings", "a/b"), {}))
    def check(change):
        (saved / "manifest.json").write_text(json.dumps(replace(manifest, *change)))
        refuse()

    check()


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b'{"database": "\xe9"}', b"[" * 1_000_000, b'{"format": ' + b"9" * 5_000 + b"}"],
    ids=["empty", "cut off", "binary", "Latin-1", "deep", "a long number"],
)
def test_a_manifest_that_is_no_json_is_refused(saved, refuse, content):
    (saved / "manifest.json").write_bytes(content)
    assert "is not a complete backup: manifest.json is missing or cannot be read." in refuse()


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("collections", "trips", "documents"), "0", "collections.trips.value.documents: Must be a whole number."),
        (("settings", "f1", "feed_key"), "k", "settings.f1.value.feed_key: Unknown field."),
        (("settings", "a/b"), {}, "settings.a/b.key: Must not contain a slash."),
        (("collections", "keys"), GONE, "collections: Must have drivers, driver_groups, trips, reports, "),
    ],
)
def test_the_line_names_what_is_wrong(saved, refuse, path, value, reason):
    (saved / "manifest.json").write_text(json.dumps(replace(read(saved), path, value)))
    line = refuse()
    assert line.startswith(f"Error: {saved}/manifest.json is invalid: {reason}")
    assert line.endswith(" Use another backup.\n")


def test_the_time_zones_and_policies_of_fleets_are_restored(saved, run_main, mongod, mongod_uri):
    fleets = {"f1": {"time_zone": "Asia/Tokyo", "implausible_trips": "left_out"}, "f2": {}}
    (saved / "manifest.json").write_text(json.dumps(read(saved) | {"settings": fleets}))
    assert run_main("restore", str(saved), MONGODB_URI=mongod_uri, MONGODB_DATABASE="restored").status == 0
    restored = mongod.client["restored"]
    stored = {
        fleet["_id"]: {name: fleet[name] for name in SETTINGS if name in fleet} for fleet in restored.fleets.find()
    }
    mongod.client.drop_database("restored")
    assert stored == fleets


OTHERS = {
    "a link": lambda path, saved: path.symlink_to(saved),
    "a link to nothing": lambda path, saved: path.symlink_to("/nowhere"),
    "a pipe": lambda path, saved: os.mkfifo(path),
    "a folder": lambda path, saved: path.mkdir(),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", ["manifest.json", "trips.bson.gz"])
def test_a_link_a_pipe_or_a_folder_is_no_file_of_a_backup(saved, refuse, name, other):
    shutil.move(saved / name, saved / "moved")
    OTHERS[other](saved / name, saved / "moved")
    assert f"{name} is missing or " in refuse()


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", ["saved", "saved.part"])
def test_a_backup_is_written_to_a_new_folder_alone(command, tmp_path, name, other):
    (tmp_path / "target").mkdir()
    OTHERS[other](tmp_path / name, tmp_path / "target")
    ended = command("backup", str(tmp_path / "saved"))
    # The folder of a backup that was killed.
    is_replaced = (name, other) == ("saved.part", "a folder")
    assert (ended.exit_code, ended.stderr.count("\n")) == ((0, 1) if is_replaced else (1, 1))
    assert [*(tmp_path / "target").iterdir()] == []


DOCUMENT = bson.encode({"_id": "f1/t1"})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        # It claims to have 2 GB.
        (gzip.compress(struct.pack("<i", 2**31 - 1) + bytes(1_000)), "a document of 2147483643 bytes is larger"),
        (gzip.compress(b"x"), "size"),
        (gzip.compress(b"x")[:-9], "Compressed file ended"),
        (b"no gzip", "Not a gzipped file"),
    ],
    ids=["gigabytes", "a byte", "cut off", "no gzip"],
)
def test_a_file_that_cannot_be_read_ends_a_restore_with_one_line(saved, refuse, content, reason):
    put_file(saved, content)
    line = refuse()
    assert line.startswith(f"Error: {saved}/trips.bson.gz cannot be read: ")
    assert reason in line


@pytest.mark.parametrize("count", [0, 2])
def test_a_file_with_more_or_fewer_documents_than_the_manifest_says_is_refused(saved, refuse, count):
    put_file(saved, gzip.compress(DOCUMENT * count), documents=1)
    assert f"trips.bson.gz has {count} documents, but manifest.json says 1. Use another backup." in refuse()


def put_file(folder, content, **entry):
    """Replace the file of the trips, and its entry in the manifest."""
    (folder / "trips.bson.gz").write_bytes(content)
    manifest = read(folder)
    manifest["collections"]["trips"] |= {"sha256": hashlib.sha256(content).hexdigest(), **entry}
    (folder / "manifest.json").write_text(json.dumps(manifest))
