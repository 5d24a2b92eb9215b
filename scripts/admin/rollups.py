"""`driver-analytics rollups`: rebuild the read models from drivers and trips, or compare them."""

import itertools

import click

from app.store import Store
from schemas.periods import DAY
from scripts.command_line.options import DATE, ONE_OR_ALL_FLEETS
from scripts.command_line.output import echo, with_progress
from scripts.materialize.rebuild_and_verify import discard_other_formats, rebuild_fleet, verify_fleet
from scripts.materialize.sources import find_unidentified
from scripts.materialize.unidentified import find_of_no_fleet
from scripts.mongodb.connection import open_store, select_fleets
from scripts.reports.build import complete_reports

MAX_PRINTED_DIFFERENCES = 20


@click.group()
def rollups() -> None:
    """Rebuild or verify the read models.

    Read models are the documents that the API reads. They are derived from drivers, groups and trips. An invalid one of
    these, which another program wrote past MongoDB's validators, counts as absent, and is named.
    """


@rollups.command()
@ONE_OR_ALL_FLEETS
@click.option("--since", type=DATE, help="Only days since this date, in the time zone of the fleet.")
def rebuild(fleet: str | None, since: str | None) -> None:
    """Build the read models again.

    They are built from the stored drivers and trips.

    The API stays available, and each of its responses comes from one committed state. If the command was killed, run it
    again.

    After an upgrade that changes the format of the read models, those of all fleets are deleted first, and the API
    returns nothing of a fleet before it is complete.
    """
    with open_store(writes=False, any_format=True) as store:
        discard_other_formats(store)
        for name in select_fleets(store, fleet):
            rebuild_with_progress(store, name, since or "")
            echo(f"{name}: {_count_days(store, name, since or '')} days rebuilt")
        _print_unidentified(store, fleet)


@rollups.command()
@ONE_OR_ALL_FLEETS
def verify(fleet: str | None) -> None:
    """Compare the read models with drivers and trips, in every field.

    It ends with the first kind of documents that differ: what is built from them cannot be compared. The exit status is
    1 if there are differences or invalid documents.
    """
    has_problems = False
    with open_store(writes=False) as store:
        for name in select_fleets(store, fleet):
            # A day that a changed trip left or reached is compared with the trip, and with all days.
            invalid_count, differences = 0, dict[str, None]()
            for outcome in with_progress(name, verify_fleet(store, name)):
                invalid_count += len(outcome.invalid)
                differences |= dict.fromkeys(outcome.differences)
                for source in outcome.invalid:
                    echo(f"{name}: {source}", err=True)
            for difference in itertools.islice(differences, MAX_PRINTED_DIFFERENCES):
                echo(f"{name}: {difference}")
            if len(differences) > MAX_PRINTED_DIFFERENCES:
                echo(f"{name}: and {len(differences) - MAX_PRINTED_DIFFERENCES} more")
            if differences:
                echo(
                    f"{name}: {len(differences)} differences; 'driver-analytics rollups rebuild' repairs them. What is "
                    "built from these documents was not compared."
                )
            else:
                echo(f"{name}: {_count_days(store, name)} days compared: no differences")
            has_problems |= bool(differences or invalid_count)
        for name, _id in find_of_no_fleet(store):
            echo(f"{name} {_id}: belongs to no fleet; 'driver-analytics rollups rebuild' removes it")
            has_problems = True
        has_problems |= _print_unidentified(store, fleet)
    if has_problems:
        raise SystemExit(1)


def rebuild_with_progress(store: Store, fleet: str, since: str = "") -> None:
    """Build the read models of a fleet again, show progress on a terminal, and name the invalid sources.

    The reports of earlier versions get the fields that they lack.
    """
    complete_reports(store, fleet)
    for outcome in with_progress(fleet, rebuild_fleet(store, fleet, since)):
        for source in outcome.invalid:
            echo(f"{fleet}: {source}", err=True)


def _count_days(store: Store, fleet: str, since: str = "") -> int:
    """Return how many days of drivers are stored. Index: (fleet, period, driver_id, start_date)."""
    return store.driver_periods.count_documents({"fleet": fleet, "period": DAY, "start_date": {"$gte": since}})


def _print_unidentified(store: Store, fleet: str | None) -> bool:
    """Name the sources that belong to no fleet, or to another one than they say. Returns whether there are any."""
    unidentified = list(find_unidentified(store, fleet))
    for source in unidentified:
        echo(str(source), err=True)
    return bool(unidentified)
