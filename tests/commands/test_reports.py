"""driver-analytics reports: built, listed and deleted."""

import csv
import datetime
import functools
import io
import itertools
import json
import re
import sys

import pytest
import time_machine

from app.store import Store
from app.store.reports import read_file
from schemas.report import HEADER
from schemas.report_window import ReportWindow
from scripts.materialize.fleet_settings import set_settings
from scripts.materialize.write_sources import delete_trips
from scripts.reports import commands
from scripts.reports import content as report_content
from scripts.reports.content import FigureCollector
from tests import store_contents
from tests.conftest import Service
from tests.factories import make_driver, make_event_summary, make_trip
from tests.score_reference import add_up, between, make_trips

DATE = "2026-03-16"
WEEK = {"period": "week", "start_date": "2026-03-09"}
WORDS = ("--fleet", "f1", "--report-date", DATE)
HOSTILE = ("=1+1", "+A1", "-1+A1", "--A1", "+1-555", "+(1;2)", "-1\n", "+１", "@SUM(A1)", "\tx", "\rx", "\nx", " =1")
HOSTILE += ("\ufeff=1", "\u200b\xa0=1", '"=1', "＝1", "＋A1")
# A spreadsheet that splits at semicolons or tabs reads these as cells of their own, whatever the quotes.
SPLIT = ("a;=1+2", "a\t=1+2", "a\n=1+2", "a; +1", "a;\u200b@A1", 'a;"=1+2"', 'a";-17', ";;=1", "a;＝1")
HARMLESS = (
    "+15551234567",
    "-17",
    "+1 (555) 1234567",
    "+49.30.1234",
    "-",
    "+",
    "5+A1",
    "x=1",
    "a; b-c",
    "a;5=5",
    "'=1",
)


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


@pytest.fixture
def load(mongod):
    """Load trips and drivers."""
    return functools.partial(store_contents.load, mongod)


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


def test_rates_are_events_of_a_hundred_miles(command, mongod, load):
    events = make_event_summary(phone_use_count=3, overspeeding_count=1, hard_brake_count=7)
    load(
        make_trip("2026-03-10T08:00", event_summary=events, distance_miles=40.0),
        make_trip("2026-03-11T08:00", "d2", distance_miles=0),
        make_trip(
            "2026-03-11T08:00", "d3", distance_miles=5e-324, event_summary=make_event_summary(hard_brake_count=9)
        ),
    )
    command("reports", "build", *WORDS)
    rates = {name: [row[name] for row in rows(mongod)] for name in HEADER if name.endswith("_per_100_miles")}
    assert rates == {
        "phone_use_per_100_miles": ["7.5", "0.0", "0.0"],
        "rapid_acceleration_per_100_miles": ["0.0", "0.0", "0.0"],
        # The largest of all numbers, where a rate would be larger.
        "hard_brake_per_100_miles": ["17.5", "0.0", repr(sys.float_info.max)],
        "overspeeding_per_100_miles": ["2.5", "0.0", "0.0"],
    }


def test_amounts_have_the_decimals_that_mean_something_and_hours_stand_beside_seconds(command, mongod, load):
    events = make_event_summary(phone_use_time_seconds=0.1)
    trip = {"distance_miles": 16.06 / 3, "event_summary": events, "duration_seconds": 1800}
    load(*(make_trip(f"2026-03-10T{hour}:00", **trip) for hour in (10, 11, 12)))
    command("reports", "build", *WORDS)
    (row,) = rows(mongod)
    names = ("distance_miles", "duration_seconds", "duration_hours", "phone_use_time_seconds", "phone_use_time_hours")
    assert [row[name] for name in names] == ["16.06", "5400", "1.5", "0.3", "0.0"]
    assert [HEADER[HEADER.index(name) + 1] for name in names[1::2]] == list(names[2::2])


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


def test_the_seven_days_are_whole_and_end_before_the_date(command, mongod, load):
    times = ("08T23:59", "09T00:00", "15T23:59", "16T00:00")
    load(*(make_trip(f"2026-03-{time}", f"d{n}") for n, time in enumerate(times)))
    command("reports", "build", *WORDS)
    assert [row["trip_count"] for row in rows(mongod)] == ["", "1", "1", ""]


@pytest.mark.parametrize(
    ("names", "driver_id", "mark"),
    [pytest.param(HOSTILE, "-d", "'", id="hostile"), pytest.param(HARMLESS, "+1555", "", id="harmless")],
)
def test_text_that_a_spreadsheet_would_run_is_defused_and_no_other(command, mongod, load, names, driver_id, mark):
    load(drivers=[make_driver(f"{driver_id}{n:02}", alias=name, email=f"x{name}") for n, name in enumerate(names)])
    command("reports", "build", *WORDS)
    result = [(row["driver_id"], row["alias"], row["email"]) for row in rows(mongod)]
    assert result == [(f"{mark}{driver_id}{n:02}", f"{mark}{name}", f"x{name}") for n, name in enumerate(names)]


def test_a_row_has_the_groups_of_its_driver_which_a_spreadsheet_does_not_run(command, mongod, load):
    load(drivers=[make_driver("d1", groups=["North", "!a", "=1", '"b"']), make_driver("d2")])
    command("reports", "build", *WORDS)
    assert [row["groups"] for row in rows(mongod)] == ['!a; "b";\' =1; North', ""]


@pytest.mark.parametrize("separator", [";", "\t"])
def test_no_part_of_text_is_a_formula_where_a_spreadsheet_splits_it(command, mongod, load, separator):
    names = [*SPLIT, *HOSTILE]
    load(drivers=[make_driver(f"d{n:02}", alias=name, last_name=name) for n, name in enumerate(names)])
    command("reports", "build", *WORDS)
    text = content(mongod).decode()
    read = [cell for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) for cell in row]
    parts = [part.lstrip(' "\xa0\u200b\ufeff') for part in [*read, *re.split(rf"[\r\n{separator}]", text)]]
    assert [part for part in parts if part.startswith(("=", "+", "-", "@", "＝", "＋"))] == []
    assert [row["alias"].replace("'", "") for row in rows(mongod)] == names


def test_text_of_any_kind_comes_back_as_it_was(command, mongod, load):
    names = ['say "hi", Bob', "a,b;c", "zwei\r\nZeilen", "Zoë \u202e\U0001f697", " x ", "'quoted"]
    load(drivers=[make_driver(f"d{n}", alias=name) for n, name in enumerate(names)])
    command("reports", "build", *WORDS)
    assert [row["alias"] for row in rows(mongod)] == names
    lines = content(mongod).split(b"\r\n")
    assert lines[0].decode() == "\ufeff" + ",".join(f'"{name}"' for name in HEADER)
    assert lines[-1] == b""


def test_all_text_is_quoted_and_nothing_else(command, mongod, load):
    trip = make_trip("2026-03-10T08:00", "Ann")
    load(trip, drivers=[make_driver("Ann", alias="a;b"), make_driver("Bob", alias="a\tb")])
    command("reports", "build", *WORDS)
    _, ann, bob, _ = content(mongod).decode("utf-8-sig").split("\r\n")
    assert ann.startswith('"Ann",,,,"a;b","2026-03-10","2026-03-10",,1,')
    assert ann.endswith(',false,false,false,false,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,100.0,"excellent"')
    assert bob == '"Bob",,,,"a\tb"' + "," * (len(HEADER) - 5)


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


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda db: store_contents.load(db, make_trip("2026-03-15T23:00", "new")), id="a new driver"),
        pytest.param(lambda db: store_contents.load(db, make_trip("2026-03-02T08:00")), id="the week before"),
        pytest.param(lambda db: store_contents.load(db, drivers=[make_driver("d3", groups=["x"])]), id="a group"),
        pytest.param(
            lambda db: store_contents.load(db, *({**trip, "insurance_period": 2} for trip in busy_fleet())),
            id="an insurance period",
        ),
        pytest.param(lambda db: delete_trips(Store.of(db), "f1", ["10 0"]), id="a deleted trip"),
        pytest.param(lambda db: set_settings(Store.of(db), "f1", time_zone="Asia/Tokyo"), id="the time zone"),
        pytest.param(lambda db: db.reports.update_one({}, {"$unset": {"trips_version": 1}}), id="unknown"),
    ],
)
def test_a_report_is_due_again_once_its_trips_have_changed(command, mongod, load, clock, change):
    load(*busy_fleet())
    command("reports", "build", *WORDS)
    change(mongod)
    messages = [command("reports", "build", "--due", "--period", "week").stdout for _ in range(2)]
    assert [message.split(",")[0] for message in messages] == [
        f"f1: built the weekly report of {DATE}",
        f"f1: the weekly report of {DATE} already exists\n",
    ]


def test_a_report_is_not_due_again_for_what_it_does_not_show(command, mongod, load, clock):
    trip, *others = busy_fleet()
    load(trip, *others)
    command("reports", "build", *WORDS)
    load({**trip, "tracking_id": "new"}, make_trip("2026-03-16T00:00"), make_trip("2026-03-01T23:00"))
    load(drivers=[make_driver("d3", alias="new")])
    assert f"f1: the weekly report of {DATE} already exists\n" in command("reports", "build", "--due").stdout


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
    ("time", "zone", "due"),
    [
        ("2026-03-15T00:00Z", "UTC", "2026-03-09"),
        ("2026-03-16T00:00Z", "UTC", "2026-03-16"),
        ("2026-03-22T00:00Z", "UTC", "2026-03-16"),
        ("2026-03-16T05:59Z", "America/Denver", "2026-03-09"),
        ("2026-03-16T06:00Z", "America/Denver", "2026-03-16"),
    ],
)
def test_a_week_is_due_from_monday_on_in_the_time_zone_of_the_fleet(command, mongod, load, clock, time, zone, due):
    set_settings(Store.of(mongod), "f1", time_zone=zone)
    load(*busy_fleet())
    clock.move_to(time)
    assert command("reports", "build", "--due").stdout.startswith(f"f1: built the weekly report of {due}, ")
    next_week = str(datetime.date.fromisoformat(due) + datetime.timedelta(7))
    result = command("reports", "build", "--fleet", "f1", "--report-date", next_week)
    assert f"The days before {next_week} are not over yet" in result.stderr


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
    ],
)
def test_a_report_that_cannot_be_built_is_an_error_in_one_line(command, words, message):
    result = command("reports", "build", *words)
    assert result.exit_code in (1, 2)
    assert message in result.stderr.splitlines()[-1]


@pytest.fixture
def collect(mongod):
    """Return the rows of a report, and the figures of its page."""

    def collect():
        with (store := Store.of(mongod)).snapshot() as session:
            rows = itertools.chain.from_iterable(
                (collector := FigureCollector(store, session, "f1", ReportWindow(DATE))).rows()
            )
            return list(rows), collector.figures

    return collect


def test_the_figures_of_the_page_are_the_totals_of_the_rows_of_the_days_and_of_the_week_before(collect, load):
    load(*(trips := busy_fleet()), drivers=[make_driver("idle")])
    result, figures = collect()
    drove = [row.summary for row in result if row.summary]
    assert (figures.drivers, figures.drove) == (8, len(drove))
    assert figures.total["trip_count"] == sum(summary["trip_count"] for summary in drove)
    assert figures.total["distance_miles"] == pytest.approx(sum(summary["distance_miles"] for summary in drove))
    assert sum(figures.scores) == len(drove)
    assert figures.focus == {flag: sum(summary["focus_area"][flag] for summary in drove) for flag in figures.focus}
    assert [row.driver for row in figures.first] == [row.driver for row in result]
    dates = [f"2026-03-{day:02}" for day in range(9, 16)]
    assert [day["trip_count"] for day in figures.parts] == [len(between(trips, date, date)) for date in dates]
    before = add_up(between(trips, "2026-03-02", "2026-03-08"), "event_summary", "hard_brake_count")
    assert figures.before["events_summary"]["hard_brake_count"] == before


def test_a_group_has_the_figures_of_its_drivers_in_both_weeks(collect, load):
    ids = {"North": ("d1", "d2", "idle"), "South": ("d2",), "Idle": ("idle",)}
    lines = {driver: [group for group in ids if driver in ids[group]] for driver in ("d1", "d2", "idle")}
    load(*(trips := busy_fleet()), drivers=[make_driver(driver, groups=names) for driver, names in lines.items()])
    _, figures = collect()
    counts = [(name, group.drivers, group.drove) for name, group in figures.groups.items()]
    assert counts == [("Idle", 1, 0), ("North", 3, 2), ("South", 1, 1)]
    for name, group in figures.groups.items():
        own = [trip for trip in trips if trip["driver_id"] in ids[name]]
        for summary, dates in ((group.total, ("03-09", "03-15")), (group.before, ("03-02", "03-08"))):
            trip_count = len(between(own, *(f"2026-{date}" for date in dates)))
            assert (summary or {"trip_count": 0})["trip_count"] == trip_count


def test_insurance_periods_add_up_to_the_whole_and_are_left_out_if_no_trip_has_one(collect, load):
    trips = busy_fleet()
    load(*trips)
    assert collect()[1].insurance_periods == {}
    load(*({**trip, "insurance_period": (None, 1, 3)[number % 3]} for number, trip in enumerate(trips)))
    _, figures = collect()
    assert list(figures.insurance_periods) == ["1", "3", "none"]
    for name in ("trip_count", "duration_seconds", "distance_miles"):
        parts = [part[name] for part in figures.insurance_periods.values()]
        assert sum(parts) == pytest.approx(figures.total[name], rel=1e-12)


def test_nobody_is_among_the_best_and_among_the_worst(collect, load):
    ids = [f"d{number:02}" for number in range(12)]
    load(*[make_trip("2026-03-10T08:00", driver_id) for driver_id in ids])
    _, figures = collect()
    best, worst = ([row.driver["driver_id"] for row in rows] for rows in (figures.best, figures.worst))
    assert (best, worst) == (ids[6:], ids[:6])


def test_who_drove_less_than_ten_miles_is_counted_and_not_judged(collect, load):
    brakes = make_event_summary(hard_brake_count=9)
    load(
        *[make_trip("2026-03-10T08:00", f"d{miles}", distance_miles=miles) for miles in (10, 12, 11)],
        make_trip("2026-03-10T08:00", "little", distance_miles=9.9, event_summary=brakes),
    )
    _, figures = collect()
    assert (figures.drivers, figures.drove, figures.judged) == (4, 4, 3)
    assert (sum(figures.scores), sum(figures.focus.values()), figures.total["trip_count"]) == (3, 0, 4)
    # As in the API's ranking, the longer distance comes first.
    names = [[row.driver["driver_id"] for row in rows] for rows in (figures.worst, figures.best)]
    assert names == [["d12"], ["d11", "d10"]]


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
