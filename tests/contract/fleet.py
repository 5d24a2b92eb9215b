"""A fleet whose identifiers and dates the generated requests ask for: the same in every process of a day."""

import datetime

from tests.factories import epoch_ms, make_driver, make_trip
from tests.whole_trip import make_events

TODAY = datetime.datetime.now(datetime.UTC).date()
# The example of the OpenAPI document, then what must be percent-encoded, and the longest.
DRIVER_IDS = ["demo-01", "a/b?c=d&e", "100% Ann", "Jürgen+Åse", "\U0001d11e", "z" * 128]
GROUPS = ["North", "North, 2/3", "\u05e6\u05e4\u05d5\u05df", "z" * 128]
TRACKING_IDS = ["shared", "half/shared"]
# From yesterday back, within six months whatever their length.
DATES = [str(TODAY - datetime.timedelta(days=days)) for days in range(1, 170, 7)]
# When the trips of some of these dates begin.
TIMES = [str(epoch_ms(f"{date}T08:00")) for date in DATES[::8]]
LAST_MONDAY = TODAY - datetime.timedelta(days=TODAY.weekday() or 7)
MONDAYS = [str(LAST_MONDAY - datetime.timedelta(weeks=weeks)) for weeks in range(24)]
MONTHS = sorted({f"{date[:7]}-01" for date in DATES})
REPORT_DATE = str(TODAY)


def _trip(date, driver_id):
    number = DRIVER_IDS.index(driver_id)
    trip = make_trip(f"{date}T08:00", driver_id, trip_id=f"{driver_id[:9]}-{date}")
    events = make_events(trip["trip_start_time"])[:number]
    period = [None, 1, 2, 3][number % 4]
    return {**trip, "events": events, "insurance_period": period, "tracking_id": TRACKING_IDS[number % 2]}


DRIVERS = [make_driver(name, first_name="Amina", groups=GROUPS[n % 2 :: 2]) for n, name in enumerate(DRIVER_IDS)]
# On every date a trip of each driver but the first: one who never drove.
TRIPS = [_trip(date, driver_id) for date in DATES for driver_id in DRIVER_IDS[1:]]
TRIP_IDS = [trip["trip_id"] for trip in TRIPS]
