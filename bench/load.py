"""One measurement: wrk against one server, and what that cost."""

import json
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from bench.servers import HOST, Failed, Server

SCRIPT = Path(__file__).with_name("wrk.lua")
TIMEOUT_SECONDS = 20
# A server is done with what wrk left behind when it uses no processor time for so long.
QUIET_SECONDS = 0.08
# A machine that others use may stand still for as long as a turn lasts.
ATTEMPTS = 3
MAX_QUIETING_SECONDS = 10


class Sample(NamedTuple):
    """What one run of wrk showed: processor time is ms a request, `busiest` the share of one worker in it."""

    per_second: float
    p50_ms: float
    p99_ms: float
    cpu_ms: float
    mongod_ms: float
    redis_ms: float
    bytes: float
    busiest: float


def raw_request(path: str, headers: dict[str, str]) -> str:
    """Return a GET request as it goes over the wire."""
    lines = [f"GET {path} HTTP/1.1", f"Host: {HOST}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""])


def measure(server: Server, stores: tuple[Server, Server], requests: Path, connections: int, seconds: int) -> Sample:
    """Load `server` with the requests of a file; `stores` are mongod and redis. Raises Failed for any bad answer.

    wrk leaves up to a request a connection unanswered in the end, which the server works off: so processor time is read
    once all is quiet, and is divided by the requests sent.
    """
    everyone = (server, *stores)
    for _ in range(ATTEMPTS):
        before = [one.cpu() for one in everyone]
        report = _wrk(server.port, requests, connections, seconds)
        quieten(everyone)
        after = [one.cpu() for one in everyone]
        if report["answered"]:
            break
    else:
        raise Failed(f"{server.name} answers nothing of {requests.name} within {seconds} s, {ATTEMPTS} times over")
    if report["refused"] or report["broken"]:
        raise Failed(
            f"{server.name} at {connections} connections: {report['refused']} answers of an error status and "
            f"{report['broken']} broken connections or timeouts in {report['sent']} requests of {requests.name}"
        )
    if before[0].keys() != after[0].keys():
        raise Failed(f"{server.name} exchanged its workers during a run of {requests.name}")
    used = [
        {pid: end - start.get(pid, 0.0) for pid, end in done.items()} for start, done in zip(before, after, strict=True)
    ]
    cpu, mongod, redis = (sum(one.values()) * 1000 / report["sent"] for one in used)
    return Sample(
        per_second=report["answered"] * 1e6 / report["us"],
        p50_ms=report["p50_us"] / 1000,
        p99_ms=report["p99_us"] / 1000,
        cpu_ms=cpu,
        mongod_ms=mongod,
        redis_ms=redis,
        bytes=report["bytes"] / report["answered"],
        busiest=max(used[0].values()) / (sum(used[0].values()) or 1),
    )


def quieten(servers: tuple[Server, ...]) -> None:
    """Wait until the servers have nothing left to do."""
    deadline = time.monotonic() + MAX_QUIETING_SECONDS
    last = 0.0
    while time.monotonic() < deadline:
        used = sum(sum(server.cpu().values()) for server in servers)
        # A tick is what bookkeeping takes.
        if used - last < 0.015:
            return
        last = used
        time.sleep(QUIET_SECONDS)


def _wrk(port: int, requests: Path, connections: int, seconds: int) -> dict[str, int]:
    words = ["wrk", "--threads", "1", "--connections", str(connections), "--duration", f"{seconds}s"]
    words += ["--timeout", f"{TIMEOUT_SECONDS}s", "--script", str(SCRIPT), f"http://{HOST}:{port}", "--", str(requests)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=seconds + 60, check=False)
    if done.returncode:
        raise Failed(f"wrk failed: {(done.stderr or done.stdout).strip()}")
    report: dict[str, int] = json.loads(done.stdout.strip().splitlines()[-1])
    return report
