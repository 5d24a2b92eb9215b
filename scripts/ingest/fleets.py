"""`driver-analytics fleets`: list the fleets, and erase one."""

from collections.abc import Iterator
from functools import partial

import click
from pymongo.client_session import ClientSession

from app.store import READ_MODELS, SOURCES, DocumentCollection, Store
from app.store.api_keys import LIVE, get_state
from scripts.batches import batches
from scripts.confirm import confirm
from scripts.ingest.mirror import ids_of_cursors
from scripts.ingest.writes import DELETIONS_PER_TRANSACTION
from scripts.mongodb.connection import find_fleets, name_other_fleets, open_store, say_empty
from scripts.mongodb.identities import BATCH_SIZE, ids_of_fleet
from scripts.mongodb.transactions import run_transaction
from scripts.options import FLEET
from scripts.output import echo, echo_table
from scripts.progress import sum_with_progress
from scripts.reports.files import remove_all_unused_files

COLUMNS = ("FLEET", "DRIVERS", "TRIPS", "KEYS IN FORCE")


@click.group()
def fleets() -> None:
    """List the fleets, and erase a fleet."""


@fleets.command("list")
def list_() -> None:
    """List all fleets, in the order of their names.

    Columns, separated by tabs: fleet, drivers, trips, keys in force. The drivers and trips are those that the API
    returns, including trips that are not visible yet. A terminal also gets a line with the names of the columns.
    """
    with open_store(writes=False) as store:
        rows = [(fleet, *map(str, _count(store, fleet))) for fleet in _find_all_fleets(store)]
        if not rows:
            say_empty(store)
        echo_table(COLUMNS, rows)


def _find_all_fleets(store: Store) -> list[str]:
    """Return the fleets with stored data, keys or reports."""
    return sorted({*find_fleets(store, None), *store.keys.distinct("fleet"), *store.reports.distinct("fleet")})


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
        store.resume_tokens.delete_many({"_id": ids_of_cursors(fleet)})
        store.fleets.delete_one({"_id": fleet})
        echo(f"{fleet}: erased")


def _delete_data(store: Store, fleet: str) -> Iterator[int]:
    """Delete the sources and read models of a fleet. Yields after each transaction how many documents it deleted.

    `follow` skips what a command changes in transactions, so it reports no deletions in the change feed.
    """
    for name in (*SOURCES, *READ_MODELS):
        collection = store.db[name]
        documents = collection.find({"fleet": fleet}, {"_id": 1}, batch_size=BATCH_SIZE)
        for ids in batches((document["_id"] for document in documents), DELETIONS_PER_TRANSACTION):
            yield run_transaction(store, fleet, partial(_delete, collection, ids))


def _delete(collection: DocumentCollection, ids: list[object], session: ClientSession) -> int:
    return collection.delete_many({"_id": {"$in": ids}}, session=session).deleted_count
