"""Segments: the parts of a fleet that have sums of their own.

A group is a segment of the drivers, with documents of its own. An insurance period is a segment of the trips: an entry
in `parts` of each document.
"""

# The parameter, and the field of a trip and of a part of a sum. The last of its values is for trips without one.
INSURANCE_PERIOD = "insurance_period"
NO_INSURANCE_PERIOD = "none"
INSURANCE_PERIODS = ("1", "2", "3", NO_INSURANCE_PERIOD)


def make_segment(group: str | None) -> str:
    """Return the name of the segment of a group. That of the whole fleet is empty."""
    return "" if group is None else f"group={group}"
