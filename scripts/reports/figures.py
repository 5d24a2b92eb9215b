"""The content of a report: one row per driver, and figures of the fleet.

Drivers are read in chunks, so that the memory needed does not depend on the size of the fleet.
"""

import dataclasses
import datetime
import functools
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import orjson
from pymongo import ASCENDING
from pymongo.client_session import ClientSession

from app.store import Document, Store
from app.store.driver_periods import find_profiles
from app.store.fleets import get_time_zone
from schemas.fields import MAX_INT
from schemas.introspection import fields_of
from schemas.periods import DAYS_A_WEEK
from schemas.score import make_driving_summary
from schemas.summary import GRADES, SummaryFocusArea
from scripts.materialize import pipelines

CHUNK_DRIVERS = 1_000
BY_ID = [("driver_id", ASCENDING)]
# Drivers in each of the two rankings, best and worst, and in the table of all drivers.
RANKED_DRIVERS = 10
LISTED_DRIVERS = 500
SCORE_BINS = 10
BIN_WIDTH = 100 / SCORE_BINS


class Row(NamedTuple):
    """A Driver and its DrivingSummary, or None if the driver did not drive."""

    driver: Document
    summary: Document | None


@dataclasses.dataclass
class Figures:
    """The figures of a fleet in the seven days of the report and the seven days before.

    Each summary is a DrivingSummary, or None if nobody drove.
    """

    fleet: str
    report_date: str
    dates: list[str]
    # The name of the time zone of the dates.
    time_zone: str
    # The number of drivers in the fleet, and of those who drove.
    drivers: int = 0
    drove: int = 0
    total: Document | None = None
    before: Document | None = None
    # One summary per date.
    days: list[Document | None] = dataclasses.field(default_factory=list)
    # Numbers of drivers: by score (0 to below 10, ..., 90 to 100), by grade, and by focus flag.
    scores: list[int] = dataclasses.field(default_factory=lambda: [0] * SCORE_BINS)
    grades: dict[str, int] = dataclasses.field(default_factory=lambda: dict.fromkeys(GRADES, 0))
    focus: dict[str, int] = dataclasses.field(default_factory=lambda: dict.fromkeys(fields_of(SummaryFocusArea), 0))
    # The two ends of the ranking by score, then driver_id, each from its end; nobody is in both. And the first drivers
    # by driver_id.
    best: list[Row] = dataclasses.field(default_factory=list)
    worst: list[Row] = dataclasses.field(default_factory=list)
    first: list[Row] = dataclasses.field(default_factory=list)


class FigureCollector:
    """Reads the rows of a report, and adds up its figures on the way."""

    def __init__(self, store: Store, session: ClientSession, fleet: str, report_date: str) -> None:
        self._store, self._session, self._fleet = store, session, fleet
        last = datetime.date.fromisoformat(report_date)
        # The week before, and the week of the report.
        self._dates = [str(last - datetime.timedelta(days)) for days in range(2 * DAYS_A_WEEK, 0, -1)]
        self._totals_by_date: dict[str, Document] = {}
        # The best and worst drivers of the chunks read: the negative score, driver_id and row.
        self._candidates: list[tuple[float, str, Row]] = []
        self.figures = Figures(fleet, report_date, self._dates[DAYS_A_WEEK:], get_time_zone(store, fleet, session).key)

    def rows(self) -> Iterator[list[Row]]:
        """Yield the rows of all drivers in chunks, by driver_id. `figures` is complete after the last chunk."""
        last_id = ""
        while drivers := self._find_drivers(last_id):
            last_id = drivers[-1]["driver_id"]
            ids = [driver["driver_id"] for driver in drivers]
            summaries = self._find_summaries(ids)
            rows = [Row(driver, summaries.get(driver["driver_id"])) for driver in drivers]
            self._count(rows)
            self._rank(rows)
            self._add_totals(ids)
            yield rows
        self._summarize_fleet()

    def _find_drivers(self, after_id: str) -> list[Document]:
        drivers = {"fleet": self._fleet, "driver_id": {"$gt": after_id}}
        profiles = find_profiles(self._store, self._session, drivers, "json", limit=CHUNK_DRIVERS)
        return [orjson.loads(profile["json"]) for profile in profiles.values()]

    def _find_summaries(self, driver_ids: list[str]) -> dict[str, Document]:
        pipeline = pipelines.driver_totals(self._fleet, driver_ids, self.figures.dates)
        weeks = self._store.driver_periods.aggregate(pipeline, session=self._session, hint="period")
        return {week["_id"]: make_driving_summary(week["totals"]) for week in weeks}

    def _count(self, rows: Sequence[Row]) -> None:
        figures = self.figures
        figures.drivers += len(rows)
        figures.first += rows[: LISTED_DRIVERS - len(figures.first)]
        for _, summary in rows:
            if summary is None:
                continue
            figures.drove += 1
            figures.scores[min(int(summary["fm_score"] / BIN_WIDTH), SCORE_BINS - 1)] += 1
            figures.grades[summary["fm_grade"]] += 1
            for flag, is_set in summary["focus_area"].items():
                figures.focus[flag] += is_set

    def _rank(self, rows: Sequence[Row]) -> None:
        self._candidates += [
            (-row.summary["fm_score"], row.driver["driver_id"], row) for row in rows if row.summary is not None
        ]
        ranking = sorted(self._candidates, key=lambda item: item[:2])
        # Of all who drove, the candidates are both ends, or all of them.
        half = min(RANKED_DRIVERS, -(-len(ranking) // 2))
        self.figures.best = [row for *_, row in ranking[:half]]
        self.figures.worst = [row for *_, row in ranking[half:][: -RANKED_DRIVERS - 1 : -1]]
        self._candidates = ranking[:RANKED_DRIVERS] + ranking[RANKED_DRIVERS:][-RANKED_DRIVERS:]

    def _add_totals(self, driver_ids: Sequence[str]) -> None:
        pipeline = pipelines.fleet_totals(self._fleet, list(driver_ids), self._dates)
        for day in self._store.driver_periods.aggregate(pipeline, session=self._session, hint="period"):
            earlier = self._totals_by_date.get(day["_id"])
            self._totals_by_date[day["_id"]] = _add(earlier, day["totals"]) if earlier else day["totals"]

    def _summarize_fleet(self) -> None:
        before, week = self._dates[:DAYS_A_WEEK], self._dates[DAYS_A_WEEK:]
        self.figures.days = [self._summarize([date]) for date in week]
        self.figures.total, self.figures.before = self._summarize(week), self._summarize(before)

    def _summarize(self, dates: Sequence[str]) -> Document | None:
        totals = [self._totals_by_date[date] for date in dates if date in self._totals_by_date]
        if not totals:
            return None
        total: Document = functools.reduce(_add, totals)
        return make_driving_summary(total)


def _add(one: Document, other: Document) -> Document:
    """Return the sum of two totals, limited to what a document can hold (64 bits, the largest double)."""
    return {
        name: _add(value, other[name]) if isinstance(value, dict) else _add_numbers(value, other[name])
        for name, value in one.items()
    }


def _add_numbers(one: float, other: float) -> float:
    return min(one + other, MAX_INT if isinstance(one + other, int) else sys.float_info.max)
