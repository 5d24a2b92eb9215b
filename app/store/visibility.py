"""When a trip is visible: from PROCESSING_DELAY_HOURS after its end on, by default four."""

from schemas.periods import MS_PER_HOUR, now_ms


def get_delay_ms(processing_delay_hours: float) -> int:
    """Return how long after its end (ms) a trip becomes visible."""
    return int(processing_delay_hours * MS_PER_HOUR)


def get_max_visible_end_ms(processing_delay_hours: float) -> int:
    """Return the latest end (epoch ms) that a visible trip can have now."""
    return now_ms() - get_delay_ms(processing_delay_hours)
