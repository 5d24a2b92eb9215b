"""driver-analytics reports: what a report shows of a week or month."""

import itertools

import pytest

from app.store import Store
from schemas.report import ReportWindow
from scripts.materialize.fleet_settings import set_settings
from scripts.reports.content import FigureCollector
from tests.commands.test_reports import DATE, busy_fleet
from tests.factories import make_driver, make_event_summary, make_trip
from tests.score_reference import add_up, between

# The months before these dates have 28 to 31 days. In Denver, clocks change in March and November.
DATES = ("2026-03-01", "2024-03-01", "2026-07-01", "2026-04-01", "2025-12-01")


@pytest.fixture
def collect(mongod):
    """Return the rows of a report, and the figures of its page."""

    def collect(date=DATE, period="week"):
        with (store := Store.of(mongod)).snapshot():
            collector = FigureCollector(store, "f1", ReportWindow(date, period))
            return list(itertools.chain.from_iterable(collector.rows())), collector.figures

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


@pytest.mark.parametrize("zone", ["UTC", "America/Denver", "Pacific/Auckland"])
@pytest.mark.parametrize("date", DATES)
def test_the_weeks_of_a_month_add_up_to_it_and_to_the_rows(collect, mongod, load, date, zone):
    set_settings(Store.of(mongod), "f1", time_zone=zone)
    window = ReportWindow(date, "month")
    around = [window.dates_before[-1], *window.dates, date]
    load(*(make_trip(f"{day}T{hour:02}:30", trip_id=f"{day} {hour}") for day in around for hour in (0, 6, 11, 12, 23)))
    result, figures = collect(date, "month")
    assert len(figures.parts) == len(window.parts)
    for name in ("trip_count", "distance_miles", "duration_seconds"):
        total = sum(part[name] for part in figures.parts)
        assert total == pytest.approx(figures.total[name], rel=1e-12)
        assert total == pytest.approx(sum(row.summary[name] for row in result if row.summary), rel=1e-12)


def test_who_drove_less_than_forty_miles_in_a_month_is_not_judged(collect, load):
    trips = [
        make_trip("2026-02-10T08:00", f"d{miles}", distance_miles=miles, trip_id=str(miles)) for miles in (39.9, 40)
    ]
    load(*trips)
    _, figures = collect("2026-03-01", "month")
    assert (figures.drove, figures.judged, [row.driver["driver_id"] for row in figures.best]) == (2, 1, ["d40"])


@pytest.mark.parametrize(("policy", "trips", "is_doubtful"), [("counted", 3, True), ("left_out", 2, False)])
def test_figures_say_how_many_implausible_trips_there_are_and_what_is_done_with_them(
    collect, mongod, load, policy, trips, is_doubtful
):
    set_settings(Store.of(mongod), "f1", implausible_trips=policy)
    load(*(make_trip(f"{date}T12:00") for date in ("2026-01-31", "2026-02-10", "2026-02-28")))
    load(*(make_trip("2026-02-10T08:00", driver_id, distance_miles=90_000.0) for driver_id in ("d1", "d2")))
    (first, _), figures = collect("2026-03-01", "month")
    assert (first.summary["trip_count"], first.is_doubtful) == (trips, is_doubtful)
    assert (figures.implausible_policy, figures.implausible_trips) == (policy, (2, 0))
