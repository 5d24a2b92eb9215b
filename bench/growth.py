"""`python -m bench.growth`: the cost of requests as fleets, weeks and page numbers grow; of imports; and memory."""

import datetime
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import click
import orjson

from app.store.rankings import ORDERS
from bench import data, fleet, report, rows
from bench.growth_report import (
    CONNECTIONS,
    FLEET_DRIVERS,
    PAGE_NUMBER,
    PAGES,
    POINTS,
    RANKING_DRIVERS,
    RANKING_PAGE,
    UNLIMITED,
    growth_section,
)
from bench.load import Sample, measure
from bench.rows import Request
from bench.run import authorize, check_status, fetch, make_conditional, rotate, write_requests
from bench.servers import DATA, Failed, Server, contestant, exit_on_sigterm, redis_server

DRIVERS, DAYS = 20, 50
DRIVER_IDS = [fleet.driver_id(number) for number in range(DRIVERS)]
TRIPS = (1_000, 10_000, 100_000)
WEEKS = (5, 50, 500)
WEEK_DAYS = 5
TRIP_PAGES = PAGES[:3]
# Small enough that the smallest fleet fills a page, and the largest fleet of trips fills hundreds of pages.
TRIPS_A_PAGE, TRIPS_A_NUMBERED_PAGE = 10, 5
# A page of the change feed, and the request of a client that has read all of it.
CHANGES, NO_CHANGES, CHANGES_A_PAGE = "changes", "changes, nothing new", 1_000
# The largest fleet of trips is loaded first, into an empty store, in parts as an upstream system would send them.
PARTS = 10
MEMORY_SECONDS = 5


class Cell(NamedTuple):
    """The requests of one endpoint at one size; `dimension` says which size, such as `trips of a fleet`."""

    dimension: str
    endpoint: str
    size: int
    requests: Sequence[Request]


def load(
    record: dict[str, Any], mongod: Server, base: datetime.date, trips: Iterable[int], drivers: Iterable[int]
) -> None:
    """Load the missing fleets. The record gets the key of each fleet, and the costs of its import."""
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
    for size in drivers:
        day = fleet.trips(_shape(1)._replace(drivers=size), base, range(first, first - 1, -1))
        _load(record, mongod, f"ranking-{size}", [(None, day)])


def _shape(trips_a_day: int) -> fleet.Shape:
    return fleet.Shape(DRIVERS, DAYS, trips_a_day, POINTS, POINTS, tracked=True)


def _load(record: dict[str, Any], mongod: Server, name: str, parts: list[tuple[Any, Any]]) -> None:
    if name in record:
        return
    drivers_file, trips_file = DATA / "growth-drivers.ndjson.gz", DATA / "growth-trips.ndjson.gz"
    costs = []
    for number, (drivers, trips) in enumerate(parts, 1):
        click.echo(f"Loading {name}, part {number} of {len(parts)}")
        if drivers is not None:
            fleet.write(drivers_file, drivers)
        count = fleet.write(trips_file, trips)
        cost = data.import_files(name, drivers_file if drivers is not None else None, trips_file, mongod)
        costs.append([count, *cost])
    for file in (drivers_file, trips_file):
        file.unlink(missing_ok=True)
    record[name] = {"key": data.issue_key(name, mongod), "imports": costs}


def cells(
    record: Mapping[str, Any], base: datetime.date, trips: Sequence[int], drivers: Sequence[int]
) -> Iterator[Cell]:
    """Yield all cells to measure."""
    requests = _requests_by_endpoint(base)

    def cell(dimension: str, endpoint: str, size: int, name: str, requests: Sequence[Request]) -> Cell:
        return Cell(dimension, endpoint, size, authorize(requests, record[name]["key"]))

    for endpoint, size in product(requests, trips):
        yield cell("trips of a fleet", endpoint, size, f"trips-{size}", requests[endpoint])
    for endpoint, size in product(("drivers", "trips", "detail", "daily", "weekly"), drivers):
        yield cell("drivers of a fleet", endpoint, size, f"drivers-{size}", requests[endpoint])
    for endpoint, size in product(("daily", "weekly"), WEEKS):
        yield cell("trips of a driver's week", endpoint, size, f"week-{size}", requests[endpoint])
    for page in PAGES:
        if page <= max(trips) // CHANGES_A_PAGE:
            yield cell(PAGE_NUMBER, CHANGES, page, f"trips-{max(trips)}", requests[CHANGES])
        if page <= max(drivers) // 100:
            request = rows.request_of("/drivers", {"limit": 100, "page": page})
            yield cell(PAGE_NUMBER, "drivers", page, f"drivers-{max(drivers)}", [request])
    for page in TRIP_PAGES:
        if page <= max(trips) // DRIVERS // TRIPS_A_NUMBERED_PAGE:
            pages = [_list_trips(driver, base, TRIPS_A_NUMBERED_PAGE, page) for driver in DRIVER_IDS]
            yield cell(PAGE_NUMBER, "trips", page, f"trips-{max(trips)}", pages)
    yield from _ranking_cells(record, base, drivers)


def _ranking_cells(record: Mapping[str, Any], base: datetime.date, drivers: Sequence[int]) -> Iterator[Cell]:
    for order in ORDERS:
        for size in drivers:
            requests = authorize([rows.ranking(rows.monday(base), 1, order)], record[f"ranking-{size}"]["key"])
            yield Cell(RANKING_DRIVERS, f"ranking, {order} first", size, requests)
    key = record[f"ranking-{max(drivers)}"]["key"]
    for order, page in product(ORDERS, PAGES):
        if page <= max(drivers) // rows.PAGE:
            requests = authorize([rows.ranking(rows.monday(base), page, order)], key)
            yield Cell(RANKING_PAGE, f"ranking, {order} first", page, requests)


def _requests_by_endpoint(base: datetime.date) -> dict[str, list[Request]]:
    monday = rows.monday(base)
    days = [monday + datetime.timedelta(day) for day in range(WEEK_DAYS)]
    rotated_ids = [rotate(DRIVER_IDS, number) for number in range(DRIVERS)]
    changes = [rows.request_of("/changes", {"limit": CHANGES_A_PAGE})]
    trip_ids = [fleet.trip_id(number, day, 0) for number, day in product(range(DRIVERS), days)]
    return {
        "drivers": [rows.request_of("/drivers", {"limit": DRIVERS})],
        "trips": [_list_trips(driver, base, TRIPS_A_PAGE) for driver in DRIVER_IDS],
        "detail": [rows.detail(trip) for trip in trip_ids],
        "detail, masked": [rows.detail(trip, "detail, masked") for trip in trip_ids],
        "detail, unchanged": [rows.detail(trip, "detail, unchanged") for trip in trip_ids],
        UNLIMITED: [rows.request_of(f"/trip/tracking_id/{driver}", {}) for driver in DRIVER_IDS],
        "daily": [rows.aggregates("daily", driver_ids, day) for driver_ids, day in product(rotated_ids, days)],
        "weekly": [rows.aggregates("weekly", driver_ids, monday) for driver_ids in rotated_ids],
        CHANGES: changes,
        NO_CHANGES: changes,
    }


def _list_trips(driver: str, base: datetime.date, limit: int, page: int = 1) -> Request:
    query = {"start_date": base - datetime.timedelta(DAYS), "limit": limit, "page": page}
    return rows.request_of(f"/driver/{driver}/trips", query)


def lacks_records(body: bytes) -> bool:
    """Return whether a page of trips or drivers is empty, or a driver has no summary."""
    return (
        b'"trips":[]' in body
        or b'"drivers":[]' in body
        or body.count(b'"driver_info"') > body.count(b'"driving_summary"')
    )


def check_cells(service: Server, all_cells: Iterable[Cell], notes: list[str]) -> Iterator[Cell]:
    """Yield the cells that the service supports, those of unchanged responses with ETags.

    Raises Failed for a response with an unexpected status or without records.
    """
    for cell in all_cells:
        expected_status, requests = 200, cell.requests
        if cell.endpoint == "detail, unchanged":
            conditional = make_conditional(service, requests)
            if conditional is None:
                notes.append(f"{cell.endpoint}: n/a, since the service sends no ETag")
                continue
            expected_status, requests = 304, conditional
        elif cell.endpoint == NO_CHANGES:
            requests = [_follow_feed(service, requests[0], None)]
        elif cell.endpoint == CHANGES and cell.dimension == PAGE_NUMBER:
            requests = [_follow_feed(service, requests[0], cell.size)]
        for request, response in zip(requests, fetch(service, requests), strict=True):
            check_status(response, expected_status, request)
            if lacks_records(response.body):
                raise Failed(f"The response to {request.path} lacks records: {response.body[:300]!r}")
        yield cell._replace(requests=requests)


def _follow_feed(service: Server, first: Request, page: int | None) -> Request:
    """Return the request for the page of the change feed with this number, or without a number after all pages."""
    request, number, has_more = first, 1, True
    while number < page if page else has_more:
        (response,) = fetch(service, [request])
        check_status(response, 200, request)
        content = orjson.loads(response.body)
        request = first._replace(path=f"{first.path}&cursor={content['cursor']}")
        number, has_more = number + 1, content["has_more"]
    return request


def measure_memory(stores: tuple[Server, Server], requests: Sequence[Request], count: int) -> list[tuple[int, float]]:
    """Return the resident memory (MB) of the larger worker after numbers of requests up to `count`, as pairs."""
    file, served, measured = write_requests("memory", requests), 0, list[tuple[int, float]]()
    with contestant("service") as service:
        while served < count:
            served += int(measure(service, stores, file, CONNECTIONS, MEMORY_SECONDS).per_second * MEMORY_SECONDS)
            measured.append((served, max(service.resident_mb())))
            click.echo(f"{served} requests: {measured[-1][1]:.0f} MB resident")
    return measured


@click.command()
@click.option(
    "--rounds",
    default=3,
    show_default=True,
    help="Number of rounds; each endpoint and size is measured once per round.",
)
@click.option("--seconds", default=2, show_default=True, help="Duration of each measurement in seconds.")
@click.option(
    "--requests", "served", default=50_000, show_default=True, help="Number of requests for the measurement of memory."
)
@click.option(
    "--quick", is_flag=True, help="For development: one round of one second, with at most 10,000 trips or drivers."
)
@click.option("--keep-data", is_flag=True, help="Use data that was loaded today, even if the code has changed since.")
@click.option("--write/--no-write", default=None, help="Write docs/benchmarks.md. By default, a quick run does not.")
def main(rounds: int, seconds: int, served: int, quick: bool, keep_data: bool, write: bool | None) -> None:
    """Measure the cost of a request by the size of fleets, weeks and page numbers."""
    trips, drivers = list(TRIPS), list(FLEET_DRIVERS)
    if quick:
        rounds, seconds, served, trips, drivers = 1, 1, 1_000, trips[:2], drivers[:3]
    notes: list[str] = []
    base = fleet.today()
    exit_on_sigterm()
    try:
        with data.folder("growth", {}, keep=keep_data) as (mongod, record), redis_server() as redis:
            load(record, mongod, base, trips, drivers)
            all_cells = list(cells(record, base, trips, drivers))
            mixed = [cell.requests[0] for cell in all_cells if cell.dimension not in (PAGE_NUMBER, RANKING_PAGE)]
            memory = measure_memory((mongod, redis), mixed, served)
            with contestant("service") as service:
                supported = list(check_cells(service, all_cells, notes))
                samples = _samples(service, (mongod, redis), supported, rounds, seconds)
            imports = record[f"trips-{max(trips)}"]["imports"]
    except Failed as error:
        raise click.ClickException(str(error)) from None
    text = growth_section(samples, imports, memory, dict.fromkeys(notes), f"{rounds} rounds of {seconds} s")
    if not quick if write is None else write:
        report.write_section("growth", text)
    click.echo(text)


def _samples(
    service: Server, stores: tuple[Server, Server], supported: Sequence[Cell], rounds: int, seconds: int
) -> dict[str, dict[tuple[str, int], list[Sample]]]:
    by_endpoint: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in supported:
        by_endpoint[cell.dimension, cell.endpoint].append(cell)
    samples: dict[str, dict[tuple[str, int], list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for cell in supported:
        # The order of the tables, which is not that of the measurements.
        samples[cell.dimension][cell.endpoint, cell.size] = []
    total, done, started = len(supported) * rounds, 0, time.monotonic()
    for number, (_, endpoint_cells) in product(range(rounds), by_endpoint.items()):
        for cell in rotate(endpoint_cells, number):
            sample = measure(service, stores, write_requests("growth", cell.requests), CONNECTIONS, seconds)
            samples[cell.dimension][cell.endpoint, cell.size].append(sample)
            done += 1
            left = (time.monotonic() - started) / done * (total - done) / 60
            click.echo(
                f"[{done}/{total}, {left:.0f} min left] {cell.endpoint}, {cell.size} {cell.dimension}: "
                f"CPU {sample.cpu_ms:.2f} + {sample.mongod_ms:.2f} ms"
            )
    return samples


if __name__ == "__main__":
    main()
