"""`python -m bench.growth`: what a request costs as fleets, weeks and page numbers grow; import and memory too."""

import datetime
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from statistics import median
from typing import Any, NamedTuple

import click

from bench import data, fleet, report, rows
from bench.load import Sample, measure
from bench.rows import Request
from bench.run import authorized, fetch, holding, rotated, write_requests
from bench.servers import DATA, Failed, Server, contestant, exit_on_sigterm, redis_server

CONNECTIONS = 8
DRIVERS, DAYS, POINTS = 20, 50, 5
TRIPS = (1_000, 10_000, 100_000)
FLEET_DRIVERS = (100, 1_000, 10_000, 100_000)
WEEKS = (5, 50, 500)
WEEK_DAYS = 5
PAGES = (1, 10, 100, 1000)
TRIP_PAGES = PAGES[:3]
PAGE_NUMBER = "number of the page"
# So small that the smallest fleet fills a page, and the largest fleet of trips fills hundreds.
TRIPS_A_PAGE, TRIPS_A_NUMBERED_PAGE = 10, 5
AT_MOST = 1.3
# Few clients page so far.
LAST_PAGE_AT_MOST = 2.0
MORE_AT_MOST = {PAGE_NUMBER: {PAGES[-1]: LAST_PAGE_AT_MOST}}
# Each request counts the trips that share an id, so it has no limit.
UNLIMITED = "detail by tracking_id"
# The largest fleet of trips is loaded in parts, as upstream would send them, into a store that is empty at first.
PARTS = 10
MEMORY_SECONDS = 5


class Cell(NamedTuple):
    """Requests of one endpoint at one size of what grows."""

    grows: str
    endpoint: str
    size: int
    requests: Sequence[Request]


def load(
    record: dict[str, Any], mongod: Server, base: datetime.date, trips: Iterable[int], drivers: Iterable[int]
) -> None:
    """Load what is not there yet of the fleets; the record holds their keys, and what the parts of the largest took."""
    for size in sorted(trips, reverse=True):
        shape = _shape(size // DRIVERS // DAYS)
        parts = PARTS if size >= max(TRIPS) else 1
        ages = [range(DAYS - DAYS // parts * part, DAYS - DAYS // parts * (part + 1), -1) for part in range(parts)]
        _load(record, mongod, f"trips-{size}", [(None, fleet.trips(shape, base, part)) for part in ages])
    for size in drivers:
        few = fleet.trips(_shape(1), base, range(fleet.RECENT_DAYS, 0, -1))
        _load(record, mongod, f"drivers-{size}", [(fleet.drivers(size), few)])
    first = (base - rows.monday(base)).days
    for size in WEEKS:
        week = fleet.trips(_shape(size // WEEK_DAYS), base, range(first, first - WEEK_DAYS, -1))
        _load(record, mongod, f"week-{size}", [(None, week)])


def _shape(trips_a_day: int) -> fleet.Shape:
    return fleet.Shape(DRIVERS, DAYS, trips_a_day, POINTS, POINTS, tracked=True)


def _load(record: dict[str, Any], mongod: Server, name: str, parts: list[tuple[Any, Any]]) -> None:
    if name in record:
        return
    drivers_file, trips_file = DATA / "growth-drivers.ndjson.gz", DATA / "growth-trips.ndjson.gz"
    took = []
    for number, (drivers, trips) in enumerate(parts, 1):
        click.echo(f"loading {name}, part {number} of {len(parts)}")
        if drivers is not None:
            fleet.write(drivers_file, drivers)
        count = fleet.write(trips_file, trips)
        imported = data.import_files(name, drivers_file if drivers is not None else None, trips_file, mongod)
        took.append([count, *imported])
    for file in (drivers_file, trips_file):
        file.unlink(missing_ok=True)
    record[name] = {"key": data.issue_key(name, mongod), "imports": took}


def cells(
    record: Mapping[str, Any], base: datetime.date, trips: Sequence[int], drivers: Sequence[int]
) -> Iterator[Cell]:
    """Yield everything to measure."""
    ids = [fleet.driver_id(number) for number in range(DRIVERS)]
    monday = rows.monday(base)
    days = [monday + datetime.timedelta(day) for day in range(WEEK_DAYS)]
    turned = [ids[number:] + ids[:number] for number in range(DRIVERS)]
    some = [fleet.trip_id(number, day, 0) for number, day in product(range(DRIVERS), days)]

    def of_driver(driver: str, limit: int, page: int = 1) -> Request:
        query = {"start_date": base - datetime.timedelta(DAYS), "limit": limit, "page": page}
        return rows.request_of(f"/driver/{driver}/trips", query)

    asked = {
        "drivers": [rows.request_of("/drivers", {"limit": DRIVERS})],
        "trips": [of_driver(driver, TRIPS_A_PAGE) for driver in ids],
        "detail": [rows.detail(trip) for trip in some],
        "detail, masked": [rows.detail(trip, "detail, masked") for trip in some],
        "detail, unchanged": [rows.detail(trip, "detail, unchanged") for trip in some],
        UNLIMITED: [rows.request_of(f"/trip/tracking_id/{driver}", {}) for driver in ids],
        "daily": [rows.aggregates("daily", some_ids, day) for some_ids, day in product(turned, days)],
        "weekly": [rows.aggregates("weekly", some_ids, monday) for some_ids in turned],
    }

    def cell(grows: str, endpoint: str, size: int, name: str, requests: Sequence[Request]) -> Cell:
        return Cell(grows, endpoint, size, authorized(requests, record[name]["key"]))

    for endpoint, size in product(asked, trips):
        yield cell("trips of a fleet", endpoint, size, f"trips-{size}", asked[endpoint])
    for endpoint, size in product(("drivers", "trips", "detail", "daily", "weekly"), drivers):
        yield cell("drivers of a fleet", endpoint, size, f"drivers-{size}", asked[endpoint])
    for endpoint, size in product(("daily", "weekly"), WEEKS):
        yield cell("trips of a driver's week", endpoint, size, f"week-{size}", asked[endpoint])
    for page in PAGES:
        if page <= max(drivers) // 100:
            request = rows.request_of("/drivers", {"limit": 100, "page": page})
            yield cell(PAGE_NUMBER, "drivers", page, f"drivers-{max(drivers)}", [request])
    for page in TRIP_PAGES:
        if page <= max(trips) // DRIVERS // TRIPS_A_NUMBERED_PAGE:
            requests = [of_driver(driver, TRIPS_A_NUMBERED_PAGE, page) for driver in ids]
            yield cell(PAGE_NUMBER, "trips", page, f"trips-{max(trips)}", requests)


def lacks_records(body: bytes) -> bool:
    """Return whether a page has no trips, or one of the drivers has no summary."""
    return b'"trips":[]' in body or body.count(b'"driver_info"') > body.count(b'"driving_summary"')


def answerable(service: Server, wanted: Iterable[Cell], notes: list[str]) -> Iterator[Cell]:
    """Yield the cells whose requests the service answers as it should; those of unchanged answers with their ETags."""
    for cell in wanted:
        expected, requests = 200, cell.requests
        if cell.endpoint == "detail, unchanged":
            found = holding(service, requests)
            if found is None:
                notes.append(f"{cell.endpoint}: n/a, since the service sends no ETag")
                continue
            expected, requests = 304, found
        for request, answer in zip(requests, fetch(service, requests), strict=True):
            if answer.status != expected or lacks_records(answer.body):
                raise Failed(f"service answers {answer.status} to {request.path}: {answer.body[:300]!r}")
        yield cell._replace(requests=requests)


def remember(stores: tuple[Server, Server], requests: Sequence[Request], wanted: int) -> list[tuple[int, float]]:
    """Return the resident memory (MB) of the larger worker of a fresh service, by the number of requests served."""
    file, served, found = write_requests("memory", requests), 0, list[tuple[int, float]]()
    with contestant("service") as service:
        while served < wanted:
            served += int(measure(service, stores, file, CONNECTIONS, MEMORY_SECONDS).per_second * MEMORY_SECONDS)
            found.append((served, max(service.resident_mb())))
            click.echo(f"{served} requests: {found[-1][1]:.0f} MB resident")
    return found


def cost_table(samples: Mapping[tuple[str, int], Sequence[Sample]], more_at_most: Mapping[int, float]) -> str:
    """Return what a request cost by endpoint and size, the largest size's cost ÷ the smallest's, and a verdict.

    `more_at_most` holds the limits of sizes whose limit is not AT_MOST.
    """
    sizes = list(dict.fromkeys(size for _, size in samples))
    lines = []
    for endpoint in dict.fromkeys(name for name, _ in samples):
        found = {size: samples[endpoint, size] for size in sizes if (endpoint, size) in samples}
        costs = [_cost(found[size]) if size in found else "–" for size in sizes]
        first, *larger = found.values()
        ratios = [(_ratio(one, first, report.cpu), _ratio(one, first, report.mongod_cpu)) for one in larger]
        kept = all(
            max(ratio) <= more_at_most.get(size, AT_MOST) for size, ratio in zip([*found][1:], ratios, strict=True)
        )
        verdict = "–" if endpoint == UNLIMITED else "pass" if kept else "**fail**"
        lines.append([endpoint, *costs, *(f"{ratio:.2f}" for ratio in ratios[-1]), verdict])
    return report.table(["endpoint", *(f"{size:,}" for size in sizes), "service", "mongod", "within limits"], lines)


def _cost(samples: Sequence[Sample]) -> str:
    return f"{median(map(report.cpu, samples)):.2f} + {median(map(report.mongod_cpu, samples)):.2f}"


def _ratio(of: Sequence[Sample], over: Sequence[Sample], value: Callable[[Sample], float]) -> float:
    """Return the median of the rounds' own ratios."""
    return median(value(one) / value(other) if value(other) else 1.0 for one, other in zip(of, over, strict=True))


def import_table(took: Sequence[Sequence[float]]) -> str:
    """Return what each part of an import took, by the trips that were stored before it."""
    lines, stored = [], 0
    for count, seconds, cpu, mongod in took:
        own, store = cpu * 1000 / count, mongod * 1000 / count
        lines.append([f"{stored:,}", f"{count / seconds:.0f}", f"{own:.2f}", f"{store:.2f}"])
        stored += int(count)
    return report.table(["trips stored before", "trips/s", "CPU ms a trip", "mongod ms a trip"], lines)


@click.command()
@click.option("--rounds", default=3, show_default=True, help="Turns of each endpoint and size.")
@click.option("--seconds", default=2, show_default=True, help="Length of a turn, in seconds.")
@click.option("--requests", "served", default=50_000, show_default=True, help="Requests over which memory is watched.")
@click.option("--quick", is_flag=True, help="For development: one round of a second, no more than 10,000 of anything.")
@click.option("--keep-data", is_flag=True, help="Use what was loaded today, even by other code.")
@click.option("--write/--no-write", default=None, help="Write docs/benchmarks.md; a quick run does not.")
def main(rounds: int, seconds: int, served: int, quick: bool, keep_data: bool, write: bool | None) -> None:
    """Measure what a request costs against the size of what it asks of."""
    trips, drivers = list(TRIPS), list(FLEET_DRIVERS)
    if quick:
        rounds, seconds, served, trips, drivers = 1, 1, 1_000, trips[:2], drivers[:3]
    notes: list[str] = []
    base = fleet.today()
    exit_on_sigterm()
    try:
        with data.folder("growth", {}, keep=keep_data) as (mongod, record), redis_server() as redis:
            load(record, mongod, base, trips, drivers)
            wanted = list(cells(record, base, trips, drivers))
            mixed = [cell.requests[0] for cell in wanted if cell.grows != PAGE_NUMBER]
            memory = remember((mongod, redis), mixed, served)
            with contestant("service") as service:
                found = list(answerable(service, wanted, notes))
                samples = _samples(service, (mongod, redis), found, rounds, seconds)
            imports = record[f"trips-{max(trips)}"]["imports"]
    except Failed as error:
        raise click.ClickException(str(error)) from None
    text = _section(samples, imports, memory, dict.fromkeys(notes), f"{rounds} rounds of {seconds} s")
    if not quick if write is None else write:
        report.write_section("growth", text)
    click.echo(text)


def _samples(
    service: Server, stores: tuple[Server, Server], found: Sequence[Cell], rounds: int, seconds: int
) -> dict[str, dict[tuple[str, int], list[Sample]]]:
    by_endpoint: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in found:
        by_endpoint[cell.grows, cell.endpoint].append(cell)
    samples: dict[str, dict[tuple[str, int], list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for cell in found:
        # In the order of the tables, whatever the order of measuring.
        samples[cell.grows][cell.endpoint, cell.size] = []
    total, done, started = len(found) * rounds, 0, time.monotonic()
    for number, (_, alike) in product(range(rounds), by_endpoint.items()):
        for cell in rotated(alike, number):
            sample = measure(service, stores, write_requests("growth", cell.requests), CONNECTIONS, seconds)
            samples[cell.grows][cell.endpoint, cell.size].append(sample)
            done += 1
            left = (time.monotonic() - started) / done * (total - done) / 60
            click.echo(
                f"[{done}/{total}, {left:.0f} min left] {cell.endpoint}, {cell.size} {cell.grows}: "
                f"CPU {sample.cpu_ms:.2f} + {sample.mongod_ms:.2f} ms"
            )
    return samples


def _section(
    samples: Mapping[str, Mapping[tuple[str, int], Sequence[Sample]]],
    imports: Sequence[Sequence[float]],
    memory: Sequence[tuple[int, float]],
    notes: Iterable[str],
    how: str,
) -> str:
    parts = [
        f"Processor time of a request, ms, the service's + mongod's: medians of {how} at {CONNECTIONS} connections. "
        "The last columns are the largest size's ÷ the smallest's. "
        f"No size may cost more than {AT_MOST} × the smallest; page {PAGES[-1]:,} may cost {LAST_PAGE_AT_MOST} ×, and "
        f"{UNLIMITED} has no limit."
    ]
    for grows, costs in samples.items():
        parts += [f"### By {grows}", cost_table(costs, MORE_AT_MOST.get(grows, {}))]
    first, last = memory[0], memory[-1]
    return "\n\n".join(
        [
            *parts,
            *(f"{note}." for note in notes),
            "### Import",
            f"A fleet of {sum(int(part[0]) for part in imports):,} trips of {POINTS} trail points, loaded in parts.",
            import_table(imports),
            "### Memory of a worker",
            f"{first[1]:.0f} MB after {first[0]:,} requests of all kinds, {last[1]:.0f} MB after {last[0]:,}: "
            f"{last[1] / first[1]:.2f} ×.",
        ]
    )


if __name__ == "__main__":
    main()
