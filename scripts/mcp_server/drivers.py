"""The tools that find drivers and summarise one."""

import datetime
from typing import Annotated

from pydantic import Field

from schemas.periods import PeriodName
from scripts.mcp_server.client import Api, ApiClient, InvalidInput, Params
from scripts.mcp_server.implausible import make_notice_of_drivers
from scripts.mcp_server.models import (
    Aggregates,
    Data,
    Driver,
    GroupName,
    NoScore,
    Number,
    Page,
    PeriodSummary,
    Result,
    Score,
    Summary,
    Window,
    WindowResult,
    get_change,
)
from scripts.mcp_server.windows import PeriodDate, choose_periods

# As many of the longest rows as have room in a result.
DRIVERS_PER_PAGE, GROUPS_PER_PAGE = 20, 30
PageNumber = Annotated[int, Field(ge=1, le=1_000_000)]
PATHS = {"day": "daily", "week": "weekly", "month": "monthly"}


class ListedDriver(Driver):
    """A driver in a list."""

    last_travel_date: datetime.date | None


class DriverPage(Page):
    """A page of the drivers of the fleet."""

    count: int
    drivers: list[ListedDriver]


class FoundDrivers(DriverPage, Result):
    """The drivers who match a search."""

    count: int = Field(description="How many match; the others are on next_page.")


async def find_drivers(
    api: Api,
    search: Annotated[str, Field(description="Words of a name, alias, e-mail address or driver_id.")] = "",
    group: GroupName = None,
    page: PageNumber = 1,
) -> FoundDrivers:
    """Find drivers, or list all: 20 a page. Other tools need the driver_id.

    All words have to match, in any case and order, with or without accents.
    """
    params: Params = {
        "limit": DRIVERS_PER_PAGE,
        "page": page,
        "search": search if search.strip() else None,
        "group": group,
    }
    return FoundDrivers(**dict(await api.get(DriverPage, "drivers", params=params)))


class Group(Data):
    """A group of drivers."""

    group: str
    driver_count: int


class GroupPage(Page):
    """A page of the groups of the fleet."""

    count: int
    groups: list[Group]


class FoundGroups(GroupPage, Result):
    """The groups of the fleet."""

    count: int = Field(description="How many there are; the others are on next_page.")


async def list_groups(api: Api, page: PageNumber = 1) -> FoundGroups:
    """List the groups of drivers, such as depots: 30 a page. To compare groups, use fleet_summary of each.

    A driver may be in several. All dates of a group are about those who are in it now.
    """
    params = {"limit": GROUPS_PER_PAGE, "page": page}
    return FoundGroups(**dict(await api.get(GroupPage, "groups", params=params)))


class DriverSummary(WindowResult):
    """A driver's period, and the one before."""

    driver: Driver
    summary: Summary | NoScore
    score_before: Score | NoScore
    score_change: Number | None
    days: dict[str, Number] = Field(description="Scores by date, of a week or month.")


async def driver_summary(
    api: Api, driver_id: str, period: PeriodName = "week", date: PeriodDate = None
) -> DriverSummary:
    """Summarise a driver's day, week or month that began before today: totals, score of each day, change of the score.

    For today or any other dates, and for what costs the points, use explain_score; for the trips, list_trips.
    """
    window, before = choose_periods(await api.get_today(), period, date)
    driver, summary = await _fetch_summary(api, driver_id, period, window)
    try:
        _, summary_before = await _fetch_summary(api, driver_id, period, before)
    except InvalidInput:
        summary_before = "not_known"
    days = summary.daily_summary_breakdown if isinstance(summary, PeriodSummary) else ()
    return DriverSummary(
        window=window,
        window_before=before,
        driver=driver,
        summary=summary,
        score_before=summary_before,
        score_change=get_change(summary, summary_before),
        notice=await make_notice_of_drivers(api, [driver_id], window, before),
        days={day.date: day.fm_score for day in days},
    )


async def _fetch_summary(
    api: ApiClient, driver_id: str, period: PeriodName, window: Window
) -> tuple[Driver, PeriodSummary | NoScore]:
    """Return a driver, and the driver's summary. Raises InvalidInput if the window is outside the last six months."""
    params = {"start_date": str(window.start_date), "driver_id": driver_id}
    content = await api.get(Aggregates, "driver-aggregate", PATHS[period], params=params)
    (aggregate,) = content.data
    return aggregate.driver_info, aggregate.driving_summary or "did_not_drive"
