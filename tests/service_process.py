"""The service as a process of its own."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from pymongo import MongoClient

from app.store import Store
from scripts.mongodb.collections import prepare_collections

ROOT = Path(__file__).parent.parent
COMMAND = Path(sys.executable).with_name("driver-analytics")
GUNICORN = Path(sys.executable).with_name("gunicorn")
START_SECONDS = 120
POLL_SECONDS = 0.02


# A process that starts another passes its own resident memory on to it. So a small process starts the command.
MEASURE = """
import json, resource, subprocess, sys
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([status, usage.ru_maxrss // 1024, usage.ru_utime + usage.ru_stime]))
"""


def measure(words, folder=ROOT, **environment):
    """Run a command; return its exit status, its highest resident memory in MB and its CPU seconds."""
    process = [sys.executable, "-c", MEASURE, COMMAND, *words]
    environment = {**os.environ, **environment}
    return json.loads(subprocess.run(process, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE).stdout)


def reset_ctrl_c():
    """Let a new process take Ctrl-C. It ignores it otherwise, if a shell runs the tests in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def free_port():
    """Return a free port of the loopback address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(condition, seconds=START_SECONDS):
    """Wait until the condition is true; return how many seconds that took."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() < started + seconds
        time.sleep(POLL_SECONDS)
    return time.monotonic() - started


class ServiceProcess:
    """A running service; leaving it interrupts it as Ctrl-C does. `words` start it, in `folder`."""

    def __init__(self, data_dir, *options, words=(COMMAND, "serve"), folder=ROOT, terminal=False, **environment):
        self.bind = f"127.0.0.1:{free_port()}"
        plain = {name: value for name, value in os.environ.items() if name not in ("MONGODB_URI", "MONGOD")}
        self.environment = {**plain, "DATA_DIR": str(data_dir), "BIND": self.bind, **environment}
        self.terminal, errors = os.openpty() if terminal else (None, subprocess.PIPE)
        self.process = subprocess.Popen(
            [*words, *options],
            cwd=folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            preexec_fn=reset_ctrl_c,
        )
        if terminal:
            os.close(errors)
        self.output, self.errors = [], None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stop()

    def stop(self):
        """Interrupt it, unless it has ended; return its log."""
        if self.errors is None:
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGINT)
            out, self.errors = self.process.communicate(timeout=60)
            self.output += out.splitlines()
        return self.errors

    def read(self, lines):
        """Return the next lines that it prints."""
        self.output += (output := [self.process.stdout.readline().rstrip("\n") for _ in range(lines)])
        return output

    def responds(self):
        """Return whether it responds."""
        try:
            return self.get("/livez")[0] == 200
        except OSError:
            return False

    def open(self, path):
        """Return the response to a request that needs no key."""
        return urllib.request.urlopen(f"http://{self.bind}{path}", timeout=10)

    def get(self, path, key=None):
        request = urllib.request.Request(f"http://{self.bind}/api/v1{path}")
        if key:
            request.add_header("Authorization", f"APIKEY {key}")
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)


@contextlib.contextmanager
def run_service(mongod_uri, data_dir, name, **settings):
    """Run the service on a database of its own; yield both. With a Redis to count in it has two workers."""
    settings = {"MONGODB_URI": mongod_uri, "MONGODB_DATABASE": name, **settings}
    if "RATELIMIT_STORAGE_URI" in settings:
        settings["WEB_CONCURRENCY"] = "2"
    with MongoClient(mongod_uri) as client, ServiceProcess(data_dir, **settings) as process:
        prepare_collections(Store.of(client[name]))
        process.read(1)
        yield process, client[name]
        client.drop_database(name)
