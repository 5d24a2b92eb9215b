"""`python -m bench`: compare the service with the floor and the peer, in one interleaved run."""

import contextlib
import hashlib
import pickle
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from pymongo import MongoClient

from bench import fleet, report
from bench.load import Request, Target, describe_difference, fetch, measure, rounds_option
from bench.rows import ROWS, WITHOUT_DATA, Row, row_option
from bench.servers import DATA, DATABASE, ROOT, Checkout, Failed, Sample, Server, http_server, mongod, redis_server

BIN = ROOT / ".venv" / "bin"
# How to start each contestant besides the service. gunicorn reads the settings of the service, gunicorn.conf.py.
CONTESTANTS: dict[str, list[str | Path]] = {
    "floor": [BIN / "gunicorn", "bench.floor:app"],
    "fastapi": [ROOT / "bench" / ".venv-peer" / "bin" / "python", "-m", "bench.peer"],
}
CONNECTIONS = (8, 64)
# What a command has besides the query.
NOT_QUERY = ("lsid", "readConcern", "maxTimeMS", "$clusterTime", "$readPreference", "$db")
SMOKE_ROWS = ("drivers", "weekly")
# The service uses at most this multiple of the floor's processor time, and has at least this multiple of the requests a
# second of FastAPI on rows with data.
MOST_CPU, LEAST_REQUESTS = 3, 1.4

# For each request, by its path, X-Fields and If-None-Match: the queries, and the body of the response.
Prepared = dict[tuple[str, str | None, str | None], tuple[list[dict[str, Any]], bytes]]


@click.command()
@rounds_option
@row_option
@click.option("--quick", is_flag=True, help="For development: two rounds with 8 connections.")
@click.option(
    "--smoke", is_flag=True, help="Check that it works, with little data, and without FastAPI if that is not installed."
)
def main(rounds: int, chosen: tuple[str, ...], quick: bool, smoke: bool) -> None:
    """Compare the service with the floor and the peer. A whole run writes docs/benchmarks.md."""
    standard = fleet.SMOKE if smoke else fleet.standard_fleet("bench")
    measured = chosen or (SMOKE_ROWS if smoke else tuple(ROWS))
    connections = CONNECTIONS[:1] if quick or smoke else CONNECTIONS
    rounds = 1 if smoke else 2 if quick else rounds
    installed = {name: command for name, command in CONTESTANTS.items() if Path(command[0]).exists()}
    if not smoke and installed != CONTESTANTS:
        raise Failed("FastAPI is not installed. 'make bench' installs it.")
    with contextlib.ExitStack() as stack:
        redis, store = stack.enter_context(redis_server()), stack.enter_context(mongod())
        checkout = Checkout(ROOT, store, redis)
        key, imported = checkout.load(standard)
        _prepare_peer(store, key, standard.name)
        servers = {"service": stack.enter_context(checkout.serve())}
        requests = {name: row.requests(servers["service"], standard, key) for name, row in ROWS.items()}
        prepared = DATA / "prepared.pickle"
        every = [request for row in requests.values() for request in row]
        prepared.write_bytes(pickle.dumps(_record(servers["service"], store, every)))
        for name, command in installed.items():
            env = {**checkout.env, "PREPARED": str(prepared)}
            servers[name] = stack.enter_context(http_server(name, command, env))
        rows = {name: _requests(ROWS[name], sent, servers, standard, key) for name, sent in requests.items()}
        click.echo("The responses of all contestants are equal.")
        targets = {
            (row, number): {name: Target(servers[name], store, sent, number) for name, sent in rows[row].items()}
            for row in measured
            for number in connections
        }
        samples = measure(targets, redis, rounds)
    text = f"Rounds: {rounds}. {report.conditions()}\n\n{figures(samples)}\n\n{_import_table(imported)}"
    if not (chosen or quick or smoke):
        report.write_section("figures", text)
    click.echo(f"\n{text}")


def _prepare_peer(store: Server, key: str, fleet_name: str) -> None:
    """Give the peer the indexes and the key that it needs, because it shares only the sources with the service."""
    with MongoClient[dict[str, str]](store.mongodb_uri) as client:
        db = client[DATABASE]
        db.drivers.create_index(["fleet", "driver_id", "_id"])
        db.trips.create_index(["fleet", "trip_id", "trip_end_time"])
        db.trips.create_index(["fleet", "driver_id", "trip_start_time", "trip_id", "trip_end_time"])
        db.peer_keys.insert_one({"_id": hashlib.sha256(key.encode()).hexdigest(), "fleet": fleet_name})


def _record(service: Server, mongod: Server, requests: Iterable[Request]) -> Prepared:
    """Return what the floor needs: the queries of the service as MongoDB's profiler shows them, and the bodies."""
    prepared: Prepared = {}
    with MongoClient[dict[str, Any]](mongod.mongodb_uri) as client:
        store = client[DATABASE]
        # The service caches keys, so that most requests do not read them.
        others = {"$nin": [None, "keys", "system.profile"]}
        is_query = {"$or": [{"command.find": others}, {"command.aggregate": others}]}
        for request in requests:
            store.command("profile", 2)
            (response,) = fetch(service, [request])
            store.command("profile", 0)
            commands = [entry["command"] for entry in store["system.profile"].find(is_query)]
            store.drop_collection("system.profile")
            queries = [{name: command[name] for name in command if name not in NOT_QUERY} for command in commands]
            key = (request.path, request.headers.get("X-Fields"), request.headers.get("If-None-Match"))
            prepared[key] = (queries, response.body)
    return prepared


def _requests(
    row: Row, requests: Sequence[Request], servers: Mapping[str, Server], standard: fleet.Fleet, key: str
) -> dict[str, Sequence[Request]]:
    """Return the requests of a row to each contestant; `requests` are those to the service and the floor.

    Raises Failed if a contestant responds differently from the service.
    """
    by_name = {"service": requests, "floor": requests}
    if row.has_peer and "fastapi" in servers:
        by_name["fastapi"] = row.requests(servers["fastapi"], standard, key)
    for name, sent in by_name.items():
        if difference := describe_difference(servers["service"], requests, servers[name], sent):
            raise Failed(difference)
    return by_name


def figures(samples: Mapping[tuple[str, int], Mapping[str, Sequence[Sample]]]) -> str:
    """Return the table of the samples of each row, number of connections and contestant."""
    header = ["row", "connections", "service, req/s", "CPU + mongod + Redis, ms", "floor, req/s", "CPU + mongod, ms"]
    header += ["FastAPI, req/s", "CPU + mongod, ms"]
    header += [f"CPU ÷ floor, at most {MOST_CPU}", f"req/s ÷ FastAPI, at least {LEAST_REQUESTS}", ""]
    lines = []
    for (row, connections), by_name in samples.items():
        service, fastapi = by_name["service"], by_name.get("fastapi")
        cpu = report.ratio(service, by_name["floor"], "cpu_ms")
        rate = report.ratio(service, fastapi, "per_second") if fastapi else None
        is_within = cpu <= MOST_CPU, rate is None or rate >= LEAST_REQUESTS or row == WITHOUT_DATA
        cells = [cell for name in ("service", *CONTESTANTS) for cell in _cells(by_name.get(name))]
        cells[1] += f" + {report.middle(service, 'redis_ms'):.2f}"
        lines.append([row, str(connections), *cells, cpu, rate or "–", report.verdict(*is_within)])
    return report.table(header, lines)


def _cells(samples: Sequence[Sample] | None) -> list[str]:
    if not samples:
        return ["–", "–"]
    rate, cpu, mongod_cpu = (report.middle(samples, name) for name in ("per_second", "cpu_ms", "mongod_ms"))
    return [f"{rate:.0f}", f"{cpu:.2f} + {mongod_cpu:.2f}"]


def _import_table(samples: Mapping[str, Sample]) -> str:
    header = ["import of", "trips/s", "CPU ms a trip", "mongod ms a trip"]
    return report.table(header, [[size, *sample[:3]] for size, sample in samples.items()])


if __name__ == "__main__":
    main()
