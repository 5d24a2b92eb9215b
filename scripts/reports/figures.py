"""What a report tells: a row a driver, and figures of the fleet. Gathered chunk by chunk, in bounded memory."""

import dataclasses
import datetime
import functools
import heapq
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import orjson
from pymongo import ASCENDING
from pymongo.client_session import ClientSession

from app.store import Document, Store
from app.store.score import compute_score
from app.store.summaries import PROFILE
from schemas.fields import MAX_INT
from schemas.introspection import fields_of
from schemas.summary import GRADES, SummaryFocusArea
from scripts.materialize import pipelines
from scripts.materialize.dates import DAYS_A_WEEK

# Drivers at a time.
CHUNK = 1_000
BY_ID = [("driver_id", ASCENDING)]
BEST = 10
LISTED = 500
SCORE_BINS = 10
WIDTH = 100 / SCORE_BINS


class Row(NamedTuple):
    """A Driver and its DrivingSummary, None where it did not drive."""

    driver: Document
    summary: Document | None


@dataclasses.dataclass
class Figures:
    """A fleet in seven days, and in the seven before; a summary is a DrivingSummary, or None where nobody drove."""

    fleet: str
    report_date: str
    dates: list[str]
    # In the fleet, and of them those who drove.
    drivers: int = 0
    drove: int = 0
    total: Document | None = None
    before: Document | None = None
    # One a date.
    days: list[Document | None] = dataclasses.field(default_factory=list)
    # How many drivers by score, from 0 to below 10 and so on, the last one up to 100; by grade; by flag.
    scores: list[int] = dataclasses.field(default_factory=lambda: [0] * SCORE_BINS)
    grades: dict[str, int] = dataclasses.field(default_factory=lambda: dict.fromkeys(GRADES, 0))
    focus: dict[str, int] = dataclasses.field(default_factory=lambda: dict.fromkeys(fields_of(SummaryFocusArea), 0))
    # By score, then driver_id; and the first by driver_id.
    best: list[Row] = dataclasses.field(default_factory=list)
    worst: list[Row] = dataclasses.field(default_factory=list)
    first: list[Row] = dataclasses.field(default_factory=list)


class Gathering:
    """Adds up what a report tells, while its rows are read."""

    def __init__(self, store: Store, session: ClientSession, fleet: str, report_date: str) -> None:
        self._store, self._session, self._fleet = store, session, fleet
        last = datetime.date.fromisoformat(report_date)
        dates = [str(last - datetime.timedelta(days)) for days in range(2 * DAYS_A_WEEK, 0, -1)]
        self._dates = dates
        self._totals: dict[str, Document] = {}
        # Of those who may be among the best or the worst: score, driver_id and row.
        self._scores: list[tuple[float, str, Row]] = []
        self.figures = Figures(fleet, report_date, dates[DAYS_A_WEEK:])

    def rows(self) -> Iterator[list[Row]]:
        """Yield the rows of all drivers, by driver_id, some at a time. The figures are right once all are read."""
        last = ""
        while drivers := self._drivers(last):
            last = drivers[-1]["driver_id"]
            ids = [driver["driver_id"] for driver in drivers]
            summaries = self._summaries(ids)
            rows = [Row(driver, summaries.get(driver["driver_id"])) for driver in drivers]
            self._count(rows)
            self._add_totals(ids)
            yield rows
        self._sum_up()

    def _drivers(self, after: str) -> list[Document]:
        match = {"fleet": self._fleet, "period": PROFILE, "driver_id": {"$gt": after}}
        found = self._store.driver_periods.find(
            match, {"_id": 0, "json": 1}, sort=BY_ID, limit=CHUNK, session=self._session
        )
        return [orjson.loads(profile["json"]) for profile in found]

    def _summaries(self, driver_ids: list[str]) -> dict[str, Document]:
        pipeline = pipelines.period_summaries(self._fleet, driver_ids, self.figures.dates)
        found = self._store.driver_periods.aggregate(pipeline, session=self._session, hint="period")
        return {week["driver_id"]: week["summary"] for week in found}

    def _count(self, rows: Sequence[Row]) -> None:
        figures = self.figures
        figures.drivers += len(rows)
        for driver, summary in rows:
            if summary is None:
                continue
            figures.drove += 1
            figures.scores[min(int(summary["fm_score"] / WIDTH), SCORE_BINS - 1)] += 1
            figures.grades[summary["fm_grade"]] += 1
            for flag, is_set in summary["focus_area"].items():
                figures.focus[flag] += is_set
            self._scores.append((summary["fm_score"], driver["driver_id"], Row(driver, summary)))
        best = heapq.nsmallest(BEST, self._scores, key=lambda found: (-found[0], found[1]))
        worst = heapq.nsmallest(BEST, self._scores, key=lambda found: found[:2])
        self._scores = list({found[1]: found for found in best + worst}.values())
        figures.best, figures.worst = [row for *_, row in best], [row for *_, row in worst]
        figures.first += rows[: LISTED - len(figures.first)]

    def _add_totals(self, driver_ids: Sequence[str]) -> None:
        pipeline = pipelines.fleet_totals(self._fleet, list(driver_ids), self._dates)
        for doc in self._store.driver_periods.aggregate(pipeline, session=self._session, hint="period"):
            known = self._totals.get(doc["date"])
            self._totals[doc["date"]] = _added(known, doc["totals"]) if known else doc["totals"]

    def _sum_up(self) -> None:
        before, now = self._dates[:DAYS_A_WEEK], self._dates[DAYS_A_WEEK:]
        self.figures.days = [self._summary([date]) for date in now]
        self.figures.total, self.figures.before = self._summary(now), self._summary(before)

    def _summary(self, dates: Sequence[str]) -> Document | None:
        totals = [self._totals[date] for date in dates if date in self._totals]
        if not totals:
            return None
        total: Document = functools.reduce(_added, totals)
        return compute_score(total)


def _added(one: Document, other: Document) -> Document:
    """Return the sum of two totals, which stays within what a document may hold."""
    return {
        name: _added(value, other[name]) if isinstance(value, dict) else _sum(value, other[name])
        for name, value in one.items()
    }


def _sum(one: float, other: float) -> float:
    return min(one + other, MAX_INT if isinstance(one + other, int) else sys.float_info.max)
