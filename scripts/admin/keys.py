"""`driver-analytics keys`: who may ask for which fleet."""

import datetime
import secrets
import string
import time

import click

from app.store import Store
from app.store.api_keys import digest, get_state, make_key
from scripts.mongodb.connection import open_store
from scripts.options import ID

MS_PER_DAY = 86_400_000
KEY_ID_LENGTH = 12
MAX_DAYS = 36_500


@click.group()
def keys() -> None:
    """API keys: issue, list and revoke them."""


@keys.command()
@click.option("--fleet", type=ID, required=True, help="The fleet that the key lets in to.")
@click.option("--expires-in-days", type=click.IntRange(1, MAX_DAYS), metavar="N", help="Otherwise it does not expire.")
def issue(fleet: str, expires_in_days: int | None) -> None:
    """Issue a key and print it, alone, on standard output. It is shown this once: the store keeps only a digest."""
    with open_store() as store:
        click.echo(issue_key(store, fleet, expires_in_days))


def issue_key(store: Store, fleet: str, expires_in_days: int | None = None) -> str:
    """Store a new key for the fleet and return it."""
    key, now = make_key(), int(time.time() * 1000)
    store.keys.insert_one(
        {
            "key_id": _make_key_id(),
            "digest": digest(key),
            "fleet": fleet,
            "created_at": now,
            "expires_at": None if expires_in_days is None else now + expires_in_days * MS_PER_DAY,
            "revoked_at": None,
        }
    )
    return key


def _make_key_id() -> str:
    # A digit first, so that there is one.
    return secrets.choice(string.digits) + secrets.token_hex(KEY_ID_LENGTH // 2)[1:]


@keys.command("list")
@click.option("--fleet", type=ID, required=True, help="The fleet whose keys to list.")
def list_(fleet: str) -> None:
    """List the fleet's keys, oldest first: KEY_ID, state, issued, expires; tab-separated, times in UTC."""
    with open_store() as store:
        for key in store.keys.find({"fleet": fleet}).sort([("created_at", 1), ("key_id", 1)]):
            expires = "never" if key["expires_at"] is None else _time(key["expires_at"])
            click.echo("\t".join((key["key_id"], get_state(key), _time(key["created_at"]), expires)))


@keys.command()
@click.argument("key_id", type=ID)
def revoke(key_id: str) -> None:
    """Revoke the key with this KEY_ID (see 'keys list'); it is refused within 5 seconds."""
    with open_store() as store:
        now = int(time.time() * 1000)
        store.keys.update_one({"key_id": key_id, "revoked_at": None}, {"$set": {"revoked_at": now}})
        if store.keys.find_one({"key_id": key_id}) is None:
            raise click.ClickException(f"There is no key {key_id}; 'driver-analytics keys list --fleet ID' lists them.")
    click.echo(f"{key_id} is revoked.", err=True)


def _time(epoch_ms: int) -> str:
    return datetime.datetime.fromtimestamp(epoch_ms // 1000, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
