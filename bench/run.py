"""An interleaved run: starts all contestants, checks their responses, then loads them in turns."""

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
from bench.floor import RequestKey
from bench.load import Sample, measure, raw_request
from bench.rows import EVE_PATHS, QUERIES, TEXT_QUERIES, Query, Request
from bench.servers import DATA, HOST, Failed, Server, contestant

# Rows that only some contestants support.
MASKED, UNCHANGED = "detail, masked", "detail, unchanged"
SCORE, RANKING = "score", "ranking"
WITH_MASKS = ("service", "floor", "text floor", "hello")
WITH_ETAGS = (*WITH_MASKS, "full fastapi")
# Responses of each contestant and row that are compared with those of the service.
COMPARED_RESPONSES = 10
WARM_UP_SECONDS = 1
# Relative difference of numbers that are summed in another order.
TOLERANCE = 1e-9

T = TypeVar("T")
Key = tuple[str, str, int]


class Response(NamedTuple):
    """The response to a request."""

    status: int
    etag: str | None
    body: bytes


class Exchange(NamedTuple):
    """A request, and the response of the service to it."""

    request: Request
    response: Response


class Plan(NamedTuple):
    """What to measure, and how often. The responses of all rows are checked; only the `measured` rows are measured."""

    contestants: Sequence[str]
    measured: Sequence[str]
    connections: Sequence[int]
    rounds: int
    seconds: int
    warm_up: bool


def supports(name: str, row: str) -> bool:
    """Return whether a contestant can respond to the requests of a row."""
    if name == "eve":
        return row in EVE_PATHS
    return (row not in (MASKED, SCORE, RANKING) or name in WITH_MASKS) and (row != UNCHANGED or name in WITH_ETAGS)


def fetch(server: Server, requests: Sequence[Request]) -> list[Response]:
    """Return a server's responses."""
    connection = http.client.HTTPConnection(HOST, server.port, timeout=30)
    responses = []
    with contextlib.closing(connection):
        for request in requests:
            connection.request("GET", request.path, headers=request.headers)
            response = connection.getresponse()
            responses.append(Response(response.status, response.getheader("ETag"), response.read()))
    return responses


def check_status(response: Response, expected_status: int, request: Request) -> None:
    """Raise Failed if the service responded with another status."""
    if response.status != expected_status:
        raise Failed(f"The service responds {response.status} to {request.path}: {response.body[:300]!r}")


def authorize(requests: Sequence[Request], key: str) -> list[Request]:
    """Return the requests with an API key."""
    headers = {"Authorization": f"APIKEY {key}"}
    return [request._replace(headers={**headers, **request.headers}) for request in requests]


def make_conditional(service: Server, requests: Sequence[Request]) -> list[Request] | None:
    """Return the requests with `If-None-Match`, so that the response is 304, or None if the service sends no ETag."""
    responses = fetch(service, requests)
    if any(response.etag is None for response in responses):
        return None
    return [
        request._replace(headers={**request.headers, "If-None-Match": response.etag or ""})
        for request, response in zip(requests, responses, strict=True)
    ]


def write_requests(name: str, requests: Sequence[Request]) -> Path:
    """Write a file of requests for wrk."""
    path = DATA / f"{name.replace(', ', '-')}.requests"
    path.write_text("\0".join(raw_request(request.path, request.headers) for request in requests))
    return path


def equals(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; floating-point numbers may differ by rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equals(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equals, one, other))
    if {type(one), type(other)} == {int, float} or type(one) is type(other) is float:
        return math.isclose(one, other, rel_tol=TOLERANCE)
    return bool(one == other)


def select_eve_fields(service: Any, eve: Any) -> tuple[Any, Any]:
    """Return the records of the service's page, and those of eve's response with the same fields."""
    records = service.get("drivers") or service["trips"]
    items = eve.get("_items", [eve])
    fields = records[0] if records else ()
    return records, [{name: item.get(name) for name in fields} for item in items]


class Run:
    """The contestants, which run until the stack is closed, and the requests for them."""

    def __init__(self, stack: contextlib.ExitStack, plan: Plan, key: str, shape: Shape, base: datetime.date) -> None:
        self.plan, self.notes = plan, list[str]()
        service = stack.enter_context(contestant("service"))
        self._exchanges = dict(self._fetch_rows(service, key, shape, base))
        path = DATA / "responses.pickle"
        path.write_bytes(pickle.dumps(self._floor_responses()))
        others = [name for name in plan.contestants if name != "service"]
        self.servers = {"service": service}
        self.servers |= {name: stack.enter_context(contestant(name, RESPONSES=str(path))) for name in others}
        for name in others:
            self._check(name)
            click.echo(f"{name}: its responses are correct")

    def _fetch_rows(
        self, service: Server, key: str, shape: Shape, base: datetime.date
    ) -> Iterator[tuple[str, list[Exchange]]]:
        """Yield each row with its requests and the service's responses. Raises Failed for an unexpected status."""
        for row in QUERIES:
            requests = rows.requests(row, shape, base)
            if row != "healthz":
                requests = authorize(requests, key)
            expected_status = 200
            if row == UNCHANGED:
                conditional = make_conditional(service, requests)
                if conditional is None:
                    self.notes.append(f"{row}: n/a, since the service sends no ETag")
                    continue
                expected_status, requests = 304, conditional
            responses = fetch(service, requests)
            for request, response in zip(requests, responses, strict=True):
                check_status(response, expected_status, request)
            yield row, list(map(Exchange, requests, responses))

    def _floor_responses(self) -> dict[RequestKey, tuple[Query, Query, bytes]]:
        """Return for each request the two queries of the floor, for documents and for JSON, and the response body."""
        return {
            _request_key(request): (QUERIES[row](**request.about), TEXT_QUERIES[row](**request.about), response.body)
            for row, exchanges in self._exchanges.items()
            for request, response in exchanges
        }

    def _check(self, name: str) -> None:
        """Raise Failed if the responses of a contestant differ from those of the service."""
        for row in filter(lambda row: supports(name, row), self._exchanges):
            responses = fetch(self.servers[name], self._requests(name, row)[:COMPARED_RESPONSES])
            for (request, expected), response in zip(self._exchanges[row], responses, strict=False):
                is_equal = response.status == expected.status
                if is_equal and expected.body:
                    bodies = orjson.loads(expected.body), orjson.loads(response.body)
                    is_equal = equals(*(select_eve_fields(*bodies) if name == "eve" else bodies))
                if not is_equal:
                    raise Failed(
                        f"The response of {name} to {request.path} ({response.status}) differs from the service's:\n"
                        f"{response.body[:600]!r}\n{expected.body[:600]!r}"
                    )

    def _requests(self, name: str, row: str) -> list[Request]:
        requests = [exchange.request for exchange in self._exchanges[row]]
        if name == "eve":
            return [request._replace(path=EVE_PATHS[row](**request.about)) for request in requests]
        if name == "full fastapi" and row == UNCHANGED:
            # Its ETags differ from those of the service. If it sends none, the check fails, because it expects a 304.
            details = [exchange.request for exchange in self._exchanges["detail"]]
            return make_conditional(self.servers[name], details) or details
        return requests

    def samples(self, stores: tuple[Server, Server]) -> Iterator[tuple[Key, Sample]]:
        """Yield samples, round by round. The order of rows and contestants rotates."""
        plan = self.plan
        measured = [row for row in plan.measured if row in self._exchanges]
        turns = {row: [name for name in plan.contestants if supports(name, row)] for row in measured}
        files = {
            (name, row): write_requests(f"{name}-{row}", self._requests(name, row))
            for row, names in turns.items()
            for name in names
        }
        for (name, row), file in files.items() if plan.warm_up else ():
            click.echo(f"warming up: {row}, {name}")
            measure(self.servers[name], stores, file, plan.connections[0], WARM_UP_SECONDS)
        total, done, started = plan.rounds * len(files) * len(plan.connections), 0, time.monotonic()
        for number in range(plan.rounds):
            for index, row in enumerate(rotate(measured, number)):
                for connections in plan.connections:
                    for name in rotate(turns[row], number + index):
                        sample = measure(self.servers[name], stores, files[name, row], connections, plan.seconds)
                        yield (row, name, connections), sample
                        done += 1
                        left = (time.monotonic() - started) / done * (total - done)
                        click.echo(
                            f"[{done}/{total}, {left / 60:.0f} min left] {row}, {connections} connections, {name}: "
                            f"{sample.per_second:.0f}/s, CPU {sample.cpu_ms:.2f} + {sample.mongod_ms:.2f} ms"
                        )


def rotate(items: Sequence[T], by: int) -> list[T]:
    """Return the items, starting with the item at index `by`."""
    by %= len(items)
    return [*items[by:], *items[:by]]


def _request_key(request: Request) -> RequestKey:
    return request.path, request.headers.get("X-Fields"), request.headers.get("If-None-Match")
