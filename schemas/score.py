"""The explanation of a score: what each behaviour costs, in a window and in the intervals of the window."""

from marshmallow import Schema, fields
from marshmallow.validate import OneOf

from schemas.driver import Driver
from schemas.fields import Amount, Count, Date, Flag, Text, field_metadata
from schemas.introspection import fields_of
from schemas.summary import DrivingSummary
from schemas.trip import EventSummary

# In the order of EventSummary. That of an explanation is the order of `BEHAVIOURS` in app/store/score.py.
COUNTED_BEHAVIOURS = tuple(name.removesuffix("_count") for name in fields_of(EventSummary) if name.endswith("_count"))


class BehaviourExplanation(Schema):
    """What a behaviour costs."""

    behaviour = Text(
        "Name of the behaviour.", example="overspeeding", required=True, validate=OneOf(COUNTED_BEHAVIOURS)
    )
    count = Count("Number of times that the behaviour occurred.", example=1, required=True)
    seconds = Amount(
        "Time of the behaviour, in seconds. Null for a behaviour whose rate is per 100 miles.",
        example=90,
        required=True,
        allow_none=True,
    )
    rate = Amount("Share of the driving time, or number per 100 miles.", example=0.05, required=True)
    cap = Amount("The rate from which the behaviour costs all of its weight.", example=0.2, required=True)
    weight = Amount("Maximum of points that the behaviour costs.", example=30, required=True)
    points_lost = Amount("Points that the behaviour costs: weight × min(1, rate ÷ cap).", example=7.5, required=True)
    is_focus_area = Flag(
        "Whether to coach the behaviour: whether rate ÷ cap is 0.5 or more.", example=False, required=True
    )


# The values of each behaviour that explain the example of a DrivingSummary.
EXAMPLE = (
    ("phone_use", 0, 0, 0.0, 0.15, 35, 0.0, False),
    ("overspeeding", 1, 90, 0.05, 0.2, 30, 7.5, False),
    ("hard_brake", 0, None, 0.0, 20.0, 20, 0.0, False),
    ("rapid_acceleration", 0, None, 0.0, 20.0, 15, 0.0, False),
)


class ScoreExplanation(DrivingSummary):
    """How a score is made up: it is 100 minus the points that the behaviours cost, rounded half up to one decimal."""

    behaviours = fields.List(
        fields.Nested(BehaviourExplanation),
        metadata=field_metadata(
            "What each behaviour costs: always the same behaviours in the same order.",
            [dict(zip(fields_of(BehaviourExplanation), values, strict=True)) for values in EXAMPLE],
        ),
        required=True,
    )

    class Meta:
        """Some of the fields of a DrivingSummary, and the explanation."""

        fields = ("fm_score", "fm_grade", "trip_count", "distance_miles", "duration_seconds", "behaviours")


class ScoreInterval(Schema):
    """The score of an interval in which the driver drove."""

    start_date = Date("The first UTC date of the interval in the window.", example="2026-03-09", required=True)
    end_date = Date("The last UTC date of the interval in the window.", example="2026-03-15", required=True)
    explanation = fields.Nested(ScoreExplanation, metadata=field_metadata("The score of the interval."), required=True)


class DriverScore(Schema):
    """The score of a driver in a window, and in the intervals of the window."""

    driver_info = fields.Nested(Driver, metadata=field_metadata("The driver."), required=True)
    start_date = Date("The first UTC date of the window.", example="2026-03-09", required=True)
    end_date = Date("The last UTC date of the window.", example="2026-03-15", required=True)
    total = fields.Nested(
        ScoreExplanation,
        metadata=field_metadata("The score of the window. Null if the driver did not drive in it."),
        required=True,
        allow_none=True,
    )
    series = fields.List(
        fields.Nested(ScoreInterval),
        metadata=field_metadata("The intervals in which the driver drove, oldest first."),
        required=True,
    )
