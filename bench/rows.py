"""The rows of a benchmark: what is requested of every contestant, and whether the peer responds to it."""

import datetime
import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

import click

from bench.fleet import MONDAY, Fleet, trip_id
from bench.load import Request, fetch
from bench.servers import API, Failed, Server

MASK = "{trips{trip_id,distance_miles}}"
PAGE, AGGREGATED, WINDOW_DAYS, MOST_CHANGES = 100, 20, 30, 1000
# Enough that no document is in use all the time.
REQUESTS = 200
WITHOUT_DATA = "healthz"


def add_etags(server: Server, requests: Sequence[Request]) -> list[Request]:
    """Return the requests with the ETags of a server's responses, so that it responds 304."""
    return [
        Request(request.path, {**request.headers, "If-None-Match": response.etag or ""})
        for request, response in zip(requests, fetch(server, requests), strict=True)
    ]


def read_feed(server: Server, requests: Sequence[Request]) -> list[Request]:
    """Return the request of a client that has read all of the change feed."""
    (first,) = requests
    request, has_more = first, True
    while has_more:
        (response,) = fetch(server, [request])
        page = json.loads(response.body)
        has_more, request = page.get("has_more"), first._replace(path=f"{first.path}&cursor={page.get('cursor')}")
    return [request]


class Row(NamedTuple):
    """A row: its name, its paths below the API in a fleet, and what it requests besides.

    `prepare` turns the requests into those that are measured, which depend on the responses of a server. A row that
    `counts_drivers` may cost more in a fleet of more drivers, and on a later page. One that `counts_trips` may cost
    more in a fleet of more trips, and one that `skips_drivers` on a later page.
    """

    name: str
    paths: Callable[[Fleet], list[str]]
    has_peer: bool = False
    headers: dict[str, str] = {}
    prepare: Callable[[Server, Sequence[Request]], Sequence[Request]] = lambda _, requests: requests
    status: int = 200
    counts_drivers: bool = False
    counts_trips: bool = False
    skips_drivers: bool = False

    def requests(self, server: Server, fleet: Fleet, key: str) -> Sequence[Request]:
        """Return its requests to a server, with the key of the fleet. Raises Failed if the server lacks the row."""
        headers = {"Authorization": f"APIKEY {key}", **self.headers}
        requests = self.prepare(server, [Request(API + path, headers) for path in self.paths(fleet)])
        (response,) = fetch(server, requests[:1])
        if response.status != self.status:
            raise Failed(f"{server.name} responds {response.status} to {requests[0].path}: {response.body[:300]!r}")
        return requests


def _details(fleet: Fleet) -> list[str]:
    """Return the paths of trips of all drivers and of the newest 14 days."""
    newest, ids = fleet.dates[-14:], fleet.driver_ids
    return [
        f"/trip/trip_id/{trip_id(ids[n % len(ids)], newest[n % len(newest)], n % fleet.trips_a_day)}"
        for n in range(REQUESTS)
    ]


def _aggregates(kind: str, fleet: Fleet, dates: Sequence[datetime.date]) -> list[str]:
    ids = [*fleet.driver_ids[:REQUESTS], *fleet.driver_ids[:AGGREGATED]]
    return [
        f"/driver-aggregate/{kind}?start_date={dates[n % len(dates)]}&driver_id="
        + "&driver_id=".join(ids[n : n + AGGREGATED])
        for n in range(len(ids) - AGGREGATED)
    ]


def _days(fleet: Fleet) -> list[datetime.date]:
    return [date for date in fleet.dates if 0 <= (date - MONDAY).days < 7]


def _month(fleet: Fleet) -> datetime.date:
    """Return the first day of a month that lies within the dates of a fleet of 60 days or more."""
    return fleet.dates[len(fleet.dates) // 2].replace(day=1)


def _window(fleet: Fleet) -> str:
    dates = fleet.dates[-WINDOW_DAYS:]
    return f"/driver-aggregate/window?start_date={dates[0]}&end_date={dates[-1]}&limit={PAGE}"


def _list(fleet: Fleet, path: str) -> str:
    """Return the path of a page of a list by cursor, for the newest two weeks."""
    return f"{path}?start_date={fleet.dates[-14:][0]}&limit={PAGE}"


def _searches(fleet: Fleet) -> list[str]:
    return [f"/drivers?search=ines+{driver}" for driver in fleet.driver_ids[:REQUESTS]]


def _by_driver(fleet: Fleet, what: str) -> list[str]:
    return [f"/driver/{driver}/{what}?start_date={fleet.dates[0]}" for driver in fleet.driver_ids[:REQUESTS]]


ROWS = {
    row.name: row
    for row in (
        Row("drivers", lambda _: [f"/drivers?limit={PAGE}"], has_peer=True),
        Row("search", _searches, counts_drivers=True),
        Row("trips", lambda fleet: [f"{path}&limit={PAGE}" for path in _by_driver(fleet, "trips")], has_peer=True),
        Row("detail", _details, has_peer=True),
        Row("detail, masked", _details, headers={"X-Fields": MASK}),
        Row("detail, unchanged", _details, has_peer=True, prepare=add_etags, status=304),
        Row("daily", lambda fleet: _aggregates("daily", fleet, _days(fleet)), has_peer=True),
        Row("weekly", lambda fleet: _aggregates("weekly", fleet, [MONDAY]), has_peer=True),
        Row("monthly", lambda fleet: _aggregates("monthly", fleet, [_month(fleet)])),
        Row("window", lambda fleet: [_window(fleet)]),
        Row("score", lambda fleet: _by_driver(fleet, "score")),
        Row("ranking", lambda _: [f"/ranking?period=week&start_date={MONDAY}&limit={PAGE}"], counts_drivers=True),
        Row("trips of the fleet", lambda fleet: [_list(fleet, "/trips")]),
        Row("events", lambda fleet: [_list(fleet, "/events")]),
        Row("events, one driver", lambda fleet: [f"{_list(fleet, '/events')}&driver_id={fleet.driver_ids[0]}"]),
        Row("changes", lambda _: [f"/changes?limit={PAGE}"]),
        Row("changes, nothing new", lambda _: [f"/changes?limit={MOST_CHANGES}"], prepare=read_feed),
        Row(WITHOUT_DATA, lambda _: ["/healthz"], has_peer=True),
    )
}

# Those of a fleet with a group, of which all drivers are.
GROUP_ROWS = {
    row.name: row
    for row in (
        Row("groups", lambda _: ["/groups"]),
        Row("drivers of a group", lambda fleet: [f"/drivers?limit={PAGE}&group={fleet.group}"], skips_drivers=True),
        Row(
            "search in a group",
            lambda fleet: [f"{path}&group={fleet.group}" for path in _searches(fleet)],
            counts_drivers=True,
        ),
        Row(
            "ranking of a group",
            lambda fleet: [f"/ranking?period=week&start_date={MONDAY}&limit={PAGE}&group={fleet.group}"],
            counts_drivers=True,
        ),
        # No trip is as long, so a page reads as many as it may.
        Row(
            "worst trips of a group, filtered",
            lambda fleet: [f"{_list(fleet, '/trips')}&order=worst&min_distance_miles=99999&group={fleet.group}"],
            counts_trips=True,
        ),
    )
}

row_option = click.option(
    "--row", "chosen", multiple=True, type=click.Choice(list(ROWS)), help="Only this row. Can be repeated."
)
