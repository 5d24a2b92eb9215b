"""The tool that finds whom to coach: who has the lowest score, or who got worse."""

from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from schemas.periods import LongPeriodName
from scripts.mcp_server.client import ApiClient
from scripts.mcp_server.periods import PeriodArguments, Window, get_period, get_previous_period
from scripts.mcp_server.results import DRIVER_FIELDS, MAX_ROWS, DriverData, Result, Tool
from scripts.mcp_server.scores import Behaviour, fetch_explanation, find_behaviours
from scripts.mcp_server.summaries import (
    NOT_KNOWN,
    SCORE_FIELDS,
    SUMMARY_FIELDS,
    Score,
    ScoreStatus,
    Summary,
    describe_score,
    find_summaries,
    get_score_status,
)
from scripts.mcp_server.text import format_change, format_count

PAGE_SIZE = 100
# How many drivers of a ranking are compared with the period before.
MAX_COMPARED = 2_000
DRIVER_MASK = f"driver_info{{{DRIVER_FIELDS}}},driving_summary{{{SUMMARY_FIELDS}}}"


class CoachingArguments(PeriodArguments):
    """The arguments of who_needs_coaching."""

    period: LongPeriodName = Field(default="week", description="A week from Monday to Sunday, or a calendar month.")
    order: Literal["lowest_score", "got_worse"] = Field(
        default="lowest_score",
        description="lowest_score: who drives worst. got_worse: whose score fell most since the period before.",
    )
    min_distance_miles: float = Field(
        default=0, ge=0, le=1_000_000, description="Leaves out who drove less: a few short trips say little."
    )
    limit: int = Field(default=5, ge=1, le=MAX_ROWS, description="Maximum number of drivers in the result.")


class CoachedDriver(Score):
    """A driver to coach."""

    driver: DriverData
    before: Score | None = Field(description="The period before. Null unless before_status is known.")
    before_status: ScoreStatus
    change: float | None = Field(description="Change of the score. Negative is worse.")
    behaviours: list[Behaviour] | None = Field(
        description="Why: what each behaviour costs, the most costly first; with got_worse that which grew most. Null "
        "if that is not known, because the month began more than six months ago."
    )
    totals: Summary | None = Field(description="The rates of the behaviours, if `behaviours` is null.")

    def __str__(self) -> str:
        reasons = "; ".join(map(str, self.behaviours or ())) or "nothing costs points"
        if self.totals:
            reasons = f"points {NOT_KNOWN}; {self.totals.describe_behaviours()}"
        before = f"before: {describe_score(self.before, self.before_status)}"
        return f"{self.driver}: {super().__str__()}{format_change(self.change)}; {before}. Why: {reasons}"


class Coaching(Result):
    """The drivers to coach."""

    ROWS: ClassVar[str] = "drivers"

    period: Window
    previous_period: Window
    order: str
    min_distance_miles: float = Field(description="As in the call. Who drove less is left out.")
    ranked_driver_count: int = Field(description="How many drivers drove in the period, at least min_distance_miles.")
    compared_driver_count: int | None = Field(
        description="got_worse: how many of them, those with the lowest scores, were compared with the period before."
    )
    previous_period_is_known: bool = Field(
        description="False if it begins more than six months ago: who got worse is then not known, and got_worse finds "
        "nobody."
    )
    drivers: list[CoachedDriver]

    def to_lines(self) -> list[str]:
        """Return a line for each driver."""
        what = "lowest score" if self.order == "lowest_score" else f"fell most since {self.previous_period}"
        least = f" at least {self.min_distance_miles:g} miles" if self.min_distance_miles else ""
        count = format_count(self.ranked_driver_count, "driver")
        lines = [f"Whom to coach, {self.period}: {what} first. {count} drove{least}."]
        if self.compared_driver_count is not None and not self.previous_period_is_known:
            return [*lines, f"Who got worse is not known: the period before is {NOT_KNOWN}."]
        if self.compared_driver_count is not None and self.compared_driver_count < self.ranked_driver_count:
            lines.append(f"Only the {self.compared_driver_count} drivers with the lowest scores were compared.")
        rows = [f"{number}. {driver}" for number, driver in enumerate(self.drivers, 1)]
        return [*lines, *(rows or ["Nobody."])]


async def who_needs_coaching(api: ApiClient, arguments: CoachingArguments) -> Coaching:
    """List the drivers to coach in a week or month, and why: what each behaviour costs them, now and before.

    With order=lowest_score the worst drivers come first; with order=got_worse those whose score fell most since the
    week or month before. For the trips behind it, call list_trips with the driver_id and the dates of the period.
    """
    window = get_period(arguments.period, arguments.date)
    previous = get_previous_period(arguments.period, window)
    compares_all = arguments.order == "got_worse"
    count, ranked = await _rank(api, window, arguments, MAX_COMPARED if compares_all else arguments.limit)
    is_available = previous.is_available(arguments.period)
    before = await _find_summaries_before(api, ranked, previous, arguments.period) if is_available else {}
    comparison = _Comparison(arguments, window, previous, before)
    total, compared = count, min(count, MAX_COMPARED) if is_available else 0
    if compares_all:
        ranked = comparison.find_worse(ranked)
        total = len(ranked)
    selected = ranked[: arguments.limit]
    return Coaching(
        period=window,
        previous_period=previous,
        order=arguments.order,
        min_distance_miles=arguments.min_distance_miles,
        ranked_driver_count=count,
        compared_driver_count=compared if compares_all else None,
        previous_period_is_known=is_available,
        drivers=[await comparison.explain(api, element) for element in selected],
        more=total - len(selected),
    )


class _Comparison(NamedTuple):
    """A period and the one before, with the summaries of those who drove before, by driver_id."""

    arguments: CoachingArguments
    window: Window
    previous: Window
    before: dict[str, dict[str, Any]]

    def find_worse(self, ranked: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the drivers whose score fell, those first whose score fell most."""
        changes = [(self.get_change(element), element) for element in ranked]
        worse = [(change, element) for change, element in changes if change is not None and change < 0]
        return [element for _, element in sorted(worse, key=lambda pair: pair[0])]

    def get_change(self, element: dict[str, Any]) -> float | None:
        """Return the change of a driver's score, or None if the driver has none before."""
        score_before = self.before.get(element["driver_info"]["driver_id"])
        return round(element["driving_summary"]["fm_score"] - score_before["fm_score"], 1) if score_before else None

    async def explain(self, api: ApiClient, element: dict[str, Any]) -> CoachedDriver:
        """Return a driver with the behaviours of both periods, which one explanation has."""
        values, driver_id = element["driving_summary"], element["driver_info"]["driver_id"]
        score_before, is_available = self.before.get(driver_id), self.previous.is_available(self.arguments.period)
        behaviours = await self._find_behaviours(api, driver_id) if self.window.is_available() else None
        return CoachedDriver(
            **Score.of(values).model_dump(),
            driver=DriverData.of(element["driver_info"]),
            before=Score.of(score_before) if score_before else None,
            before_status=get_score_status(score_before, is_available=is_available),
            change=self.get_change(element),
            behaviours=behaviours,
            totals=Summary.of(values) if behaviours is None else None,
        )

    async def _find_behaviours(self, api: ApiClient, driver_id: str) -> list[Behaviour]:
        window, previous = self.window, self.previous
        has_both = driver_id in self.before and previous.is_available()
        both = Window.of(previous.start_date if has_both else window.start_date, window.end_date).end_today()
        series = (await fetch_explanation(api, driver_id, both, self.arguments.period))["series"]
        explanations = {item["start_date"]: item["explanation"] for item in series}
        explanation = explanations.get(str(window.start_date))
        explanation_before = explanations.get(str(previous.start_date))
        behaviours = find_behaviours(explanation, explanation_before) if explanation else []
        if self.arguments.order == "got_worse":
            behaviours.sort(key=lambda behaviour: -behaviour.change)
        return behaviours


async def _rank(
    api: ApiClient, window: Window, arguments: CoachingArguments, max_drivers: int
) -> tuple[int, list[dict[str, Any]]]:
    """Return how many drivers the ranking has, and up to `max_drivers` with the lowest scores."""
    params: dict[str, str | int] = {
        "period": arguments.period,
        "start_date": str(window.start_date),
        "limit": min(max_drivers, PAGE_SIZE),
    }
    if arguments.min_distance_miles:
        params["min_distance_miles"] = repr(arguments.min_distance_miles)
    mask = f"count,next_page,drivers{{{DRIVER_MASK}}}"
    drivers: list[dict[str, Any]] = []
    page, count = 1, 0
    while page and len(drivers) < max_drivers:
        ranking = await api.get("ranking", params={**params, "page": page}, fields=mask)
        drivers += ranking["drivers"]
        page, count = ranking["next_page"], ranking["count"]
    return count, drivers


async def _find_summaries_before(
    api: ApiClient, ranked: list[dict[str, Any]], previous: Window, period: LongPeriodName
) -> dict[str, dict[str, Any]]:
    ids = [element["driver_info"]["driver_id"] for element in ranked]
    elements = await find_summaries(api, ids, period, previous, SCORE_FIELDS)
    return {
        element["driver_info"]["driver_id"]: element["driving_summary"]
        for element in elements
        if "driving_summary" in element
    }


TOOLS = (Tool(who_needs_coaching, CoachingArguments, Coaching, "Who needs coaching"),)
