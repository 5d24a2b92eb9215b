"""`python -m bench.compare OTHER`: this checkout's service beside that of another one, on the same files, in turns.

Of the other checkout only the command line and the HTTP API are used; it needs a `.venv` of its own (`make setup`).
Each has its own `mongod`, and both share a Redis.
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
from bench.run import COMPARED, WARM_UP_SECONDS, Answer, authorized, fetch, holding, rotated, same, write_requests
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
# The requests of a row of bench.rows, with a field mask or none.
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
    """A checkout that is being measured."""

    name: str
    mongod: Server
    service: Server
    imported: data.Imported
    requests: dict[str, list[Request]]


class Load(NamedTuple):
    """What both get: files of drivers and trips, their shape, and the date that they count back from."""

    drivers: Path
    trips: Path
    shape: fleet.Shape
    base: datetime.date
    keep: bool


@click.command()
@click.argument("other", type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path))
@click.option("--rounds", default=5, show_default=True, help="Turns that both get in each row.")
@click.option("--seconds", default=2, show_default=True, help="Length of a turn, in seconds.")
@click.option("--rows", "chosen", multiple=True, type=click.Choice(list(ROWS)), help="Only this row; may be repeated.")
@click.option("--scale", default=1.0, show_default=True, help="Multiplies the drivers, 200.")
@click.option("--keep-data", is_flag=True, help="Use what was loaded today, even by other code.")
@click.option("--standalone", is_flag=True, help="Run the other one's mongod by itself, not as a replica set.")
def main(
    other: Path, rounds: int, seconds: int, chosen: tuple[str, ...], scale: float, keep_data: bool, standalone: bool
) -> None:
    """Measure this checkout's service beside that of another checkout."""
    shape, base = fleet.Shape(drivers=round(200 * scale)), fleet.today()
    load = Load(*data.make_files("compare", shape, base), shape, base, keep_data)
    exit_on_sigterm()
    try:
        with (
            redis_server() as redis,
            _side("this", ROOT, load, 1, REPLICA_SET_OPTIONS) as one,
            _side("other", other, load, 2, () if standalone else REPLICA_SET_OPTIONS) as two,
        ):
            _check(one, two)
            samples = _samples((one, two), redis, chosen or tuple(ROWS), rounds, seconds)
    except Failed as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"this: {ROOT}\nother: {other}{', its mongod standalone' if standalone else ''}\n")
    click.echo(_import_table((one, two), shape.drivers * shape.days * shape.trips_a_day))
    click.echo(f"\nMedians of {rounds} rounds of {seconds} s at {CONNECTIONS} connections; ÷ is this ÷ other.\n")
    click.echo(_table(samples))


@contextlib.contextmanager
def _side(name: str, checkout: Path, load: Load, number: int, options: Sequence[str]) -> Iterator[Side]:
    """Load the files with a checkout's import, and run its service on them."""
    fits = {"shape": list(load.shape), "options": list(options)}
    server = {"port": MONGOD_PORT + number, "options": options}
    with data.folder(f"compare-{name}", fits, keep=load.keep, checkout=checkout, **server) as (mongod, record):
        if "key" not in record:
            click.echo(f"importing with {checkout} ...", err=True)
            record["imported"] = data.import_files(FLEET, load.drivers, load.trips, mongod, checkout)
            record["key"] = data.issue_key(FLEET, mongod, checkout)
        words, env = command("serve", checkout=checkout), environment(mongod.port, checkout)
        with workers(f"service-{name}", words, HTTP_PORT + 20 + number, PING, env, checkout) as service:
            requests = {row: _requests(service, row, record["key"], load.shape, load.base) for row in ROWS}
            yield Side(name, mongod, service, data.Imported(*record["imported"]), requests)


def _requests(service: Server, row: str, key: str, shape: fleet.Shape, base: datetime.date) -> list[Request]:
    source, mask = ROWS[row]
    asked = authorized(rows.requests(source, shape, base), key)
    if row == "detail, unchanged":
        return holding(service, asked) or asked
    return [one._replace(headers={**one.headers, "X-Fields": mask}) for one in asked] if mask else asked


def _check(one: Side, other: Side) -> None:
    """Raise Failed if the two services respond differently."""
    for row in ROWS:
        found, expected = (fetch(side.service, side.requests[row][:COMPARED]) for side in (one, other))
        for request, *pair in zip(one.requests[row], found, expected, strict=False):
            if pair[0].status != pair[1].status or not same(*map(_content, pair)):
                raise Failed(f"The services differ in {row}, {request.path}:\n{pair[0]}\n{pair[1]}")


def _content(answer: Answer) -> Any:
    return orjson.loads(answer.body) if answer.body else None


def _samples(
    sides: Sequence[Side], redis: Server, chosen: Sequence[str], rounds: int, seconds: int
) -> dict[tuple[str, str], list[Sample]]:
    samples: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for number in range(-1, rounds):
        for row in chosen:
            for side in rotated(sides, number):
                file = write_requests(f"compare-{side.name}-{row}", side.requests[row])
                length = seconds if number >= 0 else WARM_UP_SECONDS
                sample = measure(side.service, (side.mongod, redis), file, CONNECTIONS, length)
                if number >= 0:
                    samples[row, side.name].append(sample)
        click.echo(f"round {number + 1} of {rounds} done", err=True)
    return samples


def _table(samples: dict[tuple[str, str], list[Sample]]) -> str:
    lines = []
    for row in dict.fromkeys(row for row, _ in samples):
        pairs = list(zip(samples[row, "this"], samples[row, "other"], strict=True))
        cells = []
        for value in (report.cpu, report.mongod_cpu, report.all_cpu, report.per_second):
            both = [(value(one), value(other)) for one, other in pairs]
            ratios = [one / other if other else 1.0 for one, other in both]
            cells += [report.number_of(median(column)) for column in (*zip(*both, strict=True), ratios)]
        lines.append([row, *cells])
    measures = ("CPU ms", "mongod ms", "both", "req/s")
    heads = [f"{measure}, {which}" for measure in measures for which in ("this", "other", "÷")]
    return report.table(["row", *heads], lines)


def _import_table(sides: Sequence[Side], trips: int) -> str:
    lines = [
        [side.name, f"{trips / took.seconds:.0f}", *(f"{s * 1000 / trips:.2f}" for s in (took.cpu, took.mongod_cpu))]
        for side in sides
        for took in [side.imported]
    ]
    return report.table(["import", "trips/s", "CPU ms a trip", "mongod ms a trip"], lines)


if __name__ == "__main__":
    main()
