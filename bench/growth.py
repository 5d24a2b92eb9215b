"""`python -m bench.growth`: what a request costs in a small and in a large fleet, and on the first and last page."""

import contextlib
import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import click

from bench import fleet, report
from bench.load import Request, Target, measure, rounds_option
from bench.rows import GROUP_ROWS, PAGE, ROWS, WITHOUT_DATA
from bench.servers import ROOT, Checkout, Sample, Server, mongod, redis_server

# Trail points of a trip, and dates that give each of 20 drivers a full page of trips in the smallest fleet.
POINTS, DRIVERS = 5, 20
DATES = dict.fromkeys([fleet.TODAY - datetime.timedelta(age) for age in range(PAGE, 0, -1)], POINTS)
# Trips or drivers of a fleet.
SMALL_TRIPS, SMALL_DRIVERS, LARGE, QUICK = DRIVERS * PAGE, PAGE, 100_000, 10_000
# The largest ratio of costs, and the time that the service and mongod may take for each record that a row counts.
MOST_RATIO, MOST_US_A_RECORD = 1.3, 2
BY_TRIPS, BY_DRIVERS = "trips of the fleet", "drivers of the fleet"

# For each of these, the fleets by their size.
Fleets = Mapping[str, Mapping[int, fleet.Fleet]]


class Line(NamedTuple):
    """A line of the table: a row, and what grows.

    `records` is the number of drivers or trips that the larger size adds or skips where the row counts them, else 0.
    """

    row: str
    by: str
    records: int = 0


@click.command()
@rounds_option
@click.option("--quick", is_flag=True, help="For development: one round, with at most 10,000 trips or drivers.")
def main(rounds: int, quick: bool) -> None:
    """Measure how the cost of a request grows. A whole run writes docs/benchmarks.md."""
    large, rounds = (QUICK, 1) if quick else (LARGE, rounds)
    fleets = {
        BY_TRIPS: {n: fleet.Fleet(f"trips-{n}", DRIVERS, n // SMALL_TRIPS, DATES, "all") for n in (SMALL_TRIPS, large)},
        BY_DRIVERS: {
            n: fleet.Fleet(f"drivers-{n}", n, 1, {fleet.MONDAY: POINTS}, "all") for n in (SMALL_DRIVERS, large)
        },
    }
    with contextlib.ExitStack() as stack:
        redis, store = stack.enter_context(redis_server()), stack.enter_context(mongod())
        checkout = Checkout(ROOT, store, redis)
        keys = {one.name: checkout.load(one)[0] for by_size in fleets.values() for one in by_size.values()}
        with checkout.serve() as service:
            targets = {
                line: {size: Target(service, store, requests) for size, requests in by_size.items()}
                for line, by_size in _requests(service, fleets, keys)
            }
            samples = measure(targets, redis, rounds)
        samples |= dict(_import(checkout, fleets, rounds))
    lines = [cells(line, by_size) for line, by_size in samples.items()]
    header = ["row", "by", "from → to", "service, ms", "mongod, ms", "service ÷", "mongod ÷", ""]
    text = f"Rounds: {rounds}. {report.conditions()}\n\n{report.table(header, lines)}"
    if not quick:
        report.write_section("growth", text)
    click.echo(f"\n{text}")


def _requests(
    service: Server, fleets: Fleets, keys: Mapping[str, str]
) -> Iterator[tuple[Line, dict[int, Sequence[Request]]]]:
    """Yield each line with the requests at both sizes."""
    rows = ROWS | GROUP_ROWS
    for by, by_size in fleets.items():
        for row in rows.values():
            if row.name != WITHOUT_DATA:
                requests = {size: row.requests(service, one, keys[one.name]) for size, one in by_size.items()}
                # A fleet of more drivers has more trips, too.
                counts = row.counts_trips or (row.counts_drivers and by == BY_DRIVERS)
                yield Line(row.name, by, max(by_size) if counts else 0), requests
    of_drivers = ("drivers", "window", "ranking", "drivers of a group", "ranking of a group")
    for name, by in (("trips", BY_TRIPS), *((name, BY_DRIVERS) for name in of_drivers)):
        row, (size, one) = rows[name], max(fleets[by].items())
        # A page of trips has those of one driver.
        records = size // DRIVERS if name == "trips" else size
        first, last_page = row.requests(service, one, keys[one.name]), records // PAGE
        last = [request._replace(path=f"{request.path}&page={last_page}") for request in first]
        yield Line(name, "page", size if row.counts_drivers or row.skips_drivers else 0), {1: first, last_page: last}


def _import(checkout: Checkout, fleets: Fleets, rounds: int) -> Iterator[tuple[Line, dict[int, list[Sample]]]]:
    """Yield the lines of importing 2,000 trips of one more date into each fleet."""
    for by, by_size in fleets.items():
        samples: dict[int, list[Sample]] = {size: [] for size in by_size}
        for number in range(rounds):
            more = fleet.Fleet("", DRIVERS, PAGE, {fleet.TODAY - datetime.timedelta(PAGE + 1 + number): POINTS})
            for size, one in by_size.items():
                samples[size] += checkout.load(more._replace(name=one.name))[1].values()
        yield Line("import of a trip", by), samples


def cells(line: Line, by_size: Mapping[int, Sequence[Sample]]) -> list[str | float]:
    """Return the cells of a line, from the samples by size. The last one says whether it is within the limits."""
    small, large = by_size.values()
    cpu, mongod_cpu = report.ratio(large, small, "cpu_ms"), report.ratio(large, small, "mongod_ms")
    added_us = 1000 * sum(report.middle(large, name) - report.middle(small, name) for name in ("cpu_ms", "mongod_ms"))
    grows_little = added_us <= MOST_US_A_RECORD * line.records if line.records else max(cpu, mongod_cpu) <= MOST_RATIO
    return [
        line.row,
        line.by,
        " → ".join(f"{size:,}" for size in by_size),
        *(f"{report.middle(small, name):.2f} → {report.middle(large, name):.2f}" for name in ("cpu_ms", "mongod_ms")),
        cpu,
        f"{added_us / line.records:.2f} µs each" if line.records else mongod_cpu,
        report.verdict(grows_little),
    ]


if __name__ == "__main__":
    main()
