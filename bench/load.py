"""One measurement: the load of wrk on one server, and the processor time that it takes."""

import json
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from bench.servers import HOST, Failed, Server

SCRIPT = Path(__file__).with_name("wrk.lua")
TIMEOUT_SECONDS = 20
# A server has finished the last requests of wrk when it uses no processor time for this time.
IDLE_SECONDS = 0.08
# On a shared machine, the server may get no processor time during a turn.
ATTEMPTS = 3
MAX_WAIT_SECONDS = 10


class Sample(NamedTuple):
    """The result of one run of wrk: processor times in ms per request; `busiest` is the share of the busiest worker."""

    per_second: float
    p50_ms: float
    p99_ms: float
    cpu_ms: float
    mongod_ms: float
    redis_ms: float
    bytes: float
    busiest: float


def raw_request(path: str, headers: dict[str, str]) -> str:
    """Return the bytes of a GET request as text."""
    lines = [f"GET {path} HTTP/1.1", f"Host: {HOST}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""])


def measure(server: Server, stores: tuple[Server, Server], requests: Path, connections: int, seconds: int) -> Sample:
    """Load `server` with the requests of a file; `stores` are mongod and redis. Raises Failed for any error response.

    At the end of its run, wrk drops up to one request per connection, which the server still handles. So processor time
    is read when all servers are idle, and is divided by the number of requests sent.
    """
    servers = (server, *stores)
    for _ in range(ATTEMPTS):
        before = [one.cpu() for one in servers]
        report = _wrk(server.port, requests, connections, seconds)
        wait_until_idle(servers)
        after = [one.cpu() for one in servers]
        if report["responses"]:
            break
    else:
        raise Failed(f"{server.name} responds to none of {requests.name} within {seconds} s, in {ATTEMPTS} attempts")
    if report["error_statuses"] or report["socket_errors"]:
        raise Failed(
            f"{server.name} at {connections} connections: {report['error_statuses']} responses with an error status "
            f"and {report['socket_errors']} broken connections or timeouts, in {report['sent']} requests of "
            f"{requests.name}"
        )
    if before[0].keys() != after[0].keys():
        raise Failed(f"{server.name} restarted workers during a run of {requests.name}")
    used = [
        {pid: end - start.get(pid, 0.0) for pid, end in done.items()} for start, done in zip(before, after, strict=True)
    ]
    cpu, mongod, redis = (sum(one.values()) * 1000 / report["sent"] for one in used)
    return Sample(
        per_second=report["responses"] * 1e6 / report["us"],
        p50_ms=report["p50_us"] / 1000,
        p99_ms=report["p99_us"] / 1000,
        cpu_ms=cpu,
        mongod_ms=mongod,
        redis_ms=redis,
        bytes=report["bytes"] / report["responses"],
        busiest=max(used[0].values()) / (sum(used[0].values()) or 1),
    )


def wait_until_idle(servers: tuple[Server, ...]) -> None:
    """Wait until the servers use no processor time."""
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    last = 0.0
    while time.monotonic() < deadline:
        used = sum(sum(server.cpu().values()) for server in servers)
        # Background tasks may take one tick of 0.01 s.
        if used - last < 0.015:
            return
        last = used
        time.sleep(IDLE_SECONDS)


def _wrk(port: int, requests: Path, connections: int, seconds: int) -> dict[str, int]:
    command = ["wrk", "--threads", "1", "--connections", str(connections), "--duration", f"{seconds}s"]
    command += ["--timeout", f"{TIMEOUT_SECONDS}s", "--script", str(SCRIPT)]
    command += [f"http://{HOST}:{port}", "--", str(requests)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60, check=False)
    if done.returncode:
        raise Failed(f"wrk failed: {(done.stderr or done.stdout).strip()}")
    report: dict[str, int] = json.loads(done.stdout.strip().splitlines()[-1])
    return report
