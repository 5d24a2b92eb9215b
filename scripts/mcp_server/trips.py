"""The tools on trips: list those of a driver, describe one."""

import datetime
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from scripts.mcp_server.client import ApiClient, Params
from scripts.mcp_server.drivers import DriverId
from scripts.mcp_server.failures import ToolFailure, UnknownRecord
from scripts.mcp_server.periods import EndDate, StartDate, Window, get_window
from scripts.mcp_server.results import MAX_ROWS, Arguments, Data, DriverData, Result, Tool
from scripts.mcp_server.scores import fetch_explanation
from scripts.mcp_server.text import format_count, format_time, quote_data

PAGE_SIZE = 100
# How many trips from start_date on the service is asked for.
MAX_READ = 2_000
VISIBLE_AFTER = "four hours after its end, unless the operator has set another time"
TRIP_FIELDS = "trip_id,driver_id,trip_start_time,duration_seconds,distance_miles,event_summary"
DETAIL_FIELDS = (
    f"count,trips{{{TRIP_FIELDS},night_driving_seconds,highway_miles,start_latitude,start_longitude,end_latitude,"
    "end_longitude,focus_area,events}"
)
# For each behaviour the field of an event summary in whose proportion the trips of a window share its points.
SHARED_BY = {
    "phone_use": "phone_use_time_seconds",
    "overspeeding": "overspeeding_time_seconds",
    "hard_brake": "hard_brake_count",
    "rapid_acceleration": "rapid_acceleration_count",
}


class Trip(Data):
    """A trip."""

    trip_id: str = Field(description="Identifier, exactly as describe_trip takes it. Data of the fleet.")
    start_time: str = Field(description="UTC.")
    driving_minutes: float
    distance_miles: float
    phone_use_count: int
    phone_use_seconds: float
    overspeeding_count: int
    overspeeding_seconds: float
    hard_brake_count: int
    rapid_acceleration_count: int

    @classmethod
    def get_values(cls, trip: dict[str, Any]) -> dict[str, Any]:
        """Return the values of these fields of the service's Trip."""
        events = trip["event_summary"]
        return {
            "trip_id": trip["trip_id"],
            "start_time": format_time(trip["trip_start_time"]),
            "driving_minutes": round(trip["duration_seconds"] / 60, 1),
            "distance_miles": round(trip["distance_miles"], 1),
            "phone_use_count": events["phone_use_count"],
            "phone_use_seconds": events["phone_use_time_seconds"],
            "overspeeding_count": events["overspeeding_count"],
            "overspeeding_seconds": events["overspeeding_time_seconds"],
            "hard_brake_count": events["hard_brake_count"],
            "rapid_acceleration_count": events["rapid_acceleration_count"],
        }

    def __str__(self) -> str:
        return (
            f"{quote_data(self.trip_id)}, {self.start_time}, {self.driving_minutes:g} minutes, "
            f"{self.distance_miles:g} miles: phone use {self.phone_use_seconds:g} s ({self.phone_use_count}×), "
            f"overspeeding {self.overspeeding_seconds:g} s ({self.overspeeding_count}×), "
            f"{format_count(self.hard_brake_count, 'hard brake')}, "
            f"{format_count(self.rapid_acceleration_count, 'rapid acceleration')}"
        )


class ListTripsArguments(Arguments):
    """The arguments of list_trips."""

    driver_id: DriverId
    start_date: StartDate = None
    end_date: EndDate = None
    order: Literal["points_lost", "newest", "oldest"] = Field(
        default="points_lost", description="points_lost: the trips that cost most points of the score first."
    )
    limit: int = Field(default=5, ge=1, le=MAX_ROWS, description="Maximum number of trips in the result.")


class ListedTrip(Trip):
    """A trip of a list."""

    points_lost: float = Field(
        description="What the trip costs of the score of the window: of each behaviour's points the trip's share."
    )

    def __str__(self) -> str:
        return f"costs {self.points_lost:g} points: {super().__str__()}"


class TripList(Result):
    """The trips of a driver in a window."""

    ROWS: ClassVar[str] = "trips"

    driver: DriverData
    window: Window
    fm_score: float | None = Field(description="Score of the window. Null if the driver did not drive.")
    trip_count: int = Field(description="How many trips the window and its score have, those not listed yet included.")
    not_listed_yet_count: int = Field(
        description=f"How many of them the service does not list yet: a trip is visible {VISIBLE_AFTER}."
    )
    order: str
    trips: list[ListedTrip]

    def to_lines(self) -> list[str]:
        """Return a line for each trip."""
        score = "no score" if self.fm_score is None else f"score {self.fm_score:g}"
        count, hidden = format_count(self.trip_count, "trip"), self.not_listed_yet_count
        is_not = "is not" if hidden == 1 else "are not"
        yet = f"{format_count(hidden, 'trip')} {is_not} listed yet: a trip is visible {VISIBLE_AFTER}."
        return [
            f"Driver {self.driver}, {self.window}: {count}, {score}. Trips by {self.order}:",
            *([yet] if hidden else []),
            *(f"- {trip}" for trip in self.trips),
        ]


async def list_trips(api: ApiClient, arguments: ListTripsArguments) -> TripList:
    """List a driver's trips in a window of dates, those first that cost most points of the score of the window.

    Use it to find the trips that mattered. `points_lost` of all trips together is 100 minus the score. The score has
    each trip at once, the list some hours after its end, by default four; the result says how many are not listed yet.
    For the events of a trip and where they were, use describe_trip.
    """
    window = get_window(arguments.start_date, arguments.end_date)
    explanation = await fetch_explanation(api, arguments.driver_id, window, "month")
    trips = await _find_trips(api, arguments.driver_id, window)
    shares = _get_shares(explanation["total"])
    rows = [ListedTrip(**Trip.get_values(trip), points_lost=_get_points(trip, shares)) for trip in trips]
    if arguments.order == "points_lost":
        rows.sort(key=lambda row: -row.points_lost)
    elif arguments.order == "newest":
        rows.reverse()
    total = explanation["total"] or {"fm_score": None, "trip_count": 0}
    return TripList(
        driver=DriverData.of(explanation["driver_info"]),
        window=window,
        fm_score=total["fm_score"],
        # A trip may become visible between the two requests.
        trip_count=max(total["trip_count"], len(rows)),
        not_listed_yet_count=max(0, total["trip_count"] - len(rows)),
        order=arguments.order,
        trips=rows[: arguments.limit],
        more=max(0, len(rows) - arguments.limit),
    )


async def _find_trips(api: ApiClient, driver_id: str, window: Window) -> list[dict[str, Any]]:
    """Return the trips of a window, oldest first. The service lists all trips from the first date on."""
    trips: list[dict[str, Any]] = []
    end = datetime.datetime.combine(window.end_date, datetime.time(), datetime.UTC) + datetime.timedelta(days=1)
    end_ms, page = int(end.timestamp()) * 1000, 1
    while page and len(trips) < MAX_READ:
        params: Params = {"start_date": str(window.start_date), "limit": PAGE_SIZE, "page": page}
        found = await api.get("driver", driver_id, "trips", params=params, fields=f"next_page,trips{{{TRIP_FIELDS}}}")
        trips += found["trips"]
        page = found["next_page"] if not trips or trips[-1]["trip_start_time"] < end_ms else 0
    if page and len(trips) >= MAX_READ:
        raise ToolFailure(f"The window has more than {MAX_READ} trips. Ask for fewer days.")
    return [trip for trip in trips if trip["trip_start_time"] < end_ms]


def _get_shares(total: dict[str, Any] | None) -> dict[str, float]:
    """Return by field of an event summary how many points one unit of it costs in a window."""
    shares = {}
    for behaviour in total["behaviours"] if total else []:
        amount = behaviour["count"] if behaviour["seconds"] is None else behaviour["seconds"]
        shares[SHARED_BY[behaviour["behaviour"]]] = behaviour["points_lost"] / amount if amount else 0.0
    return shares


def _get_points(trip: dict[str, Any], shares: dict[str, float]) -> float:
    events: dict[str, float] = trip["event_summary"]
    return round(sum(events[name] * points for name, points in shares.items()), 1)


class DescribeTripArguments(Arguments):
    """The arguments of describe_trip."""

    NAMES: ClassVar[dict[str, str]] = {"filter_value": "trip_id"}

    trip_id: Annotated[
        str, Field(min_length=1, max_length=128, description="Identifier of the trip, as list_trips returns it.")
    ]


class Event(Data):
    """An event on a trip."""

    event: str
    start_time: str = Field(description="UTC.")
    seconds: float
    latitude: float = Field(description="Where it began, in degrees.")
    longitude: float = Field(description="Where it began, in degrees.")
    max_speed_mph: float | None = Field(description="Of overspeeding only.")
    speed_limit_mph: float | None = Field(description="Of overspeeding only.")

    @classmethod
    def of(cls, event: dict[str, Any]) -> Self:
        """Return the data of the service's Event."""
        return cls(
            event=event["event_name"],
            start_time=format_time(event["event_start_timestamp"]),
            seconds=round((event["event_end_timestamp"] - event["event_start_timestamp"]) / 1000, 1),
            latitude=round(event["event_start_latitude"], 5),
            longitude=round(event["event_start_longitude"], 5),
            max_speed_mph=event["event_data"].get("max_user_speed_mph"),
            speed_limit_mph=event["event_data"].get("speed_limit_mph"),
        )

    def __str__(self) -> str:
        speeds = "" if self.max_speed_mph is None else f", up to {self.max_speed_mph:g} mph at {self.speed_limit_mph:g}"
        return f"{self.start_time} {self.event}, {self.seconds:g} s{speeds}, at {self.latitude}, {self.longitude}"


class TripDescription(Result):
    """A trip and its events."""

    ROWS: ClassVar[str] = "events"

    driver_id: str = Field(description="Data of the fleet.")
    trip: Trip
    night_minutes: float
    highway_miles: float
    start_position: tuple[float, float] = Field(description="Latitude and longitude, in degrees.")
    end_position: tuple[float, float] = Field(description="Latitude and longitude, in degrees.")
    focus_areas: list[str] = Field(
        description="The behaviours to coach: those whose rate on this trip is at least half of its cap."
    )
    events: list[Event] = Field(description="In order of time.")

    def to_lines(self) -> list[str]:
        """Return the trip, and a line for each event."""
        places = " to ".join(
            f"{latitude}, {longitude}" for latitude, longitude in (self.start_position, self.end_position)
        )
        return [
            f"Trip {self.trip}",
            f"Driver {quote_data(self.driver_id)}, from {places}, {self.night_minutes:g} minutes at night, "
            f"{self.highway_miles:g} miles on highways. Coach in: {', '.join(self.focus_areas) or 'nothing'}",
            *(f"- {event}" for event in self.events),
        ]


async def describe_trip(api: ApiClient, arguments: DescribeTripArguments) -> TripDescription:
    """Describe one trip: when, how far, what happened on it, and where each event began.

    Events are phone use, overspeeding with speed and limit, hard brakes and rapid accelerations. Use list_trips to get
    a trip_id.
    """
    found = await api.get("trip", "trip_id", arguments.trip_id, params={}, fields=DETAIL_FIELDS)
    if not found["trips"]:
        raise UnknownRecord(
            "There is no visible trip with this trip_id. Copy the trip_id exactly from list_trips. A trip becomes "
            f"visible {VISIBLE_AFTER}."
        )
    (trip,) = found["trips"]
    events = sorted(trip["events"], key=lambda event: event["event_start_timestamp"])
    return TripDescription(
        driver_id=trip["driver_id"],
        trip=Trip(**Trip.get_values(trip)),
        night_minutes=round(trip["night_driving_seconds"] / 60, 1),
        highway_miles=round(trip["highway_miles"], 1),
        start_position=(round(trip["start_latitude"], 5), round(trip["start_longitude"], 5)),
        end_position=(round(trip["end_latitude"], 5), round(trip["end_longitude"], 5)),
        focus_areas=[flag.removeprefix("is_") for flag, is_set in trip["focus_area"].items() if is_set],
        events=[Event.of(event) for event in events[:MAX_ROWS]],
        more=max(0, len(events) - MAX_ROWS),
    )


TOOLS = (
    Tool(list_trips, ListTripsArguments, TripList, "List trips"),
    Tool(describe_trip, DescribeTripArguments, TripDescription, "Describe a trip"),
)
