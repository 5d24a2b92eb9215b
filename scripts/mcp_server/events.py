"""The tool on what happened: the events of the fleet or a driver, and the places that have most of them."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from schemas.trip import EVENT_NAMES
from scripts.mcp_server.arguments import BehaviourName, EndDate, FleetOrDriver, GroupName, Null, StartDate
from scripts.mcp_server.client import Api, InvalidInput, Json, read_list
from scripts.mcp_server.models import Data, Degrees, Driver, Event, Result, Window, cut
from scripts.mcp_server.scores import add_drivers
from scripts.mcp_server.windows import choose_windows

MAX_EVENTS, MAX_PLACES = 20, 10
# How many events a call reads, and how many of them are on a page.
MAX_READ, EVENTS_PER_PAGE = 5_000, 1_000
TYPES = {name.lower(): number for number, name in EVENT_NAMES.items()}
# What devices that do not know their position send.
NO_POSITION = (0, 0)
# 150 m.
CELL_LATITUDE = 150 / 111_320


class ListedEvent(Event):
    """An event of the fleet, and who drove."""

    trip_id: str
    driver_id: str
    driver: Driver


class Place(Data):
    """A cell, and what happened in it."""

    middle_latitude: Degrees
    middle_longitude: Degrees
    event_count: int
    driver_count: int


class EventList(Result):
    """The events of a window."""

    window: Window
    more: bool = Field(description="The window has more than were read: counts are too low. Use a shorter one.")
    event_counts: dict[str, int]
    places: list[Place] = Field(
        description="Cells of 150 m. Many events of one driver are a habit. Events without a position are in none."
    )
    places_left_out: int
    left_out: int = Field(description="How many that were read are not in events.")
    events: list[ListedEvent]


async def list_events(
    api: Api,
    driver_id: FleetOrDriver = None,
    group: GroupName = None,
    start_date: StartDate = None,
    end_date: EndDate = None,
    behaviour: BehaviourName = None,
    min_seconds: Annotated[float, Field(ge=0)] = 0,
    min_over_mph: Annotated[
        Annotated[float, Field(ge=0)] | Null, Field(description="Only overspeeding, by as much.")
    ] = None,
    order: Literal["newest", "oldest"] = "newest",
    limit: Annotated[int, Field(ge=1, le=MAX_EVENTS)] = 10,
) -> EventList:
    """What happened in a window, to the fleet or a driver, and where most? Safety events by the time of their start.

    Counts and places are of all that match, of which up to 5,000 are read in this order. An event is listed hours after
    the end of its trip, by default four. For its trip, use describe_trip.
    """
    if min_over_mph is not None and behaviour not in {None, "overspeeding"}:
        raise InvalidInput(f"Correct the arguments. min_over_mph: Only overspeeding has it, and not {behaviour}.")
    window, _ = choose_windows(await api.get_today(), start_date, end_date)
    params = {
        **window.model_dump(mode="json"),
        "event_type": behaviour and TYPES[behaviour],
        "min_seconds": min_seconds,
        "min_over_mph": min_over_mph,
        "driver_id": driver_id,
        "group": group,
        "order": order,
        "limit": EVENTS_PER_PAGE,
    }
    found, more = await read_list(api, "events", params=params, most=MAX_READ)
    return await _make_list(api, window, found, limit, more=more)


async def _make_list(api: Api, window: Window, found: list[Json], limit: int, *, more: bool) -> EventList:
    """Return the list of up to `limit` of the events that were found. `more` says that the window has others."""
    events = cut([ListedEvent(**event) for event in await add_drivers(api, found[:limit])])
    places = _find_places(found)
    return EventList(
        window=window,
        more=more,
        event_counts=Counter(event["event_name"] for event in found),
        places=places[:MAX_PLACES],
        places_left_out=len(places[MAX_PLACES:]),
        left_out=len(found) - len(events),
        events=events,
    )


def _find_places(events: Iterable[Json]) -> list[Place]:
    """Return the cells in which events begin, those with most events first, of equal ones those with more drivers."""
    drivers = defaultdict(list)
    for event in events:
        position = event["event_start_latitude"], event["event_start_longitude"]
        if position != NO_POSITION:
            drivers[_get_middle(*position)].append(event["driver_id"])
    places = [
        Place(middle_latitude=latitude, middle_longitude=longitude, event_count=len(ids), driver_count=len(set(ids)))
        for (latitude, longitude), ids in drivers.items()
    ]
    return sorted(places, key=lambda place: (-place.event_count, -place.driver_count))


def _get_middle(latitude: float, longitude: float) -> tuple[float, float]:
    """Return the middle of the cell of a position: the cells are as wide, in metres, as they are high."""
    middle = _round_to_middle(latitude, -90, CELL_LATITUDE)
    return middle, _round_to_middle(longitude, -180, CELL_LATITUDE / math.cos(math.radians(middle)))


def _round_to_middle(value: float, first: float, size: float) -> float:
    """Return the middle of the interval of this size that has the value. They go from `first` to its opposite."""
    number = min(math.floor((value - first) / size), math.ceil(-2 * first / size) - 1)
    return min(first + (number + 0.5) * size, -first)
