"""What runs during a benchmark, and what it costs: processes, their processor time and memory, from /proc."""

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

from scripts.mongodb.embedded_mongod import REPLICA_SET_OPTIONS, find_mongod, make_primary

ROOT = Path(__file__).parent.parent
BENCH = ROOT / "bench"
DATA = BENCH / ".data"
PEERS, EVE = BENCH / ".venv-peers", BENCH / ".venv-eve"
HOST = "127.0.0.1"
MONGOD_PORT, REDIS_PORT, HTTP_PORT = 27200, 6420, 8200
DATABASE = "driver_analytics"
WORKERS = 2
# So high that it refuses nothing; every call is counted all the same.
RATE_LIMIT = "1000000000 per minute"
START_SECONDS, STOP_SECONDS, POLL_SECONDS = 60, 30, 0.05
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
KB_A_PAGE = os.sysconf("SC_PAGE_SIZE") // 1024
PING = "/api/v1/healthz"


class Failed(Exception):
    """The run cannot go on; the message says why."""


class Server(NamedTuple):
    """A server, by its first process, and the port that it listens on."""

    name: str
    process: subprocess.Popen[bytes]
    port: int

    def cpu(self) -> dict[int, float]:
        """Return the processor time (s, user and system) of each of its processes, by pid."""
        return {pid: sum(map(int, _stat(pid)[11:13])) / TICKS_A_SECOND for pid in self.pids()}

    def resident_mb(self) -> list[float]:
        """Return the resident memory of each process but the first."""
        return [int(_stat(pid)[21]) * KB_A_PAGE / 1024 for pid in self.pids()[1:]]

    def pids(self) -> list[int]:
        """Return its processes, the first one first. Raises Failed where it has died."""
        if self.process.poll() is not None:
            raise Failed(f"{self.name} has died; its log is {log_path(self.name)}")
        return list(_tree(self.process.pid))


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the third on (man 5 proc)."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()


def _tree(pid: int) -> Iterator[int]:
    # All of these servers start their processes from their first thread.
    yield pid
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        yield from _tree(int(child))


def exit_on_sigterm() -> None:
    """Stop what was started when this process is told to end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def log_path(name: str) -> Path:
    """Return where a server's output goes."""
    return DATA / f"{name}.log"


@contextlib.contextmanager
def running(
    name: str,
    command: Sequence[str | Path],
    port: int,
    answers: Callable[[], bool],
    env: Mapping[str, str] | None = None,
    checkout: Path = ROOT,
) -> Iterator[Server]:
    """Run a server until the block is left; it is ready once it `answers`. Raises Failed."""
    DATA.mkdir(exist_ok=True)
    if _is_taken(port):
        raise Failed(f"Port {port}, which {name} is to have, is taken; is another benchmark running?")
    with log_path(name).open("wb") as log:
        process = subprocess.Popen(
            command, cwd=checkout, env={**os.environ, **(env or {})}, stdout=log, stderr=log, start_new_session=True
        )
    server = Server(name, process, port)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not answers():
            server.pids()
            if time.monotonic() > deadline:
                raise Failed(f"{name} does not answer; its log is {log_path(name)}")
            time.sleep(POLL_SECONDS)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            click.echo(f"{name} does not stop, and is killed", err=True)
        # Whoever of its processes is left.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def _is_primary(port: int) -> bool:
    try:
        with MongoClient[dict[str, Any]](mongodb_uri(port), timeoutMS=1000) as client:
            return make_primary(client, f"{HOST}:{port}")
    except PyMongoError:
        return False


def _redis_answers() -> bool:
    try:
        return bool(redis.Redis(HOST, REDIS_PORT).ping())
    except redis.ConnectionError:
        return False


def _http_answers(port: int, path: str) -> Callable[[], bool]:
    def answers() -> bool:
        try:
            with urlopen(f"http://{HOST}:{port}{path}", timeout=1) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    return answers


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


def command(*words: str | Path, checkout: Path = ROOT) -> list[str | Path]:
    """Return a command of a checkout's own command line."""
    folder = Path(sys.executable).parent if checkout == ROOT else checkout / ".venv" / "bin"
    return [folder / "driver-analytics", *words]


@contextlib.contextmanager
def mongod(folder: Path, port: int = MONGOD_PORT, options: Sequence[str] = REPLICA_SET_OPTIONS) -> Iterator[Server]:
    """Run `mongod` on a data folder: a replica set of one member, or by itself if the `options` name no set."""
    folder.mkdir(parents=True, exist_ok=True)
    words = [find_mongod(), "--dbpath", str(folder), "--bind_ip", HOST, "--port", str(port), "--nounixsocket", *options]
    with running(f"mongod-{port}", words, port, lambda: _is_primary(port)) as server:
        yield server


@contextlib.contextmanager
def redis_server() -> Iterator[Server]:
    """Run `redis-server`, which keeps nothing."""
    words = ["redis-server", "--bind", HOST, "--port", str(REDIS_PORT), "--save", "", "--appendonly", "no"]
    with running("redis", words, REDIS_PORT, _redis_answers) as server:
        yield server


def _floor(what: str) -> list[str | Path]:
    # In this folder gunicorn finds the settings of the service.
    return [Path(sys.executable).with_name("gunicorn"), f"bench.floor:application('{what}')"]


def _gunicorn(python: Path, application: str) -> list[str | Path]:
    # The same as the service's.
    options = ["--workers", str(WORKERS), "--threads", "4", "--worker-class", "gthread", "--reuse-port"]
    options += ["--keep-alive", "75", "--no-control-socket"]
    return [python / "bin" / "gunicorn", *options, application]


def _uvicorn(application: str) -> list[str | Path]:
    return [PEERS / "bin" / "python", BENCH / "peers" / "serve.py", application]


# Everyone's command, and what tells that it is up; BIND and the settings come in the environment.
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
    """Return whether a contestant's environment has been made."""
    return Path(COMMANDS[name][0][0]).exists()


@contextlib.contextmanager
def contestant(name: str, **env: str) -> Iterator[Server]:
    """Run a contestant."""
    words, path = COMMANDS[name]
    port = HTTP_PORT + list(COMMANDS).index(name)
    folder = ROOT
    if EVE in Path(words[0]).parents or PEERS in Path(words[0]).parents:
        # In the root folder gunicorn would read the settings of the service, and they import the service.
        folder, env["PYTHONPATH"] = BENCH / "peers", ""
    options = ["--bind", f"{HOST}:{port}"] if Path(words[0]).name == "gunicorn" else []
    with workers(name, [*words, *options], port, path, {**environment(MONGOD_PORT), **env}, folder) as server:
        yield server


@contextlib.contextmanager
def workers(
    name: str, words: Sequence[str | Path], port: int, path: str, env: Mapping[str, str], checkout: Path = ROOT
) -> Iterator[Server]:
    """Run an HTTP server, which is up once it responds at the path and all of its workers are there."""
    env = {**env, "BIND": f"{HOST}:{port}"}
    with running(name, words, port, _http_answers(port, path), env, checkout) as server:
        # The first worker may answer before the second one is there.
        while len(server.pids()) <= WORKERS:
            time.sleep(POLL_SECONDS)
        yield server
