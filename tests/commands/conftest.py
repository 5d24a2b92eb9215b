"""The command line in this process, as the program runs it: starting a process takes a second of CPU."""

import asyncio
import contextlib
import functools
import os
import resource
import signal
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import NamedTuple

import pytest
from click.testing import Result

from scripts.cli import main
from scripts.ingest import http_client, mirror, mirrored_fleet
from tests.command_listeners import Stop, open_store_until
from tests.conftest import POLL_SECONDS
from tests.service_process import free_port

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ended(NamedTuple):
    """How a command ended, and what it printed."""

    status: int
    stdout: str
    stderr: str


@pytest.fixture
def run_main(monkeypatch, capfd) -> Callable[..., Ended]:
    """Run the command line, or another program, with changes to the environment: `run_main("openapi", BIND="...")`."""

    def run(*words: str, program: Callable[[], None] = main, **environment: str) -> Ended:
        monkeypatch.setattr("sys.argv", ["driver-analytics", *words])
        saved, handlers = dict(os.environ), [signal.getsignal(number) for number in SIGNALS]
        os.environ.update(environment)
        try:
            with pytest.raises(SystemExit) as ended:
                program()
        finally:
            os.environ.clear()
            os.environ.update(saved)
            for number, handler in zip(SIGNALS, handlers, strict=True):
                signal.signal(number, handler)
        printed, code = capfd.readouterr(), ended.value.code
        # Python prints a message, and ends with the status 1.
        return Ended(1, printed.out, f"{printed.err}{code}\n") if isinstance(code, str) else Ended(code or 0, *printed)

    return run


@pytest.fixture
def limited_files():
    """A limit on the size of files that this process writes, as of a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.fixture
def serve_error(run_main, monkeypatch, tmp_path) -> Callable[..., str]:
    """Run `serve` with settings, one of which it cannot use; return the one line with which it ends."""
    # If a setting was accepted, the service would run on in the process of the tests.
    monkeypatch.setattr("scripts.server.gunicorn_server.Server.run", lambda server: pytest.fail("it serves"))
    for name in ("MONGODB_URI", "MONGOD"):
        monkeypatch.delenv(name, raising=False)

    def run(**settings: str) -> str:
        ended = run_main(
            "serve", **{"DATA_DIR": str(tmp_path / "data"), "BIND": f"127.0.0.1:{free_port()}", **settings}
        )
        assert (ended.status, ended.stdout) == (1, "")
        (line,) = ended.stderr.splitlines()
        return line

    return run


@pytest.fixture
def kills(mongod_uri, mongod, monkeypatch) -> Callable[..., Iterator[None]]:
    """Run a command again and again, and end it as a kill does, before an operation of the store that is ever later.

    `for _ in kills(module, run, first, step, least)` goes on after each run. The last run is not killed, succeeds, and
    has done more than `least` operations. `run` returns click's Result; the command opens its store by the `open_store`
    of the module.
    """

    def kills(module: ModuleType, run: Callable[[], Result], first: int, step: int, least: int) -> Iterator[None]:
        is_killed, operations = True, first
        while is_killed:
            opened = functools.partial(open_store_until, mongod_uri, mongod.name, operations)
            with monkeypatch.context() as patch, contextlib.suppress(Stop):
                patch.setattr(module, "open_store", opened)
                assert run().exit_code == 0
                is_killed = False
            yield
            operations += step
        assert operations - step > least

    return kills


class Waits(list):
    """The seconds of each wait. Waiting takes no time: in its place, after each round one of the `rounds` is called."""

    def __init__(self):
        super().__init__()
        self.now, self.rounds, self.until = 0.0, [], lambda: True

    async def sleep(self, seconds):
        """Take the place of `asyncio.sleep`."""
        self.append(seconds)
        self.now += seconds
        while not self.until():
            await asyncio.sleep(POLL_SECONDS)

    def sleep_after_a_round(self, seconds):
        """Take the place of `time.sleep`. After the last of the rounds, a signal ends the command."""
        self.append(seconds)
        self.now += seconds
        if not self.rounds:
            raise SystemExit(0)
        self.rounds.pop(0)()


@pytest.fixture
def waits(monkeypatch):
    """Let no wait take time."""
    waits = Waits()
    monkeypatch.setattr(http_client, "sleep", waits.sleep)
    monkeypatch.setattr(mirror, "sleep", waits.sleep_after_a_round)
    for module in (mirror, mirrored_fleet, http_client):
        monkeypatch.setattr(module, "monotonic", lambda: waits.now)
    monkeypatch.setattr(mirror, "end_on_signals", lambda: None)
    return waits
