"""`python -m bench`: the service beside the floor and its peers, in one interleaved run."""

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
@click.option("--rounds", default=5, show_default=True, help="Turns that everyone gets.")
@click.option("--seconds", default=2, show_default=True, help="Length of a turn, in seconds.")
@click.option(
    "--rows", "chosen", multiple=True, type=click.Choice(list(QUERIES)), help="Only this row; may be repeated."
)
@click.option(
    "--contestants", multiple=True, type=click.Choice(list(COMMANDS)), help="Only this contestant; may be repeated."
)
@click.option("--scale", default=1.0, show_default=True, help="Multiplies the drivers, 200.")
@click.option("--quick", is_flag=True, help="For development: two rounds of a second, 8 connections.")
@click.option("--smoke", is_flag=True, help="Only show that everything works, on little data.")
@click.option("--keep-data", is_flag=True, help="Use what was loaded today, even by other code.")
@click.option("--write/--no-write", default=None, help="Write docs/benchmarks.md; a whole run does, others do not.")
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
    """Measure the service beside the floor and its peers."""
    names = list(contestants or COMMANDS)
    if smoke:
        names = list(filter(is_installed, names))
    if absent := [name for name in names if not is_installed(name)]:
        raise click.ClickException(f"{', '.join(absent)}: not installed; 'make bench' installs the peers.")
    shape = SMOKE_SHAPE if smoke else fleet.Shape(drivers=round(200 * scale))
    plan = Plan(names, chosen or tuple(QUERIES), CONNECTIONS, rounds, seconds, warm_up=not smoke)
    if quick:
        plan = plan._replace(connections=CONNECTIONS[:1], rounds=2, seconds=1)
    if smoke:
        plan = plan._replace(measured=chosen or SMOKE_ROWS, connections=CONNECTIONS[:1], rounds=1, seconds=1)
    whole = not (chosen or contestants or quick or smoke) and scale == 1 and rounds >= 5
    exit_on_sigterm()
    try:
        samples, notes = _measure(plan, shape, "smoke" if smoke else "bench", keep=keep_data)
    except Failed as error:
        raise click.ClickException(str(error)) from None
    DATA.joinpath("samples.pickle").write_bytes(pickle.dumps(samples))
    how = f"in {plan.rounds} rounds of {plan.seconds} s a contestant and row, on {shape.drivers} drivers"
    text = report.bench_section(samples, notes, how)
    if whole if write is None else write:
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
            click.echo("importing ...")
            took = data.import_files(FLEET, drivers, trips, mongod)
            click.echo(f"imported in {took.seconds:.0f} s: {took.cpu:.0f} s CPU, {took.mongod_cpu:.0f} s of mongod")
            data.index_for_peers(mongod)
            record["key"] = data.issue_key(FLEET, mongod)
        run = stack.enter_context(contextlib.ExitStack())
        started = Run(run, plan, record["key"], shape, base)
        samples = report.grouped(started.samples((mongod, redis)))
        run.close()
        return samples, started.notes


if __name__ == "__main__":
    main()
