"""The tools that find drivers and summarise one."""

import datetime
from typing import Annotated

from pydantic import Field

from schemas.periods import PeriodName
from scripts.mcp_server.arguments import GroupName, PageNumber, PeriodDate
from scripts.mcp_server.client import Api
from scripts.mcp_server.implausible import make_notice_of_drivers
from scripts.mcp_server.models import Data, Driver, NoScore, Number, Result, Score, Totals, WindowResult, get_change
from scripts.mcp_server.scores import find_summaries
from scripts.mcp_server.windows import choose_periods

# As many of the longest rows as have room in a result.
DRIVERS_PER_PAGE, GROUPS_PER_PAGE = 20, 30


class ListedDriver(Driver):
    """A driver in a list."""

    last_travel_date: datetime.date | None


class FoundDrivers(Result):
    """A page of the drivers who match a search."""

    next_page: int | None
    count: int = Field(description="How many match; the others are on next_page.")
    drivers: list[ListedDriver]


async def find_drivers(
    api: Api,
    search: Annotated[str, Field(description="Words of a name, alias, e-mail address or driver_id.")] = "",
    group: GroupName = None,
    page: PageNumber = 1,
) -> FoundDrivers:
    """Find drivers, or list all: 20 a page. Other tools need the driver_id.

    All words have to match, in any case and order, with or without accents.
    """
    words = search if search.strip() else None
    params = {"limit": DRIVERS_PER_PAGE, "page": page, "search": words, "group": group}
    return await api.get(FoundDrivers, "drivers", params=params)


class Group(Data):
    """A group of drivers."""

    group: str
    driver_count: int


class FoundGroups(Result):
    """A page of the groups of the fleet."""

    next_page: int | None
    count: int = Field(description="How many there are; the others are on next_page.")
    groups: list[Group]


async def list_groups(api: Api, page: PageNumber = 1) -> FoundGroups:
    """List the groups of drivers, such as depots: 30 a page. To compare groups, use fleet_summary of each.

    A driver may be in several. All dates of a group are about those who are in it now.
    """
    return await api.get(FoundGroups, "groups", params={"limit": GROUPS_PER_PAGE, "page": page})


class Summary(Totals):
    """The totals of a driver's period, and what to coach."""

    focus_area: dict[str, bool]


class DriverSummary(WindowResult):
    """A driver's period, and the one before."""

    driver: Driver
    summary: Summary | NoScore
    score_before: Score | NoScore
    score_change: Number | None


async def driver_summary(
    api: Api, driver_id: str, period: PeriodName = "week", date: PeriodDate = None
) -> DriverSummary:
    """Summarise a driver's day, week or month that began before today: totals, and the change of the score.

    For the score of each day, today, any other dates, and for what costs the points, use explain_score; for the trips,
    list_trips.
    """
    window, before = choose_periods(await api.get_today(), period, date)
    (row,), (row_before,) = [await find_summaries(api, [driver_id], one) for one in (window, before)]
    return DriverSummary(
        window=window,
        window_before=before,
        driver=row["driver_info"],
        summary=row["score"],
        score_before=row_before["score"],
        score_change=get_change(row["score"], row_before["score"]),
        notice=await make_notice_of_drivers(api, [driver_id], window, before),
    )
