"""Daily, weekly and monthly driving summaries."""

from marshmallow import Schema

from schemas.driver import Driver
from schemas.fields import MAX_SAFE_INT, Amount, Choice, Count, Date, Flag, Int64, Number, Object, Objects
from schemas.trip import EventSummary

# The lowest rounded score of each grade, best first.
GRADES = {"excellent": 85, "good": 70, "fair": 50, "poor": 0}
GRADE_LIMITS = ", ".join(f"{name} from {lowest}" for name, lowest in GRADES.items())
# The name of each behaviour in the focus area of a summary.
FOCUS_FLAGS = {
    "phone_use": "is_phone_use",
    "overspeeding": "is_overspeeding",
    "hard_brake": "is_hard_brake",
    "rapid_acceleration": "is_acceleration",
}


class SummaryFocusArea(Schema):
    """The behaviours to coach. Note the name `is_acceleration`: trips have `is_rapid_acceleration`."""

    is_phone_use = Flag("Whether to coach phone use.", example=False)
    is_overspeeding = Flag("Whether to coach overspeeding.", example=False)
    is_hard_brake = Flag("Whether to coach hard braking.", example=False)
    is_acceleration = Flag("Whether to coach rapid acceleration.", example=False)


class DrivingSummary(Schema):
    """Totals of trips, and the score computed from them."""

    fm_score = Number("Safety score from 0 (worst) to 100 (best), with one decimal.", low=0, high=100, example=92.5)
    fm_grade = Choice(
        f"Grade of the score: {GRADE_LIMITS}.", example="excellent", component="Grade", choices=list(GRADES)
    )
    trip_count = Count("Number of trips.", example=1)
    distance_miles = Amount("Distance, in miles.", example=12.5)
    duration_seconds = Amount("Duration, in seconds.", example=1800)
    night_driving_seconds = Amount("Time driven at night, in seconds.", example=0)
    highway_miles = Amount("Distance on highways, in miles.", example=4.2)
    events_summary = Object(EventSummary, "Counts and durations of each behaviour.")
    focus_area = Object(SummaryFocusArea, "The behaviours to coach.")


# The totals that are added up: the distances and times of a summary, and the counts and times of its events. The last
# word of a name is its unit.
AMOUNTS = tuple(name for name, field in DrivingSummary().fields.items() if isinstance(field, Amount))
EVENT_TOTALS = tuple(EventSummary().fields)
TOTALS = ("trip_count", *AMOUNTS, *EVENT_TOTALS)


class DailySummary(DrivingSummary):
    """The driving of one driver on one date."""

    date = Date("The date.", example="2026-03-09")


class WeeklySummary(DrivingSummary):
    """The driving of one driver in one week. The score is computed from the totals, not an average of days."""

    start_date = Date("The first date, a Monday.", example="2026-03-09")
    end_date = Date("The last date, six days later.", example="2026-03-15")
    daily_summary_breakdown = Objects(DailySummary, "The days on which the driver drove, oldest first.")


class MonthlySummary(WeeklySummary):
    """The driving of one driver in a calendar month. The score is computed from the totals, not an average of days."""

    start_date = Date("The first date of the month.", example="2026-03-01")
    end_date = Date("The last date of the month.", example="2026-03-31")


class RankedDriver(Schema):
    """A driver's place in a ranking."""

    rank = Int64("Place in the ranking, from 1.", low=1, high=MAX_SAFE_INT, example=1)
    driver_info = Object(Driver, "The driver.")
    driving_summary = Object(DrivingSummary, "The summary of the week or month.")


def _summary(schema: type[Schema], when: str) -> Object:
    return Object(schema, f"The summary. Absent if the driver did not drive {when}.", required=False)


class _Aggregate(Schema):
    driver_info = Object(Driver, "The driver.")


class DailyAggregate(_Aggregate):
    """A driver and the driver's Daily summary."""

    driving_summary = _summary(DailySummary, "on that date")


class WeeklyAggregate(_Aggregate):
    """A driver and the driver's Weekly summary."""

    driving_summary = _summary(WeeklySummary, "in that week")


class MonthlyAggregate(_Aggregate):
    """A driver and the driver's Monthly summary."""

    driving_summary = _summary(MonthlySummary, "in that month")


class WindowAggregate(_Aggregate):
    """A driver and the driver's summary in a window of days."""

    driving_summary = _summary(DrivingSummary, "in the window")
