"""The page of a weekly report: one HTML file that needs nothing else, with no script and no request to anywhere."""

import datetime as dt
import itertools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from app.store import Document
from app.store.score import BEHAVIOURS, FOCUS_SHARE, Behaviour
from schemas.fields import CONTROL
from schemas.report import rate
from schemas.summary import GRADES
from scripts.reports.figures import Figures

if TYPE_CHECKING:
    from scripts.reports.charts import Chart

# By their flag on trips, from which the names of all else about a behaviour follow.
WORDS = {
    "is_phone_use": "Phone use",
    "is_overspeeding": "Speeding",
    "is_hard_brake": "Hard braking",
    "is_rapid_acceleration": "Rapid acceleration",
}
EVENTS = {f"{flag.removeprefix('is_')}_count": words for flag, words in WORDS.items()}
FOCUS = {behaviour.flag: WORDS[behaviour.trip_flag] for behaviour in BEHAVIOURS}
# From here on a number is written with an exponent, so that every column stays narrow.
HUGE = 1e9
NOTHING = "–"


class Picture(NamedTuple):
    """A chart, and what tells the same in words."""

    chart: "Chart"
    told: str


def make_page(figures: Figures) -> bytes:
    """Return the page, in UTF-8: the same bytes for the same figures."""
    pages = Environment(
        autoescape=True,
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters |= {tell.__name__: tell for tell in (number, hours, day, long_day, name, to_coach)}
    page = pages.get_template("page.html").render(
        figures=figures,
        dates=list(zip(figures.dates, figures.days, strict=True)),
        coached=[
            (FOCUS[flag], count, percent(count, figures.drove))
            for flag, count in sorted(figures.focus.items(), key=lambda item: -item[1])
        ],
        pictures=_pictures(figures) if figures.total else {},
        totals=TOTALS,
        events=EVENTS,
        grades=GRADES,
        behaviours=[(WORDS[b.trip_flag], b.weight, _limit(b, 1), _limit(b, FOCUS_SHARE)) for b in BEHAVIOURS],
        rate=rate,
        changed=changed,
        compared=compared,
    )
    return page.encode()


def number(value: float, places: int = 0) -> str:
    """Return a number as people write it, with so many decimals."""
    return f"{value:,.{places}f}" if abs(value) < HUGE else f"{value:.2e}"


def hours(seconds: float) -> str:
    """Return seconds as hours."""
    return number(seconds / 3600, 1)


def percent(part: float, whole: float) -> str:
    """Return a part as a share of the whole, 0% where there is no whole."""
    return f"{number(rate(part, whole))}%"


def changed(value: float, before: float) -> str:
    """Return by how much a value with one decimal differs from what it was before, with its sign."""
    difference = round(value, 1) - round(before, 1)
    text = number(abs(difference), 1)
    return text if text == "0.0" else ("+" if difference > 0 else "−") + text


def compared(value: float, before: float) -> str:
    """Return in words how a value compares to the one of the week before."""
    text = changed(value, before)
    return f"{text[1:]} {'up' if text[0] == '+' else 'down'} on" if text[0] in "+−" else "the same as"


def day(date: str) -> str:
    """Return a date such as Mon 9 Nov."""
    found = dt.date.fromisoformat(date)
    return f"{found:%a} {found.day} {found:%b}"


def long_day(date: str) -> str:
    """Return a date such as Monday 9 November 2026."""
    found = dt.date.fromisoformat(date)
    return f"{found:%A} {found.day} {found:%B} {found.year}"


def name(driver: Document) -> str:
    """Return what to call a driver: the alias, else the first and last name, else the driver_id."""
    alias, first, last = (
        CONTROL.sub(" ", driver[field] or "").strip() for field in ("alias", "first_name", "last_name")
    )
    return alias or f"{first} {last}".strip() or driver["driver_id"]


def to_coach(summary: Document) -> str:
    """Return which behaviours are ones to coach, in words; empty where none is."""
    return ", ".join(words for flag, words in FOCUS.items() if summary["focus_area"][flag]).capitalize()


# What is told of the fleet's week and of the one before.
TOTALS: dict[str, Callable[[Document], str]] = {
    "Miles": lambda total: number(total["distance_miles"]),
    "Trips": lambda total: number(total["trip_count"]),
    "Hours driven": lambda total: number(total["duration_seconds"] / 3600),
    "Events per 100 miles": lambda total: number(
        rate(sum(total["events_summary"][count] for count in EVENTS), total["distance_miles"]), 1
    ),
    "Driven at night": lambda total: percent(total["night_driving_seconds"], total["duration_seconds"]),
    "On highways": lambda total: percent(total["highway_miles"], total["distance_miles"]),
}


def _limit(behaviour: Behaviour, share: float) -> str:
    """Return what amounts to this share of a behaviour's cap."""
    text = f"{100 * behaviour.cap / behaviour.factor * share:g}"
    return f"{text}% of the time" if behaviour.denominator == "duration_seconds" else f"{text} per 100 miles"


def _pictures(figures: Figures) -> dict[str, Picture]:
    # matplotlib takes a while to load and comes with an extra: neither is for commands that draw nothing.
    from scripts.reports.charts import bars, columns

    days = [day(date) for date in figures.dates]
    short_days = [text.rpartition(" ")[0] for text in days]
    scores = [summary["fm_score"] if summary else 0 for summary in figures.days]
    miles = [summary["distance_miles"] if summary else 0 for summary in figures.days]
    drove = [summary is not None for summary in figures.days]
    score_texts = [number(score, 1) if there else NOTHING for score, there in zip(scores, drove, strict=True)]
    mile_texts = [_short(distance) if there else NOTHING for distance, there in zip(miles, drove, strict=True)]
    edges = [str(edge) for edge in range(0, 101, 10)]
    bands = [f"{low} to {high}" for low, high in itertools.pairwise(edges)]
    counts = [number(count) for count in figures.scores]
    weeks = [
        [rate(week["events_summary"][count], week["distance_miles"]) for count in EVENTS]
        for week in (figures.total, figures.before)
        if week
    ]
    rate_texts = [[number(value, 1) for value in week] for week in weeks]
    return {
        "scores": Picture(columns(_shares(figures.scores), counts, edges), _told("Drivers by score", bands, counts)),
        "days": Picture(
            columns([score / 100 for score in scores], score_texts, short_days),
            _told("Score of the fleet by day", days, score_texts),
        ),
        "miles": Picture(
            columns(_shares(miles), mile_texts, short_days), _told("Miles of the fleet by day", days, mile_texts)
        ),
        "events": Picture(
            bars([_shares(week, max(map(max, weeks))) for week in weeks], rate_texts, list(EVENTS.values())),
            " ".join(
                _told(f"Events per 100 miles, {which}", EVENTS.values(), texts)
                for which, texts in zip(("this week", "the week before"), rate_texts, strict=False)
            ),
        ),
    }


def _shares(values: Sequence[float], most: float | None = None) -> list[float]:
    """Return the values as shares of `most`, or of the greatest among them; zeros where that is 0."""
    most = max(values) if most is None else most
    return [value / most if most else 0.0 for value in values]


def _short(value: float) -> str:
    """Return a number in six characters at the most, to stand above a column."""
    if not 10_000 <= value < HUGE:
        return number(value)
    return f"{value / 1e6:.1f}M" if value >= 1e6 else f"{value / 1e3:.1f}k"


def _told(title: str, names: Iterable[str], texts: Iterable[str]) -> str:
    told = (f"{name} {'nobody drove' if text == NOTHING else text}" for name, text in zip(names, texts, strict=True))
    return f"{title}: {'; '.join(told)}."
