"""The section of docs/benchmarks.md that `python -m bench.growth` writes, with its limits."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median

from bench import report
from bench.load import Sample

CONNECTIONS = 8
# Trail points of a trip.
POINTS = 5
PAGES = (1, 10, 100, 1000)
FLEET_DRIVERS = (100, 1_000, 10_000, 100_000)
PAGE_NUMBER = "number of the page"
RANKING_DRIVERS, RANKING_PAGE = "drivers of a ranking", "number of the page of a ranking"
# The limit of the cost of a size ÷ that of the smallest size.
MAX_RATIO = 1.3
# Few clients request pages with such high numbers.
MAX_RATIO_LAST_PAGE = 2.0
# A page of a ranking may begin up to some hundred drivers behind a bound.
MAX_RATIO_RANKING = 2.0
MAX_RATIOS = {
    PAGE_NUMBER: {PAGES[-1]: MAX_RATIO_LAST_PAGE},
    RANKING_DRIVERS: dict.fromkeys(FLEET_DRIVERS, MAX_RATIO_RANKING),
    RANKING_PAGE: dict.fromkeys(PAGES, MAX_RATIO_RANKING),
}
# Each request counts the trips that share an id, so it has no limit.
UNLIMITED = "detail by tracking_id"


def growth_section(
    samples: Mapping[str, Mapping[tuple[str, int], Sequence[Sample]]],
    imports: Sequence[Sequence[float]],
    memory: Sequence[tuple[int, float]],
    notes: Iterable[str],
    conditions: str,
) -> str:
    """Return the section: a table of costs per dimension, the import, and the memory of a worker."""
    parts = [
        f"Processor time of a request in ms, of the service + of mongod: medians of {conditions} at {CONNECTIONS} "
        "connections. The last columns are the ratio of the largest size to the smallest. "
        f"No size may cost more than {MAX_RATIO} × the smallest; page {PAGES[-1]:,} may cost {MAX_RATIO_LAST_PAGE} ×, "
        f"so may every ranking, and {UNLIMITED} has no limit."
    ]
    for dimension, costs in samples.items():
        parts += [f"### By {dimension}", cost_table(costs, MAX_RATIOS.get(dimension, {}))]
    first, last = memory[0], memory[-1]
    return "\n\n".join(
        [
            *parts,
            *(f"{note}." for note in notes),
            "### Import",
            f"A fleet of {sum(int(part[0]) for part in imports):,} trips of {POINTS} trail points, loaded in parts.",
            import_table(imports),
            "### Memory of a worker",
            f"{first[1]:.0f} MB after {first[0]:,} requests of all kinds, {last[1]:.0f} MB after {last[0]:,}: "
            f"{last[1] / first[1]:.2f} ×.",
        ]
    )


def cost_table(samples: Mapping[tuple[str, int], Sequence[Sample]], max_ratios: Mapping[int, float]) -> str:
    """Return the table of costs of a request: by endpoint and size, with the ratio largest ÷ smallest, and a verdict.

    `max_ratios` has the limits of the sizes whose limit is not MAX_RATIO.
    """
    sizes = list(dict.fromkeys(size for _, size in samples))
    lines = []
    for endpoint in dict.fromkeys(name for name, _ in samples):
        measured = {size: samples[endpoint, size] for size in sizes if (endpoint, size) in samples}
        costs = [_cost(measured[size]) if size in measured else "–" for size in sizes]
        first, *larger = measured.values()
        ratios = [(_ratio(one, first, report.cpu), _ratio(one, first, report.mongod_cpu)) for one in larger]
        is_within = all(
            max(ratio) <= max_ratios.get(size, MAX_RATIO) for size, ratio in zip([*measured][1:], ratios, strict=True)
        )
        verdict = "–" if endpoint == UNLIMITED else "pass" if is_within else "**fail**"
        lines.append([endpoint, *costs, *(f"{ratio:.2f}" for ratio in ratios[-1]), verdict])
    return report.table(["endpoint", *(f"{size:,}" for size in sizes), "service", "mongod", "within limits"], lines)


def _cost(samples: Sequence[Sample]) -> str:
    return f"{median(map(report.cpu, samples)):.2f} + {median(map(report.mongod_cpu, samples)):.2f}"


def _ratio(of: Sequence[Sample], over: Sequence[Sample], value: Callable[[Sample], float]) -> float:
    """Return the median of the ratios of each round."""
    return median(value(one) / value(other) if value(other) else 1.0 for one, other in zip(of, over, strict=True))


def import_table(costs: Sequence[Sequence[float]]) -> str:
    """Return the table of the cost of each part of an import, by the number of trips stored before it."""
    lines, stored = [], 0
    for count, seconds, cpu, mongod in costs:
        cpu_ms, mongod_ms = cpu * 1000 / count, mongod * 1000 / count
        lines.append([f"{stored:,}", f"{count / seconds:.0f}", f"{cpu_ms:.2f}", f"{mongod_ms:.2f}"])
        stored += int(count)
    return report.table(["trips stored before", "trips/s", "CPU ms per trip", "mongod ms per trip"], lines)
