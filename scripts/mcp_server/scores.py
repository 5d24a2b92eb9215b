"""The tool that explains a score, and the requests for explanations."""

from typing import Any, ClassVar, Self

from pydantic import Field

from schemas.periods import PeriodName
from scripts.mcp_server.client import ApiClient
from scripts.mcp_server.drivers import DriverId
from scripts.mcp_server.periods import EndDate, StartDate, Window, get_window
from scripts.mcp_server.results import DRIVER_FIELDS, Arguments, Data, DriverData, Result, Tool
from scripts.mcp_server.summaries import SCORE_FIELDS, Score, ScoreStatus, describe_score, get_score_status
from scripts.mcp_server.text import format_change

BEHAVIOUR_FIELDS = "behaviours{behaviour,count,seconds,rate,cap,weight,points_lost,is_focus_area}"
EXPLANATION_FIELDS = f"{SCORE_FIELDS},{BEHAVIOUR_FIELDS}"


class Behaviour(Data):
    """What a behaviour costs."""

    behaviour: str
    points_lost: float = Field(description="Points of the score that it costs.")
    points_lost_before: float | None = Field(
        description="The same before. Null without a score, or if it is not known."
    )
    max_points: float = Field(description="The most that it can cost.")
    count: int
    seconds: float | None = Field(description="Null for a behaviour that is counted per 100 miles.")
    is_focus_area: bool = Field(description="Whether to coach the driver in it.")

    @classmethod
    def of(cls, values: dict[str, Any], before: dict[str, Any] | None) -> Self:
        """Return what the service explains of a behaviour, now and before."""
        return cls(
            behaviour=values["behaviour"],
            points_lost=round(values["points_lost"], 1),
            points_lost_before=round(before["points_lost"], 1) if before else None,
            max_points=values["weight"],
            count=values["count"],
            seconds=values["seconds"],
            is_focus_area=values["is_focus_area"],
        )

    @property
    def is_costly(self) -> bool:
        """Whether it costs points, now or before."""
        return self.points_lost > 0 or (self.points_lost_before or 0) > 0

    @property
    def change(self) -> float:
        """How many more points it costs than before."""
        return self.points_lost - (self.points_lost_before or 0)

    def __str__(self) -> str:
        before = "" if self.points_lost_before is None else f", before {self.points_lost_before:g}"
        time = "" if self.seconds is None else f", {self.seconds:g} s"
        coach = "; coach" if self.is_focus_area else ""
        cost = f"{self.points_lost:g} of {self.max_points:g} points"
        return f"{self.behaviour} costs {cost}{before} ({self.count}×{time}{coach})"


def find_behaviours(explanation: dict[str, Any], before: dict[str, Any] | None) -> list[Behaviour]:
    """Return the behaviours that cost points, now or before, the most costly one first."""
    behaviours_before = before["behaviours"] if before else [None] * len(explanation["behaviours"])
    pairs = zip(explanation["behaviours"], behaviours_before, strict=True)
    behaviours = [behaviour for pair in pairs if (behaviour := Behaviour.of(*pair)).is_costly]
    return sorted(behaviours, key=lambda behaviour: -behaviour.points_lost)


async def fetch_explanation(api: ApiClient, driver_id: str, window: Window, interval: PeriodName) -> dict[str, Any]:
    """Return the explanation of a driver's score in a window, and in each of its intervals. Raises UnknownRecord."""
    params = {"start_date": str(window.start_date), "end_date": str(window.end_date), "interval": interval}
    fields = (
        f"driver_info{{{DRIVER_FIELDS}}},total{{{EXPLANATION_FIELDS}}},"
        f"series{{start_date,end_date,explanation{{{EXPLANATION_FIELDS}}}}}"
    )
    return await api.get("driver", driver_id, "score", params=params, fields=fields)


class ExplainScoreArguments(Arguments):
    """The arguments of explain_score."""

    driver_id: DriverId
    start_date: StartDate = None
    end_date: EndDate = None
    interval: PeriodName = Field(default="day", description="Into what to divide the window, to see when it got worse.")


class Interval(Score):
    """The score of an interval."""

    start_date: str
    end_date: str


class Explanation(Result):
    """What a driver's score is made of."""

    ROWS: ClassVar[str] = "intervals"
    OLDEST_FIRST: ClassVar[bool] = True

    driver: DriverData
    window: Window
    score: Score | None = Field(description="Null if the driver did not drive.")
    behaviours: list[Behaviour] = Field(description="The most costly one first.")
    window_before: Window
    score_before: Score | None = Field(description="The window before. Null unless score_before_status is known.")
    score_before_status: ScoreStatus
    change: float | None = Field(description="Change of the score. Negative is worse.")
    intervals: list[Interval] = Field(description="The intervals in which the driver drove, oldest first.")

    def to_lines(self) -> list[str]:
        """Return the score, a line for each behaviour, and a line for each interval."""
        now = f"{self.score}{format_change(self.change)}" if self.score else "did not drive"
        return [
            f"Driver {self.driver}, {self.window}: {now}",
            f"Before, {self.window_before}: {describe_score(self.score_before, self.score_before_status)}",
            *(f"- {behaviour}" for behaviour in self.behaviours),
            *(f"- {interval.start_date} to {interval.end_date}: {interval}" for interval in self.intervals),
        ]


async def explain_score(api: ApiClient, arguments: ExplainScoreArguments) -> Explanation:
    """Explain why a driver has a score: the points that each behaviour costs, compared with the window before.

    The window is any span of dates. The window before has the same length and ends on the day before. The result also
    has the score of each interval, which shows when it changed. For the trips that cost the points, use list_trips.
    """
    window = get_window(arguments.start_date, arguments.end_date)
    before = window.get_window_before()
    explanation = await fetch_explanation(api, arguments.driver_id, window, arguments.interval)
    is_available = before.is_available()
    explanation_before = await fetch_explanation(api, arguments.driver_id, before, "month") if is_available else {}
    total, total_before = explanation["total"], explanation_before.get("total")
    return Explanation(
        driver=DriverData.of(explanation["driver_info"]),
        window=window,
        score=Score.of(total) if total else None,
        behaviours=find_behaviours(total, total_before) if total else [],
        window_before=before,
        score_before=Score.of(total_before) if total_before else None,
        score_before_status=get_score_status(total_before, is_available=is_available),
        change=round(total["fm_score"] - total_before["fm_score"], 1) if total and total_before else None,
        intervals=[
            Interval(
                start_date=item["start_date"], end_date=item["end_date"], **Score.of(item["explanation"]).model_dump()
            )
            for item in explanation["series"]
        ],
    )


TOOLS = (Tool(explain_score, ExplainScoreArguments, Explanation, "Explain a score"),)
