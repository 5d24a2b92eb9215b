"""The names of periods, as parameters and stored documents have them."""

from typing import Final, Literal

PeriodName = Literal["day", "week", "month"]
# The periods that are built from their days, and ranked.
LongPeriodName = Literal["week", "month"]
DAY: Final = "day"
WEEK: Final = "week"
MONTH: Final = "month"
PERIODS: tuple[PeriodName, ...] = (DAY, WEEK, MONTH)
LONG_PERIODS: tuple[LongPeriodName, ...] = (WEEK, MONTH)
# What a driver's profile has in place of a period and its first date.
PROFILE, ANY_DATE = "profile", ""
