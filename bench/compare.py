"""`python -m bench.compare OTHER`: compare this checkout with another one, in one interleaved run.

Both import the same trips, each into its own `mongod`, and their services get the same requests, in turns. Of the other
checkout, which needs its own `.venv` (`make setup`), only the command line and the HTTP API are used.
"""

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from bench import fleet, report
from bench.load import Target, describe_difference, measure, rounds_option
from bench.rows import ROWS, row_option
from bench.servers import ROOT, Checkout, Failed, Sample, mongod, redis_server

# 3,000 trips.
FLEET = fleet.standard_fleet("compare", drivers=50, days=15, points=150, old_points=150)


@click.command()
@click.argument("other", type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path))
@rounds_option
@row_option
def main(other: Path, rounds: int, chosen: tuple[str, ...]) -> None:
    """Compare this checkout with another one."""
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(redis_server())
        checkouts = {
            name: Checkout(folder, stack.enter_context(mongod(f"mongod-{name}")), redis)
            for name, folder in (("this", ROOT), ("other", other))
        }
        imported: dict[str, list[Sample]] = {name: [] for name in checkouts}
        keys = {}
        for number in range(rounds):
            for name in sorted(checkouts, reverse=bool(number % 2)):
                keys[name], trips = checkouts[name].load(FLEET._replace(name=f"compare-{number}"))
                imported[name] += trips.values()
        services = {
            name: stack.enter_context(checkout.serve(f"service-{name}")) for name, checkout in checkouts.items()
        }
        targets = {}
        for row in chosen or ROWS:
            try:
                targets[row,] = {
                    name: Target(service, checkouts[name].mongod, ROWS[row].requests(service, FLEET, keys[name]))
                    for name, service in services.items()
                }
            except Failed as error:
                click.echo(f"{row} is left out: {error.message}")
                continue
            this, that = targets[row,].values()
            click.echo(describe_difference(this.server, this.requests, that.server, that.requests), nl=False)
        samples = {**measure(targets, redis, rounds), ("import of a trip",): imported}
    click.echo(f"\nthis: {ROOT}\nother: {other}\nRounds: {rounds}. {report.conditions()} ÷ is this ÷ other.\n")
    click.echo(_table(samples))


def _table(samples: Mapping[tuple[str], Mapping[str, Sequence[Sample]]]) -> str:
    lines: list[list[str | float]] = []
    for (row,), sides in samples.items():
        this, other = sides["this"], sides["other"]
        lines.append([row])
        for name in ("cpu_ms", "mongod_ms", "per_second"):
            lines[-1] += [report.middle(this, name), report.middle(other, name), report.ratio(this, other, name)]
    measures = ("CPU ms", "mongod ms", "a second")
    return report.table(["row", *(f"{name}, {of}" for name in measures for of in ("this", "other", "÷"))], lines)


if __name__ == "__main__":
    main()
