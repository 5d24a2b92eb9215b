"""driver-analytics reports: built, listed and deleted."""

import csv
import datetime
import io
import itertools
import json

import pytest
import time_machine

from app.store import Store
from app.store.reports import read_file
from scripts.materialize.fleet_settings import set_settings
from scripts.materialize.write_sources import delete_trips
from scripts.reports import commands
from scripts.reports import content as report_content
from tests import store_contents
from tests.conftest import Service
from tests.factories import make_driver, make_event_summary, make_trip
from tests.score_reference import make_trips

DATE = "2026-03-16"
WEEK = {"period": "week", "start_date": "2026-03-09"}
WORDS = ("--fleet", "f1", "--report-date", DATE)


# The reports that are due at NOW.
DUE = {"week": DATE, "month": "2026-03-01"}
FEBRUARY = make_trip("2026-02-10T08:00", trip_id="february")


def busy_fleet():
    """Return trips of seven drivers on all dates from the 1st to the 17th of March, more and worse the later."""
    return [
        make_trip(
            f"2026-03-{day:02}T{8 + n:02}:00",
            f"d{n}",
            trip_id=f"{day} {n}",
            distance_miles=day / 3 + n,
            highway_miles=0.1 + 0.2,
            night_driving_seconds=n,
            event_summary=make_event_summary(
                phone_use_count=n,
                phone_use_time_seconds=n * day,
                hard_brake_count=day % 3,
                overspeeding_time_seconds=77,
            ),
        )
        for day, n in itertools.product(range(1, 18), range(7))
        if (day + n) % 3
    ]


def content(db):
    """Return the CSV file of a report that is there."""
    file = db.reports.find_one({"fleet": "f1", "report_date": DATE})["csv"]
    result = b"".join(read_file(Store.of(db), file))
    assert len(result) == file["bytes"]
    return result


def rows(db):
    return list(csv.DictReader(io.StringIO(content(db).decode("utf-8-sig"), newline=""), strict=True))


def file_ids(db):
    """Return the files that lie in the store, halves included."""
    files = {file["_id"] for file in db["report_files.files"].find({})}
    return files | set(db["report_files.chunks"].distinct("files_id"))


def used_ids(db):
    return {report[name]["file_id"] for report in db.reports.find({}) for name in ("csv", "page")}


def test_a_report_has_a_row_for_every_driver_with_what_the_week_adds_up_to(command, mongod, load):
    load(*busy_fleet(), drivers=[make_driver("idle"), make_driver("d3", first_name="Ada", alias="")])
    assert command("reports", "build", *WORDS).stdout == f"f1: built the weekly report of {DATE}, 8 drivers\n"
    result = rows(mongod)
    weeks = {week["driver_id"]: json.loads(week["driving_summary"]) for week in mongod.driver_periods.find(WEEK)}
    assert [row["driver_id"] for row in result] == [*(f"d{n}" for n in range(7)), "idle"]
    for row in result[:-1]:
        week = weeks[row["driver_id"]]
        for name, value in {**week, **week["events_summary"]}.items():
            if isinstance(value, int | float):
                assert float(row[name]) == pytest.approx(value, abs=0.05), name
        assert row["fm_grade"] == week["fm_grade"]
        assert {name: row[name] == "true" for name in week["focus_area"]} == week["focus_area"]


def test_points_lost_are_those_of_the_explanation(command, mongod, load, clock):
    load(*make_trips("2026-03-09", "2026-03-15"))
    command("reports", "build", *WORDS)
    window = {"start_date": "2026-03-09", "end_date": "2026-03-15"}
    total = Service(mongod).get("/driver/d1/score", **window).json["total"]
    assert {name: float(value) for name, value in rows(mongod)[0].items() if name.endswith("_points_lost")} == {
        f"{one['behaviour']}_points_lost": round(one["points_lost"], 2) for one in total["behaviours"]
    }


def test_a_driver_who_did_not_drive_has_empty_cells(command, mongod, load):
    load(make_trip("2026-03-08T23:59"), make_trip("2026-03-16T00:00"), drivers=[make_driver("d1", first_name="Ada")])
    command("reports", "build", *WORDS)
    (row,) = rows(mongod)
    filled = {name for name, cell in row.items() if cell}
    assert filled == {"driver_id", "first_name", "first_travel_date", "last_travel_date"}


def test_a_row_has_the_groups_of_its_driver_which_a_spreadsheet_does_not_run(command, mongod, load):
    load(drivers=[make_driver("d1", groups=["North", "!a", "=1", '"b"']), make_driver("d2")])
    command("reports", "build", *WORDS)
    assert [row["groups"] for row in rows(mongod)] == ['!a; "b";\' =1; North', ""]


def test_drivers_are_read_in_chunks_without_a_seam(command, mongod, load, monkeypatch):
    load(*busy_fleet(), drivers=[make_driver(f"x{n}") for n in range(10)])
    command("reports", "build", *WORDS)
    whole = content(mongod)
    monkeypatch.setattr(report_content, "CHUNK_DRIVERS", 3)
    command("reports", "build", *WORDS)
    assert content(mongod) == whole


def test_files_of_a_rebuilt_report_stay_for_their_current_readers(command, mongod, load, clock):
    load(*busy_fleet())
    command("reports", "build", *WORDS)
    first = used_ids(mongod)
    command("reports", "build", *WORDS)
    assert file_ids(mongod) == first | used_ids(mongod)
    clock.shift(3601)
    second = used_ids(mongod)
    command("reports", "build", *WORDS)
    assert first.isdisjoint(file_ids(mongod))
    assert len(file_ids(mongod)) == 4
    # The second one is old, but clients may have begun to read it until now.
    command("reports", "build", *WORDS)
    assert second < file_ids(mongod)


def test_a_report_is_listed_and_deleted_with_its_files(command, mongod, load, clock):
    load(*busy_fleet())
    for date in (DATE, "2026-03-09"):
        command("reports", "build", "--fleet", "f1", "--report-date", date)
    size = mongod.reports.find_one({"report_date": DATE})["csv"]["bytes"]
    listed = command("reports", "list", "--fleet", "f1").stdout.splitlines()
    assert listed[1] == f"{DATE}\tweek\t2026-03-18T12:00:00Z\t7\t{size}\tmiles"
    assert command("reports", "delete", *WORDS).exit_code == 0
    assert command("reports", "list", "--fleet", "f1").stdout.splitlines() == listed[:1]
    assert file_ids(mongod) == used_ids(mongod)
    again = command("reports", "delete", *WORDS)
    assert (again.exit_code, again.stderr) == (
        1,
        f"Error: The fleet f1 has no weekly report of {DATE}. To list its reports, run: driver-analytics reports list "
        "--fleet f1\n",
    )


def test_reports_on_a_week_and_a_month_of_one_date_are_listed_and_deleted_each_with_its_units(command, mongod, load):
    words = ("--fleet", "f1", "--report-date", "2025-12-01")
    load(make_trip("2025-11-03T12:00"), make_trip("2025-11-26T12:00"))
    command("reports", "build", *words, "--units", "km")
    command("reports", "build", *words, "--period", "month", "--units", "miles")
    command("reports", "build", *words)
    listed = command("reports", "list", "--fleet", "f1").stdout.splitlines()
    assert [line.split("\t")[:2] + line.split("\t")[-1:] for line in listed] == [
        ["2025-12-01", "month", "miles"],
        ["2025-12-01", "week", "km"],
    ]
    assert command("reports", "delete", *words, "--period", "month").exit_code == 0
    assert [report["period"] for report in mongod.reports.find()] == ["week"]
    assert len(mongod["report_files.files"].distinct("_id", {"filename": {"$regex": "\tmonth\t"}})) == 0


def test_a_list_without_reports_says_so(command):
    result = command("reports", "list", "--fleet", "f1")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "The fleet f1 has no reports.\n")


def test_last_week_and_last_month_are_due_for_every_fleet_that_had_trips_without_their_reports(command, load, clock):
    for fleet in ("f1", "f2"):
        load(*busy_fleet(), fleet=fleet)
    load(make_trip("2026-02-28T08:00"), fleet="f2")
    command("reports", "build", *WORDS)
    message = command("reports", "build", "--due").stdout.splitlines()
    assert message == [
        f"f1: the weekly report of {DATE} already exists",
        f"f2: built the weekly report of {DATE}, 7 drivers",
        "f2: built the monthly report of 2026-03-01, 7 drivers",
    ]


DUE_AGAIN = {
    "a new driver": ("week", lambda db: store_contents.load(db, make_trip("2026-03-15T23:00", "new"))),
    "the week before": ("week", lambda db: store_contents.load(db, make_trip("2026-03-02T08:00"))),
    "a group": ("week", lambda db: store_contents.load(db, drivers=[make_driver("d3", groups=["x"])])),
    "an insurance period": (
        "week",
        lambda db: store_contents.load(db, *({**trip, "insurance_period": 2} for trip in busy_fleet())),
    ),
    "a deleted trip": ("week", lambda db: delete_trips(Store.of(db), "f1", ["10 0"])),
    "the time zone": ("week", lambda db: set_settings(Store.of(db), "f1", time_zone="Asia/Tokyo")),
    "a correction": ("month", lambda db: store_contents.load(db, {**FEBRUARY, "distance_miles": 12.0})),
    "the month before": ("month", lambda db: store_contents.load(db, make_trip("2026-01-01T00:00"))),
}


@pytest.mark.parametrize(("period", "change"), DUE_AGAIN.values(), ids=DUE_AGAIN)
def test_a_report_is_due_again_once_its_trips_have_changed(command, mongod, load, clock, period, change):
    load(FEBRUARY, *busy_fleet())
    words = ("reports", "build", "--due", "--period", period)
    command(*words)
    change(mongod)
    messages = [command(*words).stdout.split(",")[0] for _ in range(2)]
    report = f"the {period}ly report of {DUE[period]}"
    assert messages == [f"f1: built {report}", f"f1: {report} already exists\n"]


def test_a_report_is_not_due_again_for_what_it_does_not_show(command, mongod, load, clock):
    trip, *others = busy_fleet()
    load(FEBRUARY, trip, *others)
    command("reports", "build", "--due")
    load({**trip, "tracking_id": "new"}, make_trip("2026-03-16T00:00"), make_trip("2026-03-01T23:00"))
    load(make_trip("2025-12-31T23:59"), drivers=[make_driver("d3", alias="new")])
    assert command("reports", "build", "--due").stdout.count("already exists") == 2


def test_the_report_of_today_can_be_built_and_that_of_tomorrow_cannot(command, load, clock):
    load(*busy_fleet())
    clock.move_to(f"{DATE}T00:00Z")
    words = ("reports", "build", "--fleet", "f1", "--report-date")
    assert [command(*words, date).exit_code for date in (DATE, "2026-03-17")] == [0, 2]


def test_a_report_keeps_the_units_of_the_one_before_it_until_others_are_given(command, load, clock):
    load(*busy_fleet())
    command("reports", "build", "--fleet", "f1", "--report-date", "2026-03-02")
    command("reports", "build", "--fleet", "f1", "--report-date", "2026-03-09", "--units", "km")
    command("reports", "build", "--due", "--period", "week")
    command("reports", "build", *WORDS)
    command("reports", "build", "--fleet", "f1", "--report-date", "2026-03-17", "--units", "miles")
    command("reports", "build", "--fleet", "f1", "--report-date", "2026-03-18")
    listed = command("reports", "list", "--fleet", "f1").stdout.splitlines()
    assert [line.rpartition("\t")[2] for line in listed] == ["miles", "km", "km", "miles", "miles"]


@pytest.mark.parametrize(
    ("period", "time", "zone", "due"),
    [
        ("week", "2026-03-15T00:00Z", "UTC", "2026-03-09"),
        ("week", "2026-03-22T00:00Z", "UTC", "2026-03-16"),
        ("week", "2026-03-16T05:59Z", "America/Denver", "2026-03-09"),
        ("week", "2026-03-16T06:00Z", "America/Denver", "2026-03-16"),
        ("month", "2026-03-31T23:59Z", "UTC", "2026-03-01"),
        ("month", "2026-04-01T05:59Z", "America/Denver", "2026-03-01"),
        ("month", "2026-04-01T06:00Z", "America/Denver", "2026-04-01"),
    ],
)
def test_a_report_is_due_from_the_end_of_its_period_on_in_the_time_zone_of_the_fleet(
    command, mongod, load, clock, period, time, zone, due
):
    set_settings(Store.of(mongod), "f1", time_zone=zone)
    load(FEBRUARY, *busy_fleet())
    clock.move_to(time)
    printed = command("reports", "build", "--due", "--period", period).stdout
    assert printed.startswith(f"f1: built the {period}ly report of {due}, ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        *(
            (words, "Give either --fleet ID and --report-date DATE, or only --due.")
            for words in ((), WORDS[:2], WORDS[2:], (*WORDS, "--due"))
        ),
        (("--fleet", "f1", "--report-date", "2026-03-16T00:00:00"), "Must be a date written YYYY-MM-DD."),
        (("--fleet", "f1", "--report-date", "9999-03-16"), "The days before 9999-03-16 are not over yet"),
        (("--fleet", "f1", "--report-date", "0001-01-03"), "must be 0001-01-15 or later."),
        (("--fleet", "nobody", "--report-date", DATE), "Nothing is stored for the fleet nobody."),
        (
            ("--fleet", "f1", "--report-date", "2026-02-28", "--period", "month"),
            "--report-date of a monthly report is the first of a month: 2026-02-01.",
        ),
        (("--fleet", "f1", "--report-date", "0001-02-01", "--period", "month"), "must be 0001-03-01 or later."),
    ],
)
def test_a_report_that_cannot_be_built_is_an_error_in_one_line(command, words, message):
    result = command("reports", "build", *words)
    assert result.exit_code in (1, 2)
    assert message in result.stderr.splitlines()[-1]


def test_a_report_stopped_before_any_operation_is_that_of_before_and_leaves_nothing_once_it_is_built(
    command, kills, mongod, load
):
    def build():
        return command("reports", "build", *WORDS)

    load(*busy_fleet())
    for _ in kills(commands, build, 0, 5, 10):
        assert used_ids(mongod) <= file_ids(mongod)
    first = content(mongod)
    for _ in kills(commands, build, 0, 5, 10):
        assert content(mongod) == first
    replaced = used_ids(mongod)
    with time_machine.travel(datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=2), tick=False):
        assert build().exit_code == 0
    assert file_ids(mongod) == used_ids(mongod) | replaced


def test_the_seven_days_are_whole_and_end_before_the_date(command, mongod, load):
    times = ("08T23:59", "09T00:00", "15T23:59", "16T00:00")
    load(*(make_trip(f"2026-03-{time}", f"d{n}") for n, time in enumerate(times)))
    command("reports", "build", *WORDS)
    assert [row["trip_count"] for row in rows(mongod)] == ["", "1", "1", ""]


def test_the_page_names_the_time_zone_of_the_fleet(command, mongod, load):
    set_settings(Store.of(mongod), "f1", time_zone="America/Denver")
    load(*busy_fleet())
    command("reports", "build", *WORDS)
    file = mongod.reports.find_one({"fleet": "f1"})["page"]
    assert b"America/Denver" in b"".join(read_file(Store.of(mongod), file))
