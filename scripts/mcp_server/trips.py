"""The tools on trips: list those of the fleet or a driver, describe one."""

from typing import Annotated, Literal

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from schemas.plausibility import LEFT_OUT
from scripts.command_line.output import to_json
from scripts.mcp_server.arguments import EndDate, FleetOrDriver, GroupName, InsurancePeriod, Null, StartDate, Time
from scripts.mcp_server.client import Api, ApiClient, Json, Params, read_list
from scripts.mcp_server.models import Data, Degrees, Driver, EpochMs, Event, NoScore, Number, Result, Score, Window, cut
from scripts.mcp_server.scores import add_drivers, get_driver_score
from scripts.mcp_server.windows import choose_windows

# As many of the longest rows as have room in a result.
MAX_TRIPS = 20
MAX_EVENTS = 50
# Of a driver, how many trips a call reads.
MAX_READ = 2_000

Order = Literal["worst", "newest", "oldest"]


class Trip(Data):
    """A trip."""

    trip_id: str
    trip_start_time: EpochMs
    duration_seconds: Number
    distance_miles: Number
    event_summary: dict[str, Number]


class ListedTrip(Trip):
    """A trip of a list, with its own score: with the points that it costs a driver, or of the fleet with who drove."""

    points_lost: Number | None = None
    driver: Driver | None = None
    fm_score: Number
    implausible: list[str] = Field(description="Why its data look wrong: say so.")


class TripList(Result):
    """The trips of a driver or of the fleet in a window, or at a time."""

    driver: Driver | None = None
    window: Window | None
    at: EpochMs | None = None
    score: Score | NoScore | None = None
    not_listed_yet: int | None = Field(default=None, description="Trips of the score that are too new to be listed.")
    left_out: int = Field(description="How many more trips were read.")
    more: bool = Field(default=False, description="Whether there are still more, which were not read.")
    trips: list[ListedTrip]


async def list_trips(
    api: Api,
    driver_id: FleetOrDriver = None,
    group: GroupName = None,
    insurance_period: InsurancePeriod = None,
    start_date: StartDate = None,
    end_date: EndDate = None,
    at: Annotated[Time, Field(description="Instead of dates, trips in progress: 2026-03-10T14:05.")] = None,
    order: Order = "worst",
    min_distance_miles: Annotated[float, Field(ge=0)] = 0,
    implausible: Annotated[
        bool | Null, Field(description="true: only trips whose data look wrong; false: without them.")
    ] = None,
    limit: Annotated[int, Field(ge=1, le=MAX_TRIPS)] = 5,
) -> TripList:
    """List trips of the fleet or a driver in any window, or those in progress at a time, by default the worst first.

    The worst of the fleet have the lowest scores, in at most 31 days. The worst of a driver cost most points of the
    score of the window; points_lost of all trips together is 100 minus the score. With at or a filter, a driver's trips
    are listed like the fleet's. A score has a trip at once, the list hours after its end, by default four. For the
    events of a trip and where they were, use describe_trip.
    """
    info = await api.get_info()
    dates = start_date, end_date
    window = choose_windows(info.today, *dates)[0] if at is None or any(dates) else None
    filters = {
        "group": group,
        "insurance_period": insurance_period,
        "min_distance_miles": min_distance_miles or None,
        "implausible": None if implausible is None else to_json(implausible),
    }
    if driver_id is not None and window and not at and set(filters.values()) == {None}:
        return await _list_of_driver(api, driver_id, window, order, limit)
    if at and not at.tzinfo:
        at = at.replace(tzinfo=info.time_zone)
    params = {
        **(window.model_dump(mode="json") if window else {}),
        **filters,
        "driver_id": driver_id,
        "at": int(at.timestamp() * 1000) if at else None,
        "order": order,
    }
    found, more = await _find_trips(api, params, limit + 1)
    rows = cut([ListedTrip(**trip) for trip in await add_drivers(api, found[:limit])])
    return TripList(window=window, at=at, left_out=len(found) - len(rows), more=more, trips=rows)


async def _list_of_driver(api: ApiClient, driver_id: str, window: Window, order: Order, limit: int) -> TripList:
    """Return the trips of a driver in a window, with the points of its score that each costs."""
    content = await get_driver_score(api, driver_id, window, "month")
    total = content["total"]
    behaviours = total["behaviours"] if total else []
    leaves_out = (await api.get_info()).implausible_trips == LEFT_OUT
    by = "newest" if order == "newest" else "oldest"
    params = {**window.model_dump(mode="json"), "driver_id": driver_id, "order": by}
    found, more = await _find_trips(api, params, MAX_READ)
    counted = [trip for trip in found if not (trip["implausible"] and leaves_out)]
    points = {trip["trip_id"]: _get_points(trip, behaviours) for trip in counted}
    rows = [ListedTrip(**trip, points_lost=points.get(trip["trip_id"], 0)) for trip in found]
    if order == "worst":
        rows.sort(key=lambda row: -(row.points_lost or 0))
    return TripList(
        driver=content["driver_info"],
        window=window,
        score=total or "did_not_drive",
        # A trip may become visible between two requests.
        not_listed_yet=max(0, total["trip_count"] - len(counted)) if total and not more else 0,
        left_out=len(rows[limit:]),
        more=more,
        trips=rows[:limit],
    )


async def _find_trips(api: ApiClient, params: Params, most: int) -> tuple[list[Json], bool]:
    """Return the first trips of a list with their scores, and whether there may be more (`read_list`)."""
    found, more = await read_list(api, "trips", params=params, most=most)
    return [row["trip"] | row for row in found], more


def _get_points(trip: Json, behaviours: list[Json]) -> float:
    """Return the trip's share of the points that each behaviour costs: by time, or by number where there is no time."""
    points = 0.0
    for behaviour in behaviours:
        count, seconds = behaviour["count"], behaviour["seconds"]
        unit, amount = ("count", count) if seconds is None else ("time_seconds", seconds)
        share = trip["event_summary"][f"{behaviour['behaviour']}_{unit}"] / amount if amount else 0.0
        points += behaviour["points_lost"] * share
    return points


class TripDescription(Trip, Result):
    """A trip, who drove, and what happened on it."""

    driver_id: str
    night_driving_seconds: Number
    highway_miles: Number
    night_driving_miles: Number
    start_latitude: Degrees
    start_longitude: Degrees
    end_latitude: Degrees
    end_longitude: Degrees
    focus_area: dict[str, bool]
    events: list[Event]
    driver: Driver
    left_out: int = Field(description="How many later events are left out.")


async def describe_trip(api: Api, trip_id: str) -> TripDescription:
    """Describe one trip of list_trips: who drove, when, how far, what happened on it, and where each event began.

    Events are phone use, overspeeding with speed and limit, hard brakes and rapid accelerations.
    """
    # Not the trail, which is long. The service leaves out names that it does not know.
    fields = f"trips{{{','.join(TripDescription.model_fields)}}}"
    content = await api.get(Json, "trip", "trip_id", trip_id, fields=fields)
    if not content["trips"]:
        raise ToolError(
            "There is no visible trip with this trip_id. Copy it exactly from list_trips. A trip becomes visible four "
            "hours after its end, unless the operator has set another time."
        )
    (trip,) = await add_drivers(api, content["trips"])
    events = sorted(trip["events"], key=lambda event: event["event_start_timestamp"])
    return TripDescription(**trip | {"events": events[:MAX_EVENTS]}, left_out=len(events[MAX_EVENTS:]))
