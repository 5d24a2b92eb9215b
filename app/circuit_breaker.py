"""A circuit breaker: requests fail at once while a dependency does not respond, instead of all waiting for it."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any


class CircuitOpen(Exception):
    """The dependency did not respond recently, and another thread is already probing it."""


class CircuitBreaker:
    """The circuit breaker of a dependency such as a database. Every call to the dependency runs within `guard()`.

    The circuit starts closed: all calls run. A call that raises an error for which `is_outage` returns true opens the
    circuit. While it is open, one call at a time runs, the probe; the circuit is then half-open, and all other calls
    raise CircuitOpen. The probe runs within the context manager that `probe` returns, such as a shorter timeout. If the
    probe raises an outage, the circuit stays open. Otherwise it closes, even if the probe raises another error.
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
        """Run a call to the dependency. Raises CircuitOpen while another thread probes."""
        with contextlib.ExitStack() as stack:
            if self._is_open:
                if not self._probing.acquire(blocking=False):
                    raise CircuitOpen("no response recently; another request is the probe")
                stack.callback(self._probing.release)
                stack.enter_context(self._probe())
            try:
                yield
            except BaseException as error:
                self._is_open = self._is_outage(error)
                raise
            self._is_open = False
