"""What a fleet adds up to in a day, week or month, from what each of its drivers contributes.

A contribution has integers only, so that sums are exact whatever their order: distances in millionths of a mile, times
in milliseconds.

Segments are the parts of a fleet that have sums of their own. A group is a segment of the drivers, with documents of
its own. An insurance period is a segment of the trips: an entry in `parts` of each document.
"""

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema

from schemas.fields import Choice, Count, Date, EpochMs, Identifier, Number, Object, Objects, Text
from schemas.periods import PERIODS, WEEK
from schemas.plausibility import COUNTED, POLICIES
from schemas.score import make_driving_summary
from schemas.summary import EVENT_TOTALS, FOCUS_FLAGS, GRADES, TOTALS, DrivingSummary

# The decimals to which a value is rounded, half to even, before it is an integer, by its unit; and for each total.
DECIMALS_OF_UNIT = {"count": 0, "miles": 6, "seconds": 3}
DECIMALS_OF_TOTAL = {name: DECIMALS_OF_UNIT[name.rpartition("_")[2]] for name in TOTALS}
# The largest amount that a driver contributes: a million miles, 32 years or 10^12 events. The sums of nine million
# drivers fit 64 bits.
MAX_CONTRIBUTION = 10**12
# What is counted in drivers.
DRIVER_COUNTS = ("driver_count", *GRADES, *FOCUS_FLAGS.values())
IMPLAUSIBLE_COUNT = "implausible_trip_count"
# A contribution, and a sum of contributions: these integers, by name.
CONTRIBUTION = (*DRIVER_COUNTS, *TOTALS, IMPLAUSIBLE_COUNT)
SUMMARY_FIELDS = list(DrivingSummary().fields)
SUMMARY_FIELDS.insert(SUMMARY_FIELDS.index("trip_count") + 1, IMPLAUSIBLE_COUNT)
# The values of the parameter and of the field `insurance_period` of a part of a sum. The last is for trips without one.
NO_INSURANCE_PERIOD = "none"
INSURANCE_PERIODS = ("1", "2", "3", NO_INSURANCE_PERIOD)


class FleetInfo(Schema):
    """What a key opens, and which day it is there."""

    fleet = Text("Name of the fleet.", example="demo")
    driver_id = Identifier(
        "The only driver whom the key opens. Null for a key of the fleet.", example=None, allow_none=True
    )
    time_zone = Text("Time zone of all dates, by its name in the IANA database.", example="UTC")
    today = Date("The date of today in this time zone.", example="2026-03-18")
    processing_delay_hours = Number(
        "Hours after its end at which a trip becomes visible in lists of trips and in changes.", low=0, example=4.0
    )
    implausible_trips = Choice(
        "Whether implausible trips are counted in summaries, scores and sums, or left out.",
        component="ImplausibleTrips",
        choices=POLICIES,
        example=COUNTED,
    )
    last_trip_received_at = EpochMs(
        "When a trip of the fleet was last stored, changed or deleted, in epoch milliseconds UTC. Null before the "
        "first trip, and for a key of one driver.",
        example=1_773_050_000_000,
        allow_none=True,
    )


class DriversByGrade(Schema):
    """The number of drivers with each grade."""

    excellent = Count("Drivers with the grade excellent.", example=1)
    good = Count("Drivers with the grade good.", example=0)
    fair = Count("Drivers with the grade fair.", example=0)
    poor = Count("Drivers with the grade poor.", example=0)


class DriversByFocusArea(Schema):
    """The number of drivers whom to coach, by behaviour. A driver may count several times."""

    is_phone_use = Count("Drivers whose phone use to coach.", example=0)
    is_overspeeding = Count("Drivers whose overspeeding to coach.", example=0)
    is_hard_brake = Count("Drivers whose hard braking to coach.", example=0)
    is_acceleration = Count("Drivers whose rapid acceleration to coach.", example=0)


class FleetSummary(DrivingSummary):
    """The driving of a fleet in a day, week or month: the sums of its drivers' summaries, and the score of the sums.

    Each distance is rounded to a millionth of a mile, and each time to a millisecond, before it is added.
    """

    driver_count = Count("Number of drivers who drove.", example=1)
    implausible_trip_count = Count(
        "Number of trips whose values cannot be, whether the other fields count them or not.", example=0
    )
    drivers_by_grade = Object(DriversByGrade, "Number of drivers with each grade.")
    drivers_by_focus_area = Object(DriversByFocusArea, "Number of drivers to coach, by behaviour.")

    class Meta:
        """The order of the fields."""

        fields = ("driver_count", *SUMMARY_FIELDS, "drivers_by_grade", "drivers_by_focus_area")


class FleetInterval(Schema):
    """A day, week or month in which somebody drove."""

    start_date = Date("The first date of the interval.", example="2026-03-09")
    end_date = Date("The last date of the interval.", example="2026-03-15")
    fleet_summary = Object(FleetSummary, "The driving of the fleet.")


class FleetAggregate(Schema):
    """The fleet as a whole over time."""

    start_date = Date("The `start_date` of the request.", example="2026-03-09")
    end_date = Date("The `end_date` of the request, or its default.", example="2026-03-15")
    interval = Choice("The `interval` of the request.", component="Interval", choices=PERIODS, example=WEEK)
    series = Objects(FleetInterval, "The intervals in which somebody drove, oldest first.")


def make_segment(group: str | None) -> str:
    """Return the name of the segment of a group. That of the whole fleet is empty."""
    return "" if group is None else f"group={group}"


def make_contribution(summary: Mapping[str, Any], implausible_trip_count: int) -> dict[str, int]:
    """Return what a driver's DrivingSummary contributes to the fleet's: the integers of CONTRIBUTION.

    A driver without counted trips does not count in `driver_count`.
    """
    values = {**summary, **summary["events_summary"]}
    totals = {name: _to_integer(values[name], decimals) for name, decimals in DECIMALS_OF_TOTAL.items()}
    drove = int(summary["trip_count"] > 0)
    drivers = {"driver_count": drove, **{name: drove * (summary["fm_grade"] == name) for name in GRADES}}
    flags = {name: int(flag) for name, flag in summary["focus_area"].items()}
    return {**drivers, **flags, **totals, IMPLAUSIBLE_COUNT: implausible_trip_count}


def make_parts(whole: Mapping[str, int], totals: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the parts of a contribution by insurance period: contributions without zeros, together the whole.

    `totals` are those of the trips of each insurance period that has any, by its name. Each part is rounded as the
    whole is, and the last one with trips takes the rest. For trips without an insurance period, the part has the
    difference to the whole. It is zero if no trip has one; then there are no parts.
    """
    rest, parts = {name: whole[name] for name in TOTALS}, dict[str, dict[str, int]]()
    last = max((name for name in totals if totals[name]["trip_count"]), key=INSURANCE_PERIODS.index, default=None)
    for name in filter(totals.__contains__, INSURANCE_PERIODS):
        part = make_contribution(make_driving_summary(totals[name]), totals[name][IMPLAUSIBLE_COUNT])
        part |= rest if name == last else {total: min(part[total], rest[total]) for total in TOTALS}
        rest = {total: rest[total] - part[total] for total in TOTALS}
        parts[name] = part
    without = parts.get(NO_INSURANCE_PERIOD, {})
    parts[NO_INSURANCE_PERIOD] = {name: without.get(name, 0) - whole[name] for name in CONTRIBUTION}
    return [
        {"insurance_period": name, **{field: number for field, number in part.items() if number}}
        for name, part in parts.items()
    ]


def add_whole(insurance_period: str, part: Mapping[str, int], whole: Mapping[str, int]) -> dict[str, int]:
    """Return the sums of an insurance period, from its part, which may lack zeros, and from those of the whole."""
    # The part without an insurance period is the difference to the whole.
    sums = whole if insurance_period == NO_INSURANCE_PERIOD else {}
    return {name: part.get(name, 0) + sums.get(name, 0) for name in CONTRIBUTION}


def _to_integer(value: float, decimals: int) -> int:
    # Capped first, because the product may overflow. The inner round() is exact. The product is not, but nearest to the
    # right integer.
    factor: int = 10**decimals
    return round(round(min(value, MAX_CONTRIBUTION / factor), decimals) * factor)


def make_fleet_summary(sums: Mapping[str, int]) -> dict[str, Any]:
    """Return the FleetSummary of a sum of contributions, with its fields in order."""
    totals = {name: _to_amount(sums[name], decimals) for name, decimals in DECIMALS_OF_TOTAL.items()}
    summary = {
        **make_driving_summary({**totals, "events_summary": {name: totals[name] for name in EVENT_TOTALS}}),
        "driver_count": sums["driver_count"],
        IMPLAUSIBLE_COUNT: sums[IMPLAUSIBLE_COUNT],
        "drivers_by_grade": {name: sums[name] for name in GRADES},
        "drivers_by_focus_area": {name: sums[name] for name in FOCUS_FLAGS.values()},
    }
    return {name: summary[name] for name in FleetSummary.Meta.fields}


def _to_amount(value: int, decimals: int) -> float:
    factor: int = 10**decimals
    # A whole amount is an integer, as in the summaries of drivers whose trips have integers.
    return value / factor if value % factor else value // factor
