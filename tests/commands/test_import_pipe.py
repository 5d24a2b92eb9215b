"""driver-analytics import of standard input: a pipe that may never end."""

import json
import os
import threading

import pytest

from scripts.ingest import importer
from scripts.ingest.lines import Line, with_pauses
from scripts.materialize.days import Day
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
    monkeypatch.setattr(importer, "BATCH_SECONDS", 0)

    def end():
        wait_until(lambda: mongod.trips.count_documents({}) == 1)
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


def test_an_error_of_the_store_ends_the_import_during_a_pause(pipe, run_main, mongod, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(importer, "BATCH_SECONDS", 0)
    monkeypatch.setattr(importer, "TRIPS", importer.TRIPS._replace(write=fail))
    write(pipe, make_trip())
    assert run_main("import", "--fleet", "f1", "--trips", "-").status == 1


def batches(items, seconds):
    """Return the batches of items that come at these times; None is a pause."""
    times = iter([time for time, _ in items])
    now = [0.0]

    def come():
        for _, item in items:
            now[0] = next(times)
            yield item and importer.Prepared(item, 1, None)

    return list(importer.make_batches(come(), seconds, lambda: now[0]))


@pytest.mark.parametrize(
    ("items", "seconds", "expected"),
    [
        pytest.param([(0, "a"), (0.5, "b"), (1.1, "c"), (1.2, "d")], 1.0, [["a", "b"], ["c", "d"]], id="at an item"),
        pytest.param([(0, "a"), (0.6, None), (1.1, None), (9, "b"), (9.5, None)], 1.0, [["a"], ["b"]], id="in a pause"),
        pytest.param([(0, "a"), (1000, "b")], float("inf"), [["a", "b"]], id="never in a file"),
    ],
)
def test_a_batch_ends_a_second_after_its_first_item(items, seconds, expected):
    assert batches(items, seconds) == expected


@pytest.mark.parametrize(
    ("limit", "expected"),
    [("BATCH_LINES", [[0, 1], [2, 3]]), ("BATCH_BYTES", [[0, 1], [2, 3]]), ("BATCH_DAYS", [[0, 1, 2], [3]])],
)
def test_a_batch_ends_before_it_has_too_many_lines_bytes_or_days(monkeypatch, limit, expected):
    monkeypatch.setattr(importer, limit, 2)
    days = [Day("d1", "2026-03-10"), Day("d1", "2026-03-11"), Day("d1", "2026-03-10"), Day("d2", "2026-03-10")]
    items = [importer.Prepared(number, 1, day) for number, day in enumerate(days)]
    assert list(importer.make_batches(items, float("inf"))) == expected


def test_an_error_while_reading_is_raised():
    def come():
        yield Line(1, b"a", oversized=False)
        raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        list(with_pauses(come(), 1))
