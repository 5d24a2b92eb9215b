"""The tools on trips: list those of a driver, describe one."""

from typing import Annotated, Literal

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from scripts.mcp_server.client import Api, ApiClient, get_pages
from scripts.mcp_server.models import (
    Behaviour,
    Data,
    Degrees,
    Driver,
    EpochMs,
    Event,
    NoScore,
    Number,
    Page,
    Result,
    Score,
    Window,
)
from scripts.mcp_server.scores import find_names, get_driver_score
from scripts.mcp_server.windows import EndDate, StartDate, choose_windows

# As many of the longest rows as have room in a result.
MAX_TRIPS = 20
MAX_EVENTS = 50


class Trip(Data):
    """A trip."""

    trip_id: str
    trip_start_time: EpochMs
    duration_seconds: Number
    distance_miles: Number
    event_summary: dict[str, Number]


class TripPage(Page):
    """A page of the trips of a driver."""

    trips: list[Trip]


class ListedTrip(Trip):
    """A trip, and the points that it costs."""

    points_lost: Number


class TripList(Result):
    """The trips of a driver in a window."""

    driver: Driver
    window: Window
    score: Score | NoScore
    not_listed_yet: int = Field(description="Trips of the score that are too new to be listed.")
    left_out: int = Field(description="How many more trips are listed.")
    trips: list[ListedTrip]


async def list_trips(
    api: Api,
    driver_id: str,
    start_date: StartDate = None,
    end_date: EndDate = None,
    order: Literal["points_lost", "newest", "oldest"] = "points_lost",
    limit: Annotated[int, Field(ge=1, le=MAX_TRIPS)] = 5,
) -> TripList:
    """List a driver's trips in any window, by default first those that cost most points of the score of the window.

    points_lost of all trips together is 100 minus the score. A score has a trip at once, the list hours after its end,
    by default four. For the events of a trip and where they were, use describe_trip.
    """
    window, _ = choose_windows(await api.get_today(), start_date, end_date)
    content = await get_driver_score(api, driver_id, window, "month")
    behaviours = content.total.behaviours if content.total else []
    trips = await _find_trips(api, driver_id, window)
    rows = [ListedTrip(**dict(trip), points_lost=_get_points(trip, behaviours)) for trip in trips]
    if order == "points_lost":
        rows.sort(key=lambda row: -row.points_lost)
    if order == "newest":
        rows.reverse()
    return TripList(
        driver=content.driver_info,
        window=window,
        score=content.total or "did_not_drive",
        # A trip may become visible between two requests.
        not_listed_yet=max(0, content.total.trip_count - len(rows)) if content.total else 0,
        left_out=max(0, len(rows) - limit),
        trips=rows[:limit],
    )


async def _find_trips(api: ApiClient, driver_id: str, window: Window) -> list[Trip]:
    """Return the trips of a driver in a window, the oldest first."""
    dates = {"start_date": str(window.start_date), "end_date": str(window.end_date)}
    pages = get_pages(api, TripPage, "driver", driver_id, "trips", params=dates)
    return [trip async for page in pages for trip in page.trips]


def _get_points(trip: Trip, behaviours: list[Behaviour]) -> float:
    """Return the trip's share of the points that each behaviour costs: by time, or by number where there is no time."""
    points = 0.0
    for behaviour in behaviours:
        unit, amount = ("count", behaviour.count) if behaviour.seconds is None else ("time_seconds", behaviour.seconds)
        share = trip.event_summary[f"{behaviour.behaviour}_{unit}"] / amount if amount else 0.0
        points += behaviour.points_lost * share
    return points


class TripDetails(Trip):
    """A trip, and what happened on it."""

    night_driving_seconds: Number
    highway_miles: Number
    start_latitude: Degrees
    start_longitude: Degrees
    end_latitude: Degrees
    end_longitude: Degrees
    focus_area: dict[str, bool]
    events: list[Event]


class TripOfDriver(TripDetails):
    """A trip, and who drove."""

    driver_id: str


class Trips(Data):
    """The trips with an identifier."""

    trips: list[TripOfDriver]


class TripDescription(TripDetails, Result):
    """A trip, who drove, and what happened on it."""

    driver: Driver
    left_out: int = Field(description="How many later events are left out.")


async def describe_trip(api: Api, trip_id: str) -> TripDescription:
    """Describe one trip of list_trips: who drove, when, how far, what happened on it, and where each event began.

    Events are phone use, overspeeding with speed and limit, hard brakes and rapid accelerations.
    """
    # Not the trail, which is long.
    fields = f"trips{{{','.join(TripOfDriver.model_fields)}}}"
    content = await api.get(Trips, "trip", "trip_id", trip_id, fields=fields)
    if not content.trips:
        raise ToolError(
            "There is no visible trip with this trip_id. Copy it exactly from list_trips. A trip becomes visible four "
            "hours after its end, unless the operator has set another time."
        )
    (trip,) = content.trips
    drivers = await find_names(api, [trip.driver_id])
    events = sorted(trip.events, key=lambda event: event.event_start_timestamp)
    details = dict(trip) | {"driver": drivers[trip.driver_id], "events": events[:MAX_EVENTS]}
    return TripDescription(**details, left_out=max(0, len(events) - MAX_EVENTS))
