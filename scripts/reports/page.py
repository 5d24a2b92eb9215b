"""The page of a report: one HTML file without scripts and without requests for other files."""

import datetime as dt
import functools
import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from app.store import Document
from schemas.fields import CONTROL
from schemas.fleet import INSURANCE_PERIODS, NO_INSURANCE_PERIOD
from schemas.periods import MS_PER_SECOND, dates_of_period
from schemas.report import ReportWindow, Units, rate
from schemas.score import BEHAVIOURS, FOCUS_SHARE, Behaviour, compute_points_lost
from schemas.summary import FOCUS_FLAGS, GRADES
from scripts.command_line.output import is_visible
from scripts.reports.content import Figures

# The label of each behaviour.
LABELS = {
    "phone_use": "Phone use",
    "overspeeding": "Overspeeding",
    "hard_brake": "Hard braking",
    "rapid_acceleration": "Rapid acceleration",
}
EVENTS = {f"{name}_count": label for name, label in LABELS.items()}
FOCUS = {flag: LABELS[name] for name, flag in FOCUS_FLAGS.items()}
# The label of each insurance period.
PERIOD_LABELS = {name: f"Period {name}" for name in INSURANCE_PERIODS} | {NO_INSURANCE_PERIOD: "Without a period"}
# Numbers from here on are written with an exponent, so that columns stay narrow.
MIN_EXPONENT_VALUE = 1e9
NO_VALUE = "–"


# The length of each bar of a chart, 0 to 1, and the text at its end.
Bars = list[tuple[float, str]]


class Chart(NamedTuple):
    """The bars of one or more series, and their content for screen readers.

    `names` are those of the bars or, with one more of them, of the edges between the bars.
    """

    description: str
    names: Sequence[str]
    series: Sequence[Bars]


@functools.cache
def _load_template() -> Template:
    environment = Environment(
        autoescape=True,
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": format_number,
        "hours": format_hours,
        "part": format_part,
        "long_day": format_long_day,
        "time": format_time,
        "names": list_names,
        "group_name": name_group,
        "focus_areas": list_focus_areas,
        "points_lost": compute_points_lost,
    }
    return environment.get_template("page.html")


def make_page(figures: Figures, units: Units) -> bytes:
    """Return the page in UTF-8. The same figures always give the same bytes."""
    page = _load_template().render(
        figures=figures,
        window=figures.window,
        units=units,
        parts=list(zip(figures.window.parts, figures.parts, strict=True)),
        focus_counts=[
            (FOCUS[flag], count, format_percent(count, figures.judged))
            for flag, count in sorted(figures.focus.items(), key=lambda item: -item[1])
        ],
        charts=_make_charts(figures, units) if figures.total else {},
        totals=_make_totals(units),
        events=EVENTS,
        grades=GRADES,
        behaviours=[
            (LABELS[b.name], b.weight, *(_format_limit(b, share, units) for share in (1, FOCUS_SHARE)))
            for b in BEHAVIOURS
        ],
        insurance_periods={PERIOD_LABELS[name]: total for name, total in figures.insurance_periods.items()},
        format_change=format_change,
        compare_in_words=compare_in_words,
        start=dates_of_period(figures.window.period, figures.window.dates[0])[0],
        least=f"{round(units.distance(figures.window.min_distance_miles), 1):g} {units.name}",
    )
    return page.encode()


def format_number(value: float, places: int = 0) -> str:
    """Return a number with thousands separators, such as 1,234.6."""
    return f"{value:,.{places}f}" if abs(value) < MIN_EXPONENT_VALUE else f"{value:.2e}"


def format_tenths(value: float) -> str:
    """Return a number with one decimal, such as 1,234.6."""
    return format_number(value, 1)


def format_hours(seconds: float) -> str:
    """Return seconds as hours."""
    return format_tenths(seconds / 3600)


def format_percent(part: float, whole: float) -> str:
    """Return a part in percent of the whole, or 0% if the whole is 0."""
    return f"{format_number(rate(part, whole))}%"


def format_change(value: float, before: float) -> str:
    """Return the difference of two values, both rounded to one decimal, with its sign: +1.2, −1.0 or 0.0."""
    difference = round(value, 1) - round(before, 1)
    text = format_tenths(abs(difference))
    return text if text == "0.0" else ("+" if difference > 0 else "−") + text


def compare_in_words(value: float, before: float) -> str:
    """Return how a value compares with that of the window before: 1.2 up on, 1.0 down on, or the same as."""
    text = format_change(value, before)
    return f"{text[1:]} {'up' if text[0] == '+' else 'down'} on" if text[0] in "+−" else "the same as"


def format_day(date: str) -> str:
    """Return a date such as Mon 9 Nov."""
    return f"{dt.date.fromisoformat(date):%a %-d %b}"


def format_part(dates: Sequence[str]) -> str:
    """Return the dates of a part of a week or month, such as Mon 9 Nov, or Mon 9 – Sun 15 Nov."""
    first, last = format_day(dates[0]), format_day(dates[-1])
    return first if first == last else f"{first.rpartition(' ')[0]} – {last}"


def format_long_day(date: str) -> str:
    """Return a date such as Monday 9 November 2026."""
    return f"{dt.date.fromisoformat(date):%A %-d %B %Y}"


def format_time(epoch_ms: int, time_zone: str) -> str:
    """Return a time such as Monday 9 November 2026 at 06:00."""
    time = dt.datetime.fromtimestamp(epoch_ms // MS_PER_SECOND, ZoneInfo(time_zone))
    return f"{format_long_day(str(time.date()))} at {time:%H:%M}"


def list_names(driver: Document) -> list[str]:
    """Return the first and last name of a driver, the alias and the driver_id: those of which a reader sees something.

    The explorer calls drivers by the same names.
    """
    full_name = " ".join(name for name in (driver["first_name"], driver["last_name"]) if _is_visible(name))
    names = filter(_is_visible, (full_name, driver["alias"], driver["driver_id"]))
    return list(dict.fromkeys(CONTROL.sub(" ", name) for name in names)) or [
        f"Driver {json.dumps(driver['driver_id'])}"
    ]


def name_group(group: str) -> str:
    """Return the name of a group, so that a reader sees something."""
    return group if _is_visible(group) else f"Group {json.dumps(group)}"


def _is_visible(text: str | None) -> bool:
    return any(is_visible(character) and character != " " for character in text or "")


def list_focus_areas(summary: Document) -> str:
    """Return the labels of a driver's focus areas, such as `Phone use, hard braking`, or an empty text."""
    return ", ".join(label for flag, label in FOCUS.items() if summary["focus_area"][flag]).capitalize()


def _make_totals(units: Units) -> dict[str, Callable[[Document], str]]:
    """Return the labels of the totals that the page shows, and how each is written."""
    return {
        f"Distance in {units.name}": lambda total: format_number(units.distance(total["distance_miles"])),
        "Trips": lambda total: format_number(total["trip_count"]),
        "Hours driven": lambda total: format_number(total["duration_seconds"] / 3600),
        f"Events per 100 {units.name}": lambda total: format_number(
            units.rate(sum(total["events_summary"][count] for count in EVENTS), total["distance_miles"]), 1
        ),
        "Driven at night": lambda total: format_percent(total["night_driving_seconds"], total["duration_seconds"]),
        "On highways": lambda total: format_percent(total["highway_miles"], total["distance_miles"]),
    }


def _format_limit(behaviour: Behaviour, share: float, units: Units) -> str:
    """Return this share of a behaviour's cap, such as `7.5% of the time` or `10 per 100 miles`."""
    limit = 100 * behaviour.cap / behaviour.factor * share
    if behaviour.denominator == "duration_seconds":
        return f"{limit:g}% of the time"
    return f"{round(limit / units.per_mile, 1):g} per 100 {units.name}"


def _make_charts(figures: Figures, units: Units) -> dict[str, Chart]:
    scores = [summary["fm_score"] if summary else None for summary in figures.parts]
    distances = [units.distance(summary["distance_miles"]) if summary else None for summary in figures.parts]
    in_units, window = f"Distance of the fleet in {units.name}", figures.window
    return {
        "scores": _chart_drivers(figures.scores),
        "parts": _chart_by_part("Score of the fleet", window, _make_bars(scores, format_tenths, 100)),
        "distances": _chart_by_part(in_units, window, _make_bars(distances, _format_short)),
        "events": _chart_events(figures, units),
    }


def _chart_drivers(counts: Sequence[int]) -> Chart:
    edges, bars = [str(edge) for edge in range(0, 101, 10)], _make_bars(counts, format_number)
    bins = [f"{low} to {high}" for low, high in itertools.pairwise(edges)]
    return Chart(_describe_chart("Drivers by score", bins, bars), edges, [bars])


def _chart_by_part(title: str, window: ReportWindow, bars: Bars) -> Chart:
    parts = [format_part(part) for part in window.parts]
    # Short, such as Mon 9, or 9–15.
    names = [
        part.rpartition(" ")[0] if len(dates) == 1 else f"{int(dates[0][8:])}–{int(dates[-1][8:])}"
        for part, dates in zip(parts, window.parts, strict=True)
    ]
    return Chart(_describe_chart(f"{title} by {window.part}", parts, bars), names, [bars])


def _chart_events(figures: Figures, units: Units) -> Chart:
    labels, windows = list(EVENTS.values()), (f"this {figures.window.period}", f"the {figures.window.period} before")
    rates = [
        [units.rate(total["events_summary"][count], total["distance_miles"]) for count in EVENTS]
        for total in (figures.total, figures.before)
        if total
    ]
    series = [_make_bars(values, format_tenths, max(map(max, rates))) for values in rates]
    descriptions = [
        _describe_chart(f"Events per 100 {units.name}, {name}", labels, bars)
        for name, bars in zip(windows, series, strict=False)
    ]
    return Chart(" ".join(descriptions), labels, series)


def _make_bars(values: Sequence[float | None], format_value: Callable[[float], str], maximum: float = 0) -> Bars:
    """Return a bar of each value, whose length is its share of `maximum`, by default of the largest value."""
    maximum = maximum or max(value or 0 for value in values)
    return [(value / maximum if value else 0.0, NO_VALUE if value is None else format_value(value)) for value in values]


def _format_short(value: float) -> str:
    """Return a number in at most six characters, which fit above a column."""
    if not 10_000 <= value < MIN_EXPONENT_VALUE:
        return format_number(value)
    return f"{value / 1e6:.1f}M" if value >= 1e6 else f"{value / 1e3:.1f}k"


def _describe_chart(title: str, names: Iterable[str], bars: Bars) -> str:
    texts = ("nobody drove" if text == NO_VALUE else text for _, text in bars)
    items = (f"{name} {text}" for name, text in zip(names, texts, strict=True))
    return f"{title}: {'; '.join(items)}."
