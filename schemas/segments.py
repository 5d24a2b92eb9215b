"""Segments: the parts of a fleet that have sums of their own, by group, by insurance period, or by both."""

# The values of the parameter `insurance_period`. The last one is for trips without an insurance period.
NO_INSURANCE_PERIOD = "none"
INSURANCE_PERIODS = ("1", "2", "3", NO_INSURANCE_PERIOD)


def make_segment(group: str | None, insurance_period: str | None) -> str:
    """Return the name of a segment. It is empty for the whole fleet."""
    parts = {"insurance_period": insurance_period, "group": group}
    return " ".join(f"{name}={value}" for name, value in parts.items() if value is not None)
