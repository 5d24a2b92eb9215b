"""Real parts as child processes: mongod, alone or as a replica set, redis-server, the service, and whatever else."""

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
import redis
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from scripts.mongodb.embedded_mongod import REPLICA_SET_OPTIONS, get_mongod_path, make_primary
from tests.resilience.load import Client
from tests.service_process import COMMAND, wait_until

ROOT = Path(__file__).parent.parent.parent
HOST = "127.0.0.1"
# Below those that Linux gives to outgoing connections, which could take the port of a server that is down for a while.
# Each process of pytest-xdist has its own, so that none takes the port of another one's server.
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
PORTS = range(21_000 + 1_000 * WORKER, 22_000 + 1_000 * WORKER)
# Only so that a test ends if a process does not.
STOP_SECONDS = 120
DATABASE = "driver_analytics"
# A replica set elects within a second or two, so that tests need not wait for the usual ten.
ELECTION_TIMEOUT_MS = 2000


def free_port():
    """Return a free port of the loopback address."""
    while True:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, port := random.choice(PORTS)))
            return port


def accepts(address):
    """Return whether a server accepts connections."""
    try:
        with socket.create_connection(address):
            return True
    except OSError:
        return False


def program(name):
    """Return the path of a program that a Debian package of the same name has; the test fails where it is missing."""
    # Debian keeps haproxy and nginx where users do not look.
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") or pytest.fail(
        f"there is no {name}: apt-get install {name}"
    )


class Process:
    """A child process in a group of its own, whose output is appended to the file `log`.

    `start` waits until `responds()`. Leaving it as a context stops it, whatever state it is in.
    """

    def __init__(self, folder, name, words, responds, env=None):
        folder.mkdir(parents=True, exist_ok=True)
        self.log, self.words, self.responds, self.env = folder / f"{name}.log", words, responds, env or {}
        self.process = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *error):
        self.kill() if error[0] else self.stop()

    @property
    def runs(self):
        return self.process is not None and self.process.poll() is None

    def start(self):
        """Start it, and wait until it responds."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                list(map(str, self.words)),
                env={**os.environ, **self.env},
                cwd=self.log.parent,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_until(self._is_up)
        return self

    def _is_up(self):
        assert self.runs, self.log_text()
        return self.responds()

    def signal(self, number):
        """Send a signal to its first process."""
        self.process.send_signal(number)

    def stop(self):
        """End it with SIGTERM; return the seconds that it took."""
        started = time.monotonic()
        if self.runs:
            self.resume()
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
        return time.monotonic() - started

    def kill(self):
        """End all of its processes with SIGKILL."""
        self._signal_all(signal.SIGKILL)
        if self.process:
            self.process.wait(STOP_SECONDS)

    def pause(self):
        """Stop all of its processes with SIGSTOP: connections stay open, and get no response."""
        self._signal_all(signal.SIGSTOP)
        # The signal takes effect a moment later, and until then it may respond.
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)

    def resume(self):
        """Let all of its processes go on, with SIGCONT."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number):
        if self.process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def children(self):
        """Return the pids of the processes that its first one started, such as workers."""
        pid = self.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def log_text(self):
        """Return what it has printed and logged since it was first started."""
        return self.log.read_text(errors="replace")


class Mongod(Process):
    """A mongod on data of its own, which it keeps when it is restarted; options such as --auth come last."""

    def __init__(self, folder, *options):
        self.port = free_port()
        (folder / "data").mkdir(parents=True)
        words = [get_mongod_path(), "--dbpath", folder / "data", "--bind_ip", HOST, "--port", self.port]
        words += ["--nounixsocket"]
        super().__init__(folder, "mongod", [*words, "--wiredTigerCacheSizeGB", "0.25", *options], self.hello)

    @property
    def address(self):
        return f"{HOST}:{self.port}"

    @property
    def uri(self):
        return f"mongodb://{self.address}/?directConnection=true"

    def hello(self):
        """Return its `hello`, which needs no privileges, or {} if it does not respond."""
        try:
            with MongoClient(self.uri, timeoutMS=2000) as client:
                return client.admin.command("hello")
        except PyMongoError:
            return {}

    @property
    def is_primary(self):
        return bool(self.hello().get("isWritablePrimary"))

    @property
    def is_secondary(self):
        return bool(self.hello().get("secondary"))


class Primary(Mongod):
    """A mongod that is the only member of a replica set, and so has transactions."""

    def __init__(self, folder, *options):
        super().__init__(folder, *REPLICA_SET_OPTIONS, *options)
        self.responds = self._is_made_primary

    def _is_made_primary(self):
        try:
            with MongoClient(self.uri, timeoutMS=2000) as client:
                return make_primary(client, self.address)
        except PyMongoError:
            return False


class ReplicaSet:
    """Three mongods that are one replica set; leaving it as a context kills them."""

    def __init__(self, folder, *options):
        self.members = [Mongod(folder / f"member-{n}", "--replSet", "rs0", *options) for n in range(3)]
        # A name, so that it may mean another address to one of those that connect.
        self.hosts = [f"localhost:{member.port}" for member in self.members]
        self.uri = f"mongodb://{','.join(self.hosts)}/?replicaSet=rs0"

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            for member in self.members:
                # Told to stop, a primary waits for others to take over.
                stack.callback(member.kill)
                member.start()
            settings = {"electionTimeoutMillis": ELECTION_TIMEOUT_MS, "heartbeatIntervalMillis": 500}
            members = [{"_id": n, "host": host} for n, host in enumerate(self.hosts)]
            with MongoClient(self.members[0].uri) as client:
                client.admin.command("replSetInitiate", {"_id": "rs0", "members": members, "settings": settings})
            wait_until(self.is_whole)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        self._stack.close()

    def primary(self):
        """Wait until there is a primary, and return that member."""
        result = []
        wait_until(lambda: result.extend(member for member in self.members if member.is_primary) or result)
        return result[0]

    def is_whole(self):
        """Return whether one is primary, and the others secondaries."""
        states = [(member.is_primary, member.is_secondary) for member in self.members]
        return sorted(states) == [(False, True), (False, True), (True, False)]


class Redis(Process):
    """A Redis server without persistence; restarted, it uses the same port."""

    def __init__(self, folder):
        self.port = free_port()
        words = [program("redis-server"), "--bind", HOST, "--port", self.port, "--save", "", "--appendonly", "no"]
        super().__init__(folder, "redis", words, self.pongs)

    @property
    def uri(self):
        return f"redis://{HOST}:{self.port}"

    def pongs(self):
        try:
            with redis.Redis(port=self.port, socket_timeout=2) as client:
                return client.ping()
        except redis.RedisError:
            return False


class WebServer(Process):
    """A process that serves HTTP on `port`."""

    port: int

    @property
    def address(self):
        return HOST, self.port

    def get(self, path, key=None, **headers):
        """Return the Response to one request on a connection of its own."""
        with contextlib.closing(Client(self.address, key)) as client:
            return client.get(path, headers)


class Service(WebServer):
    """`driver-analytics serve` as the README has it: settings from the environment, its log in a file."""

    def __init__(self, folder, name="service", **settings):
        self.port = free_port()
        defaults = {"WEB_CONCURRENCY": "2", "RATE_LIMIT": "1000000000 per minute", "SECRET_KEY": "resilience"}
        env = {"BIND": f"{HOST}:{self.port}", "DATA_DIR": str(folder), **defaults, **settings}
        super().__init__(folder, name, [COMMAND, "serve"], self._greets, {"PYTHONPATH": str(ROOT), **env})

    def _greets(self):
        # Any status: the store may be down.
        return self.get("/healthz").status


class Agents(WebServer):
    """`driver-analytics mcp --http`; before it is started, `ask` says where the service is."""

    def __init__(self, folder, name):
        self.port = free_port()
        super().__init__(folder, name, [COMMAND, "mcp", "--http", f"{HOST}:{self.port}"], lambda: accepts(self.address))

    def ask(self, url, **environment):
        """Let it send requests to the service, or the proxy, at a URL; return it."""
        self.env = {"PYTHONPATH": str(ROOT), "DRIVER_ANALYTICS_URL": url, **environment}
        return self


def run_command(*words, uri, database=DATABASE, **env):
    """Run one of the commands on a store, to a good end, and return what it printed."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "MONGODB_URI": uri, "MONGODB_DATABASE": database, **env}
    completed = subprocess.run([COMMAND, *map(str, words)], env=env, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    return completed.stdout
