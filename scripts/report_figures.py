"""The figures of a weekly report, from which its page is made."""

import dataclasses
from typing import NamedTuple

from app.store import Document


class Row(NamedTuple):
    """A driver, and the DrivingSummary of the seven days; None where the driver did not drive."""

    driver: Document
    summary: Document | None


@dataclasses.dataclass
class Figures:
    """A fleet's figures of the seven UTC dates before the date of `report_time`, and of the seven before those."""

    fleet: str
    report_time: str  # YYYY-MM-DDTHH:MM:SS
    dates: list[str]  # oldest first
    drivers: int  # of the fleet
    drove: int  # of them in the seven days
    total: Document | None  # DrivingSummary of the fleet, scored from its totals; None where nobody drove
    before: Document | None  # the same of the seven days before
    days: list[Document | None]  # DrivingSummary of each date; None where nobody drove
    scores: list[int]  # drivers who drove, by score: 0 to below 10, 10 to below 20, ..., 90 to 100
    grades: dict[str, int]  # drivers who drove, by fm_grade, best first
    focus: dict[str, int]  # drivers who have each flag of focus_area
    best: list[Row]  # up to ten who drove, best score first
    worst: list[Row]  # up to ten who drove, worst score first
    first: list[Row]  # the first 500 drivers at the most, by driver_id
