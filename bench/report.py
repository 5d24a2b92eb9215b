"""From samples to tables, and from tables to the page."""

import importlib.metadata
import os
import platform
import re
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.load import Sample
from bench.rows import TITLES
from bench.servers import COMMANDS, EVE, PEERS, ROOT
from scripts.mongodb.embedded_mongod import find_mongod

PAGE = ROOT / "docs" / "benchmarks.md"
BUSIEST_AT_MOST = 0.75

# (row, contestant, connections) and its samples, one a round.
Samples = Mapping[tuple[str, str, int], Sequence[Sample]]


class Limit(NamedTuple):
    """What a row has to keep: processor time a request ÷ floor at most, requests a second ÷ peers' at least."""

    floor: float
    fastapi: float | None
    full_fastapi: float | None


LIMITS = {
    "drivers": Limit(2.1, 1.2, 1.8),
    "trips": Limit(2.5, 1.4, 1.8),
    "detail": Limit(2.7, 1.5, 1.8),
    "weekly": Limit(1.8, 4, 1.8),
    "healthz": Limit(2.1, None, None),
}


def per_second(sample: Sample) -> float:
    """Return requests a second."""
    return sample.per_second


def cpu(sample: Sample) -> float:
    """Return the processor time of a contestant's own processes, ms a request."""
    return sample.cpu_ms


def mongod_cpu(sample: Sample) -> float:
    """Return the processor time of mongod, ms a request."""
    return sample.mongod_ms


def all_cpu(sample: Sample) -> float:
    """Return the processor time of a contestant and of mongod, ms a request."""
    return sample.cpu_ms + sample.mongod_ms


def ratio(
    samples: Samples, row: str, connections: int, over: str, value: Callable[[Sample], float], of: str = "service"
) -> float | None:
    """Return the median over the rounds of `of` ÷ `over`, each pair measured in the same round; None without either."""
    pairs = zip(samples.get((row, of, connections), ()), samples.get((row, over, connections), ()), strict=False)
    ratios = [value(one) / value(other) for one, other in pairs if value(other)]
    return median(ratios) if ratios else None


def limits_table(samples: Samples) -> str:
    """Return the limits with what was measured."""
    lines = []
    for row, limit in LIMITS.items():
        for connections in sorted({number for name, _, number in samples if name == row}):
            held = [
                (ratio(samples, row, connections, "floor", cpu), limit.floor, 1),
                (ratio(samples, row, connections, "fastapi", per_second), limit.fastapi, -1),
                (ratio(samples, row, connections, "full fastapi", per_second), limit.full_fastapi, -1),
            ]
            known = [(measured, bound, sign) for measured, bound, sign in held if bound is not None]
            missing = any(measured is None for measured, _, _ in known)
            passed = not missing and all((measured or 0) * sign <= bound * sign for measured, bound, sign in known)
            verdict = "not measured" if missing else "pass" if passed else "**fail**"
            cells = [cell for measured, bound, _ in held for cell in (number_of(bound), number_of(measured))]
            cells.insert(2, number_of(ratio(samples, row, connections, "text floor", cpu)))
            lines.append([row, connections, *cells, verdict])
    head = ["row", "connections", "CPU ÷ floor, at most", "measured", "÷ text floor", "req/s ÷ fastapi, at least"]
    return table([*head, "measured", "÷ full fastapi, at least", "measured", ""], lines)


def full_table(samples: Samples, row: str) -> str:
    """Return all figures of one row of requests."""
    lines = []
    for connections in sorted({number for name, _, number in samples if name == row}):
        for contestant in COMMANDS:
            found = samples.get((row, contestant, connections))
            if found:
                middle = Sample(*map(median, zip(*found, strict=True)))
                own, both = (ratio(samples, row, connections, "floor", value, contestant) for value in (cpu, all_cpu))
                rates = [
                    ratio(samples, row, connections, peer, per_second, contestant)
                    for peer in ("fastapi", "full fastapi")
                ]
                times = (
                    middle.per_second,
                    middle.p50_ms,
                    middle.p99_ms,
                    middle.cpu_ms,
                    middle.mongod_ms,
                    middle.redis_ms,
                )
                lines.append(
                    [
                        connections,
                        contestant,
                        *map(number_of, times),
                        f"{middle.bytes:.0f}",
                        *map(number_of, (own, both, *rates)),
                    ]
                )
    head = ["connections", "contestant", "req/s", "p50 ms", "p99 ms", "CPU ms", "mongod ms", "redis ms", "bytes"]
    return table([*head, "CPU ÷ floor", "with mongod ÷ floor", "req/s ÷ fastapi", "÷ full fastapi"], lines)


def warnings(samples: Samples) -> list[str]:
    """Return where one worker had most of the load, which costs throughput."""
    said = []
    for contestant, connections in dict.fromkeys((contestant, connections) for _, contestant, connections in samples):
        shares = {row: [s.busiest for s in samples.get((row, contestant, connections), ())] for row, _, _ in samples}
        turns = [(share, row) for row, found in shares.items() for share in found]
        lopsided = [turn for turn in turns if turn[0] > BUSIEST_AT_MOST]
        if lopsided:
            said.append(
                f"{contestant}, {connections} connections: one worker took more than {BUSIEST_AT_MOST:.0%} of the load "
                f"in {len(lopsided)} of {len(turns)} turns ({'; '.join(dict.fromkeys(row for _, row in lopsided))})"
            )
    return said


def bench_section(samples: Samples, notes: Iterable[str], how: str) -> str:
    """Return what `make bench` writes."""
    measured = {row for row, _, _ in samples}
    parts = [f"Measured {how}.", "### Limits", limits_table(samples)]
    for row in filter(measured.__contains__, TITLES):
        parts += [f"### {row}: {TITLES[row]}", full_table(samples, row)]
    if said := [*notes, *warnings(samples)]:
        parts += ["### Mind", "\n".join(f"- {line}" for line in said)]
    return "\n\n".join([*parts, "### Versions", versions()])


def table(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table, in columns that line up in a terminal too; all but words to the right."""
    rows = [list(map(str, line)) for line in (head, *lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    numeric = [all(re.fullmatch(r"[\d.,]*|–", cell) for cell in column[1:]) for column in zip(*rows, strict=True)]
    rule = [("-" * (width - 1) + ":") if right else "-" * width for width, right in zip(widths, numeric, strict=True)]
    aligned = [
        [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        for row in rows
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in (aligned[0], rule, *aligned[1:]))


def number_of(value: float | None) -> str:
    """Return a number in three digits or so."""
    if value is None:
        return "–"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def versions() -> str:
    """Return a table of what was measured with."""
    own = ["flask", "gunicorn", "limits", "marshmallow", "orjson", "pymongo", "redis"]
    found: dict[str, str] = {
        "Python": platform.python_version(),
        "service": ", ".join(f"{name} {importlib.metadata.version(name)}" for name in own),
        "naive": _installed(PEERS, ["flask", "marshmallow", "gunicorn", "pymongo"]),
        "fastapi": _installed(PEERS, ["fastapi", "pydantic", "uvicorn", "uvloop", "pymongo"]),
        "full fastapi": "as fastapi, " + _installed(PEERS, ["limits", "redis", "structlog", "orjson"]),
        "eve": _installed(EVE, ["eve", "flask", "gunicorn", "pymongo"]),
        "mongod": _said(find_mongod(), "--version", pattern=r"v([\d.]+)"),
        "redis-server": _said("redis-server", "--version", pattern=r"v=([\d.]+)"),
        "wrk": _said("wrk", "-v", pattern=r"wrk (\S+)"),
        "kernel": f"{platform.system()} {platform.release()}",
        "cores": str(os.cpu_count()),
    }
    return table(["what", "version"], list(found.items()))


def _installed(environment: Path, names: list[str]) -> str:
    code = "import sys, importlib.metadata as m; print(', '.join(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
    python = environment / "bin" / "python"
    return _said(str(python), "-c", code, *names, pattern=r"(.*)") if python.exists() else "–"


def _said(*words: str, pattern: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    found = re.search(pattern, done.stdout + done.stderr)
    return found[1] if found else "–"


def write_section(name: str, text: str, page: Path = PAGE) -> None:
    """Put a section's figures into the page, between its two marks."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, _, rest = page.read_text().partition(begin)
    _, _, after = rest.partition(end)
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")


def grouped(samples: Iterable[tuple[tuple[str, str, int], Sample]]) -> Samples:
    """Return samples by what they are of, in the order of the rounds."""
    found: dict[tuple[str, str, int], list[Sample]] = defaultdict(list)
    for key, sample in samples:
        found[key].append(sample)
    return found
