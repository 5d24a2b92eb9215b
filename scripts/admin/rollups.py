"""`driver-analytics rollups`: rebuild the read models from drivers and trips, or compare them."""

import click

from app.store import Store
from scripts.materialize.rebuild import delete_orphans, rebuild_fleet
from scripts.materialize.verify import verify_fleet
from scripts.mongodb.connection import naming_invalid_documents, open_store, select_fleets
from scripts.options import DATE, ID
from scripts.progress import with_progress

MAX_PRINTED_DIFFERENCES = 20

FLEET = click.option("--fleet", type=ID, help="Only this fleet. By default all fleets.")


@click.group()
def rollups() -> None:
    """Rebuild or verify the read models.

    Read models are the documents that the API reads. They are derived from drivers and trips.
    """


@rollups.command()
@FLEET
@click.option("--since", type=DATE, help="Only days since this date (UTC).")
def rebuild(fleet: str | None, since: str | None) -> None:
    """Build the read models again.

    They are built from the stored drivers and trips.

    The API stays available, and each of its responses comes from one committed state. If the command was killed, run it
    again.
    """
    with open_store() as store:
        fleets = select_fleets(store, fleet)
        for name in fleets if len(fleets) > 1 else ():
            with naming_invalid_documents(store, name):
                sum(with_progress(name, delete_orphans(store, name)))
        for name in fleets:
            click.echo(f"{name}: {rebuild_with_progress(store, name, since or '')} days rebuilt")


@rollups.command()
@FLEET
def verify(fleet: str | None) -> None:
    """Compare the read models with drivers and trips.

    The exit status is 1 if there are differences.
    """
    has_differences = False
    with open_store(writes=False) as store:
        for name in select_fleets(store, fleet):
            count, differences = 0, list[str]()
            with naming_invalid_documents(store, name):
                for days, step_differences in with_progress(name, verify_fleet(store, name)):
                    count += days
                    differences += step_differences
            has_differences |= bool(differences)
            for difference in differences[:MAX_PRINTED_DIFFERENCES]:
                click.echo(f"{name}: {difference}")
            if len(differences) > MAX_PRINTED_DIFFERENCES:
                click.echo(f"{name}: and {len(differences) - MAX_PRINTED_DIFFERENCES} more")
            result = f"{len(differences)} differences; 'driver-analytics rollups rebuild' repairs them"
            click.echo(f"{name}: {count} days compared: {result if differences else 'no differences'}")
    if has_differences:
        raise SystemExit(1)


def rebuild_with_progress(store: Store, fleet: str, since: str = "") -> int:
    """Build the read models of a fleet again, and show progress on a terminal. Returns the number of days."""
    with naming_invalid_documents(store, fleet):
        return sum(with_progress(fleet, rebuild_fleet(store, fleet, since)))
