"""What the tables of the benchmark claim. `make bench-smoke` shows that the rest works."""

import pytest

from bench import report
from bench.__main__ import figures
from bench.growth import Line, cells
from bench.servers import Sample

PAGE, RANKING = Line("drivers", "page"), Line("ranking", "page", drivers=100_000)


def samples(cpu_ms=1.0, per_second=100.0, mongod_ms=1.0):
    return [Sample(per_second, cpu_ms, mongod_ms)]


def test_a_ratio_is_the_median_of_the_ratios_of_the_rounds():
    these, those = [[*samples(2), *samples(6), *samples(9)], [*samples(1), *samples(2), *samples(9)]]
    assert report.ratio(these, those, "cpu_ms") == 2


@pytest.mark.parametrize(("cpu_ms", "per_second", "verdict"), [(3, 140, "pass"), (3.1, 140, "fail"), (3, 139, "fail")])
def test_a_row_passes_if_it_is_within_all_its_limits(cpu_ms, per_second, verdict):
    measured = {"service": samples(cpu_ms, per_second), "floor": samples(), "fastapi": samples()}
    assert verdict in figures({("drivers", 8): measured}).splitlines()[-1]


@pytest.mark.parametrize(
    ("line", "mongod_ms", "verdict"),
    [(PAGE, 1.3, "pass"), (PAGE, 1.4, "fail"), (RANKING, 201, "pass"), (RANKING, 202, "fail")],
)
def test_a_row_that_counts_drivers_may_take_2_us_for_each_and_other_rows_a_third_more(line, mongod_ms, verdict):
    assert verdict in cells(line, {1: samples(), 1000: samples(mongod_ms=mongod_ms)})[-1]
