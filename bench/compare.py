"""`python -m bench.compare OTHER`: this checkout's service beside that of another one, on the same files, in turns.

Of the other checkout only the command line and the HTTP API are used; it needs a `.venv` of its own (`make setup`). Each
has its own `mongod`, and both share a Redis.
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
from scripts.embedded import REPLICA_SET_OPTIONS

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


@click.command()
@click.argument("other", type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path))
@click.option("--rounds", default=5, show_default=True, help="Turns that both get in each row.")
@click.option("--seconds", default=2, show_default=True, help="Length of a turn, in seconds.")
@click.option("--connections", default=8, show_default=True, help="Connections of wrk.")
@click.option("--rows", "chosen", multiple=True, type=click.Choice(list(ROWS)), help="Only this row; may be repeated.")
@click.option("--scale", default=1.0, show_default=True, help="Multiplies the drivers, 200.")
@click.option("--keep-data", is_flag=True, help="Use what was loaded today, even by other code.")
@click.option("--other-standalone", is_flag=True, help="Run the other one's mongod by itself, not as a replica set.")
def main(
    other: Path,
    rounds: int,
    seconds: int,
    connections: int,
    chosen: tuple[str, ...],
    scale: float,
    keep_data: bool,
    other_standalone: bool,
) -> None:
    """Measure this checkout's service beside that of another checkout."""
    shape, base = fleet.Shape(drivers=round(200 * scale)), fleet.today()
    exit_on_sigterm()
    try:
        with contextlib.ExitStack() as stack:
            files = data.make_files("compare", shape, base)
            redis = stack.enter_context(redis_server())
            alone = other_standalone
            sides = [
                stack.enter_context(_side(number, checkout, files, shape, base, keep=keep_data, alone=alone and number))
                for number, checkout in enumerate((ROOT, other))
            ]
            _check(*sides)
            samples = _samples(sides, redis, chosen or tuple(ROWS), rounds, seconds, connections)
    except Failed as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"this: {ROOT}\nother: {other}{', mongod standalone' if other_standalone else ''}\n")
    click.echo(_import_table(sides, shape.drivers * shape.days * shape.trips_a_day))
    click.echo(f"\nMedians of {rounds} rounds of {seconds} s at {connections} connections; ratios are this ÷ other.\n")
    click.echo(_table(samples))


@contextlib.contextmanager
def _side(
    number: int, checkout: Path, files: Any, shape: fleet.Shape, base: datetime.date, *, keep: bool, alone: Any
) -> Iterator[Side]:
    """Load the files with a checkout's import, and run its service on them."""
    name, fits = ("this", "other")[number], {"shape": list(shape), "alone": bool(alone)}
    server = {"port": MONGOD_PORT + 1 + number, "options": () if alone else REPLICA_SET_OPTIONS}
    with data.folder(f"compare-{name}", fits, keep=keep, checkout=checkout, **server) as (mongod, record):
        if "key" not in record:
            click.echo(f"importing with {checkout} ...")
            record["imported"] = data.import_files(FLEET, *files, mongod, checkout)
            record["key"] = data.issue_key(FLEET, mongod, checkout)
        env = environment(mongod.port, checkout)
        words, port = command("serve", checkout=checkout), HTTP_PORT + 20 + number
        with workers(f"service-{name}", words, port, PING, env, checkout) as service:
            requests = {row: _requests(service, row, record["key"], shape, base) for row in ROWS}
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
    sides: Sequence[Side], redis: Server, chosen: Sequence[str], rounds: int, seconds: int, connections: int
) -> dict[tuple[str, str], list[Sample]]:
    samples: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for number in range(-1, rounds):
        for row in chosen:
            for side in rotated(sides, number):
                file = write_requests(f"compare-{side.name}-{row}", side.requests[row])
                length = seconds if number >= 0 else WARM_UP_SECONDS
                sample = measure(side.service, (side.mongod, redis), file, connections, length)
                if number >= 0:
                    samples[row, side.name].append(sample)
        click.echo(f"round {number + 1} of {rounds} done", err=True)
    return samples


def _table(samples: dict[tuple[str, str], list[Sample]]) -> str:
    lines = []
    for row in dict.fromkeys(row for row, _ in samples):
        pairs = list(zip(samples[row, "this"], samples[row, "other"], strict=True))
        cells = []
        for value in (lambda s: s.cpu_ms, lambda s: s.mongod_ms, lambda s: s.cpu_ms + s.mongod_ms, report.per_second):
            cells += [_number(median(map(value, side))) for side in zip(*pairs, strict=True)]
            cells.append(_number(median(value(one) / value(other) if value(other) else 1.0 for one, other in pairs)))
        lines.append([row, *cells])
    heads = [
        f"{what}, {which}" for what in ("CPU ms", "mongod ms", "both", "req/s") for which in ("this", "other", "÷")
    ]
    return report.table(["row", *heads], lines)


def _import_table(sides: Sequence[Side], trips: int) -> str:
    lines = [
        [side.name, f"{trips / took.seconds:.0f}", *(f"{s * 1000 / trips:.2f}" for s in (took.cpu, took.mongod_cpu))]
        for side in sides
        for took in [side.imported]
    ]
    return report.table(["import", "trips/s", "CPU ms a trip", "mongod ms a trip"], lines)


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}"


if __name__ == "__main__":
    main()
