"""The drivers of the demonstration fleet: who they are, why they drive, and their driving style."""

import datetime as dt
from typing import Any, NamedTuple

FLEET = "demo"


class DemoDriver(NamedTuple):
    """A driver: names, role and driving style.

    `pace` is a share of the speed limit, `phone` a share of the driving time.
    """

    name: str | None
    alias: str | None
    role: str | None  # None: never drives
    home: str = "town"
    joined: str | None = None  # month and day of the previous year
    pace: float = 1
    phone: float = 0
    brakes: float = 0  # per 100 miles
    accelerations: float = 0  # per 100 miles


DRIVERS = (
    DemoDriver("Amina Yusuf", None, "commuter", "suburb", "02-17", 0.97, 0.004, 1, 1),
    DemoDriver("Benjamin Clarke", "Ben", "commuter", "suburb", None, 1.08, 0.02, 4, 3),
    DemoDriver("Chiara Rossi", None, "commuter", "town", "05-02", 1.01, 0.03, 6, 4),
    DemoDriver("Daniel Okafor", "Van 1", "courier", "town", None, 1.05, 0.02, 12, 10),
    DemoDriver("Elif Demir", "Van 2", "courier", "town", "09-11", 0.98, 0.003, 2, 2),
    DemoDriver(None, None, "commuter", "town", None, 1.0, 0.12, 9, 6),
    DemoDriver("Grace Kim", "Cab 1", "day cab", "town", None, 1.03, 0.035, 6, 6),
    DemoDriver("Hugo Martínez", "Cab 2", "night cab", "town", None, 1.12, 0.08, 16, 14),
    DemoDriver("Ingrid Larsen", None, "night nurse", "suburb", "03-04", 0.97, 0, 2, 1),
    DemoDriver("Jamal Washington", "Night desk", "night guard", "town", None, 1.07, 0.05, 9, 8),
    DemoDriver("Keiko Tanaka", "Service 1", "technician", "town", "06-23", 1.02, 0.04, 5, 5),
    DemoDriver("Liam O'Connor", "Service 2", "technician", "suburb", None, 1.1, 0.1, 14, 14),
    DemoDriver("Mei Chen", "Cab 3", "day cab", "town", None, 0.98, 0.01, 2, 3),
    DemoDriver("Noah Schmidt", None, "private", "town", None, 1.14, 0.12, 16, 18),
    DemoDriver("Olga Petrova", None, "private", "town", "01-15", 0.95, 0, 1, 0),
    DemoDriver("Priya Raman", "PR", "commuter", "town", None, 1.11, 0.11, 11, 9),
    DemoDriver("Quentin Dubois", None, "private", "suburb", None, 1.07, 0.05, 8, 10),
    DemoDriver("Rosa Silva", None, "private", "town", None, 1.04, 0.03, 5, 8),
    DemoDriver("Samuel Nguyen", "Sam", "commuter", "town", "08-30", 1.06, 0.06, 12, 10),
    DemoDriver("Thandiwe Mbeki", None, None),
)
# The probability that a driver of a role drives on a weekday, and on a day of the weekend.
DRIVING_PROBABILITIES = {
    "commuter": (0.72, 0.3),
    "courier": (0.42, 0.12),
    "day cab": (0.25, 0.12),
    "night cab": (0.25, 0.35),
    "night guard": (0.55, 0.35),
    "night nurse": (0.45, 0.45),
    "private": (0.25, 0.3),
    "technician": (0.45, 0),
}


def make_driver_id(number: int) -> str:
    """Return the driver_id of the driver with this number, from 1, in DRIVERS."""
    return f"{FLEET}-{number:02d}"


def make_drivers(today: dt.date) -> list[dict[str, Any]]:
    """Return the fleet's drivers (schema Driver), ordered by driver_id.

    Some have a first_travel_date in the year before `today`. The other travel dates follow from the trips.
    """
    drivers = []
    for number, driver in enumerate(DRIVERS, start=1):
        first, last = driver.name.split(" ") if driver.name else (None, None)
        address = driver.name and driver.name.lower().replace(" ", ".").replace("'", "").replace("í", "i")
        drivers.append(
            {
                "driver_id": make_driver_id(number),
                "first_name": first,
                "last_name": last,
                "email": address and f"{address}@example.com",
                "alias": driver.alias,
                "first_travel_date": driver.joined and f"{today.year - 1}-{driver.joined}",
                "last_travel_date": None,
            }
        )
    return drivers
