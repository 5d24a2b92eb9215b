"""Requests, their load with wrk, and the processor time that they take."""

import contextlib
import http.client
import json
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from bench.servers import DATA, HOST, Failed, Sample, Server

SCRIPT = Path(__file__).with_name("wrk.lua")
# A server has finished the last requests of wrk when it uses no processor time for this time.
IDLE_SECONDS, MAX_WAIT_SECONDS = 0.08, 10
# Background tasks may take one tick of 0.01 s.
IDLE_CPU_SECONDS = 0.015
DECIMALS = 6
COMPARED_RESPONSES = 10

rounds_option = click.option(
    "--rounds", type=click.IntRange(min=1), default=5, show_default=True, help="Number of rounds of a second each."
)


class Request(NamedTuple):
    """A GET request."""

    path: str
    headers: dict[str, str]


class Response(NamedTuple):
    """The response to a request."""

    status: int
    etag: str | None
    body: bytes

    def content(self) -> Any:
        """Return the JSON to compare: floats rounded, whose sums may differ in the last bits, and no opaque cursor."""
        content = json.loads(self.body or "null", parse_float=lambda number: round(float(number), DECIMALS))
        if isinstance(content, dict):
            content.pop("cursor", None)
        return content


class Target(NamedTuple):
    """A server to measure, and the requests that it gets again and again."""

    server: Server
    mongod: Server
    requests: Sequence[Request]
    connections: int = 8


# What identifies a row, and a column.
Row = TypeVar("Row", bound=tuple[object, ...])
Column = TypeVar("Column", str, int)


def fetch(server: Server, requests: Iterable[Request]) -> list[Response]:
    """Return a server's responses."""
    connection = http.client.HTTPConnection(HOST, server.port, timeout=30)
    responses = []
    with contextlib.closing(connection):
        for request in requests:
            connection.request("GET", request.path, headers=request.headers)
            response = connection.getresponse()
            responses.append(Response(response.status, response.getheader("ETag"), response.read()))
    return responses


def describe_difference(one: Server, requests: Sequence[Request], other: Server, same: Sequence[Request]) -> str:
    """Return how the responses of two servers to the first requests differ, or nothing."""
    pairs = zip(fetch(one, requests[:COMPARED_RESPONSES]), fetch(other, same[:COMPARED_RESPONSES]), strict=True)
    for request, pair in zip(requests, pairs, strict=False):
        if pair[0].status != pair[1].status or pair[0].content() != pair[1].content():
            bodies = "\n".join(f"{response.status} {response.body[:1000]!r}" for response in pair)
            return f"{one.name} and {other.name} respond differently to {request.path}:\n{bodies}"
    return ""


def measure(
    rows: Mapping[Row, Mapping[Column, Target]], redis: Server, rounds: int
) -> dict[Row, dict[Column, list[Sample]]]:
    """Return the samples of the targets in each row and column, one per round, each of a second.

    The targets of a row take turns. Their order rotates from round to round.
    """
    samples: dict[Row, dict[Column, list[Sample]]] = {row: {column: [] for column in rows[row]} for row in rows}
    total, done, started = sum(map(len, rows.values())) * rounds, 0, time.monotonic()
    for number in range(rounds):
        for row, targets in rows.items():
            columns = list(targets)
            first = number % len(columns)
            for column in columns[first:] + columns[:first]:
                sample = _measure(targets[column], redis)
                samples[row][column].append(sample)
                done += 1
                minutes = (time.monotonic() - started) / done * (total - done) / 60
                click.echo(
                    f"[{done}/{total}, {minutes:.0f} min left] {', '.join(map(str, row))}, {column}: "
                    f"{sample.per_second:.0f}/s, CPU {sample.cpu_ms:.2f} + {sample.mongod_ms:.2f} ms"
                )
    return samples


def _measure(target: Target, redis: Server) -> Sample:
    """Raise Failed for any error response.

    At the end of its run, wrk drops up to one request per connection, which the server still handles. So processor time
    is read when all servers are idle, and is divided by the number of requests sent.
    """
    servers = (target.server, target.mongod, redis)
    before = [server.cpu_seconds() for server in servers]
    counts = _wrk(target)
    _wait_until_idle(servers)
    after = [server.cpu_seconds() for server in servers]
    failures = counts["error_statuses"] + counts["socket_errors"]
    if failures or not counts["responses"]:
        path = target.requests[0].path
        raise Failed(f"{target.server.name}: {failures} of {counts['sent']} requests such as {path} failed")
    used = [(end - start) * 1000 / counts["sent"] for start, end in zip(before, after, strict=True)]
    return Sample(counts["responses"] * 1e6 / counts["us"], *used)


def _wrk(target: Target) -> dict[str, int]:
    path = DATA / "requests"
    path.write_text("\0".join(map(_raw, target.requests)), newline="")
    command = ["wrk", "--threads", "1", "--connections", str(target.connections), "--duration", "1s"]
    command += ["--timeout", "20s", "--script", str(SCRIPT), f"http://{HOST}:{target.server.port}", "--", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise Failed(f"wrk failed: {(done.stderr or done.stdout).strip()}")
    counts: dict[str, int] = json.loads(done.stdout.strip().splitlines()[-1])
    return counts


def _raw(request: Request) -> str:
    lines = [f"GET {request.path} HTTP/1.1", f"Host: {HOST}"]
    return "\r\n".join([*lines, *(f"{name}: {value}" for name, value in request.headers.items()), "", ""])


def _wait_until_idle(servers: Sequence[Server]) -> None:
    deadline, last = time.monotonic() + MAX_WAIT_SECONDS, 0.0
    while time.monotonic() < deadline:
        used = sum(server.cpu_seconds() for server in servers)
        if used - last < IDLE_CPU_SECONDS:
            return
        last = used
        time.sleep(IDLE_SECONDS)
