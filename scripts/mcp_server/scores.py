"""The tools that explain scores: of one driver, of several, and of those to coach."""

import math
from collections.abc import Sequence
from typing import Annotated, Literal

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from schemas.date_params import HISTORY
from schemas.periods import LongPeriodName, PeriodName, get_today
from schemas.score import compute_score
from scripts.mcp_server.client import Api, ApiClient, InvalidInput, Params
from scripts.mcp_server.models import (
    Behaviour,
    Data,
    Driver,
    ExplainedScore,
    NoScore,
    Number,
    Score,
    Summary,
    Window,
    WindowResult,
    get_change,
)
from scripts.mcp_server.windows import EndDate, PeriodDate, StartDate, get_periods, get_windows

# As many of the longest rows as have room in a result.
MAX_DRIVERS = 10
PAGE_SIZE = 100
# How many drivers of each ranking are read.
MAX_RANKED = 5_000
BEST_SCORE = 100

DriverAndScore = tuple[Driver, ExplainedScore | NoScore]


class Interval(Data):
    """An interval in which the driver drove."""

    start_date: str
    explanation: Score


class DriverScore(Data):
    """The explanation of a driver's score in a window and its intervals."""

    driver_info: Driver
    total: ExplainedScore | None
    series: list[Interval]


class Explanation(Data):
    """The score of a driver, and what it is made of."""

    driver: Driver
    score: Score | NoScore
    score_before: Score | NoScore
    score_change: Number | None
    behaviours: list[Behaviour] = Field(description="Those that cost points, the most costly first.")


async def get_driver_score(api: ApiClient, driver_id: str, window: Window, interval: PeriodName) -> DriverScore:
    """Return the explanation of a driver's score. Raises InvalidInput if the window is outside the last six months."""
    params = {"start_date": str(window.start_date), "end_date": str(window.end_date), "interval": interval}
    return await api.get(DriverScore, "driver", driver_id, "score", params=params)


class DriverWindow(Data):
    """A driver, and the driver's totals in a window."""

    driver_info: Driver
    driving_summary: Summary | None = None


class WindowPage(Data):
    """The drivers of a request."""

    data: list[DriverWindow]


async def get_scores(api: ApiClient, driver_ids: Sequence[str], window: Window) -> list[DriverAndScore]:
    """Return drivers and their scores. Raises InvalidInput if the window is outside the last six months."""
    if not driver_ids:
        # The service would return all drivers.
        return []
    params: Params = {"start_date": str(window.start_date), "end_date": str(window.end_date), "driver_id": driver_ids}
    page = await api.get(WindowPage, "driver-aggregate", "window", params=params)
    return [(row.driver_info, _explain(row.driving_summary)) for row in page.data]


def _explain(summary: Summary | None) -> ExplainedScore | NoScore:
    return ExplainedScore(**compute_score(dict(summary))) if summary else "did_not_drive"


async def _compare(api: ApiClient, scores: Sequence[DriverAndScore], before: Window) -> list[Explanation]:
    """Return the scores of drivers compared with the window before."""
    scores_before: list[ExplainedScore | NoScore]
    try:
        scores_before = [score for _, score in await get_scores(api, [one.driver_id for one, _ in scores], before)]
    except InvalidInput:
        scores_before = ["not_known" for _ in scores]
    return [
        _make_explanation(driver, score, score_before)
        for (driver, score), score_before in zip(scores, scores_before, strict=True)
    ]


def _make_explanation(
    driver: Driver, score: ExplainedScore | NoScore, score_before: ExplainedScore | NoScore
) -> Explanation:
    behaviours, behaviours_before = (
        one.behaviours if isinstance(one, ExplainedScore) else [] for one in (score, score_before)
    )
    points_before = {row.behaviour: row.points_lost for row in behaviours_before}
    costly = [
        row.model_copy(update={"points_lost_before": points_before.get(row.behaviour)})
        for row in behaviours
        if row.points_lost or points_before.get(row.behaviour)
    ]
    return Explanation(
        driver=driver,
        score=score,
        score_before=score_before,
        score_change=get_change(score, score_before),
        behaviours=sorted(costly, key=lambda row: -row.points_lost),
    )


class ScoreExplanation(Explanation, WindowResult):
    """The score of a driver, what it is made of, and the score of each interval."""

    intervals: dict[str, Number] = Field(description="The score of each interval with trips, by its first date.")


async def explain_score(
    api: Api,
    driver_id: str,
    start_date: StartDate = None,
    end_date: EndDate = None,
    interval: PeriodName = "day",
) -> ScoreExplanation:
    """Explain a driver's score in any window up to today: the points that each behaviour costs.

    It compares with the window of the same length before. The score of each interval shows when it changed. For the
    trips that cost the points, use list_trips.
    """
    window, before = get_windows(start_date, end_date)
    content = await get_driver_score(api, driver_id, window, interval)
    (explanation,) = await _compare(api, [(content.driver_info, content.total or "did_not_drive")], before)
    return ScoreExplanation(
        **dict(explanation),
        window=window,
        window_before=before,
        intervals={item.start_date: item.explanation.fm_score for item in content.series},
    )


class Comparison(WindowResult):
    """Drivers in one window."""

    drivers: list[Explanation]


async def compare_drivers(
    api: Api,
    driver_ids: Annotated[list[str], Field(min_length=1, max_length=MAX_DRIVERS)],
    start_date: StartDate = None,
    end_date: EndDate = None,
) -> Comparison:
    """Compare up to 10 drivers in any window up to today, and with the window before. The best score comes first.

    Points do not depend on how far somebody drove.
    """
    window, before = get_windows(start_date, end_date)
    rows = await _compare(api, await get_scores(api, driver_ids, window), before)
    rows.sort(key=lambda row: -row.score.fm_score if isinstance(row.score, Score) else 1)
    return Comparison(window=window, window_before=before, drivers=rows)


class RankedDriver(Data):
    """A driver, and the driver's score in a period."""

    driver_info: Driver
    driving_summary: Score


class Ranking(Data):
    """A page of the drivers who drove in a period."""

    count: int
    next_page: int | None
    drivers: list[RankedDriver]


class Coaching(Comparison):
    """The drivers to coach."""

    driver_count: int = Field(description="How many drove, at least min_distance_miles.")
    compared_driver_count: int | None = Field(description="got_worse: how many of them have a score before, too.")
    left_out: int = Field(description="How many more drivers to coach are among the 5,000 lowest scores.")


async def who_needs_coaching(
    api: Api,
    period: LongPeriodName = "week",
    date: PeriodDate = None,
    order: Annotated[
        Literal["lowest_score", "got_worse"],
        Field(description="got_worse: whose score fell most since the week or month before."),
    ] = "lowest_score",
    min_distance_miles: Annotated[float, Field(ge=0, le=1_000_000, description="Leaves out who drove less.")] = 0,
    limit: Annotated[int, Field(ge=1, le=MAX_DRIVERS)] = 5,
) -> Coaching:
    """List whom to coach in a week or month that began before today, and why: the points that each behaviour costs.

    Nobody with the best score is listed, so there may be nobody to coach.
    For the trips behind it, call list_trips with a driver_id and the dates of the window.
    """
    window, before = get_periods(period, date)
    compares = order == "got_worse"
    if compares and before.start_date < get_today() - HISTORY:
        raise ToolError(
            f"Who got worse is not known: the {period} before begins on {before.start_date}, more than six months ago. "
            "Choose a later date."
        )
    below = math.inf if compares else BEST_SCORE
    count, scores = await _rank(api, period, window, min_distance_miles, below)
    to_coach = list(scores)
    if compares:
        _, scores_before = await _rank(api, period, before, min_distance_miles, below)
        changes = {
            driver_id: scores[driver_id] - scores_before[driver_id]
            for driver_id in scores.keys() & scores_before.keys()
        }
        worse = sorted((change, driver_id) for driver_id, change in changes.items() if change < 0)
        to_coach = [driver_id for _, driver_id in worse]
    return Coaching(
        window=window,
        window_before=before,
        drivers=await _compare(api, await get_scores(api, to_coach[:limit], window), before),
        driver_count=count,
        compared_driver_count=len(changes) if compares else None,
        left_out=max(0, len(to_coach) - limit),
    )


async def _rank(
    api: ApiClient, period: LongPeriodName, window: Window, min_distance_miles: float, below: float
) -> tuple[int, dict[str, float]]:
    """Return how many drivers a ranking has, and the MAX_RANKED lowest scores under `below` by driver_id, in order."""
    scores: dict[str, float] = {}
    next_page: int | None = 1
    while next_page and len(scores) < MAX_RANKED:
        params: Params = {
            "period": period,
            "start_date": str(window.start_date),
            # Like the service, without an exponent.
            "min_distance_miles": f"{min_distance_miles:f}",
            "limit": PAGE_SIZE,
            "page": next_page,
        }
        page = await api.get(Ranking, "ranking", params=params)
        found = {row.driver_info.driver_id: row.driving_summary.fm_score for row in page.drivers}
        scores |= {driver_id: score for driver_id, score in found.items() if score < below}
        next_page = page.next_page if max(found.values(), default=below) < below else None
    return page.count, scores
