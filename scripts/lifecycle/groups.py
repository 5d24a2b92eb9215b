"""`driver-analytics groups`: which drivers are in a group, such as a depot."""

from collections.abc import Sequence

import click

from app.store import Document, Store
from app.store.groups import INDEX, find_driver_counts
from schemas.driver import MAX_GROUPS
from schemas.identity import ids_of_fleet, make_id
from schemas.periods import PROFILE
from scripts.command_line.batches import batches
from scripts.command_line.options import FLEET, ID, read_driver_ids
from scripts.command_line.output import echo, echo_table, make_bar
from scripts.materialize.drivers import add_groups, find_groups, find_groups_of, make_groups_source
from scripts.materialize.read_models import MOVES_PER_TRANSACTION, materialize, naming_damage
from scripts.materialize.sources import parse_sources
from scripts.mongodb.connection import IDS_PER_COMMAND, name_other_fleets, open_store, require_drivers, require_fleet
from scripts.mongodb.transactions import transaction, write_by_id

COLUMNS = ("GROUP", "DRIVERS")
NOTHING_CHANGED = "nothing was changed"
GROUP = click.option("--group", type=ID, required=True, help="The name of the group.")


@click.group()
def groups() -> None:
    """Put drivers into groups, such as depots or teams, and list the groups.

    A driver may be in several. Lists, rankings and sums of the API can be those of a group.
    """


@groups.command("set")
@FLEET
@GROUP
def set_(fleet: str, group: str) -> None:
    """Make the drivers on standard input those of a group, new or not.

    Standard input has a driver_id on each line. Drivers who are in the group and not on standard input leave it.

    Either all drivers are set or none: one that is unknown is an error. Sums and rankings of the group follow some
    drivers at a time. If the command was killed, run it again; until then, 'rollups verify' names differences.
    """
    driver_ids = read_driver_ids(NOTHING_CHANGED, " To delete a group, use 'groups delete'.")
    with open_store() as store:
        require_fleet(store, fleet)
        _write_members(store, fleet, group, driver_ids)
        changed = _materialize(store, fleet, group, driver_ids)
        echo(f"{fleet}: {group} has {len(driver_ids)} drivers; {changed} joined or left")


@groups.command()
@FLEET
@GROUP
def delete(fleet: str, group: str) -> None:
    """Delete a group: all drivers leave it.

    If the command was killed, run it again; until then, 'rollups verify' names differences.
    """
    with open_store() as store:
        require_fleet(store, fleet)
        written = _write_members(store, fleet, group, ())
        changed = _materialize(store, fleet, group, ())
        # After a kill, the sources may have lost the group already.
        if not (written or changed):
            raise click.ClickException(f"The fleet {fleet} has no group {group!r}. 'groups list' lists them.")
        echo(f"{fleet}: deleted {group}; {changed} drivers left")


@groups.command("list")
@FLEET
def list_(fleet: str) -> None:
    """List the groups of a fleet, in the order of their names.

    Columns, separated by tabs: name, number of drivers. A terminal also gets a line with the names of the columns.
    """
    with open_store(writes=False) as store, naming_damage(fleet):
        counts = find_driver_counts(store, fleet)
        if not counts:
            echo(f"The fleet {fleet} has no groups.{name_other_fleets(store, fleet)}", err=True)
        echo_table(COLUMNS, [(group, str(count)) for group, count in counts.items()])


@transaction
def _write_members(store: Store, fleet: str, group: str, driver_ids: Sequence[str]) -> int:
    """Write the sources of the drivers who join or leave a group, and return how many these are.

    Raises click.ClickException if a driver is unknown, or has too many groups, or the fleet has.
    """
    require_drivers(store, fleet, driver_ids, NOTHING_CHANGED)
    if driver_ids and (reason := add_groups(find_groups(store, fleet), {group})):
        raise click.ClickException(f"{reason} {NOTHING_CHANGED.capitalize()}.")
    found = store.driver_groups.find({"_id": ids_of_fleet(fleet), "groups": group})
    stored = {source["driver_id"] for source in parse_sources(store.driver_groups.name, found, [])}
    differing = sorted(stored ^ {*driver_ids})
    for batch in batches(differing, IDS_PER_COMMAND):
        before = find_groups_of(store, fleet, batch)
        sources = dict[str, Document | None]()
        for driver_id in batch:
            # Each joins the group or leaves it.
            later = {*before.get(driver_id, ())} ^ {group}
            if len(later) > MAX_GROUPS:
                raise click.ClickException(
                    f"The driver {driver_id!r} is in {MAX_GROUPS} groups already: {NOTHING_CHANGED}."
                )
            sources[make_id(fleet, driver_id)] = make_groups_source(fleet, driver_id, later)
        write_by_id(store.driver_groups, sources)
    return len(differing)


def _materialize(store: Store, fleet: str, group: str, driver_ids: Sequence[str]) -> int:
    """Materialize the drivers whose profiles do not say yet that they are in a group or not. Returns how many."""
    of_group = {"fleet": fleet, "groups": group, "period": PROFILE}
    stored = store.driver_periods.find(of_group, {"_id": 0, "driver_id": 1}).hint(INDEX)
    differing = sorted({profile["driver_id"] for profile in stored} ^ {*driver_ids})
    with make_bar(fleet, len(differing)) as bar:
        for part in batches(differing, MOVES_PER_TRANSACTION):
            transaction(materialize)(store, fleet, part, {})
            bar.update(len(part))
    return len(differing)
