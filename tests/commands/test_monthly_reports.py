"""driver-analytics reports: those on a month, and what a week does not have."""

import csv
import functools
import io
import itertools

import pytest

from app.store import Store
from app.store.reports import read_file
from schemas.periods import dates_of_period
from schemas.report_window import ReportWindow
from scripts.materialize.fleet_settings import set_settings
from scripts.materialize.write_sources import delete_trips
from scripts.reports.content import FigureCollector
from tests import store_contents
from tests.factories import make_driver, make_event_summary, make_trip

# The months before these dates have 28 to 31 days. In Denver, clocks change in March and November.
DATES = ("2026-03-01", "2024-03-01", "2026-07-01", "2026-04-01", "2025-12-01")
DATE = "2026-03-01"
WORDS = ("--fleet", "f1", "--report-date", DATE, "--period", "month")
DUE = ("reports", "build", "--due", "--period", "month")
IMPLAUSIBLE = make_trip("2026-02-10T08:00", trip_id="odd", distance_miles=90_000.0)


@pytest.fixture
def load(mongod):
    """Load trips and drivers."""
    return functools.partial(store_contents.load, mongod)


@pytest.fixture
def collect(mongod):
    """Return the rows of a monthly report, and the figures of its page."""

    def collect(date=DATE):
        with (store := Store.of(mongod)).snapshot() as session:
            collector = FigureCollector(store, session, "f1", ReportWindow(date, "month"))
            return list(itertools.chain.from_iterable(collector.rows())), collector.figures

    return collect


def rows(db):
    """Return the rows of the CSV file of the only monthly report."""
    file = db.reports.find_one({"period": "month"})["csv"]
    text = b"".join(read_file(Store.of(db), file)).decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def each_day(*dates, **fields):
    """Return a trip on each of the dates, at noon in UTC."""
    return [make_trip(f"{date}T12:00", trip_id=date, **fields) for date in dates]


@pytest.mark.parametrize("zone", ["UTC", "America/Denver", "Pacific/Auckland"])
@pytest.mark.parametrize("date", DATES)
def test_the_weeks_of_a_month_add_up_to_it_and_to_the_rows(collect, mongod, load, date, zone):
    set_settings(Store.of(mongod), "f1", time_zone=zone)
    window = ReportWindow(date, "month")
    around = [window.dates_before[-1], *window.dates, date]
    load(*(make_trip(f"{day}T{hour:02}:30", trip_id=f"{day} {hour}") for day in around for hour in (0, 6, 11, 12, 23)))
    result, figures = collect(date)
    assert len(figures.parts) == len(window.parts)
    for name in ("trip_count", "distance_miles", "duration_seconds"):
        total = sum(part[name] for part in figures.parts)
        assert total == pytest.approx(figures.total[name], rel=1e-12)
        assert total == pytest.approx(sum(row.summary[name] for row in result if row.summary), rel=1e-12)


@pytest.mark.parametrize(
    ("date", "times", "outside"),
    [
        # 2026-03-08 has 23 hours in Denver, and 2025-11-02 has 25.
        ("2026-04-01", ("2026-03-01T07:00", "2026-04-01T05:59"), ("2026-03-01T06:59", "2026-04-01T06:00")),
        ("2025-12-01", ("2025-11-01T06:00", "2025-12-01T06:59"), ("2025-11-01T05:59", "2025-12-01T07:00")),
    ],
)
def test_a_month_in_which_clocks_change_has_its_local_days_whole(collect, mongod, load, date, times, outside):
    set_settings(Store.of(mongod), "f1", time_zone="America/Denver")
    load(*(make_trip(time, trip_id=time) for time in (*times, *outside)))
    _, figures = collect(date)
    assert figures.total["trip_count"] == 2
    assert [part and part["trip_count"] for part in (figures.parts[0], figures.parts[-1])] == [1, 1]


def test_who_drove_less_than_forty_miles_in_a_month_is_not_judged(collect, load):
    trips = [
        make_trip("2026-02-10T08:00", f"d{miles}", distance_miles=miles, trip_id=str(miles)) for miles in (39.9, 40)
    ]
    load(*trips)
    _, figures = collect()
    assert (figures.drove, figures.judged, [row.driver["driver_id"] for row in figures.best]) == (2, 1, ["d40"])


@pytest.mark.parametrize(("policy", "trips", "is_doubtful"), [("counted", 3, True), ("left_out", 2, False)])
def test_figures_say_how_many_implausible_trips_there_are_and_what_is_done_with_them(
    collect, mongod, load, policy, trips, is_doubtful
):
    set_settings(Store.of(mongod), "f1", implausible_trips=policy)
    load(*each_day("2026-02-10", "2026-02-28"), IMPLAUSIBLE, {**IMPLAUSIBLE, "trip_id": "only", "driver_id": "d2"})
    load({**make_trip("2026-01-31T08:00"), "trip_id": "before"})
    (first, _), figures = collect()
    assert (first.summary["trip_count"], first.is_doubtful) == (trips, is_doubtful)
    assert (figures.implausible_policy, figures.implausible_trips) == (policy, (2, 0))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda load, db: load(make_trip("2026-02-28T23:00", "new")), id="a new driver"),
        pytest.param(lambda load, db: load({**IMPLAUSIBLE, "distance_miles": 12.0}), id="a correction"),
        pytest.param(lambda load, db: load(make_trip("2026-01-01T00:00")), id="the month before"),
        pytest.param(lambda load, db: load(drivers=[make_driver("d1", groups=["x"])]), id="a group"),
        pytest.param(lambda load, db: delete_trips(Store.of(db), "f1", ["2026-02-01"]), id="a deleted trip"),
        pytest.param(lambda load, db: set_settings(Store.of(db), "f1", time_zone="Asia/Tokyo"), id="the time zone"),
    ],
)
def test_a_monthly_report_is_due_again_once_what_it_shows_has_changed(command, mongod, load, clock, change):
    load(*each_day("2026-02-01", "2026-02-15"), IMPLAUSIBLE)
    command(*DUE)
    change(load, mongod)
    messages = [command(*DUE).stdout.split(",")[0] for _ in range(2)]
    assert messages == [f"f1: built the monthly report of {DATE}", f"f1: the monthly report of {DATE} already exists\n"]


def test_a_monthly_report_is_due_again_once_implausible_trips_are_left_out(command, load, clock):
    load(*each_day("2026-02-01"), IMPLAUSIBLE)
    command(*DUE)
    command("fleets", "set", "--fleet", "f1", "--implausible-trips", "leave-out")
    assert command(*DUE).stdout == f"f1: built the monthly report of {DATE}, 1 drivers\n"


def test_a_monthly_report_is_not_due_again_for_trips_of_other_months(command, mongod, load, clock):
    load(*each_day("2026-02-01", "2026-02-28"))
    command(*DUE)
    built = mongod.reports.find_one()
    load(make_trip("2026-03-01T00:00"), make_trip("2025-12-31T23:59"), *each_day("2026-02-01", tracking_id="new"))
    assert command(*DUE).stdout == f"f1: the monthly report of {DATE} already exists\n"
    assert mongod.reports.find_one() == built


@pytest.mark.parametrize(
    ("time", "zone", "due"),
    [
        ("2026-03-01T00:00Z", "UTC", "2026-03-01"),
        ("2026-03-31T23:59Z", "UTC", "2026-03-01"),
        ("2026-04-01T05:59Z", "America/Denver", "2026-03-01"),
        ("2026-04-01T06:00Z", "America/Denver", "2026-04-01"),
    ],
)
def test_a_month_is_due_from_its_end_on_in_the_time_zone_of_the_fleet(command, mongod, load, clock, time, zone, due):
    set_settings(Store.of(mongod), "f1", time_zone=zone)
    load(*each_day("2026-02-01"))
    clock.move_to(time)
    assert command(*DUE).stdout.startswith(f"f1: built the monthly report of {due}, ")


@pytest.mark.parametrize(
    ("date", "message"),
    [
        ("2026-02-28", "--report-date of a monthly report is the first of a month: 2026-02-01."),
        ("2026-04-01", "The days before 2026-04-01 are not over yet."),
        ("0001-02-01", "--report-date must be 0001-03-01 or later."),
    ],
)
def test_a_date_that_no_monthly_report_has_is_refused(command, load, clock, date, message):
    load(*each_day("2026-02-01"))
    result = command("reports", "build", "--fleet", "f1", "--report-date", date, "--period", "month")
    assert (result.exit_code, message in result.stderr) == (2, True)


def test_reports_on_a_week_and_a_month_of_one_date_are_listed_and_deleted_each_with_its_units(command, mongod, load):
    words = ("--fleet", "f1", "--report-date", "2025-12-01")
    load(*each_day("2025-11-03", "2025-11-26"))
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


def test_an_erased_driver_is_in_no_monthly_report(command, mongod, load):
    load(*each_day("2026-02-10"), make_trip("2026-02-10T08:00", "secret"))
    command("reports", "build", *WORDS)
    command("erase", "--fleet", "f1", "--driver", "secret", "--yes")
    assert [(row["driver_id"], row["trip_count"]) for row in rows(mongod)] == [("d1", "1")]
    assert b"secret" not in b"".join(chunk["data"] for chunk in mongod["report_files.chunks"].find())


def test_a_monthly_report_goes_once_all_of_its_days_are_pruned(command, mongod, load):
    load(*each_day(*dates_of_period("month", "2026-02-01")))
    command("reports", "build", *WORDS)
    for before, left in (("2026-02-28", 1), ("2026-03-01", 0)):
        command("prune", "--before", before)
        assert mongod.reports.count_documents({}) == left
    assert mongod["report_files.files"].count_documents({}) == 0


def test_a_row_has_what_the_month_of_its_driver_adds_up_to(command, mongod, load):
    events = make_event_summary(hard_brake_count=1)
    load(*each_day(*dates_of_period("month", "2026-02-01"), distance_miles=10.0, event_summary=events))
    command("reports", "build", *WORDS)
    (row,) = rows(mongod)
    names = ("trip_count", "distance_miles", "hard_brake_count", "hard_brake_per_100_miles")
    assert [float(row[name]) for name in names] == [28, 280, 28, 10]
