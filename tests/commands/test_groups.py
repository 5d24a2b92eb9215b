"""driver-analytics groups: which drivers are in which group, and what keeps the groups of a driver."""

import json

import pytest

from scripts.lifecycle import groups
from tests.commands.test_export import read
from tests.factories import make_driver, make_trip
from tests.fleet_states import differences
from tests.following import make_source
from tests.store_contents import contents, load

TRIPS = [make_trip(f"2026-03-{day}T08:00", name) for name in ("d1", "by trip") for day in (10, 11)]
DRIVERS = ("by trip", "d1", "d2", "d3")
NORTH = ("--fleet", "f1", "--group", "North")


@pytest.fixture
def loaded(mongod):
    """Drivers with and without trips, one of them known from trips alone."""
    load(mongod, *TRIPS, drivers=[make_driver(name) for name in DRIVERS[1:]])
    load(mongod, drivers=[make_driver("d1", groups=["of f2"])], fleet="f2")
    return mongod


@pytest.fixture
def set_group(command, loaded):
    """Set the drivers of a group, and return what was printed."""

    def set_group(group, *driver_ids, status=0):
        words = ("groups", "set", "--fleet", "f1", "--group", group)
        result = command(*words, stdin="".join(f"{driver_id}\n" for driver_id in driver_ids).encode())
        assert result.exit_code == status, result.output
        return result.stderr if status else result.stdout

    return set_group


def groups_of(db):
    """Return the groups of each driver of f1 who has any, by the profiles; the sources have the same."""
    found = {
        row["driver_id"]: row["groups"] for row in db.driver_periods.find({"fleet": "f1", "groups": {"$ne": None}})
    }
    assert {row["driver_id"]: row["groups"] for row in db.driver_groups.find({"fleet": "f1"})} == found
    return found


def test_drivers_join_and_leave(set_group, loaded, command):
    assert set_group("North", "d2", "by trip", "d2") == "f1: North has 2 drivers; 2 joined or left\n"
    set_group("a, b/c אב", "d2", "d1")
    assert set_group("North", "by trip", "d3") == "f1: North has 2 drivers; 2 joined or left\n"
    assert groups_of(loaded) == {"by trip": ["North"], "d1": ["a, b/c אב"], "d2": ["a, b/c אב"], "d3": ["North"]}
    assert command("groups", "list", "--fleet", "f1").stdout == "North\t2\na, b/c אב\t2\n"
    assert differences(loaded) == []


def test_a_deleted_group_is_unknown(set_group, loaded, command):
    set_group("North", "d1", "d2")
    set_group("South", "d2")
    assert command("groups", "delete", *NORTH).stdout == "f1: deleted North; 2 drivers left\n"
    assert groups_of(loaded) == {"d2": ["South"]}
    result = command("groups", "delete", *NORTH)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "Error: The fleet f1 has no group 'North'. 'groups list' lists them.\n"


def test_a_fleet_without_groups_says_so(loaded, command):
    result = command("groups", "list", "--fleet", "f1")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "The fleet f1 has no groups.\n")


REFUSED = [
    ("North", ["d1", *"uvwxyz"], "Error: The fleet f1 has no driver 'u', 'v', 'w', 'x', 'y' and 1 more: nothing was "),
    (
        "North",
        [],
        "Error: Standard input has no driver_id: nothing was changed. To delete a group, use 'groups delete'.",
    ),
    ("North", ["d1", "full"], "Error: The driver 'full' is in 10 groups already: nothing was changed."),
    ("North", ["d1", "a\tb"], "Error: Line 2 of standard input: Must not contain control characters. Nothing was "),
    ("New", ["d1"], "Error: 'New' would be one group too many: a fleet has at most 11. Nothing was changed."),
]


@pytest.mark.parametrize(("group", "driver_ids", "line"), REFUSED, ids=[line for *_, line in REFUSED])
def test_all_drivers_are_set_or_none(set_group, loaded, monkeypatch, group, driver_ids, line):
    monkeypatch.setattr("scripts.materialize.drivers.MAX_GROUPS_OF_FLEET", 11)
    load(loaded, drivers=[make_driver("full", groups=list("0123456789"))])
    set_group("North", "d2")
    before = contents(loaded)
    error = set_group(group, *driver_ids, status=1)
    assert (error[: len(line)], error.count("\n"), contents(loaded)) == (line, 1, before)


@pytest.mark.parametrize("name", ["ü" * 65, "a\tb", "", ".."])
def test_a_name_that_is_no_identifier_is_refused(set_group, name):
    assert "Invalid value for '--group': Must" in set_group(name, "d1", status=2)


def test_killed_at_any_moment_the_rest_is_named_and_repeated_it_ends(set_group, loaded, command, kills, monkeypatch):
    monkeypatch.setattr(groups, "MOVES_PER_TRANSACTION", 1)
    set_group("North", "d1", "d2")
    set_group("South", "d1")
    words, stdin = ("groups", "set", *NORTH), "d1\nd3\nby trip\n"
    for _ in kills(groups, lambda: command(*words, stdin=stdin), 4, 3, 20):
        sources, profiles = (
            {row["driver_id"] for row in found.find({"fleet": "f1", "groups": "North"})}
            for found in (loaded.driver_groups, loaded.driver_periods)
        )
        assert sources in ({"d1", "d2"}, {"d1", "d3", "by trip"})
        named = [line for line in differences(loaded) if line.endswith(" profile: differs")]
        assert sorted(named) == [f"driver_periods {name} profile: differs" for name in sorted(sources ^ profiles)]
    assert groups_of(loaded) == {"by trip": ["North"], "d1": ["North", "South"], "d3": ["North"]}
    assert differences(loaded) == []


# Lines of the drivers' file.


@pytest.fixture
def import_lines(command, write_lines):
    """Import lines of drivers, and return the reasons of those that are rejected."""

    def import_lines(*lines):
        path = write_lines("drivers.ndjson", *lines)
        command("import", "--fleet", "f1", "--drivers", str(path))
        rejected = path.with_name("drivers.ndjson.rejected.ndjson")
        return [json.loads(line)["reason"] for line in rejected.read_text().splitlines()] if rejected.exists() else []

    return import_lines


def test_a_line_replaces_the_groups_of_its_driver_and_without_the_field_they_stay(loaded, import_lines):
    for groups_, expected in ((["b", "a"], ["a", "b"]), (None, ["a", "b"]), (["c"], ["c"]), ([], None)):
        fields = {} if groups_ is None else {"groups": groups_}
        assert import_lines(make_driver("d1", **fields), make_driver("d1", alias="A")) == []
        assert groups_of(loaded).get("d1") == expected
        assert differences(loaded) == []


INVALID = [
    (None, "groups: Field may not be null."),
    ("a", "groups: Not a valid list."),
    (["a", "b", "a"], "groups: Has 'a' twice."),
    ([str(n) for n in range(11)], "groups: Must have at most 10 groups."),
    (["a", "b" * 129], "groups.1: Must have 1 to 128 bytes of UTF-8; it has 129."),
    (["a\nb"], "groups.0: Must not contain control characters."),
    ([5], "groups.0: Must be a string."),
]


@pytest.mark.parametrize(("value", "reason"), INVALID, ids=[reason for _, reason in INVALID])
def test_a_line_with_invalid_groups_is_rejected(loaded, import_lines, value, reason):
    load(loaded, drivers=[make_driver("d1", groups=["kept"])])
    (found,) = import_lines(make_driver("d1", groups=value, alias="A"))
    assert found.replace("[", ".").replace("]", "") == reason
    assert (groups_of(loaded), loaded.drivers.find_one({"_id": "f1/d1"})["alias"]) == ({"d1": ["kept"]}, None)


def test_a_line_with_one_group_too_many_of_the_fleet_is_rejected(loaded, import_lines, monkeypatch):
    monkeypatch.setattr("scripts.materialize.drivers.MAX_GROUPS_OF_FLEET", 2)
    lines = [
        make_driver("d1", groups=["a", "b"]),
        make_driver("d2", groups=["c", "a"]),
        make_driver("d3", groups=["b"]),
    ]
    assert import_lines(*lines) == ["groups: 'c' would be one group too many: a fleet has at most 2."]
    assert groups_of(loaded) == {"d1": ["a", "b"], "d3": ["b"]}


# What keeps groups, and what removes them.


def test_an_import_of_an_export_has_the_same_groups(set_group, loaded, command, tmp_path):
    set_group("North", "d1", "by trip")
    loaded.driver_groups.insert_one(make_source({"driver_id": "no driver", "groups": ["North"]}))
    assert command("export", "--fleet", "f1", "--out", str(tmp_path / "out")).exit_code == 0
    drivers = read(tmp_path / "out" / "drivers.ndjson.gz")
    assert drivers == [make_driver(name, groups=["North"] if name in ("d1", "by trip") else []) for name in DRIVERS]
    files = (
        "--drivers",
        str(tmp_path / "out" / "drivers.ndjson.gz"),
        "--trips",
        str(tmp_path / "out" / "trips.ndjson.gz"),
    )
    assert command("import", "--fleet", "f3", *files).exit_code == 0
    assert command("groups", "list", "--fleet", "f3").stdout == "North\t2\n"


def test_a_driver_keeps_the_groups_without_a_source_and_loses_them_when_erased(set_group, loaded, command):
    set_group("North", "d1", "by trip")
    loaded.drivers.delete_many({"fleet": "f1"})
    assert command("rollups", "rebuild").exit_code == 0
    assert groups_of(loaded) == {"d1": ["North"], "by trip": ["North"]}
    result = command("erase", "--fleet", "f1", "--driver", "d1", "--yes")
    assert "1 documents in driver_groups" in result.stdout
    assert (groups_of(loaded), differences(loaded)) == ({"by trip": ["North"]}, [])
