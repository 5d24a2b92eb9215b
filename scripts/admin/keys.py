"""`driver-analytics keys`: issue, list and revoke API keys."""

import datetime
import secrets
import string
import sys

import click

from app.store import Document, Store
from app.store.api_keys import digest, get_state, is_well_formed, make_key
from app.store.dates import MS_PER_DAY, now_ms
from scripts.mongodb.connection import has_data, name_other_fleets, open_store
from scripts.options import FLEET, ID
from scripts.table import echo_table

KEY_ID_LENGTH = 12
MAX_DAYS = 36_500
COLUMNS = ("KEY_ID", "STATE", "ISSUED", "EXPIRES", "LABEL")


@click.group()
def keys() -> None:
    """Issue, list and revoke API keys."""


@keys.command()
@FLEET
@click.option("--label", type=ID, help="What the key is for. 'keys list' shows it.")
@click.option(
    "--expires-in-days",
    type=click.IntRange(1, MAX_DAYS),
    metavar="N",
    help="Days until the key expires. By default it does not.",
)
def issue(fleet: str, label: str | None, expires_in_days: int | None) -> None:
    """Issue a key and print it.

    Standard output has the key and no other text, and standard error its KEY_ID. The key is shown only once: the store
    has only a digest of it. If the key cannot be printed, none is issued.
    """
    # click would print nothing, without an error.
    if sys.stdout is None:
        raise click.ClickException("Standard output is closed: no key was issued.")
    with open_store() as store:
        key = issue_key(store, fleet, expires_in_days, label)
        _print_key(store, key)
        stored: Document = store.keys.find_one({"digest": digest(key)}, {"key_id": 1}) or {}
        click.echo(f"KEY_ID: {stored['key_id']}", err=True)
        if not has_data(store, fleet):
            click.echo(f"Nothing is stored for the fleet {fleet} yet.{name_other_fleets(store, fleet)}", err=True)


def _print_key(store: Store, key: str) -> None:
    """Print a new key. If that fails or is interrupted, delete the key. Raises click.ClickException."""
    try:
        click.echo(key)
    except BaseException as error:
        store.keys.delete_one({"digest": digest(key)})
        if not isinstance(error, OSError):
            raise
        raise click.ClickException(
            f"Standard output cannot be written ({error.strerror}): no key was issued."
        ) from None


def issue_key(store: Store, fleet: str, expires_in_days: int | None = None, label: str | None = None) -> str:
    """Store the digest of a new key for the fleet. Returns the key."""
    key, now = make_key(), now_ms()
    store.keys.insert_one(
        {
            "key_id": _make_key_id(),
            "digest": digest(key),
            "fleet": fleet,
            "label": label,
            "created_at": now,
            "expires_at": None if expires_in_days is None else now + expires_in_days * MS_PER_DAY,
            "revoked_at": None,
        }
    )
    return key


def _make_key_id() -> str:
    # The first character is a digit, so that no key_id is a word.
    return secrets.choice(string.digits) + secrets.token_hex(KEY_ID_LENGTH // 2)[1:]


@keys.command("list")
@FLEET
def list_(fleet: str) -> None:
    """List the keys of a fleet, oldest first.

    Columns, separated by tabs: KEY_ID, state, time of issue, time of expiry, label. Times are in UTC. A terminal also
    gets a line with the names of the columns.
    """
    with open_store(writes=False) as store:
        stored_keys = list(store.keys.find({"fleet": fleet}).sort([("created_at", 1), ("key_id", 1)]))
        if not stored_keys:
            click.echo(f"The fleet {fleet} has no keys.{name_other_fleets(store, fleet)}", err=True)
        echo_table(COLUMNS, map(_describe, stored_keys))


def _describe(key: Document) -> tuple[str, ...]:
    """Return the values of COLUMNS."""
    expires = "never" if key["expires_at"] is None else _format_time(key["expires_at"])
    return key["key_id"], get_state(key), _format_time(key["created_at"]), expires, key["label"] or "-"


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
    click.echo(f"Revoked the key {key['key_id']} of the fleet {key['fleet']}.", err=True)


def _format_time(epoch_ms: int) -> str:
    return datetime.datetime.fromtimestamp(epoch_ms // 1000, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
