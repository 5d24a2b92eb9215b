"""Load: clients that repeat requests, check each response, and record the results."""

import collections
import http.client
import json
import threading
import time
from typing import NamedTuple

from tests.service_process import wait_until

API = "/api/v1"
OK = 200
# Only so that a test ends if the service hangs.
TIMEOUT_SECONDS = 120
# Responses of a load between one fault and the next.
MORE = 30


class Request(NamedTuple):
    """A request: its path under /api/v1, and its field mask."""

    path: str
    fields: str = ""

    @property
    def headers(self):
        return {"X-Fields": self.fields} if self.fields else {}


class Response(NamedTuple):
    """A response, or the name of the `error` raised instead."""

    status: int | None = None
    headers: dict[str, str] = {}
    body: bytes = b""
    error: str | None = None

    @property
    def json(self):
        return json.loads(self.body)


class Result(NamedTuple):
    """When a request was sent (time.monotonic), how long it took, and `failure`: None for 200 with an expected body."""

    started: float
    seconds: float
    failure: str | None


def failure_of(response, bodies):
    """Return what is wrong with a response, or None if it is one of the bodies."""
    if response.status is None:
        return response.error
    if response.status == OK:
        return None if response.body in bodies else "wrong response"
    try:
        kind = response.json["error"]
    except (ValueError, KeyError, TypeError):
        kind = "of another body"
    lacks = response.status == 503 and "retry-after" not in map(str.lower, response.headers)
    return f"{response.status} {kind}{' without Retry-After' if lacks else ''}"


class Client:
    """A client with one connection, which it opens when it needs one."""

    def __init__(self, address, key=None):
        self._connection = http.client.HTTPConnection(*address, timeout=TIMEOUT_SECONDS)
        self._headers = {"Authorization": f"APIKEY {key}"} if key else {}

    def get(self, path, headers=None):
        """Return the Response; nothing is retried."""
        try:
            self._connection.request("GET", API + path, headers={**self._headers, **(headers or {})})
            raw_response = self._connection.getresponse()
            return Response(raw_response.status, dict(raw_response.headers), raw_response.read())
        except (OSError, http.client.HTTPException) as error:
            self.close()
            return Response(error=type(error).__name__)

    def close(self):
        self._connection.close()


class Load:
    """Clients, each in a thread, that send the requests of `expected` in turn until the context ends.

    `expected` has the bodies of which each response must have one. The clients keep their connections by default, and
    wait `pause` seconds after each response. `results` grows meanwhile.
    """

    def __init__(self, address, key, expected, *, clients=8, keep_alive=True, pause=0.01):
        self.results = []
        self._address, self._key, self._requests = address, key, list(expected.items())
        self._keep_alive, self._pause, self._done = keep_alive, pause, threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(n,), daemon=True) for n in range(clients)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error):
        self._done.set()
        for thread in self._threads:
            thread.join()

    def more(self, count=MORE):
        """Wait for so many more responses."""
        enough = len(self.results) + count
        wait_until(lambda: len(self.results) >= enough)

    def recover(self):
        """Wait until so many requests in a row, all sent from now on, have succeeded; return how long that took."""
        since = time.monotonic()
        return wait_until(lambda: len(last := self.sent_after(since)[-MORE:]) == MORE and not failures(last))

    def sent_after(self, moment):
        """Return the results of the requests that were sent after a moment."""
        return [result for result in list(self.results) if result.started > moment]

    def _run(self, turn):
        client = Client(self._address, self._key)
        while not self._done.is_set():
            request, bodies = self._requests[turn % len(self._requests)]
            started = time.monotonic()
            response = client.get(request.path, request.headers)
            self.results.append(Result(started, time.monotonic() - started, failure_of(response, bodies)))
            if not self._keep_alive:
                client.close()
            turn += 1
            self._done.wait(self._pause)
        client.close()


def failures(results):
    """Return how many requests failed, by how."""
    return collections.Counter(result.failure for result in results if result.failure)


def summarize(results):
    """Describe how many requests there were, how many of them failed and how, and the slowest response."""
    counts = failures(results)
    kinds = ", ".join(f"{count} {how}" for how, count in counts.most_common())
    failed = f"{counts.total()} failed{f' ({kinds})' if kinds else ''}"
    return f"{len(results):,} requests, {failed}, slowest response {max(each.seconds for each in results):.1f} s"
