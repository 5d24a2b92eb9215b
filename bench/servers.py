"""The servers of a benchmark, and their processor time and memory, from /proc."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

import click
import redis
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from scripts.mongodb.embedded_mongod import REPLICA_SET_OPTIONS, get_mongod_path, make_primary

ROOT = Path(__file__).parent.parent
BENCH = ROOT / "bench"
DATA = BENCH / ".data"
PEERS, EVE = BENCH / ".venv-peers", BENCH / ".venv-eve"
HOST = "127.0.0.1"
MONGOD_PORT, REDIS_PORT, HTTP_PORT = 27200, 6420, 8200
DATABASE = "driver_analytics"
WORKERS = 2
# High enough that no request exceeds it. All requests are counted.
RATE_LIMIT = "1000000000 per minute"
START_SECONDS, STOP_SECONDS, POLL_SECONDS = 60, 30, 0.05
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
KB_A_PAGE = os.sysconf("SC_PAGE_SIZE") // 1024
PING = "/api/v1/healthz"


class Failed(Exception):
    """The benchmark cannot continue. The message is the reason."""


class Server(NamedTuple):
    """A server: its main process, and the port that it listens on."""

    name: str
    process: subprocess.Popen[bytes]
    port: int

    def cpu(self) -> dict[int, float]:
        """Return the processor time (user and system, in seconds) of each of its processes, by pid."""
        return {pid: sum(map(int, _stat(pid)[11:13])) / TICKS_A_SECOND for pid in self.pids()}

    def resident_mb(self) -> list[float]:
        """Return the resident memory of each process except the main one."""
        return [int(_stat(pid)[21]) * KB_A_PAGE / 1024 for pid in self.pids()[1:]]

    def pids(self) -> list[int]:
        """Return its processes, the main process first. Raises Failed if that has ended."""
        if self.process.poll() is not None:
            raise Failed(f"{self.name} has ended. Its log: {log_path(self.name)}")
        return list(_tree(self.process.pid))


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the third on (man 5 proc)."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()


def _tree(pid: int) -> Iterator[int]:
    # All of these servers start their processes from their main thread.
    yield pid
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        yield from _tree(int(child))


def exit_on_sigterm() -> None:
    """On SIGTERM, exit normally, so that all servers are stopped."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def log_path(name: str) -> Path:
    """Return the path of a server's output."""
    return DATA / f"{name}.log"


@contextlib.contextmanager
def running(
    name: str,
    command: Sequence[str | Path],
    port: int,
    is_ready: Callable[[], bool],
    env: Mapping[str, str] | None = None,
    folder: Path = ROOT,
) -> Iterator[Server]:
    """Run a server until the end of the block, which starts when the server `is_ready`. Raises Failed."""
    DATA.mkdir(exist_ok=True)
    if _is_in_use(port):
        raise Failed(f"{name} needs port {port}, which is in use. Is another benchmark running?")
    with log_path(name).open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **(env or {})}, stdout=log, stderr=log, start_new_session=True
        )
    server = Server(name, process, port)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not is_ready():
            server.pids()
            if time.monotonic() > deadline:
                raise Failed(f"{name} is not ready in time. Its log: {log_path(name)}")
            time.sleep(POLL_SECONDS)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            click.echo(f"{name} does not stop in time. Killing it.", err=True)
        # Its remaining processes.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _is_in_use(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def _is_primary(port: int) -> bool:
    try:
        with MongoClient[dict[str, Any]](mongodb_uri(port), timeoutMS=1000) as client:
            return make_primary(client, f"{HOST}:{port}")
    except PyMongoError:
        return False


def _is_redis_ready() -> bool:
    try:
        return bool(redis.Redis(HOST, REDIS_PORT).ping())
    except redis.ConnectionError:
        return False


def _http_check(port: int, path: str) -> Callable[[], bool]:
    def is_ready() -> bool:
        try:
            with urlopen(f"http://{HOST}:{port}{path}", timeout=1) as response:
                return bool(response.status == 200)
        except OSError:
            return False

    return is_ready


def mongodb_uri(port: int) -> str:
    """Return the URI of the `mongod` on a port."""
    return f"mongodb://{HOST}:{port}/?directConnection=true"


def environment(mongod_port: int, checkout: Path = ROOT) -> dict[str, str]:
    """Return the settings of the service and of its commands."""
    return {
        "MONGODB_URI": mongodb_uri(mongod_port),
        "MONGODB_DATABASE": DATABASE,
        "RATELIMIT_STORAGE_URI": f"redis://{HOST}:{REDIS_PORT}",
        "RATE_LIMIT": RATE_LIMIT,
        "WEB_CONCURRENCY": str(WORKERS),
        "PYTHONPATH": str(checkout),
        "DATA_DIR": str(DATA),
    }


def command(*arguments: str | Path, checkout: Path = ROOT) -> list[str | Path]:
    """Return the command line of `driver-analytics` in a checkout, with these arguments."""
    folder = Path(sys.executable).parent if checkout == ROOT else checkout / ".venv" / "bin"
    return [folder / "driver-analytics", *arguments]


@contextlib.contextmanager
def mongod(folder: Path, port: int = MONGOD_PORT, options: Sequence[str] = REPLICA_SET_OPTIONS) -> Iterator[Server]:
    """Run `mongod` with a data folder: a replica set of one member, or a standalone server with empty `options`."""
    folder.mkdir(parents=True, exist_ok=True)
    command_line = [
        get_mongod_path(),
        "--dbpath",
        str(folder),
        "--bind_ip",
        HOST,
        "--port",
        str(port),
        "--nounixsocket",
        *options,
    ]
    with running(f"mongod-{port}", command_line, port, lambda: _is_primary(port)) as server:
        yield server


@contextlib.contextmanager
def redis_server() -> Iterator[Server]:
    """Run `redis-server` without persistence."""
    command_line = ["redis-server", "--bind", HOST, "--port", str(REDIS_PORT), "--save", "", "--appendonly", "no"]
    with running("redis", command_line, REDIS_PORT, _is_redis_ready) as server:
        yield server


def _floor(query_type: str) -> list[str | Path]:
    # It runs in the root folder, where gunicorn reads the gunicorn.conf.py of the service.
    return [Path(sys.executable).with_name("gunicorn"), f"bench.floor:application('{query_type}')"]


def _gunicorn(python: Path, application: str) -> list[str | Path]:
    # The same options as those of the service.
    options = ["--workers", str(WORKERS), "--threads", "4", "--worker-class", "gthread", "--reuse-port"]
    options += ["--keep-alive", "75", "--no-control-socket"]
    return [python / "bin" / "gunicorn", *options, application]


def _uvicorn(application: str) -> list[str | Path]:
    return [PEERS / "bin" / "python", BENCH / "peers" / "serve.py", application]


# The command line of each contestant, and the path that responds when it is ready. The settings are in the environment.
COMMANDS: dict[str, tuple[list[str | Path], str]] = {
    "service": (command("serve"), PING),
    "floor": (_floor("documents"), PING),
    "text floor": (_floor("text"), PING),
    "hello": (_floor("nothing"), PING),
    "naive": (_gunicorn(PEERS, "naive:app"), PING),
    "fastapi": (_uvicorn("fast:app"), PING),
    "full fastapi": (_uvicorn("fast_full:app"), PING),
    "eve": (_gunicorn(EVE, "eve_app:app"), "/ping"),
}


def is_installed(name: str) -> bool:
    """Return whether the environment of a contestant is installed."""
    return Path(COMMANDS[name][0][0]).exists()


@contextlib.contextmanager
def contestant(name: str, **env: str) -> Iterator[Server]:
    """Run a contestant. `env` has more environment variables."""
    command_line, path = COMMANDS[name]
    port = HTTP_PORT + list(COMMANDS).index(name)
    folder = ROOT
    if EVE in Path(command_line[0]).parents or PEERS in Path(command_line[0]).parents:
        # In the root folder, gunicorn would read the settings of the service, which import the service.
        folder, env["PYTHONPATH"] = BENCH / "peers", ""
    options = ["--bind", f"{HOST}:{port}"] if Path(command_line[0]).name == "gunicorn" else []
    with workers(name, [*command_line, *options], port, path, {**environment(MONGOD_PORT), **env}, folder) as server:
        yield server


@contextlib.contextmanager
def workers(
    name: str, command_line: Sequence[str | Path], port: int, path: str, env: Mapping[str, str], folder: Path = ROOT
) -> Iterator[Server]:
    """Run an HTTP server. It is ready when it responds at the path and all of its workers have started."""
    env = {**env, "BIND": f"{HOST}:{port}"}
    with running(name, command_line, port, _http_check(port, path), env, folder) as server:
        # The first worker may respond before the second one has started.
        while len(server.pids()) <= WORKERS:
            time.sleep(POLL_SECONDS)
        yield server
