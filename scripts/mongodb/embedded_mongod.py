"""The embedded MongoDB: a real `mongod` on loopback, shared by the commands that run at the same time.

It is a replica set of one member, since only a replica set has transactions.
"""

import contextlib
import fcntl
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError

# A mongod that recovers from a crash replays its journal first.
START_SECONDS = 60
STOP_SECONDS = 30
POLL_SECONDS = 0.05
RECORD = "mongod.json"
REPLICA_SET = "driver-analytics"
# MongoDB's codes for a member without a configuration, and for one whose configuration names another address.
NOT_INITIATED, NOT_A_MEMBER = 94, 93
# The transaction of a killed command stays open for so long, and others wait for it. A batch takes a second or so.
TRANSACTION_SECONDS = 20
REPLICA_SET_OPTIONS = (
    "--replSet", REPLICA_SET, "--setParameter", f"transactionLifetimeLimitSeconds={TRANSACTION_SECONDS}"
)  # fmt: skip


class NoMongod(Exception):
    """There is no `mongod` to be had; the message says what was tried and what to install or set."""


class MongodFailed(Exception):
    """A `mongod` did not start; the message says where its log is."""


class _Server(NamedTuple):
    """A `mongod` as its record beside the data has it, and the process where it is a child of this one."""

    pid: int
    port: int
    process: subprocess.Popen[bytes] | None = None

    def lives(self, data_dir: Path) -> bool:
        """Return whether it runs, on these data: a pid may have gone to another process by now."""
        if self.process:
            return self.process.poll() is None
        try:
            command = Path(f"/proc/{self.pid}/cmdline").read_bytes()
        except OSError:
            return False
        return str(data_dir / "mongodb").encode() in command.split(b"\0")


def find_mongod() -> str:
    """Return the path of a `mongod` that runs: MONGOD, or else one on the PATH, or else the one of the package index.

    Raises NoMongod.
    """
    problems = []
    for name, path in _candidates():
        try:
            subprocess.run([path, "--version"], check=True, capture_output=True, text=True, timeout=60)  # noqa: S603
        except (OSError, subprocess.SubprocessError) as error:
            said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
            problems.append(f"{name} does not run ({said[-1] if said else error})")
        else:
            return path
    tried = "; ".join(problems) or "none is on the PATH or in the Python environment"
    raise NoMongod(
        f"No usable mongod: {tried}. Install MongoDB (the packaged one needs libcurl4 and OpenSSL 3), or set MONGOD to "
        "its path, or MONGODB_URI to a server."
    )


def _candidates() -> Iterator[tuple[str, str]]:
    if path := os.environ.get("MONGOD"):
        yield f"MONGOD={path}", path
        return
    if found := shutil.which("mongod"):
        yield found, found
    package = importlib.util.find_spec("fiftyone")
    for folder in (package.submodule_search_locations or []) if package else []:
        packaged = Path(folder, "db", "bin", "mongod")
        if packaged.exists():
            yield "the packaged mongod", str(packaged)


@contextlib.contextmanager
def embedded_mongod(data_dir: Path) -> Iterator[str]:
    """Run a `mongod` on the data under `data_dir`, or join the one that runs there, and give its URI.

    The last command to leave stops it. Raises NoMongod, MongodFailed, or OSError for a folder that cannot be written.
    """
    data_dir, owner = data_dir.resolve(), os.getpid()
    (data_dir / "mongodb").mkdir(parents=True, exist_ok=True)
    # A lock is let go when its holder dies, however it dies. Who uses the server shares `users`.
    with (data_dir / "users.lock").open("a") as users, (data_dir / "start.lock").open("a") as start:
        fcntl.flock(users, fcntl.LOCK_SH)
        fcntl.flock(start, fcntl.LOCK_EX)
        server = _recorded(data_dir)
        if server is None or not _answers_in_time(server, data_dir):
            server = _start(data_dir, server)
        fcntl.flock(start, fcntl.LOCK_UN)
        try:
            yield _uri(server.port)
        finally:
            # A forked worker comes by here too when it ends, with the same lock in hand.
            if os.getpid() == owner and _is_last(users):
                with _uninterrupted():
                    _stop(data_dir, server)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Finish what is begun, however often Ctrl-C is pressed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    earlier = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler or signal.SIG_DFL)


def _is_last(users: TextIO) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _uri(port: int) -> str:
    return f"mongodb://127.0.0.1:{port}/?directConnection=true"


def _answers(port: int) -> bool:
    """Return whether a server answers as a primary; makes it one if it has no configuration, or an outdated one."""
    try:
        with MongoClient[dict[str, Any]](_uri(port), timeoutMS=1000) as client:
            return make_primary(client, f"127.0.0.1:{port}")
    except PyMongoError:
        return False


def make_primary(client: MongoClient[dict[str, Any]], address: str) -> bool:
    """Return whether a server is primary. Configure it as the only member of its replica set if it is not one yet."""
    if client.admin.command("hello").get("isWritablePrimary"):
        return True
    try:
        client.admin.command("replSetGetStatus")
    except OperationFailure as error:
        member = {"_id": 0, "host": address}
        if error.code == NOT_INITIATED:
            client.admin.command("replSetInitiate", {"_id": REPLICA_SET, "members": [member]})
        elif error.code == NOT_A_MEMBER:
            # It was started on another port.
            config = client.admin.command("replSetGetConfig")["config"]
            changed = {**config, "version": config["version"] + 1, "members": [member]}
            client.admin.command("replSetReconfig", changed, force=True)
    return False


def _recorded(data_dir: Path) -> _Server | None:
    try:
        return _Server(**json.loads((data_dir / RECORD).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def _answers_in_time(server: _Server, data_dir: Path) -> bool:
    """Return whether a server answers as long as it lives: one that recovers from a crash takes a while."""
    deadline = time.monotonic() + START_SECONDS
    while server.lives(data_dir) and time.monotonic() < deadline:
        if _answers(server.port):
            return True
        time.sleep(POLL_SECONDS)
    return False


def _start(data_dir: Path, earlier: _Server | None) -> _Server:
    mongod, log = find_mongod(), data_dir / "mongod.log"
    # Where a server went down under those who use it, they find the next one on the same port.
    port = earlier.port if earlier and _is_free(earlier.port) else _free_port()
    command = [mongod, "--dbpath", str(data_dir / "mongodb"), "--bind_ip", "127.0.0.1", "--port", str(port)]
    command += ["--nounixsocket", "--logpath", str(log), "--logappend", *REPLICA_SET_OPTIONS]
    # In a session of its own: a Ctrl-C at the terminal is for the command, which stops the server afterwards.
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    server = _Server(process.pid, port, process)
    try:
        (data_dir / RECORD).write_text(json.dumps({"pid": process.pid, "port": port}))
        if not _answers_in_time(server, data_dir):
            raise MongodFailed(f"The embedded MongoDB did not start; its log, {log}, says why.")
    except BaseException:
        with _uninterrupted():
            process.terminate()
            process.wait()
        raise
    return server


def _stop(data_dir: Path, server: _Server) -> None:
    # Another command may have started it anew.
    recorded = _recorded(data_dir)
    if recorded and recorded.pid != server.pid:
        server = recorded
    deadline = time.monotonic() + STOP_SECONDS
    if server.lives(data_dir):
        os.kill(server.pid, signal.SIGTERM)
    while server.lives(data_dir) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    (data_dir / RECORD).unlink(missing_ok=True)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
