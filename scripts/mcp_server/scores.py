"""The tools that explain scores: of one driver, of several, and of those to coach."""

from collections.abc import Sequence
from typing import Annotated, Literal

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from schemas.param_fields import get_first_date
from schemas.periods import LongPeriodName, PeriodName
from schemas.score import compute_points_lost, compute_score
from scripts.mcp_server.arguments import BehaviourName, EndDate, GroupName, InsurancePeriod, PeriodDate, StartDate
from scripts.mcp_server.client import PAGE_SIZE, Api, ApiClient, InvalidInput, Json, Params
from scripts.mcp_server.implausible import make_notice_of_drivers
from scripts.mcp_server.models import Data, Driver, NoScore, Number, Score, ScoreJson, Window, WindowResult, get_change
from scripts.mcp_server.windows import choose_periods, choose_windows

# As many of the longest rows as have room in a result.
MAX_DRIVERS = 10
# How many drivers of each of two rankings are compared.
MAX_COMPARED = 5_000
BEST_SCORE = 100


class Behaviour(Data):
    """What a behaviour costs."""

    behaviour: str
    points_lost: Number
    points_lost_before: Number | None = None
    weight: Number
    count: int
    seconds: Number | None
    is_focus_area: bool


class Explanation(Data):
    """The score of a driver, and what it is made of."""

    driver: Driver
    score: Score | NoScore
    score_before: Score | NoScore
    score_change: Number | None
    behaviours: list[Behaviour] = Field(description="The most costly first. Counts cost nothing without miles.")


async def get_driver_score(api: ApiClient, driver_id: str, window: Window, interval: PeriodName) -> Json:
    """Return the DriverScore of a driver. Raises InvalidInput if the window is outside the last six months."""
    params = {**window.model_dump(mode="json"), "interval": interval}
    return await api.get(Json, "driver", driver_id, "score", params=params)


async def find_summaries(
    api: ApiClient, driver_ids: Sequence[str], window: Window, insurance_period: str | None = None
) -> list[Json]:
    """Return rows of drivers with their scores (`_add_score`).

    Raises InvalidInput if the window is too long, or outside the last 24 months.
    """
    if not driver_ids:
        # The service would return all drivers.
        return []
    params = {**window.model_dump(mode="json"), "driver_id": driver_ids, "insurance_period": insurance_period}
    return [_add_score(row) for row in (await api.get(Json, "driver-aggregate", "window", params=params))["data"]]


def _add_score(row: Json) -> Json:
    """Return a row, which has a `driver_info`, and a `driving_summary` if the driver drove, with the `score`."""
    return row | {"score": compute_score(row["driving_summary"]) if "driving_summary" in row else "did_not_drive"}


async def add_drivers(api: ApiClient, rows: Sequence[Json]) -> list[Json]:
    """Return rows, which have a `driver_id`, with the `driver` of each."""
    # Any window has the names of a driver.
    today = await api.get_today()
    found = await find_summaries(api, [row["driver_id"] for row in rows], Window(start_date=today, end_date=today))
    drivers = {row["driver_info"]["driver_id"]: row["driver_info"] for row in found}
    return [row | {"driver": drivers[row["driver_id"]]} for row in rows]


async def _compare(
    api: ApiClient, rows: Sequence[Json], before: Window, insurance_period: str | None = None
) -> list[Explanation]:
    """Return the scores of rows, which have a `driver_info`, too, compared with the window before."""
    driver_ids = [row["driver_info"]["driver_id"] for row in rows]
    try:
        rows_before = await find_summaries(api, driver_ids, before, insurance_period)
        scores_before = [row["score"] for row in rows_before]
    except InvalidInput:
        scores_before = ["not_known"] * len(rows)
    return [_explain(row, score_before) for row, score_before in zip(rows, scores_before, strict=True)]


def _explain(row: Json, score_before: ScoreJson) -> Explanation:
    score = row["score"]
    behaviours, behaviours_before = ([] if isinstance(one, str) else one["behaviours"] for one in (score, score_before))
    points_before = {row["behaviour"]: row["points_lost"] for row in behaviours_before}
    costly = [
        Behaviour(**row | {"points_lost_before": points_before.get(row["behaviour"])})
        for row in behaviours
        if row["count"] or row["points_lost"] or points_before.get(row["behaviour"])
    ]
    return Explanation(
        driver=row["driver_info"],
        score=score,
        score_before=score_before,
        score_change=get_change(score, score_before),
        behaviours=sorted(costly, key=lambda row: -row.points_lost),
    )


class ScoreExplanation(Explanation, WindowResult):
    """The score of a driver, what it is made of, and the score of each interval."""

    intervals: dict[str, Number] = Field(description="Scores by the first date.")


async def explain_score(
    api: Api, driver_id: str, start_date: StartDate = None, end_date: EndDate = None, interval: PeriodName = "day"
) -> ScoreExplanation:
    """Explain a driver's score in any window up to today: the points that each behaviour costs.

    It compares with the window of the same length before. The score of each interval shows when it changed. For the
    trips that cost the points, use list_trips.
    """
    window, before = choose_windows(await api.get_today(), start_date, end_date)
    content = await get_driver_score(api, driver_id, window, interval)
    row = {"driver_info": content["driver_info"], "score": content["total"] or "did_not_drive"}
    (explanation,) = await _compare(api, [row], before)
    return ScoreExplanation(
        **dict(explanation),
        window=window,
        window_before=before,
        intervals={item["start_date"]: item["explanation"]["fm_score"] for item in content["series"]},
    )


class Comparison(WindowResult):
    """Drivers in one window."""

    drivers: list[Explanation]


async def compare_drivers(
    api: Api,
    driver_ids: Annotated[list[str], Field(min_length=1, max_length=MAX_DRIVERS)],
    start_date: StartDate = None,
    end_date: EndDate = None,
    insurance_period: InsurancePeriod = None,
) -> Comparison:
    """Compare up to 10 drivers in any window up to today, and with the window before. The best score comes first.

    Points do not depend on how far somebody drove.
    """
    window, before = choose_windows(await api.get_today(), start_date, end_date)
    rows = await find_summaries(api, driver_ids, window, insurance_period)
    drivers = await _compare(api, rows, before, insurance_period)
    drivers.sort(key=lambda driver: -driver.score.fm_score if isinstance(driver.score, Score) else 1)
    return Comparison(window=window, window_before=before, drivers=drivers)


class Coaching(Comparison):
    """The drivers to coach."""

    driver_count: int = Field(description="How many drove, at least min_distance_miles.")
    compared_driver_count: int | None = Field(description="got_worse: how many of them have a score before, too.")
    left_out: int = Field(description="More to coach of the 100 who lost most; got_worse: of the 5,000.")


async def who_needs_coaching(
    api: Api,
    period: LongPeriodName = "week",
    date: PeriodDate = None,
    order: Annotated[
        Literal["lowest_score", "got_worse"],
        Field(description="got_worse: whose score fell most since the week or month before."),
    ] = "lowest_score",
    behaviour: Annotated[BehaviourName, Field(description="By the points that it costs, not the score.")] = None,
    group: GroupName = None,
    min_distance_miles: Annotated[float, Field(ge=0, le=1_000_000, description="Leaves out who drove less.")] = 0,
    limit: Annotated[int, Field(ge=1, le=MAX_DRIVERS)] = 5,
) -> Coaching:
    """List whom to coach in a week or month that began before today, and why: the points that each behaviour costs.

    Nobody who lost no points is listed, so there may be nobody to coach.
    For the trips behind it, call list_trips with a driver_id and the dates of the window.
    """
    window, before = choose_periods(await api.get_today(), period, date)
    # Like the service, without an exponent.
    params = {"period": period, "group": group, "min_distance_miles": f"{min_distance_miles:f}"}
    if order == "lowest_score":
        count, compared, rows = await _find_lowest(api, params, window, behaviour)
    else:
        count, compared, rows = await _find_worse(api, params, window, before, behaviour)
    driver_ids = [row["driver_info"]["driver_id"] for row in rows[:limit]]
    return Coaching(
        window=window,
        window_before=before,
        drivers=await _compare(api, [_add_score(row) for row in rows[:limit]], before),
        driver_count=count,
        compared_driver_count=compared,
        left_out=len(rows[limit:]),
        notice=await make_notice_of_drivers(api, driver_ids, window, before),
    )


# How many drivers are ranked, how many of them were compared, if any, and those to coach.
Found = tuple[int, int | None, list[Json]]


async def _find_lowest(api: ApiClient, params: Params, window: Window, behaviour: str | None) -> Found:
    """Return the drivers who lost points, most first."""
    count, rows = await _find_ranked(api, {**params, "behaviour": behaviour}, window, PAGE_SIZE)
    return count, None, [row for row in rows.values() if _get_points_lost(row, behaviour)]


async def _find_worse(api: ApiClient, params: Params, window: Window, before: Window, behaviour: str | None) -> Found:
    """Return the drivers who are ranked also before, and lost more than then, most first.

    Raises ToolError if the scores before are not known: they are those of a window, which begins in the last six
    months, also for a month.
    """
    if before.start_date < get_first_date(await api.get_today(), "day"):
        raise ToolError(f"Correct the arguments. date: Must be later. The {params['period']} before is not known.")
    # By the score, for which the service has an index. By a behaviour, it would sort all drivers for each page.
    (count, rows), (_, rows_before) = [await _find_ranked(api, params, one, MAX_COMPARED) for one in (window, before)]
    # Rounded, so that equal changes are equal.
    changes = {
        driver_id: round(_get_points_lost(row, behaviour) - _get_points_lost(rows_before[driver_id], behaviour), 1)
        for driver_id, row in rows.items()
        if driver_id in rows_before
    }
    worse = sorted((-change, driver_id) for driver_id, change in changes.items() if change > 0)
    return count, len(changes), [rows[driver_id] for _, driver_id in worse]


async def _find_ranked(api: ApiClient, params: Params, window: Window, most: int) -> tuple[int, dict[str, Json]]:
    """Return how many drivers a ranking has, and about `most` of them by driver_id, those who lost most first."""
    found: dict[str, Json] = {}
    number: int | None = 1
    while number and len(found) < most:
        of_page = {"start_date": str(window.start_date), "limit": PAGE_SIZE, "page": number}
        page = await api.get(Json, "ranking", params={**params, **of_page})
        found |= {row["driver_info"]["driver_id"]: row for row in page["drivers"]}
        number = page["next_page"]
    return page["count"], found


def _get_points_lost(row: Json, behaviour: str | None) -> float:
    """Return the points that the behaviour, or all of them, cost, as a result shows them: with one decimal."""
    summary = row["driving_summary"]
    points = compute_points_lost(summary)[behaviour] if behaviour else BEST_SCORE - summary["fm_score"]
    return round(points, 1)
