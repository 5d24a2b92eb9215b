"""`driver-analytics keys`: issue, list and revoke API keys."""

import datetime
import secrets
import string
import sys
from collections.abc import Sequence

import click

from app.store import Document, Store
from app.store.api_keys import digest, get_state, is_well_formed, make_key
from app.store.scope import Scope
from schemas.periods import MS_PER_DAY, now_ms
from scripts.command_line.batches import batches
from scripts.command_line.options import FLEET, ID, LABEL, option_once, read_driver_ids
from scripts.command_line.output import echo, echo_table
from scripts.mongodb.connection import (
    IDS_PER_COMMAND,
    has_data,
    name_other_fleets,
    open_store,
    require_drivers,
    require_fleet,
)
from scripts.mongodb.transactions import transaction

KEY_ID_LENGTH = 12
MAX_DAYS = 36_500
COLUMNS = ("KEY_ID", "STATE", "ISSUED", "EXPIRES", "LABEL", "DRIVER")
STDIN, NO_KEY = "-", "no key was issued"


@click.group()
def keys() -> None:
    """Issue, list and revoke API keys."""


@keys.command()
@FLEET
@option_once(
    "--driver",
    "driver_id",
    type=ID,
    help="The driver_id of the only driver that the key opens. By default it opens the fleet. '-' reads many from "
    "standard input.",
)
@click.option("--label", type=LABEL, help="What the key is for. 'keys list' shows it.")
@click.option(
    "--expires-in-days",
    type=click.IntRange(1, MAX_DAYS),
    metavar="N",
    help="Days until the key expires. By default it does not.",
)
def issue(fleet: str, driver_id: str | None, label: str | None, expires_in_days: int | None) -> None:
    """Issue a key of a fleet or of one driver, and print it.

    Standard output has the key and no other text, and standard error its KEY_ID. The key is shown only once: the store
    has only a digest of it. If the key cannot be printed, none is issued.

    With '--driver -', standard input has a driver_id on each line. Standard output has a line for each driver: the
    driver_id, a tab, the key. Either all keys are issued or none. 'keys list' shows each KEY_ID.
    """
    # click would print nothing, without an error.
    if sys.stdout is None:
        raise click.ClickException("Standard output is closed: no key was issued.")
    driver_ids = read_driver_ids(NO_KEY) if driver_id == STDIN else [driver_id] if driver_id else []
    with open_store() as store:
        if driver_ids:
            require_fleet(store, fleet)
            issued = issue_driver_keys(store, fleet, driver_ids, expires_in_days, label)
        else:
            issued = [issue_key(store, fleet, expires_in_days, label)]
        if driver_id == STDIN:
            _print_keys(store, issued, [f"{name}\t{key}" for name, key in zip(driver_ids, issued, strict=True)])
            echo(f"{fleet}: issued {len(issued)} keys", err=True)
            return
        _print_keys(store, issued, issued)
        stored: Document = store.keys.find_one({"digest": digest(issued[0])}, {"key_id": 1}) or {}
        echo(f"KEY_ID: {stored['key_id']}", err=True)
        if not has_data(store, fleet):
            echo(f"Nothing is stored for the fleet {fleet} yet.{name_other_fleets(store, fleet)}", err=True)


def _print_keys(store: Store, issued: Sequence[str], lines: Sequence[str]) -> None:
    """Print the lines of new keys. If that fails or is interrupted, delete the keys. Raises click.ClickException."""
    try:
        # In UTF-8 whatever the locale, like standard input.
        rest = memoryview("".join(f"{line}\n" for line in lines).encode())
        while rest:
            # With PYTHONUNBUFFERED, a pipe may take only a part.
            rest = rest[sys.stdout.buffer.write(rest) :]
        sys.stdout.flush()
    except BaseException as error:
        for batch in batches(map(digest, issued), IDS_PER_COMMAND):
            store.keys.delete_many({"digest": {"$in": batch}})
        if not isinstance(error, OSError):
            raise
        raise click.ClickException(
            f"Standard output cannot be written ({error.strerror}): no key was issued."
        ) from None


def issue_key(store: Store, fleet: str, expires_in_days: int | None = None, label: str | None = None) -> str:
    """Store the digest of a new key of the fleet. Returns the key."""
    key = make_key()
    store.keys.insert_one(_make_document(key, Scope(fleet), expires_in_days, label))
    return key


@transaction
def issue_driver_keys(
    store: Store, fleet: str, driver_ids: Sequence[str], expires_in_days: int | None = None, label: str | None = None
) -> list[str]:
    """Store the digests of new keys, one of each of these drivers. Returns the keys in order.

    Raises click.ClickException, and stores none, if the fleet does not have one of the drivers.
    """
    # `erase` locks the fleet, too, so it leaves no key behind of a driver who was there a moment ago.
    require_drivers(store, fleet, driver_ids, NO_KEY)
    issued = [make_key() for _ in driver_ids]
    store.keys.insert_many(
        _make_document(key, Scope(fleet, driver_id), expires_in_days, label)
        for key, driver_id in zip(issued, driver_ids, strict=True)
    )
    return issued


def _make_document(key: str, scope: Scope, expires_in_days: int | None, label: str | None) -> Document:
    """Return the document of a key (schema StoredKey) that opens the scope."""
    now = now_ms()
    return {
        "key_id": _make_key_id(),
        "digest": digest(key),
        "fleet": scope.fleet,
        "driver_id": scope.driver_id,
        "label": label,
        "created_at": now,
        "expires_at": None if expires_in_days is None else now + expires_in_days * MS_PER_DAY,
        "revoked_at": None,
    }


def _make_key_id() -> str:
    # The first character is a digit, so that no key_id is a word.
    return secrets.choice(string.digits) + secrets.token_hex(KEY_ID_LENGTH // 2)[1:]


@keys.command("list")
@FLEET
def list_(fleet: str) -> None:
    """List the keys of a fleet, oldest first.

    Columns, separated by tabs: KEY_ID, state, time of issue, time of expiry, label, driver. Times are in UTC. A
    terminal also gets a line with the names of the columns.
    """
    with open_store(writes=False) as store:
        stored_keys = list(store.keys.find({"fleet": fleet}).sort([("created_at", 1), ("key_id", 1)]))
        if not stored_keys:
            echo(f"The fleet {fleet} has no keys.{name_other_fleets(store, fleet)}", err=True)
        echo_table(COLUMNS, map(_make_row, stored_keys))


def _make_row(key: Document) -> tuple[str, ...]:
    """Return the values of COLUMNS."""
    expires = "never" if key["expires_at"] is None else _format_time(key["expires_at"])
    times = _format_time(key["created_at"]), expires
    return key["key_id"], get_state(key), *times, key["label"] or "-", key["driver_id"] or "-"


@keys.command()
@click.argument("key_id", type=ID)
def revoke(key_id: str) -> None:
    """Revoke the key with this KEY_ID, or this key itself.

    'keys list' shows the KEY_ID of each key. The API rejects a revoked key within 5 seconds. If a key leaked, you can
    give the key instead of its KEY_ID; it is not printed.
    """
    match = {"digest": digest(key_id)} if is_well_formed(key_id) else {"key_id": key_id}
    with open_store() as store:
        store.keys.update_one({**match, "revoked_at": None}, {"$set": {"revoked_at": now_ms()}})
        key = store.keys.find_one(match)
        if key is None:
            # The argument may be a key, perhaps misspelt, and standard error may go to a log.
            raise click.ClickException(
                "There is no key with this KEY_ID. To list the keys, run: driver-analytics keys list --fleet ID"
            )
    driver = f"driver {key['driver_id']} of the " if key["driver_id"] else ""
    echo(f"Revoked the key {key['key_id']} of the {driver}fleet {key['fleet']}.", err=True)


def _format_time(epoch_ms: int) -> str:
    return datetime.datetime.fromtimestamp(epoch_ms // 1000, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
