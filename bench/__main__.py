"""`python -m bench`: compare the service with the floor and its peers, in one interleaved run."""

import contextlib
import pickle

import click

from bench import data, fleet, report
from bench.rows import FLEET, QUERIES
from bench.run import Plan, Run
from bench.servers import COMMANDS, DATA, Failed, exit_on_sigterm, is_installed, redis_server

CONNECTIONS = (8, 64)
SMOKE_SHAPE = fleet.Shape(drivers=20, points=30, old_points=6)
SMOKE_ROWS = ("drivers", "weekly")


@click.command()
@click.option(
    "--rounds", default=5, show_default=True, help="Number of rounds; each contestant is measured once per round."
)
@click.option("--seconds", default=2, show_default=True, help="Duration of each measurement in seconds.")
@click.option(
    "--rows", "chosen", multiple=True, type=click.Choice(list(QUERIES)), help="Measure only this row. Can be repeated."
)
@click.option(
    "--contestants",
    multiple=True,
    type=click.Choice(list(COMMANDS)),
    help="Measure only this contestant. Can be repeated.",
)
@click.option("--scale", default=1.0, show_default=True, help="Factor for the number of drivers, which is 200.")
@click.option("--quick", is_flag=True, help="For development: two rounds of one second with 8 connections.")
@click.option("--smoke", is_flag=True, help="Check that everything works, with little data.")
@click.option("--keep-data", is_flag=True, help="Use data that was loaded today, even if the code has changed since.")
@click.option(
    "--write/--no-write", default=None, help="Write docs/benchmarks.md. By default, only a complete run does."
)
def main(
    rounds: int,
    seconds: int,
    chosen: tuple[str, ...],
    contestants: tuple[str, ...],
    scale: float,
    quick: bool,
    smoke: bool,
    keep_data: bool,
    write: bool | None,
) -> None:
    """Compare the service with the floor and its peers."""
    names = list(contestants or COMMANDS)
    if smoke:
        names = list(filter(is_installed, names))
    if missing := [name for name in names if not is_installed(name)]:
        raise click.ClickException(f"{', '.join(missing)}: not installed. 'make bench' installs the peers.")
    shape = SMOKE_SHAPE if smoke else fleet.Shape(drivers=round(200 * scale))
    plan = Plan(names, chosen or tuple(QUERIES), CONNECTIONS, rounds, seconds, warm_up=not smoke)
    if quick:
        plan = plan._replace(connections=CONNECTIONS[:1], rounds=2, seconds=1)
    if smoke:
        plan = plan._replace(measured=chosen or SMOKE_ROWS, connections=CONNECTIONS[:1], rounds=1, seconds=1)
    is_complete = not (chosen or contestants or quick or smoke) and scale == 1 and rounds >= 5
    exit_on_sigterm()
    try:
        samples, notes = _measure(plan, shape, "smoke" if smoke else "bench", keep=keep_data)
    except Failed as error:
        raise click.ClickException(str(error)) from None
    DATA.joinpath("samples.pickle").write_bytes(pickle.dumps(samples))
    conditions = (
        f"in {plan.rounds} rounds of {plan.seconds} s per contestant and row, with a fleet of {shape.drivers} drivers"
    )
    text = report.bench_section(samples, notes, conditions)
    if is_complete if write is None else write:
        report.write_section("figures", text)
        click.echo(f"Written to docs/{report.PAGE.name}")
    click.echo(text)


def _measure(plan: Plan, shape: fleet.Shape, folder: str, *, keep: bool) -> tuple[report.Samples, list[str]]:
    base = fleet.today()
    with (
        contextlib.ExitStack() as stack,
        data.folder(folder, {"shape": list(shape)}, keep=keep) as (mongod, record),
        redis_server() as redis,
    ):
        if "key" not in record:
            drivers, trips = data.make_files(folder, shape, base)
            click.echo("Importing ...")
            cost = data.import_files(FLEET, drivers, trips, mongod)
            click.echo(f"Imported in {cost.seconds:.0f} s: {cost.cpu:.0f} s CPU, {cost.mongod_cpu:.0f} s CPU of mongod")
            data.index_for_peers(mongod)
            record["key"] = data.issue_key(FLEET, mongod)
        contestants = stack.enter_context(contextlib.ExitStack())
        run = Run(contestants, plan, record["key"], shape, base)
        samples = report.group_samples(run.samples((mongod, redis)))
        contestants.close()
        return samples, run.notes


if __name__ == "__main__":
    main()
