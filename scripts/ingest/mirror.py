"""`driver-analytics mirror`: copies the drivers and trips of another service with this interface."""

from pathlib import Path
from time import monotonic, sleep

import click

from app.config import API, Config, is_base_url
from app.store.fleets import get_time_zone
from schemas.periods import get_today, midnight
from scripts.command_line.options import DATE, FLEET, REJECTS
from scripts.command_line.output import echo
from scripts.command_line.signals import end_on_signals
from scripts.ingest.http_client import open_upstream
from scripts.ingest.mirror_feed import apply_feed
from scripts.ingest.mirrored_fleet import MirroredFleet
from scripts.ingest.records import Rejects
from scripts.mongodb.connection import naming_new_fleet, open_store

# How often the change feed is read, and how often lists are.
FEED_SECONDS, LISTS_SECONDS = 10.0, 600.0
# The most rejected records, of each of which a hash is in memory.
MAX_REJECTS = 500_000


@click.command()
@click.option("--from", "url", metavar="URL", required=True, help="The other service.")
@FLEET
@click.option("--since", type=DATE, help="Only trips from this date on. By default six months.")
@click.option("--follow", "is_followed", is_flag=True, help="Keep running, and apply what changes.")
@REJECTS
def mirror(url: str, fleet: str, since: str | None, is_followed: bool, rejects: Path | None) -> None:
    """Copy the drivers and trips of another service into a fleet.

    The other service has the same interface: it is the original service, or another instance of this one. MIRROR_KEY is
    the API key for it.

    Copies the trips of the last six months that are new or were changed. Trips that the other service no longer has
    stay. If the command was interrupted, run it again.

    Invalid records are written to mirror.rejected.ndjson in the current folder. The others are loaded, and the exit
    status is 1.

    With --follow, it keeps running until Ctrl-C or SIGTERM. If the other service has a change feed, changes and
    deletions are applied within a minute. Otherwise the lists are read again every ten minutes.
    """
    url, key = url.rstrip("/").removesuffix(API), Config.from_environment().mirror_key
    if not is_base_url(url):
        raise click.UsageError("Give --from as https://api.example.com.")
    if not key or not all("!" <= character <= "~" for character in key):
        raise click.ClickException("Set MIRROR_KEY to an API key of the other service.")
    if is_followed:
        end_on_signals()
    rejected = _RejectedRecords((rejects or Path()) / "mirror.rejected.ndjson")
    with open_upstream(url, key, is_followed=is_followed) as client, open_store() as store, rejected:
        zone = get_time_zone(store, fleet)
        if since and since > str(get_today(zone)):
            raise click.UsageError("Give --since as a date up to today.")
        # Whoever gives no date wants all: a trip before 1970 is none of the last six months.
        since_ms = max(0, midnight(since, zone)) if since else 0
        mirrored = MirroredFleet(store, fleet, client, since_ms, rejected)
        with naming_new_fleet(store, fleet):
            pause_seconds = _copy(mirrored, is_followed)
        echo(f"{url}: {mirrored.loaded} loaded, {rejected.describe()}")
        while is_followed:
            sleep(pause_seconds)
            pause_seconds = _copy(mirrored, is_followed)
    if rejected.count:
        raise SystemExit(1)


def _copy(mirrored: MirroredFleet, is_followed: bool) -> float:
    """Copy what is new or was changed. Returns after how many seconds to do it again if the service is followed.

    The change feed comes before the lists. So what changes while these are read comes afterwards.
    """
    has_feed = is_followed and apply_feed(mirrored)
    if mirrored.lists_are_due or not has_feed:
        mirrored.load_all()
    elif monotonic() >= mirrored.read_at + LISTS_SECONDS:
        mirrored.load_drivers()
    return FEED_SECONDS if has_feed else LISTS_SECONDS


class _RejectedRecords(Rejects):
    """The rejected records. One that is read again and again is listed once."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._known = set[int]()

    def add(self, number: int, content: bytes, reason: str) -> None:
        """Write a rejected record. Raises click.ClickException if there are too many."""
        if (known := hash(content)) not in self._known:
            self._known.add(known)
            super().add(number, content, reason)
        if len(self._known) > MAX_REJECTS:
            raise click.ClickException(f"More than {MAX_REJECTS:,} records are invalid. The first: {self.first}")
