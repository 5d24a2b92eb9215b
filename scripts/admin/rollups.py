"""`driver-analytics rollups`: read models, built again from drivers and trips, or compared with them."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any

import click

from app.store import Store
from scripts.materialize.rebuild import rebuild_fleet
from scripts.materialize.verify import verify_fleet
from scripts.mongodb.connection import fleets, naming_invalid_documents, open_store
from scripts.options import DATE, ID

# Differences that are printed one by one.
MAX_PRINTED = 20

FLEET = click.option("--fleet", type=ID, help="Only this fleet; otherwise all.")


@click.group()
def rollups() -> None:
    """Read models: what the API reads, built from drivers and trips."""


@rollups.command()
@FLEET
@click.option("--since", type=DATE, help="Only days from this date (UTC) on.")
def rebuild(fleet: str | None, since: str | None) -> None:
    """Build all read models again from the stored drivers and trips.

    Requests are answered meanwhile, each from one committed state. After a kill run the same command again.
    """
    with open_store() as store:
        for name in fleets(store, fleet):
            click.echo(f"{name}: {rebuild_with_progress(store, name, since or '')} days rebuilt")


@rollups.command()
@FLEET
def verify(fleet: str | None) -> None:
    """Compare all read models with the stored drivers and trips. Exits with 1 if anything differs."""
    wrong = False
    with open_store(writes=False) as store:
        for name in fleets(store, fleet):
            count, differences = 0, list[str]()
            with naming_invalid_documents(store, name):
                for days, found in _with_progress(name, store, verify_fleet(store, name)):
                    count += days
                    differences += found
            wrong |= bool(differences)
            for difference in differences[:MAX_PRINTED]:
                click.echo(f"{name}: {difference}")
            if len(differences) > MAX_PRINTED:
                click.echo(f"{name}: and {len(differences) - MAX_PRINTED} more")
            found_differences = f"{len(differences)} differences; 'driver-analytics rollups rebuild' repairs them"
            click.echo(f"{name}: {count} days compared: {found_differences if differences else 'no differences'}")
    if wrong:
        raise SystemExit(1)


def rebuild_with_progress(store: Store, fleet: str, since: str = "") -> int:
    """Build the read models of a fleet again. Returns the number of days."""
    with naming_invalid_documents(store, fleet):
        return sum(_with_progress(fleet, store, rebuild_fleet(store, fleet, since)))


def _with_progress(fleet: str, store: Store, steps: Iterable[Any]) -> Iterator[Any]:
    """Yield the steps, and show how many of them are done: there is no telling how many there will be."""
    with click.progressbar(
        steps, label=fleet, file=sys.stderr, hidden=not sys.stderr.isatty(), show_pos=True, show_percent=False
    ) as bar:
        yield from bar
