"""driver-analytics keys."""

import contextlib
import io
import re

import bson
import pytest
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument

from app.store import Store, api_keys
from app.store.scope import Scope
from tests.conftest import Service
from tests.factories import make_driver, make_trip
from tests.store_contents import load

FORM = re.compile(r"da_[0-9A-Za-z]{36}")


def get_key(db, key):
    return api_keys.get_key(Store.of(db), key)


@pytest.fixture
def issue(command):
    """Issue a key and return it."""

    def issue(fleet="f1", *options):
        result = command("keys", "issue", "--fleet", fleet, *options)
        assert result.exit_code == 0
        return result.stdout.removesuffix("\n")

    return issue


@pytest.fixture
def rows(command):
    """List a fleet's keys, each as its columns."""

    def rows(fleet="f1"):
        result = command("keys", "list", "--fleet", fleet)
        assert result.exit_code == 0
        return [line.split("\t") for line in result.stdout.splitlines()]

    return rows


def test_issue_prints_the_key_alone(issue):
    assert FORM.fullmatch(issue())


def test_list_shows_the_key_id_the_state_and_when_a_key_was_issued_and_expires(issue, rows, clock):
    issue()
    clock.shift(60)
    issue("f1", "--expires-in-days", "3", "--label", "night shift")
    first, second = rows()
    assert all(re.fullmatch(r"[0-9a-f]{8,}", row[0]) and re.search("[0-9]", row[0]) for row in (first, second))
    assert first[1:] == ["live", "2026-03-18T12:00:00Z", "never", "-", "-"]
    assert second[1:] == ["live", "2026-03-18T12:01:00Z", "2026-03-21T12:01:00Z", "night shift", "-"]
    clock.shift(3 * 86_400)
    assert [row[1] for row in rows()] == ["live", "expired"]


def test_a_list_without_keys_says_so_and_shows_no_other_fleets_keys(command, issue):
    issue("f2")
    result = command("keys", "list", "--fleet", "f1")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "The fleet f1 has no keys.\n")


def test_issue_says_if_nothing_is_stored_for_the_fleet(command, mongod):
    load(mongod, drivers=[make_driver()])
    results = [command("keys", "issue", "--fleet", fleet) for fleet in ("f1", "f2")]
    said = [result.stderr.splitlines()[1:] for result in results]
    assert said == [[], ["Nothing is stored for the fleet f2 yet. The fleets are: f1."]]


def test_issue_names_the_key_id_beside_the_key(command, rows):
    assert command("keys", "issue", "--fleet", "f1").stderr.splitlines()[0] == f"KEY_ID: {rows()[0][0]}"


def test_a_terminal_gets_the_names_of_the_columns(issue, run_main, monkeypatch):
    issue()
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    names = run_main("keys", "list", "--fleet", "f1").stdout.splitlines()[0]
    assert names == "KEY_ID\tSTATE\tISSUED\tEXPIRES\tLABEL\tDRIVER"


@pytest.fixture
def issue_to(command, run_main, monkeypatch):
    """Issue a key with another standard output, and return how the command ended."""

    def issue_to(stdout, *options):
        monkeypatch.setattr("sys.stdout", stdout)
        return run_main("keys", "issue", "--fleet", "f1", *options)

    return issue_to


@pytest.mark.parametrize("options", [(), ("--driver", "d1"), ("--driver", "-")])
def test_a_key_that_cannot_be_printed_is_not_issued(issue_to, mongod, monkeypatch, options):
    load(mongod, drivers=[make_driver("d1")])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"d1\n")))
    stdout = open("/dev/full", "w")  # noqa: SIM115
    reason = "Standard output cannot be written (No space left on device)"
    assert issue_to(stdout, *options) == (1, "", f"Error: {reason}: no key was issued.\n")
    assert mongod["keys"].count_documents({}) == 0
    with contextlib.suppress(OSError):
        stdout.close()


@pytest.fixture
def drivers(mongod):
    """Drivers with names that are not easy to read, and one whom only a trip names."""
    load(mongod, make_trip(driver_id="by trip"), drivers=[make_driver(name) for name in ("d1", "d1 ", "-", "Jürgen")])


@pytest.mark.usefixtures("drivers")
def test_a_key_of_a_driver_is_printed_alone_and_listed_with_the_driver(issue, mongod, rows, command):
    key = issue("f1", "--driver", "by trip", "--label", "phone")
    assert get_key(mongod, key).scope == Scope("f1", "by trip")
    assert [row[4:] for row in rows()] == [["phone", "by trip"]]
    assert "of the driver by trip of the fleet f1" in command("keys", "revoke", key).stderr
    assert (get_key(mongod, key), rows()[0][1]) == (None, "revoked")


@pytest.mark.usefixtures("drivers")
def test_keys_of_many_drivers_are_printed_beside_the_drivers(command, mongod):
    words = ("keys", "issue", "--fleet", "f1", "--driver", "-", "--expires-in-days", "1")
    result = command(*words, stdin="d1\n\nd1 \n-\nd1\nJürgen".encode())
    assert (result.exit_code, result.stderr) == (0, "f1: issued 4 keys\n")
    lines = [line.split("\t") for line in result.stdout_bytes.decode().removesuffix("\n").split("\n")]
    assert [driver_id for driver_id, _ in lines] == ["d1", "d1 ", "-", "Jürgen"]
    assert [get_key(mongod, key).scope for _, key in lines] == [Scope("f1", driver_id) for driver_id, _ in lines]


INVALID = [
    ("d1\nd9\n", "The fleet f1 has no driver 'd9': no key was issued."),
    ("d1\n\ufeffd1\n", "The fleet f1 has no driver '\\ufeffd1': no key was issued."),
    ("".join(f"x{n}\n" for n in range(7)), "no driver 'x0', 'x1', 'x2', 'x3', 'x4' and 2 more: no key was issued."),
    ("d1\td2\n", "Line 1 of standard input: Must not contain control characters. No key was issued."),
    ("d1\nd1\r\n", "Line 2 of standard input: Must not contain control characters. It ends with CR LF; a line must"),
    ("d1\n\n" + "x" * 129, "Line 3 of standard input: Must have 1 to 128 bytes of UTF-8; it has 129."),
    (b"d1\n\xff\n", "Line 2 of standard input: Must be UTF-8. No key was issued."),
    ("\n\n", "Standard input has no driver_id: no key was issued."),
]


@pytest.mark.usefixtures("drivers")
@pytest.mark.parametrize(("stdin", "reason"), INVALID)
def test_one_invalid_or_unknown_driver_and_no_key_is_issued(command, mongod, stdin, reason):
    result = command("keys", "issue", "--fleet", "f1", "--driver", "-", stdin=stdin)
    assert (result.exit_code, result.stdout) == (1, "")
    assert (reason in result.stderr, result.stderr.count("\n")) == (True, 1)
    assert mongod["keys"].count_documents({}) == 0


@pytest.mark.usefixtures("drivers")
def test_an_unknown_driver_is_named_in_one_line_and_so_are_the_fleets_if_the_fleet_is_wrong(command, mongod):
    results = [command("keys", "issue", "--fleet", fleet, "--driver", "d9") for fleet in ("f1", "f9")]
    assert [result.stderr for result in results] == [
        "Error: The fleet f1 has no driver 'd9': no key was issued.\n",
        "Error: Nothing is stored for the fleet f9. The fleets are: f1.\n",
    ]
    assert [(result.exit_code, result.stdout) for result in results] == [(1, ""), (1, "")]
    assert (mongod["keys"].count_documents({}), mongod.fleets.distinct("_id")) == (0, ["f1"])


def test_a_revoked_key_is_refused_and_other_keys_are_accepted(issue, mongod, rows, command):
    issued = [issue(), issue()]
    result = command("keys", "revoke", rows()[0][0])
    assert (result.exit_code, result.stdout) == (0, "")
    assert [get_key(mongod, key) is not None for key in issued] == [False, True]
    assert [row[1] for row in rows()] == ["revoked", "live"]


def test_a_key_is_revoked_by_itself_and_not_printed(issue, mongod, command):
    key = issue()
    result = command("keys", "revoke", key)
    assert (result.exit_code, get_key(mongod, key)) == (0, None)
    assert key not in result.output
    assert mongod["keys"].find_one()["key_id"] in result.stderr


@pytest.mark.parametrize("change", [lambda key: key[:-1], lambda key: f"APIKEY {key}", lambda key: f"{key[:-1]}-"])
def test_a_misspelt_key_is_not_printed(issue, command, change):
    key = change(issue())
    result = command("keys", "revoke", key)
    assert result.exit_code == 1
    assert key not in result.output


def test_revoking_twice_keeps_the_first_time(issue, mongod, rows, command, clock):
    issue()
    key_id = rows()[0][0]
    command("keys", "revoke", key_id)
    once = mongod["keys"].find_one()
    clock.shift(60)
    assert command("keys", "revoke", key_id).exit_code == 0
    assert mongod["keys"].find_one() == once


def test_revoking_an_unknown_key_is_an_error_in_one_line(command, issue, rows):
    issue()
    result = command("keys", "revoke", "0123456789ab")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: There is no key ")
    assert rows()[0][1] == "live"


def test_no_document_has_a_key_in_plain_text(issue, mongod):
    key = issue()
    found = b"".join(bson.encode(each) for name in mongod.list_collection_names() for each in mongod[name].find())
    assert api_keys.digest(key).encode() in found
    assert [part for part in (key[3:15], key[-18:]) if part.encode() in found] == []


def test_without_a_standard_output_no_key_is_issued(issue_to, mongod):
    assert issue_to(None) == (1, "", "Error: Standard output is closed: no key was issued.\n")
    assert mongod["keys"].count_documents({}) == 0


@pytest.fixture
def profiled(mongod):
    """A store that writes down every operation."""
    mongod.command("profile", 2)
    yield mongod
    mongod.command("profile", 0)
    mongod.drop_collection("system.profile")


def links(service, key):
    """Follow the links of a report, and return what they end with."""
    response = service.get("/report?report_time=2026-11-16T00:00:00", headers={"Authorization": f"APIKEY {key}"}).json
    result = [response[name].rpartition("/")[2] for name in ("report_link", "report_page")]
    assert [service.get(f"/report/{link}", buffered=True).status_code for link in result] == [200, 200]
    return result


def dump(client):
    """Return every document of every database, as BSON."""
    result = []
    for name in client.list_database_names():
        db = client.get_database(name, codec_options=CodecOptions(RawBSONDocument))
        result += [bytes(doc.raw) for collection in db.list_collection_names() for doc in db[collection].find()]
    return b"".join(result)


def test_a_dump_of_every_database_contains_no_key_and_no_link(issue, command, profiled):
    load(profiled, drivers=[make_driver()])
    command("reports", "build", "--fleet", "f1", "--report-date", "2026-11-16")
    issued = [issue(), issue("f1", "--expires-in-days", "30")]
    service = Service(profiled)
    secrets = [secret for key in issued for secret in (key, *links(service, key))]
    raw = dump(profiled.client)
    assert all(part in raw for part in (b"keysExamined", api_keys.digest(issued[0]).encode()))
    assert [part for key in secrets for part in (key, key[3:33], key[3:15], key[-18:]) if part.encode() in raw] == []
