"""The embedded MongoDB: a `mongod` process on the loopback address, shared by commands that run at the same time.

It is a replica set of one member, because only a replica set has transactions.
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

# Long, because a mongod replays its journal after a crash.
START_SECONDS = 60
STOP_SECONDS = 30
POLL_SECONDS = 0.05
# The file with the pid and port of the running mongod.
PROCESS_FILE = "mongod.json"
# The file on which the mongod holds a lock until it ends. Its pid does not show that it runs: another process may have
# the pid later.
LOCK_FILE = "mongod.lock"
REPLICA_SET = "driver-analytics"
# MongoDB's error codes for a member without a configuration, and for one whose configuration has another address.
NOT_INITIATED, NOT_A_MEMBER = 94, 93
# How long the transaction of a killed command blocks other commands. A batch of an import takes about a second.
TRANSACTION_SECONDS = 20
PARAMETERS = {
    "transactionLifetimeLimitSeconds": TRANSACTION_SECONDS,
    # A server that ends before it is primary would wait 15 seconds for the clients to go to another member.
    "shutdownTimeoutMillisForSignaledShutdown": 0,
}
REPLICA_SET_OPTIONS = (
    "--replSet",
    REPLICA_SET,
    *(word for name, value in PARAMETERS.items() for word in ("--setParameter", f"{name}={value}")),
)

REMEDY = "Set MONGOD to the path of a mongod, or MONGODB_URI to the address of a MongoDB."


class NoMongod(Exception):
    """There is no usable `mongod`. The message says what was tried, and what to install or set."""


class MongodFailed(Exception):
    """A `mongod` did not start. The message says where to find the reason, or what to set."""


class _Server(NamedTuple):
    """A `mongod`, as in PROCESS_FILE."""

    pid: int
    port: int


def get_mongod_path() -> str:
    """Return the path of the first `mongod` that runs: MONGOD, then the PATH, then the installed Python package.

    Raises NoMongod.
    """
    problems = []
    for name, path in _candidates():
        try:
            subprocess.run([path, "--version"], check=True, capture_output=True, text=True, timeout=60)  # noqa: S603
        except (OSError, subprocess.SubprocessError) as error:
            lines = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
            problems.append(f"{name} does not run ({lines[-1] if lines else error})")
        else:
            return path
    reasons = "; ".join(problems) or "there is none on the PATH or in the Python environment"
    raise NoMongod(
        f"No usable mongod: {reasons}. Install MongoDB, and set MONGOD to its path if necessary. On Linux, the extra "
        "embedded has a mongod, pip install '/path/to/clone[embedded]', which needs libcurl4 and OpenSSL 3. Or set "
        "MONGODB_URI to a server."
    )


def _candidates() -> Iterator[tuple[str, str]]:
    if path := os.environ.get("MONGOD"):
        yield f"MONGOD={path}", path
        return
    if on_path := shutil.which("mongod"):
        yield on_path, on_path
    package = importlib.util.find_spec("fiftyone")
    for folder in (package.submodule_search_locations or []) if package else []:
        packaged = Path(folder, "db", "bin", "mongod")
        if packaged.exists():
            yield "the mongod of the Python package", str(packaged)


@contextlib.contextmanager
def embedded_mongod(data_dir: Path) -> Iterator[str]:
    """Start a `mongod` with the data in `data_dir`, or use the one that runs there, and yield its URI.

    The last command that uses it stops it. Raises NoMongod, MongodFailed, or OSError if the folder cannot be written.
    """
    data_dir, owner = data_dir.resolve(), os.getpid()
    (data_dir / "mongodb").mkdir(parents=True, exist_ok=True)
    # The system releases a file lock when the process ends for any reason. All users of the server share `users`.
    with (data_dir / "users.lock").open("a") as users, (data_dir / "start.lock").open("a") as start:
        fcntl.flock(users, fcntl.LOCK_SH)
        fcntl.flock(start, fcntl.LOCK_EX)
        server = _read_process_file(data_dir)
        if server is None or not _becomes_primary(server, data_dir):
            server = _start(data_dir, server)
        fcntl.flock(start, fcntl.LOCK_UN)
        try:
            yield _uri(server.port)
        finally:
            # A forked worker also runs this code when it ends, and has the same lock. Only the parent stops the server.
            if os.getpid() == owner and _try_lock(users):
                with _uninterrupted():
                    _stop(data_dir)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ignore Ctrl-C and other signals that would interrupt the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler or signal.SIG_DFL)


def _try_lock(file: TextIO) -> bool:
    """Lock a file unless another process has it locked. Returns whether it is locked now."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _uri(port: int) -> str:
    return f"mongodb://127.0.0.1:{port}/?directConnection=true"


def _is_primary(port: int) -> bool:
    """Return whether a server is primary. Configure it if it is not."""
    try:
        with MongoClient[dict[str, Any]](_uri(port), timeoutMS=1000) as client:
            return make_primary(client, f"127.0.0.1:{port}")
    except PyMongoError:
        return False


def make_primary(client: MongoClient[dict[str, Any]], address: str) -> bool:
    """Return whether a server is primary. If it is not, configure it as the only member of its replica set."""
    if client.admin.command("hello").get("isWritablePrimary"):
        return True
    try:
        client.admin.command("replSetGetStatus")
    except OperationFailure as error:
        member = {"_id": 0, "host": address}
        if error.code == NOT_INITIATED:
            client.admin.command("replSetInitiate", {"_id": REPLICA_SET, "members": [member]})
        elif error.code == NOT_A_MEMBER:
            # The server has another port than before.
            config = client.admin.command("replSetGetConfig")["config"]
            new_config = {**config, "version": config["version"] + 1, "members": [member]}
            client.admin.command("replSetReconfig", new_config, force=True)
    return False


def _read_process_file(data_dir: Path) -> _Server | None:
    try:
        return _Server(**json.loads((data_dir / PROCESS_FILE).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def _is_running(data_dir: Path) -> bool:
    """Return whether a server runs with this data. If so, it is that of PROCESS_FILE."""
    with (data_dir / LOCK_FILE).open("a") as lock:
        return not _try_lock(lock)


def _becomes_primary(server: _Server, data_dir: Path) -> bool:
    """Wait until a server is primary. Returns False if it ends, or if it takes longer than START_SECONDS."""
    deadline = time.monotonic() + START_SECONDS
    while _is_running(data_dir) and time.monotonic() < deadline:
        if _is_primary(server.port):
            return True
        time.sleep(POLL_SECONDS)
    return False


def _start(data_dir: Path, previous: _Server | None) -> _Server:
    mongod, log = get_mongod_path(), data_dir / "mongod.log"
    # If a server crashed, its users find the next one on the same port.
    port = previous.port if previous and _is_free(previous.port) else _free_port()
    command = [mongod, "--dbpath", str(data_dir / "mongodb"), "--bind_ip", "127.0.0.1", "--port", str(port)]
    command += ["--nounixsocket", "--logpath", str(log), "--logappend", *REPLICA_SET_OPTIONS]
    size = _get_size(log)
    # If this process is killed now, no other takes an earlier server for the running one.
    (data_dir / PROCESS_FILE).unlink(missing_ok=True)
    server = _Server(_spawn(command, data_dir / LOCK_FILE), port)
    try:
        (data_dir / PROCESS_FILE).write_text(json.dumps({"pid": server.pid, "port": port}))
        if not _becomes_primary(server, data_dir):
            reason = f"Its log says why: {log}" if _get_size(log) > size else f"{mongod} wrote no log. {REMEDY}"
            raise MongodFailed(f"The embedded MongoDB did not start. {reason}")
    except BaseException:
        with _uninterrupted(), contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(server.pid, signal.SIGTERM)
            os.waitpid(server.pid, 0)
        raise
    return server


def _get_size(file: Path) -> int:
    """Return the size of a file in bytes, or 0 if there is no such file."""
    return file.stat().st_size if file.exists() else 0


def _spawn(command: list[str], lock_file: Path) -> int:
    """Start a program without output, which holds the lock on a file until it ends, and return its pid.

    The workers that gunicorn forks would have a copy of a subprocess.Popen. If a signal ended a worker while it deletes
    this object, Python would print the exception.
    """
    outputs = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
    with lock_file.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The program inherits the open file, and with it the lock.
        os.set_inheritable(lock.fileno(), True)
        # With a new session, Ctrl-C on the terminal does not reach the server; the command stops it afterwards.
        return os.posix_spawnp(command[0], command, os.environ, file_actions=outputs, setsid=True)


def _stop(data_dir: Path) -> None:
    # Another command may have restarted it.
    server, deadline = _read_process_file(data_dir), time.monotonic() + STOP_SECONDS
    if server and _is_running(data_dir):
        os.kill(server.pid, signal.SIGTERM)
    while _is_running(data_dir) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    (data_dir / PROCESS_FILE).unlink(missing_ok=True)


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
