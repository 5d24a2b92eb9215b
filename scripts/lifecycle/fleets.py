"""`driver-analytics fleets`: list the fleets, erase one, and change its settings."""

from collections.abc import Callable, Iterator

import click

from app.store import READ_MODELS, SOURCES, Store
from app.store.api_keys import LIVE, get_state
from app.store.fleets import get_time_zone, get_trips_state
from schemas.identity import ids_of_fleet
from schemas.plausibility import COUNTED, LEFT_OUT
from scripts.command_line.batches import batches
from scripts.command_line.options import FLEET, TIME_ZONE
from scripts.command_line.output import confirm, echo, echo_table, sum_with_progress
from scripts.ingest.resume_tokens import delete_cursors
from scripts.materialize.fleet_settings import apply_to_trips, find_trips_to_count, find_trips_to_move, set_settings
from scripts.materialize.read_models import naming_damage
from scripts.materialize.sources import InvalidSource
from scripts.materialize.write_sources import DELETIONS_PER_TRANSACTION
from scripts.mongodb.connection import (
    BATCH_SIZE,
    find_fleets,
    name_other_fleets,
    naming_new_fleet,
    open_store,
    say_empty,
)
from scripts.mongodb.transactions import transaction
from scripts.reports.files import remove_all_unused_files

COLUMNS = ("FLEET", "DRIVERS", "TRIPS", "KEYS IN FORCE", "TIME ZONE", "IMPLAUSIBLE TRIPS")
# The values of --implausible-trips.
POLICY_OF = {"count": COUNTED, "leave-out": LEFT_OUT}


@click.group()
def fleets() -> None:
    """List the fleets, erase a fleet, and change its settings."""


@fleets.command("list")
def list_() -> None:
    """List all fleets, in the order of their names.

    Columns, separated by tabs: fleet, drivers, trips, keys in force, time zone, and whether implausible trips are
    "counted" or "left_out". The drivers and trips are those that the API returns, including trips that are not visible
    yet. A terminal also gets a line with the names of the columns.
    """
    with open_store(writes=False) as store:
        rows = [
            (fleet, *map(str, _count(store, fleet)), get_time_zone(store, fleet).key, get_trips_state(store, fleet)[0])
            for fleet in _find_all_fleets(store)
        ]
        if not rows:
            say_empty(store)
        echo_table(COLUMNS, rows)


def _find_all_fleets(store: Store) -> list[str]:
    """Return the fleets with stored data, keys or reports."""
    return sorted({*find_fleets(store), *store.keys.distinct("fleet"), *store.reports.distinct("fleet")})


def _count(store: Store, fleet: str) -> tuple[int, int, int]:
    """Return the number of drivers, trips and keys in force."""
    return (
        store.driver_periods.count_documents({"fleet": fleet, "period": "profile"}),
        store.trip_details.count_documents({"_id": ids_of_fleet(fleet)}),
        sum(get_state(key) == LIVE for key in store.keys.find({"fleet": fleet})),
    )


@fleets.command()
@FLEET
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def erase(fleet: str, yes: bool) -> None:
    """Remove everything of a fleet: keys, reports, drivers, trips and all that is derived from them.

    Stop imports into the fleet before. The keys are removed first, so clients do not learn from the change feed that
    the trips are gone.

    The command says what it found, and asks for confirmation. If it was killed, run it again. It cannot reach backups,
    and exported and imported files: docs/data.md says what to do about them.
    """
    with open_store() as store:
        if fleet not in _find_all_fleets(store):
            echo(f"Nothing is stored for the fleet {fleet}.{name_other_fleets(store, fleet)}", err=True)
            return
        data = (*SOURCES, *READ_MODELS)
        counts = {name: store.db[name].count_documents({"fleet": fleet}) for name in ("keys", "reports", *data)}
        found = "; ".join(f"{count} documents in {name}" for name, count in counts.items() if count)
        confirm(f"{fleet}: {found or 'no documents'}", yes)
        store.keys.delete_many({"fleet": fleet})
        store.reports.delete_many({"fleet": fleet})
        remove_all_unused_files(store, fleet)
        sum_with_progress(fleet, sum(counts[name] for name in data), _delete_data(store, fleet))
        delete_cursors(store, fleet)
        store.fleets.delete_one({"_id": fleet})
        echo(f"{fleet}: erased")


@fleets.command("set")
@FLEET
@click.option("--time-zone", type=TIME_ZONE, help="Its name in the IANA database, or UTC.")
@click.option(
    "--implausible-trips", type=click.Choice(list(POLICY_OF)), help="Whether summaries and scores count such trips."
)
def set_(fleet: str, time_zone: str | None, implausible_trips: str | None) -> None:
    """Set the time zone of a fleet, new or not, and whether its sums count implausible trips.

    All dates of the fleet are local to its time zone: days, weeks, months, reports, and the date of today. A fleet has
    UTC unless you set another one.

    The values of an implausible trip cannot be, such as a mean speed of 500 mph: docs/data.md lists the kinds.
    Summaries, scores, rankings, sums of the fleet and reports count such trips unless you leave them out.

    Trips that are stored move to their dates in the time zone. Days with implausible trips are added up again, and the
    events of these trips leave the list of events or return to it. Meanwhile the API stays available, and each trip is
    as it was before or after. If the command was killed, run it again; until then, 'rollups verify' names differences.
    Reports stay as they are: build them again.
    """
    if time_zone is None and implausible_trips is None:
        raise click.UsageError("Give --time-zone, --implausible-trips or both.")
    with open_store() as store, naming_new_fleet(store, fleet), naming_damage(fleet):
        if implausible_trips:
            set_settings(store, fleet, implausible_trips=POLICY_OF[implausible_trips])
            outcome = f"summaries and scores {implausible_trips.replace('-', ' ')} implausible trips"
            _apply(store, fleet, find_trips_to_count, f"{outcome}; {{}} such trips changed")
        if time_zone:
            set_settings(store, fleet, time_zone=time_zone)
            outcome = f"the time zone is {time_zone}; {{}} trips moved to another date"
            _apply(store, fleet, find_trips_to_move, outcome)


def _apply(store: Store, fleet: str, find_trips: Callable[[Store, str], Iterator[str]], outcome: str) -> None:
    """Apply a setting to the trips that it changes. `outcome` has a place for how many these are."""
    invalid = list[InvalidSource]()
    count = sum(1 for _ in find_trips(store, fleet))
    applied = apply_to_trips(store, fleet, find_trips(store, fleet), invalid)
    done = sum_with_progress(fleet, count, applied) - len(invalid)
    # A trip without a read model is found again.
    left_out = dict.fromkeys(map(str, invalid))
    for source in left_out:
        echo(f"{fleet}: {source}", err=True)
    echo(f"{fleet}: {outcome.format(done)}")
    if left_out:
        raise SystemExit(1)


def _delete_data(store: Store, fleet: str) -> Iterator[int]:
    """Delete the sources and read models of a fleet. Yields after each step how many documents it deleted.

    `follow` skips what a command changes in transactions, so it reports no deletions in the change feed.
    """
    for name in SOURCES:
        sources = store.db[name].find({"fleet": fleet}, {"_id": 1}, batch_size=BATCH_SIZE)
        for ids in batches((source["_id"] for source in sources), DELETIONS_PER_TRANSACTION):
            yield _delete_sources(store, fleet, name, ids)
    for name in READ_MODELS:
        yield store.db[name].delete_many({"fleet": fleet}).deleted_count


@transaction
def _delete_sources(store: Store, fleet: str, name: str, ids: list[object]) -> int:
    return store.db[name].delete_many({"fleet": fleet, "_id": {"$in": ids}}).deleted_count
