"""A circuit breaker: it fails fast while a dependency does not respond, so that not every thread waits for it."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any


class CircuitOpen(Exception):
    """The dependency did not respond lately, and another thread probes whether it responds again."""


class CircuitBreaker:
    """The circuit to a dependency such as a database. Every use of the dependency runs within `guard()`.

    The circuit is closed at first: all uses go through. A use that ends with an error for which `is_outage` is true
    opens it. An open circuit lets one use at a time through, the probe: it is half-open until the probe ends. The probe
    runs within the context that `probe` returns, such as a shorter timeout. If it ends with an outage, the circuit
    stays open; otherwise, also with any other error, the circuit is closed.
    """

    def __init__(
        self,
        is_outage: Callable[[BaseException], bool],
        probe: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext,
    ) -> None:
        self._is_outage, self._probe = is_outage, probe
        self._is_open = False
        self._probing = threading.Lock()

    @contextlib.contextmanager
    def guard(self) -> Iterator[None]:
        """Run a use of the dependency. Raises CircuitOpen while another thread probes."""
        if not self._is_open:
            with self._watch():
                yield
            return
        if not self._probing.acquire(blocking=False):
            raise CircuitOpen("no response lately; another request is the probe")
        try:
            with self._probe(), self._watch():
                yield
        finally:
            self._probing.release()

    @contextlib.contextmanager
    def _watch(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self._is_open = self._is_outage(error)
            raise
        self._is_open = False
