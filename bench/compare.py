"""`python -m bench.compare OTHER`: compare the service of this checkout with that of another checkout.

Both import the same files and are measured in turns. The other checkout needs its own `.venv` (`make setup`); only its
command line and its HTTP API are used. Each has its own `mongod`, and both share a Redis.
"""

import contextlib
import datetime
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import click
import orjson

from bench import data, fleet, report, rows
from bench.load import Sample, measure
from bench.rows import FLEET, Request
from bench.run import (
    COMPARED_RESPONSES,
    WARM_UP_SECONDS,
    Response,
    authorize,
    equals,
    fetch,
    make_conditional,
    rotate,
    write_requests,
)
from bench.servers import (
    HTTP_PORT,
    MONGOD_PORT,
    PING,
    ROOT,
    Failed,
    Server,
    command,
    environment,
    exit_on_sigterm,
    redis_server,
    workers,
)
from scripts.mongodb.embedded_mongod import REPLICA_SET_OPTIONS

CONNECTIONS = 8
# For each row of the table: the row of bench.rows with its requests, and the field mask.
ROWS = {
    "drivers": ("drivers", None),
    "drivers, masked": ("drivers", "{count,drivers{driver_id,alias}}"),
    "trips": ("trips", None),
    "trips, masked": ("trips", rows.MASK),
    "detail": ("detail", None),
    "detail, masked": ("detail", rows.MASK),
    "detail, unchanged": ("detail", None),
    "daily": ("daily", None),
    "weekly": ("weekly", None),
    "weekly, masked": ("weekly", "{data{driver_info{driver_id},driving_summary{fm_score}}}"),
}


class Side(NamedTuple):
    """A checkout to measure, with its servers and requests."""

    name: str
    mongod: Server
    service: Server
    import_cost: data.ImportCost
    requests: dict[str, list[Request]]


class Dataset(NamedTuple):
    """The data of both checkouts: files of drivers and trips, their shape, and the date after the last trip."""

    drivers: Path
    trips: Path
    shape: fleet.Shape
    base: datetime.date
    keep: bool


@click.command()
@click.argument("other", type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path))
@click.option(
    "--rounds",
    default=5,
    show_default=True,
    help="Number of rounds; in each, both checkouts are measured once per row.",
)
@click.option("--seconds", default=2, show_default=True, help="Duration of each measurement in seconds.")
@click.option(
    "--rows", "chosen", multiple=True, type=click.Choice(list(ROWS)), help="Measure only this row. Can be repeated."
)
@click.option("--scale", default=1.0, show_default=True, help="Factor for the number of drivers, which is 200.")
@click.option("--keep-data", is_flag=True, help="Use data that was loaded today, even if the code has changed since.")
@click.option(
    "--standalone",
    is_flag=True,
    help="Run the mongod of the other checkout as a standalone server, not as a replica set.",
)
def main(
    other: Path, rounds: int, seconds: int, chosen: tuple[str, ...], scale: float, keep_data: bool, standalone: bool
) -> None:
    """Compare the service of this checkout with that of another checkout."""
    shape, base = fleet.Shape(drivers=round(200 * scale)), fleet.today()
    dataset = Dataset(*data.make_files("compare", shape, base), shape, base, keep_data)
    exit_on_sigterm()
    try:
        with (
            redis_server() as redis,
            _side("this", ROOT, dataset, 1, REPLICA_SET_OPTIONS) as this_side,
            _side("other", other, dataset, 2, () if standalone else REPLICA_SET_OPTIONS) as other_side,
        ):
            _check(this_side, other_side)
            samples = _samples((this_side, other_side), redis, chosen or tuple(ROWS), rounds, seconds)
    except Failed as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"this: {ROOT}\nother: {other}{', with a standalone mongod' if standalone else ''}\n")
    click.echo(_import_table((this_side, other_side), shape.drivers * shape.days * shape.trips_a_day))
    click.echo(f"\nMedians of {rounds} rounds of {seconds} s at {CONNECTIONS} connections; ÷ is this ÷ other.\n")
    click.echo(_table(samples))


@contextlib.contextmanager
def _side(name: str, checkout: Path, dataset: Dataset, number: int, options: Sequence[str]) -> Iterator[Side]:
    """Import the files with the command of a checkout, and run its service."""
    properties = {"shape": list(dataset.shape), "options": list(options)}
    server = {"port": MONGOD_PORT + number, "options": options}
    with data.folder(f"compare-{name}", properties, keep=dataset.keep, checkout=checkout, **server) as (mongod, record):
        if "key" not in record:
            click.echo(f"Importing with {checkout} ...", err=True)
            record["imported"] = data.import_files(FLEET, dataset.drivers, dataset.trips, mongod, checkout)
            record["key"] = data.issue_key(FLEET, mongod, checkout)
        serve, env = command("serve", checkout=checkout), environment(mongod.port, checkout)
        with workers(f"service-{name}", serve, HTTP_PORT + 20 + number, PING, env, checkout) as service:
            requests = {row: _requests(service, row, record["key"], dataset.shape, dataset.base) for row in ROWS}
            yield Side(name, mongod, service, data.ImportCost(*record["imported"]), requests)


def _requests(service: Server, row: str, key: str, shape: fleet.Shape, base: datetime.date) -> list[Request]:
    source, mask = ROWS[row]
    requests = authorize(rows.requests(source, shape, base), key)
    if row == "detail, unchanged":
        return make_conditional(service, requests) or requests
    if mask is None:
        return requests
    return [request._replace(headers={**request.headers, "X-Fields": mask}) for request in requests]


def _check(one: Side, other: Side) -> None:
    """Raise Failed if the two services respond differently."""
    for row in ROWS:
        both = [fetch(side.service, side.requests[row][:COMPARED_RESPONSES]) for side in (one, other)]
        for request, *pair in zip(one.requests[row], *both, strict=False):
            if pair[0].status != pair[1].status or not equals(*map(_parse, pair)):
                raise Failed(f"The responses differ for {row}, {request.path}:\n{pair[0]}\n{pair[1]}")


def _parse(response: Response) -> Any:
    return orjson.loads(response.body) if response.body else None


def _samples(
    sides: Sequence[Side], redis: Server, chosen: Sequence[str], rounds: int, seconds: int
) -> dict[tuple[str, str], list[Sample]]:
    samples: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for number in range(-1, rounds):
        for row in chosen:
            for side in rotate(sides, number):
                file = write_requests(f"compare-{side.name}-{row}", side.requests[row])
                duration_seconds = seconds if number >= 0 else WARM_UP_SECONDS
                sample = measure(side.service, (side.mongod, redis), file, CONNECTIONS, duration_seconds)
                if number >= 0:
                    samples[row, side.name].append(sample)
        click.echo(f"Round {number + 1} of {rounds} done", err=True)
    return samples


def _table(samples: dict[tuple[str, str], list[Sample]]) -> str:
    lines = []
    for row in dict.fromkeys(row for row, _ in samples):
        pairs = list(zip(samples[row, "this"], samples[row, "other"], strict=True))
        cells = []
        for value in (report.cpu, report.mongod_cpu, report.all_cpu, report.per_second):
            both = [(value(one), value(other)) for one, other in pairs]
            ratios = [one / other if other else 1.0 for one, other in both]
            cells += [report.format_number(median(column)) for column in (*zip(*both, strict=True), ratios)]
        lines.append([row, *cells])
    measures = ("CPU ms", "mongod ms", "both", "req/s")
    headers = [f"{measure}, {which}" for measure in measures for which in ("this", "other", "÷")]
    return report.table(["row", *headers], lines)


def _import_table(sides: Sequence[Side], trips: int) -> str:
    lines = [
        [side.name, f"{trips / cost.seconds:.0f}", *(f"{s * 1000 / trips:.2f}" for s in (cost.cpu, cost.mongod_cpu))]
        for side in sides
        for cost in [side.import_cost]
    ]
    return report.table(["import", "trips/s", "CPU ms per trip", "mongod ms per trip"], lines)


if __name__ == "__main__":
    main()
