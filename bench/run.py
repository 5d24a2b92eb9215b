"""An interleaved run: every contestant started, its answers checked, then loaded in turns."""

import contextlib
import datetime
import http.client
import math
import pickle
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click
import orjson

from bench import rows
from bench.fleet import Shape
from bench.load import Sample, measure, raw_request
from bench.rows import EVE_PATHS, QUERIES, TEXT_QUERIES, Request
from bench.servers import DATA, HOST, Failed, Server, contestant

# Rows that only some contestants have something for.
MASKED, UNCHANGED = "detail, masked", "detail, unchanged"
WITH_MASKS = ("service", "floor", "text floor", "hello")
WITH_ETAGS = (*WITH_MASKS, "full fastapi")
# Answers of each contestant that are compared with the service's; it sends all of them once itself.
COMPARED = 10
WARM_UP_SECONDS = 1
# Sums of the same numbers in another order.
TOLERANCE = 1e-9

T = TypeVar("T")
Key = tuple[str, str, int]


class Answer(NamedTuple):
    """What came back."""

    status: int
    etag: str | None
    body: bytes


class Plan(NamedTuple):
    """What is measured, and how often; `measured` are the rows under load, all the others are only checked."""

    contestants: Sequence[str]
    measured: Sequence[str]
    connections: Sequence[int]
    rounds: int
    seconds: int
    warm_up: bool


def takes(name: str, row: str) -> bool:
    """Return whether a contestant has something for a row."""
    if name == "eve":
        return row in EVE_PATHS
    return (row != MASKED or name in WITH_MASKS) and (row != UNCHANGED or name in WITH_ETAGS)


def fetch(server: Server, asked: Sequence[Request]) -> list[Answer]:
    """Return a server's answers."""
    connection = http.client.HTTPConnection(HOST, server.port, timeout=30)
    answers = []
    with contextlib.closing(connection):
        for request in asked:
            connection.request("GET", request.path, headers=request.headers)
            answer = connection.getresponse()
            answers.append(Answer(answer.status, answer.getheader("ETag"), answer.read()))
    return answers


def authorized(asked: Sequence[Request], key: str) -> list[Request]:
    """Return the requests with a key."""
    return [one._replace(headers={"Authorization": f"APIKEY {key}", **one.headers}) for one in asked]


def holding(service: Server, asked: Sequence[Request]) -> list[Request] | None:
    """Return the requests of a client that holds the answers already, or None where these have no ETag."""
    answers = fetch(service, asked)
    if any(answer.etag is None for answer in answers):
        return None
    return [
        one._replace(headers={**one.headers, "If-None-Match": answer.etag or ""})
        for one, answer in zip(asked, answers, strict=True)
    ]


def write_requests(name: str, asked: Sequence[Request]) -> Path:
    """Write a file of requests for wrk."""
    path = DATA / f"{name.replace(', ', '-')}.requests"
    path.write_text("\0".join(raw_request(one.path, one.headers) for one in asked))
    return path


def same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are the same, numbers but for rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if {type(one), type(other)} == {int, float} or type(one) is type(other) is float:
        return math.isclose(one, other, rel_tol=TOLERANCE)
    return bool(one == other)


def as_eve_has_it(service: Any, eve: Any) -> tuple[Any, Any]:
    """Return the records of the service's page and those of eve's answer, of which only the same fields."""
    records = service.get("drivers") or service["trips"]
    items = eve.get("_items", [eve])
    fields = records[0] if records else ()
    return records, [{name: item.get(name) for name in fields} for item in items]


class Run:
    """Contestants that are up, and the requests that they get."""

    def __init__(self, stack: contextlib.ExitStack, plan: Plan, key: str, shape: Shape, base: datetime.date) -> None:
        self.plan, self.notes = plan, list[str]()
        service = stack.enter_context(contestant("service"))
        self.asked, answers = self._ask_service(service, key, shape, base)
        path = DATA / "answers.pickle"
        path.write_bytes(
            pickle.dumps(
                {
                    _floor_key(request): (
                        QUERIES[row](**request.about),
                        TEXT_QUERIES[row](**request.about),
                        answer.body,
                    )
                    for row in answers
                    for request, answer in answers[row]
                }
            )
        )
        others = [name for name in plan.contestants if name != "service"]
        self.servers = {"service": service}
        self.servers |= {name: stack.enter_context(contestant(name, ANSWERS=str(path))) for name in others}
        for name in others:
            self._check(name, answers)
            click.echo(f"{name} answers as it should")

    def _ask_service(
        self, service: Server, key: str, shape: Shape, base: datetime.date
    ) -> tuple[dict[str, list[Request]], dict[str, list[tuple[Request, Answer]]]]:
        asked, answers = {}, {}
        for row in QUERIES:
            requests = rows.requests(row, shape, base)
            if row != "healthz":
                requests = authorized(requests, key)
            expected = 200
            if row == UNCHANGED:
                unchanged = holding(service, requests)
                if unchanged is None:
                    self.notes.append(f"{row}: n/a, since the service sends no ETag")
                    continue
                expected, requests = 304, unchanged
            found = fetch(service, requests)
            for request, answer in zip(requests, found, strict=True):
                if answer.status != expected:
                    raise Failed(f"service answers {answer.status} to {request.path}: {answer.body[:300]!r}")
            asked[row], answers[row] = requests, list(zip(requests, found, strict=True))
        return asked, answers

    def _check(self, name: str, answers: dict[str, list[tuple[Request, Answer]]]) -> None:
        """Raise Failed where a contestant does not answer what the service answers."""
        for row in filter(lambda row: takes(name, row), answers):
            pairs = answers[row][:COMPARED]
            for (request, expected), found in zip(
                pairs, fetch(self.servers[name], self._to(name, row)[:COMPARED]), strict=True
            ):
                alike = found.status == expected.status
                if alike and expected.body:
                    theirs = [orjson.loads(expected.body), orjson.loads(found.body)]
                    alike = same(*(as_eve_has_it(*theirs) if name == "eve" else theirs))
                if not alike:
                    raise Failed(
                        f"{name} answers otherwise than the service to {request.path} ({found.status}):\n"
                        f"{found.body[:600]!r}\n{expected.body[:600]!r}"
                    )

    def _to(self, name: str, row: str) -> list[Request]:
        if name == "eve":
            return [one._replace(path=EVE_PATHS[row](**one.about)) for one in self.asked[row]]
        if name == "full fastapi" and row == UNCHANGED:
            # Its ETags are its own. If it sent none, these requests would be without one, and fail for want of a 304.
            return holding(self.servers[name], self.asked["detail"]) or self.asked["detail"]
        return self.asked[row]

    def samples(self, stores: tuple[Server, Server]) -> Iterator[tuple[Key, Sample]]:
        """Yield samples, round by round; who comes first rotates, rows and contestants alike."""
        plan = self.plan
        measured = [row for row in plan.measured if row in self.asked]
        turns = {row: [name for name in plan.contestants if takes(name, row)] for row in measured}
        files = {
            (name, row): write_requests(f"{name}-{row}", self._to(name, row)) for row in turns for name in turns[row]
        }
        for (name, row), file in files.items() if plan.warm_up else ():
            click.echo(f"warming up: {row}, {name}")
            measure(self.servers[name], stores, file, plan.connections[0], WARM_UP_SECONDS)
        total, done, started = plan.rounds * len(files) * len(plan.connections), 0, time.monotonic()
        for number in range(plan.rounds):
            for place, row in enumerate(rotated(measured, number)):
                for connections in plan.connections:
                    for name in rotated(turns[row], number + place):
                        sample = measure(self.servers[name], stores, files[name, row], connections, plan.seconds)
                        yield (row, name, connections), sample
                        done += 1
                        left = (time.monotonic() - started) / done * (total - done)
                        click.echo(
                            f"[{done}/{total}, {left / 60:.0f} min left] {row}, {connections} connections, {name}: "
                            f"{sample.per_second:.0f}/s, CPU {sample.cpu_ms:.2f} + {sample.mongod_ms:.2f} ms"
                        )


def rotated(items: Sequence[T], by: int) -> list[T]:
    """Return the items in another order of turn."""
    by %= len(items)
    return [*items[by:], *items[:by]]


def _floor_key(request: Request) -> tuple[str, str | None, str | None]:
    return request.path, request.headers.get("X-Fields"), request.headers.get("If-None-Match")
