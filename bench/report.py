"""Medians and ratios of samples, Markdown tables, and the figures in docs/benchmarks.md."""

import os
import platform
import re
import sysconfig
from collections.abc import Iterable, Sequence
from statistics import median

from bench.servers import ROOT, Sample

PAGE = ROOT / "docs" / "benchmarks.md"


def middle(samples: Sequence[Sample], name: str) -> float:
    """Return the median of a figure."""
    figures: list[float] = [getattr(sample, name) for sample in samples]
    return median(figures)


def ratio(samples: Sequence[Sample], over: Sequence[Sample], name: str) -> float:
    """Return the median of the ratios of each round. What is too small to be measured has the ratio 1."""
    pairs = [(getattr(one, name), getattr(other, name)) for one, other in zip(samples, over, strict=True)]
    return median([one / other if other else 1.0 for one, other in pairs])


def format_number(value: float) -> str:
    """Return a number with about three digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def verdict(*is_within: bool) -> str:
    """Return whether a line is within all of its limits."""
    return "pass" if all(is_within) else "**fail**"


def table(header: Sequence[str], lines: Iterable[Sequence[str | float]]) -> str:
    """Return a Markdown table with aligned columns: numbers to the right, words to the left."""
    rows = [header, *([cell if isinstance(cell, str) else format_number(cell) for cell in line] for line in lines)]
    columns = []
    for column in zip(*rows, strict=True):
        width, is_numeric = max(map(len, column)), all(re.fullmatch(r"[\d.]+|–", cell) for cell in column[1:])
        rule = "-" * (width - 1) + (":" if is_numeric else "-")
        cells = [cell.rjust(width) if is_numeric else cell.ljust(width) for cell in column]
        columns.append([cells[0], rule, *cells[1:]])
    return "\n".join(f"| {' | '.join(row)} |" for row in zip(*columns, strict=True))


def conditions() -> str:
    """Return a sentence on Python and the machine. A high load says that others used it, too."""
    return f"{describe_python()}, {os.cpu_count()} processors, load {os.getloadavg()[2]:.1f}."


def describe_python() -> str:
    """Return the version of Python, and how it was built: the compiler, and the options that make it faster."""
    options = re.findall(r"--(?:enable-optimizations|with-lto)", sysconfig.get_config_var("CONFIG_ARGS") or "")
    return f"Python {platform.python_version()} ({platform.python_compiler()}, {' '.join(options) or 'no options'})"


def write_section(name: str, text: str) -> None:
    """Replace a section of docs/benchmarks.md, between its two comments, by a text."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, _, rest = PAGE.read_text().partition(begin)
    _, _, after = rest.partition(end)
    PAGE.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")
