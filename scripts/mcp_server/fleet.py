"""The tool on the fleet as a whole."""

from typing import Annotated

from pydantic import Field

from schemas.param_fields import LONG_HISTORY, get_first_date
from schemas.periods import LongPeriodName
from schemas.score import compute_points_lost
from scripts.mcp_server.arguments import GroupName, InsurancePeriod, PeriodDate
from scripts.mcp_server.client import Api, Json
from scripts.mcp_server.implausible import make_notice
from scripts.mcp_server.models import Number, Result, Totals, Window, get_difference
from scripts.mcp_server.windows import ONE_DAY, choose_periods, get_period

# As many of the longest rows as have room in a result, and as many weeks as three months have.
MAX_INTERVALS = 13
# What is compared with the week or month before.
COMPARED = ("fm_score", "driver_count", "trip_count", "distance_miles", "duration_seconds")


class FleetInterval(Totals, Window):
    """A week or month in which somebody drove, compared with the one before."""

    driver_count: int
    implausible_trip_count: int
    drivers_by_grade: dict[str, int]
    drivers_by_focus_area: dict[str, int]
    points_lost: dict[str, Number]
    change: dict[str, Number] | None


class FleetSummary(Result):
    """The fleet over time."""

    intervals: list[FleetInterval] = Field(description="Those in which somebody drove, oldest first.")
    not_known: int = Field(description="How many of count are older than 24 months.")


async def fleet_summary(
    api: Api,
    period: LongPeriodName = "week",
    date: PeriodDate = None,
    count: Annotated[int, Field(ge=1, le=MAX_INTERVALS, description="How many, up to that of date.")] = 6,
    group: GroupName = None,
    insurance_period: InsurancePeriod = None,
) -> FleetSummary:
    """Is the fleet or a group getting better? Score, totals, drivers by grade and by behaviour to coach, week by week.

    change is that since the week or month before, null if nobody drove then or it is not known. With each
    insurance_period, it is the exposure that an insurer rates, for up to 24 months.
    """
    today = await api.get_today()
    window, before = choose_periods(today, period, date, LONG_HISTORY)
    # The one before the first is read, too, to compare with.
    windows = [window, before]
    while len(windows) <= count:
        windows.append(get_period(period, windows[-1].start_date - ONE_DAY))
    known = [one for one in windows if one.start_date >= get_first_date(today, period, LONG_HISTORY)]
    dates = {"start_date": str(known[-1].start_date), "end_date": str(window.start_date), "interval": period}
    params = {**dates, "group": group, "insurance_period": insurance_period}
    content = await api.get(Json, "fleet-aggregate", params=params)
    totals = {one["start_date"]: one["fleet_summary"] for one in content["series"]}
    whose = "the fleet" if group is None else "the group"
    return FleetSummary(
        intervals=[
            _make_interval(one, totals[str(one.start_date)], totals.get(str(earlier.start_date)))
            for earlier, one in reversed(list(zip(windows[1:], windows, strict=False)))
            if str(one.start_date) in totals
        ],
        notice=await make_notice(api, whose if any(one["implausible_trip_count"] for one in totals.values()) else ""),
        not_known=max(0, count - len(known)),
    )


def _make_interval(window: Window, totals: Json, before: Json | None) -> FleetInterval:
    return FleetInterval(
        **totals | dict(window),
        points_lost=compute_points_lost(totals),
        change={name: get_difference(totals[name], before[name]) for name in COMPARED} if before else None,
    )
