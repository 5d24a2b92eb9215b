"""Tables of the samples, and the page docs/benchmarks.md that contains them."""

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
from scripts.mongodb.embedded_mongod import get_mongod_path

PAGE = ROOT / "docs" / "benchmarks.md"
BUSIEST_AT_MOST = 0.75
LIMITS_NOTE = """\
The limits are the goals of this project. A row fails if it misses one of them at this number of connections; [Where the
service's time goes](#where-the-services-time-goes) says why the service misses some."""

# The samples of each (row, contestant, connections), one per round.
Samples = Mapping[tuple[str, str, int], Sequence[Sample]]


class Limit(NamedTuple):
    """The limits of a row: the maximum of CPU ÷ floor, and the minimum of requests per second ÷ those of each peer."""

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
    """Return requests per second."""
    return sample.per_second


def cpu(sample: Sample) -> float:
    """Return the processor time of the contestant's processes in ms per request."""
    return sample.cpu_ms


def mongod_cpu(sample: Sample) -> float:
    """Return the processor time of mongod in ms per request."""
    return sample.mongod_ms


def all_cpu(sample: Sample) -> float:
    """Return the processor time of the contestant and of mongod in ms per request."""
    return sample.cpu_ms + sample.mongod_ms


def ratio(
    samples: Samples, row: str, connections: int, over: str, value: Callable[[Sample], float], of: str = "service"
) -> float | None:
    """Return the median of the ratios `of` ÷ `over` of each round, or None without samples of both."""
    pairs = zip(samples.get((row, of, connections), ()), samples.get((row, over, connections), ()), strict=False)
    ratios = [value(one) / value(other) for one, other in pairs if value(other)]
    return median(ratios) if ratios else None


def limits_table(samples: Samples) -> str:
    """Return the table of limits and measured values."""
    lines = []
    for row, limit in LIMITS.items():
        for connections in sorted({number for name, _, number in samples if name == row}):
            checks = [
                (ratio(samples, row, connections, "floor", cpu), limit.floor, 1),
                (ratio(samples, row, connections, "fastapi", per_second), limit.fastapi, -1),
                (ratio(samples, row, connections, "full fastapi", per_second), limit.full_fastapi, -1),
            ]
            bounded = [(measured, bound, sign) for measured, bound, sign in checks if bound is not None]
            missing = any(measured is None for measured, _, _ in bounded)
            passed = not missing and all((measured or 0) * sign <= bound * sign for measured, bound, sign in bounded)
            verdict = "not measured" if missing else "pass" if passed else "**fail**"
            cells = [cell for measured, bound, _ in checks for cell in (format_number(bound), format_number(measured))]
            cells.insert(2, format_number(ratio(samples, row, connections, "text floor", cpu)))
            lines.append([row, connections, *cells, verdict])
    header = ["row", "connections", "CPU ÷ floor, at most", "measured", "÷ text floor", "req/s ÷ fastapi, at least"]
    return table([*header, "measured", "÷ full fastapi, at least", "measured", ""], lines)


def full_table(samples: Samples, row: str) -> str:
    """Return the table of all figures of a row."""
    lines = []
    for connections in sorted({number for name, _, number in samples if name == row}):
        for contestant in COMMANDS:
            contestant_samples = samples.get((row, contestant, connections))
            if contestant_samples:
                medians = Sample(*map(median, zip(*contestant_samples, strict=True)))
                own, both = (ratio(samples, row, connections, "floor", value, contestant) for value in (cpu, all_cpu))
                rates = [
                    ratio(samples, row, connections, peer, per_second, contestant)
                    for peer in ("fastapi", "full fastapi")
                ]
                times = (
                    medians.per_second,
                    medians.p50_ms,
                    medians.p99_ms,
                    medians.cpu_ms,
                    medians.mongod_ms,
                    medians.redis_ms,
                )
                lines.append(
                    [
                        connections,
                        contestant,
                        *map(format_number, times),
                        f"{medians.bytes:.0f}",
                        *map(format_number, (own, both, *rates)),
                    ]
                )
    header = ["connections", "contestant", "req/s", "p50 ms", "p99 ms", "CPU ms", "mongod ms", "redis ms", "bytes"]
    return table([*header, "CPU ÷ floor", "with mongod ÷ floor", "req/s ÷ fastapi", "÷ full fastapi"], lines)


def warnings(samples: Samples) -> list[str]:
    """Return a line for each contestant of which one worker had most of the load, which reduces throughput."""
    lines = []
    for contestant, connections in dict.fromkeys((contestant, connections) for _, contestant, connections in samples):
        shares = {row: [s.busiest for s in samples.get((row, contestant, connections), ())] for row, _, _ in samples}
        turns = [(share, row) for row, row_shares in shares.items() for share in row_shares]
        unbalanced = [turn for turn in turns if turn[0] > BUSIEST_AT_MOST]
        if unbalanced:
            lines.append(
                f"{contestant}, {connections} connections: one worker took more than {BUSIEST_AT_MOST:.0%} of the load "
                f"in {len(unbalanced)} of {len(turns)} turns ({'; '.join(dict.fromkeys(row for _, row in unbalanced))})"
            )
    return lines


def bench_section(samples: Samples, notes: Iterable[str], conditions: str) -> str:
    """Return the section of the page that `make bench` writes."""
    measured = {row for row, _, _ in samples}
    parts = [f"Measured {conditions}.", "### Limits", LIMITS_NOTE, limits_table(samples)]
    for row in filter(measured.__contains__, TITLES):
        parts += [f"### {row}: {TITLES[row]}", full_table(samples, row)]
    if remarks := [*notes, *warnings(samples)]:
        parts += ["### Remarks", "\n".join(f"- {line}" for line in remarks)]
    return "\n\n".join([*parts, "### Versions", versions()])


def table(header: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table with aligned columns: numbers to the right, words to the left."""
    rows = [list(map(str, line)) for line in (header, *lines)]
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


def format_number(value: float | None) -> str:
    """Return a number with about three digits, or – for None."""
    if value is None:
        return "–"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def versions() -> str:
    """Return a table of the versions of all programs and libraries."""
    own = ["flask", "gunicorn", "limits", "marshmallow", "orjson", "pymongo", "redis"]
    installed: dict[str, str] = {
        "Python": platform.python_version(),
        "service": ", ".join(f"{name} {importlib.metadata.version(name)}" for name in own),
        "naive": _installed(PEERS, ["flask", "marshmallow", "gunicorn", "pymongo"]),
        "fastapi": _installed(PEERS, ["fastapi", "pydantic", "uvicorn", "uvloop", "pymongo"]),
        "full fastapi": "as fastapi, " + _installed(PEERS, ["limits", "redis", "structlog", "orjson"]),
        "eve": _installed(EVE, ["eve", "flask", "gunicorn", "pymongo"]),
        "mongod": _get_output(get_mongod_path(), "--version", pattern=r"v([\d.]+)"),
        "redis-server": _get_output("redis-server", "--version", pattern=r"v=([\d.]+)"),
        "wrk": _get_output("wrk", "-v", pattern=r"wrk (\S+)"),
        "kernel": f"{platform.system()} {platform.release()}",
        "cores": str(os.cpu_count()),
    }
    return table(["what", "version"], list(installed.items()))


def _installed(environment: Path, names: list[str]) -> str:
    code = "import sys, importlib.metadata as m; print(', '.join(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
    python = environment / "bin" / "python"
    return _get_output(str(python), "-c", code, *names, pattern=r"(.*)") if python.exists() else "–"


def _get_output(*command: str, pattern: str) -> str:
    """Return the first group of the pattern in the output of a command, or –."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    match = re.search(pattern, done.stdout + done.stderr)
    return match[1] if match else "–"


def write_section(name: str, text: str, page: Path = PAGE) -> None:
    """Replace a section of the page, between its two comments, by a text."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, _, rest = page.read_text().partition(begin)
    _, _, after = rest.partition(end)
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")


def group_samples(samples: Iterable[tuple[tuple[str, str, int], Sample]]) -> Samples:
    """Return the samples of each key, in the order of the rounds."""
    grouped: dict[tuple[str, str, int], list[Sample]] = defaultdict(list)
    for key, sample in samples:
        grouped[key].append(sample)
    return grouped
