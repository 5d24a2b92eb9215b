"""The tools on drivers: find them, summarise one, compare several."""

from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from scripts.mcp_server.client import ApiClient
from scripts.mcp_server.periods import PeriodArguments, Window, get_period, get_previous_period
from scripts.mcp_server.results import DRIVER_FIELDS, MAX_ROWS, Arguments, Data, DriverData, Result, Tool
from scripts.mcp_server.summaries import (
    SCORE_FIELDS,
    SUMMARY_FIELDS,
    Score,
    ScoreStatus,
    Summary,
    describe_score,
    find_summaries,
    get_score_status,
)
from scripts.mcp_server.text import fold, format_change

PAGE_SIZE = 100
# How many drivers a search looks at.
MAX_SEARCHED = 5_000
DriverId = Annotated[
    str, Field(min_length=1, max_length=128, description="Identifier of the driver, as find_drivers returns it.")
]


class FindDriversArguments(Arguments):
    """The arguments of find_drivers."""

    text: str = Field(
        default="", max_length=128, description="Words of a name, alias or driver_id. Empty lists all drivers."
    )
    limit: int = Field(default=20, ge=1, le=MAX_ROWS, description="Maximum number of drivers in the result.")
    skip: int = Field(default=0, ge=0, le=1_000_000_000, description="Where to continue: `next_skip` of a result.")


class MatchingDriver(DriverData):
    """A driver who matches a search."""

    last_travel_date: str | None = Field(description="UTC date of the last trip.")
    # How many drivers of the fleet come before. The result does not show it.
    position: int = Field(exclude=True)

    @classmethod
    def at(cls, position: int, driver: dict[str, Any]) -> Self:
        """Return the data of the service's Driver at a position of the list of drivers."""
        values = DriverData.of(driver).model_dump()
        return cls(**values, last_travel_date=driver["last_travel_date"], position=position)


class MatchingDrivers(Result):
    """The drivers who match a search."""

    ROWS: ClassVar[str] = "drivers"

    drivers: list[MatchingDriver]
    fleet_driver_count: int = Field(description="How many drivers the fleet has.")
    next_skip: int | None = Field(description="`skip` of the next call, or null if nothing is left.")

    def to_lines(self) -> list[str]:
        """Return a line for each driver."""
        rows = [f"- {driver}, last drove {driver.last_travel_date or 'never'}" for driver in self.drivers]
        rest = [] if self.next_skip is None else [f"This is not all: continue with skip={self.next_skip}."]
        return [f"Found {len(rows)} of the {self.fleet_driver_count} drivers of the fleet:", *rows, *rest]

    def leave_out_row(self) -> Self:
        """Return the result without its last driver, with whom the next call continues."""
        return super().leave_out_row().model_copy(update={"next_skip": self.drivers[-1].position})


async def find_drivers(api: ApiClient, arguments: FindDriversArguments) -> MatchingDrivers:
    """Find drivers of the fleet by a part of their name, alias or driver_id, or list them.

    Use it to get the driver_id that other tools need. All words of `text` have to match, in any case and order, with or
    without accents.
    """
    words, position = fold(arguments.text).split(), arguments.skip
    matching: list[MatchingDriver] = []
    count, end = position + 1, position + MAX_SEARCHED
    # A list ends with its limit. A search goes on, to count what it finds.
    while position < min(count, end) and (words or len(matching) < arguments.limit):
        params = {"limit": PAGE_SIZE, "page": position // PAGE_SIZE + 1}
        page = await api.get("drivers", params=params, fields=f"count,drivers{{{DRIVER_FIELDS},last_travel_date}}")
        count, drivers = page["count"], page["drivers"][position % PAGE_SIZE :]
        # Drivers may have been removed since the last page.
        end = end if drivers else position
        numbered = list(enumerate(drivers, position))
        matching += [MatchingDriver.at(number, driver) for number, driver in numbered if _matches(driver, words)]
        position += len(drivers)
    shown, rest = matching[: arguments.limit], matching[arguments.limit :]
    next_skip = rest[0].position if rest else position if position < count else None
    more = len(rest) if words else max(0, count - arguments.skip - len(shown))
    return MatchingDrivers(drivers=shown, fleet_driver_count=count, next_skip=next_skip, more=more)


def _matches(driver: dict[str, Any], words: list[str]) -> bool:
    text = fold(" ".join(driver[name] or "" for name in DRIVER_FIELDS.split(",")))
    return all(word in text for word in words)


class DriverPeriodArguments(PeriodArguments):
    """The arguments of driver_summary."""

    driver_id: DriverId


class Day(Score):
    """A day on which the driver drove."""

    date: str


class DriverSummary(Result):
    """A driver's period, and the one before."""

    ROWS: ClassVar[str] = "days"

    driver: DriverData
    period: Window
    summary: Summary | None = Field(description="Null if the driver did not drive.")
    previous_period: Window
    previous: Score | None = Field(description="The period before. Null unless previous_status is known.")
    previous_status: ScoreStatus
    change: float | None = Field(description="Change of the score. Negative is worse.")
    days: list[Day] = Field(description="The days on which the driver drove, of a week or month.")

    def to_lines(self) -> list[str]:
        """Return the summary, the period before, and a line for each day."""
        before = describe_score(self.previous, self.previous_status)
        if self.summary is None:
            return [
                f"Driver {self.driver} did not drive: {self.period}.",
                f"Before, {self.previous_period}: {before}",
            ]
        summary = self.summary
        times = f"{summary.driving_minutes:g} minutes, {summary.night_minutes:g} of them at night"
        return [
            f"Driver {self.driver}, {self.period}: {summary}{format_change(self.change)}",
            f"Before, {self.previous_period}: {before}",
            f"Driving: {times}, {summary.highway_miles:g} miles on highways",
            f"Behaviours: {summary.describe_behaviours()}",
            *(f"- {day.date}: {day}" for day in self.days),
        ]


async def driver_summary(api: ApiClient, arguments: DriverPeriodArguments) -> DriverSummary:
    """Summarise how a driver drove in a day, week or month, and compare the score with the period before.

    The result has the score, totals, rates of each behaviour, and for a week or month the score of each day. To learn
    what costs the points, use explain_score; for the trips, list_trips.
    """
    ids, period = [arguments.driver_id], arguments.period
    window = get_period(period, arguments.date)
    previous = get_previous_period(period, window)
    (element,) = await find_summaries(api, ids, period, window, SUMMARY_FIELDS, f"date,{SCORE_FIELDS}")
    is_available = previous.is_available(period)
    elements = await find_summaries(api, ids, period, previous, SCORE_FIELDS) if is_available else []
    values, before = element.get("driving_summary"), elements[0].get("driving_summary") if elements else None
    change = round(values["fm_score"] - before["fm_score"], 1) if values and before else None
    days = (values or {}).get("daily_summary_breakdown", [])
    return DriverSummary(
        driver=DriverData.of(element["driver_info"]),
        period=window,
        summary=Summary.of(values) if values else None,
        previous_period=previous,
        previous=Score.of(before) if before else None,
        previous_status=get_score_status(before, is_available=is_available),
        change=change,
        days=[Day(date=day["date"], **Score.of(day).model_dump()) for day in days],
    )


class CompareDriversArguments(PeriodArguments):
    """The arguments of compare_drivers."""

    NAMES: ClassVar[dict[str, str]] = {"driver_id": "driver_ids"}

    driver_ids: list[DriverId] = Field(min_length=1, max_length=20, description="The drivers, 1 to 20.")


class ComparedDriver(Data):
    """A driver of a comparison."""

    driver: DriverData
    summary: Summary | None = Field(description="Null if the driver did not drive.")


class Comparison(Result):
    """Drivers in one period."""

    ROWS: ClassVar[str] = "drivers"

    period: Window
    drivers: list[ComparedDriver] = Field(description="The best score first; who did not drive comes last.")

    def to_lines(self) -> list[str]:
        """Return a line for each driver."""
        rows = [
            f"- {row.driver}: {row.summary}; {row.summary.describe_behaviours()}"
            if row.summary
            else f"- {row.driver}: did not drive"
            for row in self.drivers
        ]
        return [f"Comparison, {self.period}, the best score first:", *rows]


async def compare_drivers(api: ApiClient, arguments: CompareDriversArguments) -> Comparison:
    """Compare up to 20 drivers side by side in one day, week or month: scores, distances and rates of each behaviour.

    The rates do not depend on how far somebody drove. To find the drivers to compare, use find_drivers or
    who_needs_coaching.
    """
    window = get_period(arguments.period, arguments.date)
    elements = await find_summaries(api, arguments.driver_ids, arguments.period, window, SUMMARY_FIELDS)
    rows = [
        ComparedDriver(driver=DriverData.of(element["driver_info"]), summary=Summary.of(values) if values else None)
        for element in elements
        for values in [element.get("driving_summary")]
    ]
    rows.sort(key=lambda row: -row.summary.fm_score if row.summary else 1)
    return Comparison(period=window, drivers=rows)


TOOLS = (
    Tool(find_drivers, FindDriversArguments, MatchingDrivers, "Find drivers"),
    Tool(driver_summary, DriverPeriodArguments, DriverSummary, "Summary of a driver"),
    Tool(compare_drivers, CompareDriversArguments, Comparison, "Compare drivers"),
)
