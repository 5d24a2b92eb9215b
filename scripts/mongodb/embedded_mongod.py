"""The embedded MongoDB: a `mongod` process, shared by commands that run at the same time.

It has no passwords. So it listens only on a Unix socket, in a folder that no other user can enter. It is a replica set
of one member, because only a replica set has transactions.
"""

import contextlib
import fcntl
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import quote

import click
from pymongo import MongoClient
from pymongo.errors import ConnectionFailure, OperationFailure, PyMongoError

# Long, because a mongod replays its journal after a crash.
START_SECONDS = 60
STOP_SECONDS = 30
# Between the end of its connections and that of the process.
END_SECONDS = 2
POLL_SECONDS = 0.05
# The folder in DATA_DIR with everything of the embedded MongoDB, and the socket in it.
FOLDER, SOCKET, LOG = "mongodb", "mongod.sock", "mongod.log"
# The longest path of a socket on macOS. On Linux it is 107 bytes.
MAX_SOCKET_BYTES = 103
# MongoDB takes them for parts of an address. A URI has no bytes that are not UTF-8, which Python decodes as surrogates.
NOT_IN_SOCKET = re.compile(r"[\[\],:\ud800-\udfff]")
# The file on which the mongod holds a lock until it ends. Its pid does not show that it runs: another process may have
# the pid later. The name `mongod.lock` is that of a file of mongod itself.
LOCK_FILE, PID_FILE = "running.lock", "mongod.pid"
REPLICA_SET = "driver-analytics"
# MongoDB's error codes for a member without a configuration, and for one whose configuration has another address.
NOT_INITIATED, NOT_A_MEMBER = 94, 93
# Seconds for which the transaction of a killed command blocks other commands. A batch of an import takes about one.
TRANSACTION = "transactionLifetimeLimitSeconds=20"
# A server that ends before it is primary would wait 15 seconds for the clients to go to another member.
SHUTDOWN = "shutdownTimeoutMillisForSignaledShutdown=0"
REPLICA_SET_OPTIONS = ("--replSet", REPLICA_SET, "--setParameter", TRANSACTION, "--setParameter", SHUTDOWN)
# So many bytes at the end of a log have the last error. With less space on its disk, the disk is full for MongoDB.
MAX_LOG_BYTES = MIN_FREE_BYTES = 1_000_000
# A line of the log about an error: what it says, and what the operating system said.
ERROR = re.compile(r'"s":"[EF]".*?"msg":"(.*?)"(?:.*"error_str":"(.*?)")?.*\n')
MESSAGE = re.compile(r'"msg":"(.*?)"')
REMEDY = "Set MONGOD to the path of a mongod, or MONGODB_URI to the address of a MongoDB."


class NoMongod(click.ClickException):
    """There is no usable `mongod`. The message says what was tried, and what to install or set."""


class MongodFailed(click.ClickException):
    """A `mongod` did not start, or ended. The message says where to find the reason, or what to set."""


def get_mongod_path() -> str:
    """Return the path of a `mongod`: MONGOD, or else that on the PATH, or that of the installed Python package.

    Raises NoMongod unless it runs.
    """
    package = importlib.util.find_spec("fiftyone")
    packaged = [f"{folder}/db/bin" for folder in (package and package.submodule_search_locations) or ()]
    folders = os.pathsep.join([os.environ.get("PATH", os.defpath), *packaged])
    path = os.environ.get("MONGOD") or shutil.which("mongod", path=folders) or "mongod"
    try:
        subprocess.run([path, "--version"], check=True, capture_output=True, text=True, timeout=60)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        reason = (getattr(error, "stderr", None) or str(error)).strip().rpartition("\n")[2]
        raise NoMongod(
            f"No usable mongod: {path} does not run ({reason}). Install MongoDB, and set MONGOD to its path if "
            "necessary. On Linux, the extra embedded has a mongod, pip install '/path/to/clone[embedded]', which needs "
            "libcurl4 and OpenSSL 3. Or set MONGODB_URI to a server."
        ) from None
    return path


@contextlib.contextmanager
def embedded_mongod(data_dir: Path) -> Iterator[str]:
    """Start a `mongod` with the data in `data_dir`, or use the one that runs there, and yield its URI.

    The last command that uses it stops it. Raises NoMongod, MongodFailed, also in place of an error of the block if the
    server has ended, or OSError if the folder cannot be written.
    """
    folder, owner = data_dir.resolve() / FOLDER, os.getpid()
    folder.mkdir(parents=True, exist_ok=True)
    # Whoever can open a file can also lock it.
    folder.chmod(0o700)
    # The system releases a file lock when the process ends for any reason. All users of the server share `users`.
    with (folder / "users.lock").open("a") as users, (folder / "start.lock").open("a") as start:
        fcntl.flock(users, fcntl.LOCK_SH)
        fcntl.flock(start, fcntl.LOCK_EX)
        if not _becomes_primary(folder):
            _start(folder)
        fcntl.flock(start, fcntl.LOCK_UN)
        try:
            yield _uri(folder)
        except (PyMongoError, SystemExit) as error:
            if os.getpid() == owner and _has_ended(folder, isinstance(error, ConnectionFailure)):
                raise MongodFailed(f"The embedded MongoDB ended: {_find_reason(folder / LOG)}") from None
            raise
        finally:
            # A forked worker also runs this code when it ends, and has the same lock. Only the parent stops the server.
            if os.getpid() == owner and _try_lock(users):
                with _uninterrupted():
                    _stop(folder)


def _check_socket(path: Path) -> None:
    if len(os.fsencode(path)) > MAX_SOCKET_BYTES or NOT_IN_SOCKET.search(str(path)):
        max_bytes = MAX_SOCKET_BYTES - len(f"/{FOLDER}/{SOCKET}")
        raise MongodFailed(
            f"{str(path)!r} cannot be the socket of the embedded MongoDB. Set DATA_DIR to a path of at most "
            f"{max_bytes} bytes of UTF-8, without commas, colons and square brackets."
        )


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ignore Ctrl-C and other signals that would interrupt the block."""
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


def _uri(folder: Path) -> str:
    return f"mongodb://{quote(str(folder / SOCKET), safe='')}/?directConnection=true"


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
            # The folder has another path than before.
            config = client.admin.command("replSetGetConfig")["config"]
            new_config = {**config, "version": config["version"] + 1, "members": [member]}
            client.admin.command("replSetReconfig", new_config, force=True)
    return False


def is_running(folder: Path) -> bool:
    """Return whether a server runs with this data."""
    with (folder / LOCK_FILE).open("a") as lock:
        return not _try_lock(lock)


def _has_ended(folder: Path, is_ending: bool) -> bool:
    """Return whether the server has ended. If it has closed its connections, wait for a moment until it has."""
    deadline = time.monotonic() + (END_SECONDS if is_ending else 0)
    while (runs := is_running(folder)) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return not runs


def _becomes_primary(folder: Path) -> bool:
    """Make a server primary, and wait for it. Returns False if it ends, or if it takes longer than START_SECONDS."""
    deadline = time.monotonic() + START_SECONDS
    while is_running(folder) and time.monotonic() < deadline:
        with contextlib.suppress(PyMongoError), MongoClient[dict[str, Any]](_uri(folder), timeoutMS=1000) as client:
            if make_primary(client, str(folder / SOCKET)):
                return True
        time.sleep(POLL_SECONDS)
    return False


def has_database(data_dir: Path) -> bool:
    """Return whether the folder has a database of the embedded MongoDB."""
    # mongod creates this file.
    return (data_dir / FOLDER / "WiredTiger").exists()


def _find_reason(log: Path) -> str:
    """Return why the server has ended: the last error in its log, or else what its last line says; and where it is."""
    with log.open("rb") as file:
        file.seek(max(0, _get_size(log) - MAX_LOG_BYTES))
        lines = file.read().decode(errors="replace").rpartition("SERVER RESTARTED")[2]
    errors, messages = ERROR.findall(lines), MESSAGE.findall(lines)
    # The rest of a line may have documents, and be long.
    last = f", whose last line is '{messages[-1]}'" if messages else ""
    reason = ": ".join(filter(None, errors[-1])) if errors else f"there is no error in its log{last}"
    # A log on a full disk may have no room for the error.
    if shutil.disk_usage(log.parent).free < MIN_FREE_BYTES:
        reason = "its disk is full"
    return f"{reason}. Its log: {log}"


def _start(folder: Path) -> None:
    mongod, log, pid_file = get_mongod_path(), folder / LOG, folder / PID_FILE
    _check_socket(folder / SOCKET)
    # --nounixsocket is about another socket, in /tmp.
    command = [mongod, "--bind_ip", str(folder / SOCKET), "--filePermissions", "0600", "--nounixsocket"]
    command += ["--dbpath", str(folder), "--logpath", str(log), "--logappend", "--pidfilepath", str(pid_file)]
    size = _get_size(log)
    # If this process is killed now, no other takes an earlier server for the running one.
    pid_file.unlink(missing_ok=True)
    pid = _spawn([*command, *REPLICA_SET_OPTIONS], folder / LOCK_FILE)
    try:
        if not _becomes_primary(folder):
            reason = _find_reason(log) if _get_size(log) > size else f"{mongod} wrote no log. {REMEDY}"
            raise MongodFailed(f"The embedded MongoDB did not start: {reason}")
    except BaseException:
        with _uninterrupted(), contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)
        raise


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


def _stop(folder: Path) -> None:
    deadline = time.monotonic() + STOP_SECONDS
    # Another command may have started it, or it ends by itself.
    with contextlib.suppress(ProcessLookupError):
        if is_running(folder):
            os.kill(int((folder / PID_FILE).read_text()), signal.SIGTERM)
    while is_running(folder) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
