"""gunicorn's processes, as they come and go without losing a request, and without one client holding up another."""

import contextlib
import functools
import math
import os
import queue
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from gunicorn import util
from gunicorn.arbiter import Arbiter
from gunicorn.glogging import Logger
from gunicorn.http import wsgi
from gunicorn.sock import create_sockets
from gunicorn.workers.gthread import ThreadWorker

# A thread waits so long for the next piece of a request, or for a client to take the next piece of its answer.
RECEIVE_SECONDS = 10
SEND_SECONDS = 30
# A worker that has not been replaced asks again.
REQUESTS_BETWEEN_ASKING = 1_000
# The arbiter waits for ten times as long.
SECONDS_BETWEEN_SIGNS = 1


class SteadyArbiter(Arbiter):  # type: ignore[misc]
    """The parent of the workers: it starts a successor before it ends a worker, at the same socket."""

    def handle_ttin(self) -> None:
        """Replace the oldest worker; one that has answered its share of requests asks for it."""
        self.spawn_worker()
        self.manage_workers()

    def handle_ttou(self) -> None:
        """Do nothing: with a worker less nobody would answer at its socket."""


class Done(NamedTuple):
    """How a connection stands after a request, as gunicorn asks a future for it."""

    stands: Any

    def cancelled(self) -> bool:
        """Return that it was not."""
        return False

    def result(self) -> Any:
        """Return whether the connection stays open, or gunicorn's word for one that waits for its first request."""
        return self.stands


class Threads:
    """Threads that do one task after the other. A pool of the standard library makes a future with locks for each."""

    def __init__(self, count: int) -> None:
        self._count, self._tasks = count, queue.SimpleQueue[Callable[[], None] | None]()
        for _ in range(count):
            threading.Thread(target=self._run, daemon=True).start()

    def submit(self, task: Callable[[], None]) -> None:
        """Have a thread do it, once all that came before are begun."""
        self._tasks.put(task)

    def shutdown(self, wait: bool = False) -> None:
        """Let each thread end after what it is at."""
        for _ in range(self._count):
            self._tasks.put(None)

    def _run(self) -> None:
        while task := self._tasks.get():
            task()


class SteadyWorker(ThreadWorker):  # type: ignore[misc]
    """gunicorn's threaded worker, but for how it ends itself and its connections."""

    max_requests: int

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        # gunicorn itself would stop listening here, and start a successor only once the last client has gone.
        self.replaced_from, self.max_requests = self.max_requests, sys.maxsize
        self._told_at = -math.inf

    def get_thread_pool(self) -> Threads:
        """Return what requests are handled by."""
        return Threads(self.cfg.threads)

    def enqueue_req(self, conn: Any) -> None:
        """Have a request handled, then told of to the loop."""
        self.tpool.submit(functools.partial(self._answer, conn))

    def _answer(self, conn: Any) -> None:
        stands = False
        try:
            stands = self.handle(conn)
        except Exception:
            self.log.exception("A connection broke off")
        finally:
            self.method_queue.defer(self.finish_request, conn, Done(stands))

    def notify(self) -> None:
        """Tell the arbiter, once a second, that this worker goes on; gunicorn itself does at every event."""
        if (now := time.monotonic()) >= self._told_at + SECONDS_BETWEEN_SIGNS:
            self._told_at = now
            super().notify()

    def handle(self, conn: Any) -> Any:
        """Answer a request; return whether the connection stays open."""
        kept = super().handle(conn)
        if self.nr >= self.replaced_from:
            self.replaced_from = self.nr + REQUESTS_BETWEEN_ASKING
            os.kill(self.ppid, signal.SIGTTIN)
        if kept is False:
            # Or else the one loop of this process waits two seconds for a client that does not close its end.
            with contextlib.suppress(OSError):
                conn.sock.shutdown(socket.SHUT_RD)
        return kept

    def _keepalive_after(self, conn: Any, keepalive: bool) -> bool:
        # For what is left of a body gunicorn sets timeouts at every request; most have none.
        if keepalive and getattr(conn.parser.mesg.body.reader, "length", None) == 0:
            return True
        return bool(super()._keepalive_after(conn, keepalive))

    def set_accept_enabled(self, enabled: bool) -> None:
        """Listen, or not; in the end take in who waits, and let go of the socket, so that nobody else comes to wait."""
        super().set_accept_enabled(enabled)
        if not self.alive:
            for listener in self.sockets:
                while self.nr_conns < self.worker_connections and select.select([listener], [], [], 0)[0]:
                    self.accept(listener)
                listener.close()


class WholeResponse(wsgi.Response):  # type: ignore[misc]
    """gunicorn's answer, its head in one piece with its body: a proxy can ask elsewhere until the head has come."""

    headers_sent: bool
    response_length: int | None
    _head = b""

    def process_headers(self, headers: list[tuple[str, str]]) -> None:
        """Take the headers of an answer; gunicorn itself looks at each by five rules, which costs as much as a route.

        The application names them as HTTP does, and none that are for one connection.
        """
        if not wsgi.HEADER_VALUE_RE.fullmatch("".join([value for _, value in headers])):
            super().process_headers(headers)
        self.headers = headers
        length = dict(headers).get("Content-Length")
        self.response_length = None if length is None else int(length)

    def send_headers(self) -> None:
        """Keep the head for what is sent next."""
        if not self.headers_sent:
            lines = [*self.default_headers(), *(f"{name}: {value}\r\n" for name, value in self.headers), "\r\n"]
            self._head = "".join(lines).encode("latin-1")
            self.headers_sent = True

    def _emit_body(self, data: bytes) -> None:
        if self.chunked:
            self._send_head()
            super()._emit_body(data)
        else:
            self._send_head(data)

    def close(self) -> None:
        """Send what has not been sent."""
        self.send_headers()
        self._send_head()
        super().close()

    def _send_head(self, data: bytes = b"") -> None:
        if data := self._head + data:
            self._head = b""
            self.sock.sendall(data)


# gunicorn has no setting for these.
wsgi.Response = WholeResponse
# It would spell out the date at every answer.
_date_at = functools.lru_cache(maxsize=1)(util.http_date)
util.http_date = lambda: _date_at(int(time.time()))


class QuietLogger(Logger):  # type: ignore[misc]
    """gunicorn's log without a line a request, which the application writes, and without slow clients."""

    # With a logging configuration gunicorn makes up one each time.
    access_log_enabled = False

    def exception(self, msg: str, *args: Any, **kwargs: Any) -> None:
        """Log what went wrong, unless it is that a client was too slow."""
        if not isinstance(sys.exc_info()[1], BlockingIOError):
            super().exception(msg, *args, **kwargs)


def open_sockets(arbiter: Any) -> list[Any]:
    """Return as many sockets as there are workers, all at one address, on Linux.

    Of one socket one worker often takes nearly every connection; of several on a port, each gets its share from Linux.
    They are the arbiter's: with reuse_port gunicorn has each worker make its own, and what waits there is lost when
    that worker ends.
    """
    # The first alone on its port, or else two services that are started at once would share it.
    (first,) = create_sockets(arbiter.cfg, arbiter.log)
    first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    arbiter.cfg.set("reuse_port", True)
    others = [found for _ in range(arbiter.cfg.workers - 1) for found in create_sockets(arbiter.cfg, arbiter.log)]
    arbiter.cfg.set("reuse_port", False)
    for listener in (first, *others):
        # What is accepted inherits these.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", RECEIVE_SECONDS, 0))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_SECONDS, 0))
    return [first, *others]


def give_socket(arbiter: Any, worker: Any) -> None:
    """Give a worker the one socket that has no worker, or else the one whose newest worker is the oldest."""
    newest = dict.fromkeys(arbiter.LISTENERS, 0)
    for other in arbiter.WORKERS.values():
        (listener,) = other.sockets
        newest[listener] = max(newest[listener], other.age)
    worker.sockets = [min(newest, key=newest.__getitem__)]


def leave_sockets(arbiter: Any, worker: Any) -> None:
    """Close, in a worker, the sockets of the others, which are open until the last process closes them."""
    for listener in arbiter.LISTENERS:
        if listener not in worker.sockets:
            listener.close()
