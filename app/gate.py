"""What stands before a part that may hang, so that not every thread comes to wait for it."""

import contextlib
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any


class Closed(Exception):
    """The part did not answer lately, and another thread is finding out whether it does again."""


class Gate:
    """Lets everyone through to a part that answers, and one thread at a time to one that did not when last asked.

    A context manager around each use. `hangs` tells whether an error means that the part does not answer; what
    `trial` returns is entered by the thread that tries. Entering raises Closed.
    """

    def __init__(
        self,
        hangs: Callable[[BaseException], bool],
        trial: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext,
    ) -> None:
        self._hangs, self._trial = hangs, trial
        self._closed, self._trying = False, 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if self._closed:
            with self._lock:
                if self._trying:
                    raise Closed("it did not answer when last asked")
                self._trying = threading.get_ident()
            self._bound = self._trial()
            self._bound.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Any other error is an answer too.
        self._closed = error is not None and self._hangs(error)
        if self._trying == threading.get_ident():
            self._bound.__exit__(kind, error, trace)
            self._trying = 0
