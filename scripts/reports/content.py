"""The content of a report: one row per driver, and figures of the fleet.

Drivers are read in chunks, so that only their rows take memory in a large fleet: 25 MB for 100,000 drivers.
"""

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import orjson
from pymongo import ASCENDING

from app.store import Document, Store
from app.store.driver_periods import BY_DRIVER, find_profiles
from app.store.fleets import get_settings, get_time_zone
from schemas.fleet import IMPLAUSIBLE_COUNT, INSURANCE_PERIODS, add_whole, make_fleet_summary, make_segment
from schemas.periods import DAY, now_ms
from schemas.plausibility import COUNTED
from schemas.report import ReportWindow
from schemas.score import make_driving_summary
from schemas.summary import GRADES, SummaryFocusArea
from scripts.materialize.fleet_periods import find_members
from scripts.materialize.periods import driver_totals
from scripts.materialize.versions import version_of

CHUNK_DRIVERS = 1_000
# Drivers in each of the two rankings, worst and best, and in the table of all drivers, which fills most of the page.
RANKED_DRIVERS = 10
LISTED_DRIVERS = 10_000
SCORE_BINS = 10
BIN_WIDTH = 100 / SCORE_BINS
BY_SEGMENT = [("segment", ASCENDING), ("start_date", ASCENDING)]
# The documents of a segment in `fleet_periods`, by date.
Days = dict[str, Document]


class Row(NamedTuple):
    """A Driver, its DrivingSummary, or None if the driver did not drive, and its groups.

    `is_doubtful` says whether the summary counts implausible trips.
    """

    driver: Document
    summary: Document | None
    is_doubtful: bool = False
    groups: Sequence[str] = ()


@dataclasses.dataclass
class Group:
    """The numbers of drivers of a group and of those who drove, and the summaries of the two windows.

    Each summary has the fields of a DrivingSummary, or is None if nobody drove.
    """

    drivers: int = 0
    drove: int = 0
    total: Document | None = None
    before: Document | None = None


@dataclasses.dataclass(kw_only=True)
class Figures(Group):
    """The figures of a fleet in the window of the report and the one before: those of a group, and more."""

    fleet: str
    window: ReportWindow
    # The name of the time zone of the dates.
    time_zone: str
    # Epoch milliseconds.
    built_at: int
    # One summary per part of the window. The integers that they are made of add up to those of the total.
    parts: list[Document | None] = dataclasses.field(default_factory=list)
    # What the figures do with implausible trips, and how many there are in the window and in the one before.
    implausible_policy: str = COUNTED
    implausible_trips: tuple[int, int] = (0, 0)
    # Numbers of the drivers who are judged: by score (0 to below 10, ..., 90 to 100), by grade, and by focus flag.
    scores: list[int] = dataclasses.field(default_factory=lambda: [0] * SCORE_BINS)
    grades: dict[str, int] = dataclasses.field(default_factory=lambda: dict.fromkeys(GRADES, 0))
    focus: dict[str, int] = dataclasses.field(default_factory=lambda: dict.fromkeys(SummaryFocusArea().fields, 0))
    # The first of those who are judged in both orders of the API's ranking; nobody is in both. And the first drivers by
    # driver_id.
    best: list[Row] = dataclasses.field(default_factory=list)
    worst: list[Row] = dataclasses.field(default_factory=list)
    first: list[Row] = dataclasses.field(default_factory=list)
    # By name.
    groups: dict[str, Group] = dataclasses.field(default_factory=dict)
    # The summary of the trips of each insurance period, by its name. Empty if no trip has one.
    insurance_periods: dict[str, Document] = dataclasses.field(default_factory=dict)

    @property
    def judged(self) -> int:
        """The number of drivers who drove far enough to be judged, as in the explorer."""
        return sum(self.grades.values())


class FigureCollector:
    """Reads the rows of a report, and counts drivers on the way. What the fleet adds up to is in `fleet_periods`."""

    def __init__(self, store: Store, fleet: str, window: ReportWindow) -> None:
        self._store, self._fleet = store, fleet
        self._dates, self._dates_before = window.dates, window.dates_before
        # Those of the chunks read who may be among the best and worst.
        self._candidates: list[Row] = []
        zone, policy = get_settings(store, fleet)
        self.figures = Figures(
            fleet=fleet, window=window, time_zone=zone.key, built_at=now_ms(), implausible_policy=policy
        )

    def rows(self) -> Iterator[list[Row]]:
        """Yield the rows of all drivers in chunks, by driver_id. `figures` is complete after the last chunk."""
        last_id = ""
        while profiles := self._find_profiles(last_id):
            *_, last_id = profiles
            summaries = self._find_summaries([*profiles])
            rows = [
                Row(orjson.loads(profile["json"]), summary, is_doubtful, profile.get("groups", ()))
                for driver_id, profile in profiles.items()
                for summary, is_doubtful in [summaries.get(driver_id, (None, False))]
            ]
            self._rank(self._count(rows))
            yield rows
        self._summarize_fleet()

    def _find_profiles(self, after_id: str) -> dict[str, Document]:
        drivers = {"fleet": self._fleet, "driver_id": {"$gt": after_id}}
        return find_profiles(self._store, drivers, "json", "groups", limit=CHUNK_DRIVERS)

    def _find_summaries(self, driver_ids: list[str]) -> dict[str, tuple[Document, bool]]:
        """Return the summary of each driver who drove, and whether it counts implausible trips."""
        pipeline = driver_totals(self._fleet, driver_ids, self._dates)
        are_counted = self.figures.implausible_policy == COUNTED
        return {
            found["_id"]: (make_driving_summary(found["totals"]), are_counted and found[IMPLAUSIBLE_COUNT] > 0)
            for found in self._store.driver_periods.aggregate(pipeline, hint="period")
            if found["totals"]["trip_count"]
        }

    def _count(self, rows: Sequence[Row]) -> list[Row]:
        """Count drivers. Returns those who are judged."""
        figures, judged = self.figures, list[Row]()
        figures.first += rows[: LISTED_DRIVERS - len(figures.first)]
        for row in rows:
            for group in (figures, *(figures.groups.setdefault(name, Group()) for name in row.groups)):
                group.drivers += 1
                group.drove += row.summary is not None
            if (summary := row.summary) is None or summary["distance_miles"] < figures.window.min_distance_miles:
                continue
            judged.append(row)
            figures.scores[min(int(summary["fm_score"] / BIN_WIDTH), SCORE_BINS - 1)] += 1
            figures.grades[summary["fm_grade"]] += 1
            for flag, is_set in summary["focus_area"].items():
                figures.focus[flag] += is_set
        return judged

    def _rank(self, rows: Sequence[Row]) -> None:
        worst, best = (sorted([*self._candidates, *rows], key=partial(_get_rank, sign)) for sign in (1, -1))
        self.figures.worst = worst[: min(RANKED_DRIVERS, len(worst) // 2)]
        ids = {row.driver["driver_id"] for row in self.figures.worst}
        rest = [row for row in best if row.driver["driver_id"] not in ids]
        self.figures.best = rest[:RANKED_DRIVERS]
        # As many more as later rows may move from the worst to the best.
        self._candidates = self.figures.worst + rest[: 2 * RANKED_DRIVERS]

    def _summarize_fleet(self) -> None:
        figures, dates, before = self.figures, self._dates, self._dates_before
        days = self._find_days()
        whole = days[make_segment(None)]
        figures.parts = [_summarize(part, whole) for part in figures.window.parts]
        figures.implausible_trips = (
            _sum_days(dates, whole)[IMPLAUSIBLE_COUNT],
            _sum_days(before, whole)[IMPLAUSIBLE_COUNT],
        )
        figures.groups = dict(sorted(figures.groups.items()))
        for name, group in [(None, figures), *figures.groups.items()]:
            of_group = days[make_segment(name)]
            group.total, group.before = _summarize(dates, of_group), _summarize(before, of_group)
        if any("parts" in whole.get(date, {}) for date in dates):
            totals = {name: _summarize(dates, whole, name) for name in INSURANCE_PERIODS}
            figures.insurance_periods = {name: total for name, total in totals.items() if total}

    def _find_days(self) -> Mapping[str, Days]:
        """Return the days of the whole fleet and of each group, by segment."""
        segments, dates = _name_segments(self.figures.groups), [*self._dates_before, *self._dates]
        match = {"segment": {"$in": segments}, "period": DAY, "start_date": {"$in": dates}}
        fields = {"_id": 0, "segment": 1, "start_date": 1, "sums": 1, "parts": 1}
        days = defaultdict[str, Days](dict)
        for day in self._store.fleet_periods.find({"fleet": self._fleet, **match}, fields):
            days[day["segment"]][day["start_date"]] = day
        return days


def _get_rank(sign: int, row: Row) -> tuple[float, float, str]:
    """Return what orders a driver in a ranking of the API: the lowest score first, or with the sign -1 the highest."""
    summary: Document = row.summary or {}
    return sign * summary["fm_score"], -summary["distance_miles"], row.driver["driver_id"]


def get_trips_version(store: Store, fleet: str, window: ReportWindow) -> str:
    """Return a version of what a report on a calendar week or month shows of trips: those of it, and of the one before.

    It changes with the time zone and with who is in which group, too, but not with the names and travel dates of
    drivers. Indexes: driver_periods (fleet, period, driver_id, start_date) and (fleet, groups, driver_id),
    fleet_periods (fleet, segment, period, start_date).
    """
    start, before = window.dates[0], window.dates_before[0]
    match, fields = {"fleet": fleet, "period": window.period}, {"_id": 0, "driver_id": 1, "segment": 1, "version": 1}
    groups = find_members(store, fleet)
    drivers = store.driver_periods.find({**match, "start_date": start}, fields, sort=BY_DRIVER)
    of_segments = {**match, "segment": {"$in": _name_segments(groups)}, "start_date": {"$in": [start, before]}}
    sums = store.fleet_periods.find(of_segments, fields, sort=BY_SEGMENT)
    return version_of(get_time_zone(store, fleet).key, groups, [*sums], [*drivers])


def _name_segments(groups: Iterable[str]) -> list[str]:
    """Return the segments of a report: the whole fleet, and each group."""
    return [make_segment(group) for group in (None, *groups)]


def _summarize(dates: Sequence[str], days: Days, insurance_period: str | None = None) -> Document | None:
    """Return the summary of a segment on these dates, or None if nobody drove."""
    found = _sum_days(dates, days, insurance_period)
    return make_fleet_summary(found) if found["driver_count"] else None


def _sum_days(dates: Sequence[str], days: Days, insurance_period: str | None = None) -> Counter[str]:
    """Return the sums of a segment on these dates."""
    found = Counter[str]()
    for day in filter(None, map(days.get, dates)):
        # A damaged document has no sums.
        sums = day.get("sums", {})
        if insurance_period is not None:
            parts = {part["insurance_period"]: part for part in day.get("parts", ())}
            sums = add_whole(insurance_period, parts.get(insurance_period, {}), sums)
        found.update(sums)
    return found
