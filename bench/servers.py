"""The servers of a benchmark, their processor time, and the commands of a checkout of this repository."""

import contextlib
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

import click
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from bench import fleet
from scripts.mongodb.embedded_mongod import REPLICA_SET_OPTIONS, NoMongod, get_mongod_path, make_primary

ROOT = Path(__file__).parent.parent
# Logs, and the data of the current run.
DATA = ROOT / "bench" / ".data"
HOST = "127.0.0.1"
# Each server takes the next port.
PORTS = itertools.count(8200)
DATABASE = "driver_analytics"
API = "/api/v1"
WORKERS = 2
# High enough that no request exceeds it. All requests are counted.
RATE_LIMIT = "1000000000 per minute"
START_SECONDS, STOP_SECONDS, POLL_SECONDS = 60, 30, 0.05
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


class Failed(click.ClickException):
    """The benchmark cannot continue. The message is the reason."""


class Server(NamedTuple):
    """A server: its main process, and the port that it listens on."""

    name: str
    process: subprocess.Popen[bytes]
    port: int

    def cpu_seconds(self) -> float:
        """Return the processor time, user and system, of its processes."""
        # The fields utime and stime of /proc/PID/stat (man 5 proc), counted from the third field on.
        stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split() for pid in self.pids()]
        return sum(int(stat[11]) + int(stat[12]) for stat in stats) / TICKS_A_SECOND

    def pids(self) -> list[int]:
        """Return its processes. Raises Failed if the main process has ended."""
        if self.process.poll() is not None:
            raise Failed(f"{self.name} has ended. Its log: {DATA / self.name}.log")
        return list(_tree(self.process.pid))

    @property
    def mongodb_uri(self) -> str:
        """Return the URI of a `mongod`."""
        return f"mongodb://{HOST}:{self.port}/?directConnection=true"


def _tree(pid: int) -> Iterator[int]:
    # All of these servers start their processes from their main thread.
    yield pid
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        yield from _tree(int(child))


@contextlib.contextmanager
def running(
    name: str,
    command: Sequence[str | Path],
    port: int,
    is_ready: Callable[[Server], bool],
    env: Mapping[str, str] | None = None,
    folder: Path = ROOT,
) -> Iterator[Server]:
    """Run a server until the end of the block, which starts when the server `is_ready`. Raises Failed."""
    if _is_listening(port):
        raise Failed(f"{name} needs port {port}, which is in use. Is another benchmark running?")
    DATA.mkdir(exist_ok=True)
    with (DATA / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **(env or {})}, stdout=log, stderr=log, start_new_session=True
        )
    server = Server(name, process, port)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not is_ready(server):
            server.pids()
            if time.monotonic() > deadline:
                raise Failed(f"{name} is not ready in time. Its log: {DATA / name}.log")
            time.sleep(POLL_SECONDS)
        yield server
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
        # The processes that are left.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


@contextlib.contextmanager
def redis_server() -> Iterator[Server]:
    """Run `redis-server` without persistence. On SIGTERM, exit normally, so that all servers are stopped."""
    if not (shutil.which("wrk") and shutil.which("redis-server")):
        raise Failed("The benchmark needs wrk and redis-server: apt-get install wrk redis-server")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    port = next(PORTS)
    command = ["redis-server", "--bind", HOST, "--port", str(port), "--save", "", "--appendonly", "no"]
    with running("redis", command, port, lambda server: _is_listening(server.port)) as server:
        yield server


@contextlib.contextmanager
def mongod(name: str = "mongod") -> Iterator[Server]:
    """Run `mongod` as a replica set of one member. Its data are deleted at the end."""
    try:
        path = get_mongod_path()
    except NoMongod as error:
        raise Failed(str(error)) from None
    port = next(PORTS)
    with tempfile.TemporaryDirectory(dir=DATA, prefix=f"{name}-") as folder:
        command = [path, "--dbpath", folder, "--bind_ip", HOST, "--port", str(port), "--nounixsocket"]
        with running(name, [*command, *REPLICA_SET_OPTIONS], port, _is_primary) as server:
            yield server


def _is_primary(server: Server) -> bool:
    try:
        with MongoClient[dict[str, Any]](server.mongodb_uri, timeoutMS=1000) as client:
            return make_primary(client, f"{HOST}:{server.port}")
    except PyMongoError:
        return False


@contextlib.contextmanager
def http_server(
    name: str, command: Sequence[str | Path], env: Mapping[str, str], folder: Path = ROOT
) -> Iterator[Server]:
    """Run an HTTP server of two workers. It gets its address in BIND."""
    port = next(PORTS)
    address = {"BIND": f"{HOST}:{port}", "WEB_CONCURRENCY": str(WORKERS)}
    with running(name, command, port, _is_serving, {**env, **address}, folder) as server:
        yield server


def _is_serving(server: Server) -> bool:
    try:
        with urlopen(f"http://{HOST}:{server.port}{API}/healthz", timeout=1):
            # The first worker may respond before the second one has started.
            return len(server.pids()) > WORKERS
    except OSError:
        return False


class Sample(NamedTuple):
    """What was measured: requests or imported lines a second, and the processor times in ms of each."""

    per_second: float
    cpu_ms: float
    mongod_ms: float
    redis_ms: float = 0.0


class Checkout(NamedTuple):
    """A checkout of this repository with its own `.venv`, and the stores that its commands use."""

    folder: Path
    mongod: Server
    redis: Server

    @property
    def env(self) -> dict[str, str]:
        """Return the settings of its commands."""
        return {
            "MONGODB_URI": self.mongod.mongodb_uri,
            "MONGODB_DATABASE": DATABASE,
            "RATELIMIT_STORAGE_URI": f"redis://{HOST}:{self.redis.port}",
            "RATE_LIMIT": RATE_LIMIT,
            "DATA_DIR": str(DATA),
        }

    @property
    def command(self) -> Path:
        """Return the path of its `driver-analytics`."""
        return self.folder / ".venv" / "bin" / "driver-analytics"

    def call(self, *arguments: str | Path) -> str:
        """Return what a command prints. Raises Failed."""
        if not self.command.exists():
            raise Failed(f"{self.folder} has no .venv. Run 'make setup' there.")
        done = subprocess.run(
            [self.command, *arguments], cwd=self.folder, env={**os.environ, **self.env}, capture_output=True, text=True
        )
        if done.returncode:
            raise Failed(f"driver-analytics {arguments[0]} failed in {self.folder}: {done.stderr[-1000:]}")
        return done.stdout.strip()

    def load(self, new: fleet.Fleet) -> tuple[str, dict[str, Sample]]:
        """Generate a fleet and import it. Returns an API key, and the sample of each import of trips by its content."""
        click.echo(f"Loading {new.name} with {self.command} ...")
        samples = {content: self._import(new.name, file) for content, file in fleet.write(new, DATA)}
        del samples["drivers"]
        return self.call("keys", "issue", "--fleet", new.name), samples

    def _import(self, fleet_name: str, file: Path) -> Sample:
        # Among others, os.times has the processor time, user and system, of the commands that have ended.
        before = time.monotonic(), sum(os.times()[2:4]), self.mongod.cpu_seconds()
        self.call("import", "--fleet", fleet_name, f"--{file.stem}", file)
        after = time.monotonic(), sum(os.times()[2:4]), self.mongod.cpu_seconds()
        with file.open("rb") as lines:
            count = sum(1 for _ in lines)
        file.unlink()
        seconds, cpu, mongod_cpu = (end - start for start, end in zip(before, after, strict=True))
        return Sample(count / seconds, cpu * 1000 / count, mongod_cpu * 1000 / count)

    def serve(self, name: str = "service") -> AbstractContextManager[Server]:
        """Run its service."""
        return http_server(name, [self.command, "serve"], self.env, self.folder)
