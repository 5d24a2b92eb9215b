"""The parts of the benchmark that need no servers: the generated fleet, the requests, the tables."""

import datetime
import gzip
import itertools
import json

import pytest

from app.config import API
from bench import data, fleet, growth_report, report, rows, run
from bench.load import Sample
from schemas.trip import ImportedTrip

SHAPE = fleet.Shape(drivers=2, days=20, points=30, old_points=6)
TODAY = datetime.date(2026, 3, 10)


def make_trips():
    return list(fleet.trips(SHAPE, TODAY))


def date_of(trip):
    return datetime.datetime.fromtimestamp(trip["trip_start_time"] / 1000, datetime.UTC).date().isoformat()


def read(file):
    return [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]


def sample(per_second=100.0, cpu_ms=1.0, mongod_ms=0.5, busiest=0.5):
    return Sample(per_second, 1.0, 2.0, cpu_ms, mongod_ms, 0.0, 1000.0, busiest)


def test_every_trip_of_the_fleet_can_be_imported():
    assert not ImportedTrip(many=True).validate(make_trips())


def test_the_fleet_is_the_same_each_time():
    assert make_trips() == make_trips()


def test_trips_have_ids_of_their_own():
    assert len({trip["trip_id"] for trip in make_trips()}) == 2 * 20 * 4


def test_the_newest_trips_are_of_yesterday_and_old_enough_to_be_served_at_midnight():
    newest = max(trip["trip_end_time"] for trip in make_trips())
    assert rows.epoch_ms(datetime.date(2026, 3, 9)) < newest < rows.epoch_ms(TODAY) - 4 * 3_600_000


def test_recent_trails_are_whole_and_old_ones_thin():
    lengths = [len(trip["trail_path"]) for trip in make_trips()]
    assert lengths == [6] * (2 * 6 * 4) + [30] * (2 * 14 * 4)


@pytest.mark.parametrize("a_day", [4, 1000])
def test_trips_of_a_day_follow_one_another(a_day):
    trips = list(fleet.day_trips(SHAPE._replace(trips_a_day=a_day, old_points=5), 0, 20, TODAY))
    assert all(one["trip_end_time"] <= other["trip_start_time"] for one, other in itertools.pairwise(trips))


@pytest.mark.parametrize("day", range(1, 8))
def test_the_requested_week_is_complete_recent_and_begins_on_a_monday(day):
    base = datetime.date(2026, 3, day)
    week = rows.monday(base)
    assert week.weekday() == 0
    assert base - datetime.timedelta(14) <= week <= base - datetime.timedelta(7)


@pytest.mark.parametrize("row", ["detail", "detail, masked", "detail, unchanged"])
def test_the_requested_trips_are_in_the_fleet(row):
    requested_ids = {request.about["trip"] for request in rows.requests(row, SHAPE, TODAY)}
    assert requested_ids <= {trip["trip_id"] for trip in make_trips()}


@pytest.mark.parametrize("row", rows.QUERIES)
def test_every_row_has_a_request_and_a_query_of_the_floor(row):
    for request in rows.requests(row, fleet.Shape(), TODAY):
        assert request.path.startswith(API)
        assert rows.QUERIES[row](**request.about)


def test_of_the_peers_only_full_fastapi_gets_conditional_requests_and_none_gets_masks():
    peers = ("naive", "fastapi", "full fastapi", "eve")
    assert [name for name in peers if run.supports(name, "detail, unchanged")] == ["full fastapi"]
    assert not any(run.supports(name, row) for name in peers for row in ("detail, masked", "score"))


def test_numbers_may_differ_by_rounding_and_nothing_else_may():
    assert run.equals({"a": [1, 0.1 + 0.2, None]}, {"a": [1.0, 0.3, None]})
    assert not run.equals({"a": 1}, {"a": 1, "b": 2})
    assert not run.equals([1.0], [1.1])
    assert not run.equals([1.0], ["1"])


def test_a_ratio_is_the_median_of_the_rounds_own_ratios():
    samples = {
        ("drivers", "service", 8): [sample(cpu_ms=2), sample(cpu_ms=6), sample(cpu_ms=9)],
        ("drivers", "floor", 8): [sample(cpu_ms=1), sample(cpu_ms=2), sample(cpu_ms=9)],
    }
    assert report.ratio(samples, "drivers", 8, "floor", report.cpu) == 2
    assert report.ratio(samples, "drivers", 8, "naive", report.cpu) is None


@pytest.mark.parametrize(
    ("cpu_ms", "per_second", "verdict"), [(2.1, 190, "pass"), (2.2, 190, "fail"), (2.1, 170, "fail")]
)
def test_a_row_passes_if_it_is_within_all_its_limits(cpu_ms, per_second, verdict):
    names = ("floor", "fastapi", "full fastapi")
    samples = {("drivers", name, 8): [sample()] for name in names}
    samples["drivers", "service", 8] = [sample(cpu_ms=cpu_ms, per_second=per_second)]
    assert verdict in report.limits_table(samples)


def test_a_worker_with_most_of_the_load_causes_a_warning():
    (warning,) = report.warnings(
        {("drivers", "service", 8): [sample(), sample(busiest=0.8)], ("drivers", "floor", 8): [sample()]}
    )
    assert warning.startswith("service, 8 connections")
    assert warning.endswith("in 1 of 2 turns (drivers)")


@pytest.mark.parametrize(
    ("endpoint", "size", "max_ratios", "verdict"),
    [
        ("drivers", 100, {}, "fail"),
        ("drivers", 1000, {1000: 2.0}, "pass"),
        (growth_report.UNLIMITED, 100, {}, "–"),
    ],
)
def test_a_size_that_costs_half_as_much_again_is_within_a_limit_of_two(endpoint, size, max_ratios, verdict):
    samples = {(endpoint, 1): [sample(cpu_ms=1)], (endpoint, size): [sample(cpu_ms=1.5)]}
    row = growth_report.cost_table(samples, max_ratios).splitlines()[-1]
    assert verdict in row.rpartition(" | ")[2]


def test_endpoints_of_a_table_may_have_different_sizes():
    sizes = [("drivers", 1), ("drivers", 1000), ("trips", 1), ("trips", 100)]
    rows_of_table = growth_report.cost_table({size: [sample()] for size in sizes}, {}).splitlines()[2:]
    assert [row.count("–") for row in rows_of_table] == [1, 1]


def test_the_travel_dates_of_the_drivers_are_those_of_their_trips(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "DATA", tmp_path)
    drivers, _ = data.make_files("test", SHAPE, TODAY)
    (dates,) = {(one["first_travel_date"], one["last_travel_date"]) for one in read(drivers)}
    assert dates == (date_of(make_trips()[0]), date_of(make_trips()[-1]))


def test_figures_replace_those_of_an_earlier_run(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- figures -->\nold\n<!-- end of figures -->\nafter\n")
    report.write_section("figures", "new", page)
    report.write_section("figures", "newer", page)
    assert page.read_text() == "before\n<!-- figures -->\n\nnewer\n\n<!-- end of figures -->\nafter\n"
