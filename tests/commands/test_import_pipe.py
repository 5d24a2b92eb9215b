"""driver-analytics import of standard input: a pipe that may never end."""

import json
import os
import threading

import pytest

from scripts.ingest import importer, loader
from scripts.ingest.loader import make_batches
from scripts.ingest.records import Accepted, Rejected
from tests.factories import make_driver, make_trip
from tests.service_process import wait_until


@pytest.fixture
def pipe(command, monkeypatch):
    """The end of a pipe that is written; standard input is the other one."""
    reading, writing = os.pipe()
    with open(reading) as stdin, open(writing, "w") as file:
        monkeypatch.setattr("sys.stdin", stdin)
        yield file


def write(file, *lines):
    file.write("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    file.flush()


def test_standard_input_is_loaded_to_its_end_as_either_file(pipe, run_main, mongod, write_lines):
    write(pipe, make_driver("d1"), make_driver("d2"))
    pipe.close()
    trips = write_lines("trips", make_trip())
    ended = run_main("import", "--fleet", "f1", "--drivers", "-", "--trips", str(trips))
    assert ended == (0, "stdin: 2 loaded, 0 rejected\ntrips: 1 loaded, 0 rejected\n", "f1: a new fleet\n")
    assert mongod.drivers.count_documents({}) == 2


def test_a_line_is_stored_while_the_pipe_stays_open(pipe, run_main, mongod, monkeypatch):
    monkeypatch.setattr(loader, "BATCH_SECONDS", 0)

    def end():
        try:
            wait_until(lambda: mongod.trips.count_documents({}) == 1)
        finally:
            pipe.close()

    write(pipe, make_trip())
    thread = threading.Thread(target=end)
    thread.start()
    assert run_main("import", "--fleet", "f1", "--trips", "-").status == 0
    thread.join()


def test_rejected_lines_go_to_standard_error(pipe, run_main, mongod):
    write(pipe, "nonsense", make_trip())
    pipe.close()
    ended = run_main("import", "--fleet", "f1", "--trips", "-")
    assert (ended.status, ended.stdout) == (1, "stdin: 1 loaded, 1 rejected\n")
    rejected, notice = ended.stderr.splitlines()
    assert (json.loads(rejected)["line"], json.loads(rejected)["input"]) == (1, "nonsense")
    assert notice == "f1: a new fleet"


def test_rejected_lines_go_to_a_file_in_the_folder_of_rejects(pipe, run_main, mongod, tmp_path):
    write(pipe, "nonsense")
    pipe.close()
    run_main("import", "--fleet", "f1", "--trips", "-", "--rejects", str(tmp_path))
    assert json.loads((tmp_path / "stdin.rejected.ndjson").read_text())["input"] == "nonsense"


ITEMS = [Accepted(number, b"x", "", events=2) for number in range(3)]
ITEMS += [Rejected(3, b"x", "bad"), Accepted(4, b"x", "")]


@pytest.mark.parametrize(
    ("limit", "most", "expected"),
    [
        ("BATCH_RECORDS", 2, [[0, 1], [2, 3], [4]]),
        ("BATCH_RECORDS", 5, [[0, 1, 2, 3, 4]]),
        ("BATCH_BYTES", 2, [[0, 1], [2, 3], [4]]),
        ("BATCH_BYTES", 0, [[0], [1], [2], [3], [4]]),
        ("BATCH_EVENTS", 5, [[0, 1], [2, 3, 4]]),
    ],
)
def test_a_batch_ends_before_it_has_too_many_records_bytes_or_events(monkeypatch, limit, most, expected):
    monkeypatch.setattr(loader, limit, most)
    assert [[item.number for item in batch] for batch in make_batches((item for item in ITEMS), None)] == expected


def test_an_error_of_the_store_ends_the_import_during_a_pause(pipe, run_main, mongod, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(loader, "BATCH_SECONDS", 0)
    monkeypatch.setattr(importer, "TRIPS", importer.TRIPS._replace(write=fail))
    write(pipe, make_trip())
    assert run_main("import", "--fleet", "f1", "--trips", "-").status == 1


def test_an_error_while_reading_is_raised():
    def come():
        yield ITEMS[0]
        raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        list(make_batches(come(), 1))
