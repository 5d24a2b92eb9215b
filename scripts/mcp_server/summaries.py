"""Driving summaries, as results have them, and the requests for those of several drivers."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from schemas.periods import PeriodName
from schemas.summary import FOCUS_FLAGS, GRADE_LIMITS
from scripts.mcp_server.client import ApiClient
from scripts.mcp_server.periods import Window
from scripts.mcp_server.results import DRIVER_FIELDS, Data
from scripts.mcp_server.text import format_count

PATHS = {"day": "daily", "week": "weekly", "month": "monthly"}
DRIVERS_PER_REQUEST = 20
SCORE_FIELDS = "fm_score,fm_grade,trip_count,distance_miles"
SUMMARY_FIELDS = f"{SCORE_FIELDS},duration_seconds,night_driving_seconds,highway_miles,events_summary,focus_area"
NOT_KNOWN = "older than six months, not known"
ScoreStatus = Annotated[
    Literal["known", "did_not_drive", "not_known"],
    Field(
        description="known: there is a score. did_not_drive: there is none, because the driver did not drive. "
        "not_known: it begins more than six months ago, where the service shows nothing; the driver may have driven."
    ),
]


class Score(Data):
    """A score, and how much driving it is about."""

    fm_score: float = Field(description="Safety score, 0 to 100; 100 is the best.")
    fm_grade: str = Field(description=f"{GRADE_LIMITS}.")
    trip_count: int
    distance_miles: float

    @classmethod
    def of(cls, values: dict[str, Any]) -> Self:
        """Return the score of a summary or an explanation of the service."""
        numbers = {"trip_count": values["trip_count"], "distance_miles": round(values["distance_miles"], 1)}
        return cls(fm_score=values["fm_score"], fm_grade=values["fm_grade"], **numbers)

    def __str__(self) -> str:
        trips = format_count(self.trip_count, "trip")
        return f"score {self.fm_score:g} ({self.fm_grade}), {trips}, {self.distance_miles:g} miles"


def get_score_status(values: Any, *, is_available: bool) -> ScoreStatus:
    """Return the status of a score with these values, which are empty or None if the service has none."""
    if values:
        return "known"
    return "did_not_drive" if is_available else "not_known"


def describe_score(score: Score | None, status: ScoreStatus) -> str:
    """Return the text of a score, or why there is none."""
    return NOT_KNOWN if status == "not_known" else str(score or "did not drive")


class Summary(Score):
    """The totals of a period."""

    driving_minutes: float
    night_minutes: float
    highway_miles: float
    phone_use_count: int
    phone_use_seconds: float
    phone_use_percent: float = Field(description="Share of the driving time, in percent.")
    overspeeding_count: int
    overspeeding_seconds: float
    overspeeding_percent: float = Field(description="Share of the driving time, in percent.")
    hard_brake_count: int
    hard_brakes_per_100_miles: float
    rapid_acceleration_count: int
    rapid_accelerations_per_100_miles: float
    focus_areas: list[str] = Field(description="The behaviours to coach: those whose rate is at least half of its cap.")

    @classmethod
    def of(cls, values: dict[str, Any]) -> Self:
        """Return the totals of a summary of the service."""
        events, seconds, miles = values["events_summary"], values["duration_seconds"], values["distance_miles"]
        return cls(
            **Score.of(values).model_dump(),
            driving_minutes=round(seconds / 60, 1),
            night_minutes=round(values["night_driving_seconds"] / 60, 1),
            highway_miles=round(values["highway_miles"], 1),
            phone_use_count=events["phone_use_count"],
            phone_use_seconds=events["phone_use_time_seconds"],
            phone_use_percent=_get_rate(events["phone_use_time_seconds"], seconds),
            overspeeding_count=events["overspeeding_count"],
            overspeeding_seconds=events["overspeeding_time_seconds"],
            overspeeding_percent=_get_rate(events["overspeeding_time_seconds"], seconds),
            hard_brake_count=events["hard_brake_count"],
            hard_brakes_per_100_miles=_get_rate(events["hard_brake_count"], miles),
            rapid_acceleration_count=events["rapid_acceleration_count"],
            rapid_accelerations_per_100_miles=_get_rate(events["rapid_acceleration_count"], miles),
            focus_areas=[name for name, flag in FOCUS_FLAGS.items() if values["focus_area"][flag]],
        )

    def describe_behaviours(self) -> str:
        """Return the behaviours on one line."""
        return (
            f"phone use {self.phone_use_percent:g} % of the time ({self.phone_use_count}×), "
            f"overspeeding {self.overspeeding_percent:g} % of the time ({self.overspeeding_count}×), "
            f"hard brakes {self.hard_brakes_per_100_miles:g} per 100 miles ({self.hard_brake_count}), "
            f"rapid accelerations {self.rapid_accelerations_per_100_miles:g} per 100 miles "
            f"({self.rapid_acceleration_count}); coach in: {', '.join(self.focus_areas) or 'nothing'}"
        )


def _get_rate(part: float, whole: float) -> float:
    """Return the part of a hundred, or 0 of nothing, as the service computes rates."""
    return round(100 * part / whole, 1) if whole else 0.0


async def find_summaries(
    api: ApiClient, driver_ids: Sequence[str], period: PeriodName, window: Window, fields: str, breakdown: str = ""
) -> list[dict[str, Any]]:
    """Return an element for each driver, of `driver_info` and, if the driver drove, `driving_summary`.

    `breakdown` has the fields of each day of a week or month. Raises UnknownRecord if one of the drivers is unknown.
    """
    if breakdown and period != "day":
        fields = f"{fields},daily_summary_breakdown{{{breakdown}}}"
    mask = f"data{{driver_info{{{DRIVER_FIELDS}}},driving_summary{{{fields}}}}}"
    elements: list[dict[str, Any]] = []
    for start in range(0, len(driver_ids), DRIVERS_PER_REQUEST):
        batch = driver_ids[start : start + DRIVERS_PER_REQUEST]
        params = {"start_date": str(window.start_date), "driver_id": batch}
        elements += (await api.get("driver-aggregate", PATHS[period], params=params, fields=mask))["data"]
    return elements
