"""What the tables of the benchmark claim. `make bench-smoke` shows that the rest works."""

import pytest

from bench import report
from bench.__main__ import figures
from bench.growth import Line, cells
from bench.servers import Sample


def samples(cpu_ms=1.0, per_second=100.0, mongod_ms=1.0):
    return [Sample(per_second, cpu_ms, mongod_ms)]


def test_a_ratio_is_the_median_of_the_ratios_of_the_rounds():
    these, those = [[*samples(2), *samples(6), *samples(9)], [*samples(1), *samples(2), *samples(9)]]
    assert report.ratio(these, those, "cpu_ms") == 2


@pytest.mark.parametrize(
    ("row", "cpu_ms", "per_second", "verdict"),
    [
        ("drivers", 3, 140, "pass"),
        ("drivers", 3.1, 140, "fail"),
        ("drivers", 3, 139, "fail"),
        ("healthz", 3, 50, "pass"),
    ],
)
def test_a_row_passes_if_it_is_within_all_its_limits(row, cpu_ms, per_second, verdict):
    measured = {"service": samples(cpu_ms, per_second), "floor": samples(), "fastapi": samples()}
    assert verdict in figures({(row, 8): measured}).splitlines()[-1]


@pytest.mark.parametrize(
    ("line", "mongod_ms", "verdict"),
    [
        (Line("drivers", "page"), 1.3, "pass"),
        (Line("drivers", "page"), 1.4, "fail"),
        (Line("ranking", "page", drivers=100_000), 201, "pass"),
        (Line("ranking", "page", drivers=100_000), 202, "fail"),
    ],
)
def test_a_ranking_may_take_2_us_of_mongod_for_each_driver_and_other_rows_a_third_more(line, mongod_ms, verdict):
    assert verdict in cells(line, {1: samples(), 1000: samples(mongod_ms=mongod_ms)})[-1]


def test_figures_replace_those_of_an_earlier_run(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- figures -->\nold\n<!-- end of figures -->\nafter\n")
    monkeypatch.setattr(report, "PAGE", page)
    report.write_section("figures", "new")
    report.write_section("figures", "newer")
    assert page.read_text() == "before\n<!-- figures -->\n\nnewer\n\n<!-- end of figures -->\nafter\n"
