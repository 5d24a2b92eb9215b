"""The drivers of the demonstration fleet: who they are, how they drive, and what their days are like."""

from typing import NamedTuple


class DemoDriver(NamedTuple):
    """A driver: names, role and driving style.

    `pace` is a share of the speed limit, `phone` a share of the driving time.
    """

    name: str | None
    alias: str | None
    role: str
    home: str = "town"
    joined: str | None = None  # month and day of the previous year
    pace: float = 1
    phone: float = 0
    brakes: float = 0  # per 100 miles
    accelerations: float = 0  # per 100 stops


class Role(NamedTuple):
    """The days of drivers, who leave home, go to some places and come back. Other pairs are ranges."""

    day_probabilities: tuple[float, float]  # of a drive on a weekday, and on a day of the weekend
    start_hours: tuple[float, float]  # UTC; the town is 6 hours behind, so hours may be above 24
    stops: tuple[int, int]
    pause_hours: tuple[float, float]  # at each stop
    goals: int = 40  # the number of places that a driver of this role goes to
    tracking: str | None = None  # what a tracking_id begins with; the trips of a day share it
    insurance_periods: tuple[int | None, ...] = (None,)  # of the first trip, the second and so on, over and over


DRIVERS = (
    DemoDriver("Amina Yusuf", None, "commuter", "suburb", "02-17", 0.97, 0.004, 1, 1),
    DemoDriver("Benjamin Clarke", "Ben", "commuter", "suburb", None, 1.08, 0.02, 4, 3),
    DemoDriver("Chiara Rossi", None, "commuter", "town", "05-02", 1.01, 0.03, 6, 4),
    DemoDriver("Daniel Okafor", "Van 1", "courier", "town", None, 1.05, 0.02, 12, 10),
    DemoDriver("Elif Demir", "Van 2", "courier", "town", "09-11", 0.98, 0.003, 2, 2),
    DemoDriver(None, None, "commuter", "town", None, 1.0, 0.12, 9, 6),
    DemoDriver("Grace Kim", "Cab 1", "day cab", "town", None, 1.03, 0.035, 6, 6),
    DemoDriver("Hugo Martínez", "Cab 2", "night cab", "town", None, 1.12, 0.08, 16, 14),
    DemoDriver("Ingrid Larsen", None, "night worker", "suburb", "03-04", 0.97, 0, 2, 1),
    DemoDriver("Jamal Washington", "Night desk", "night worker", "town", None, 1.07, 0.05, 9, 8),
    DemoDriver("Keiko Tanaka", "Service 1", "technician", "town", "06-23", 1.02, 0.04, 5, 5),
    DemoDriver("Liam O'Connor", "Service 2", "technician", "suburb", None, 1.1, 0.1, 14, 14),
    DemoDriver("Mei Chen", "Cab 3", "day cab", "town", None, 0.98, 0.01, 2, 3),
    DemoDriver("Noah Schmidt", None, "private", "town", None, 1.14, 0.12, 16, 18),
    DemoDriver("Olga Petrova", None, "private", "town", "01-15", 0.95, 0, 1, 0),
    DemoDriver("Priya Raman", "PR", "commuter", "town", None, 1.11, 0.11, 11, 9),
    DemoDriver("Quentin Dubois", None, "private", "suburb", None, 1.07, 0.05, 8, 10),
    DemoDriver("Rosa Silva", None, "private", "town", None, 1.04, 0.03, 5, 8),
    DemoDriver("Samuel Nguyen", "Sam", "commuter", "town", "08-30", 1.06, 0.06, 12, 10),
    DemoDriver("Thandiwe Mbeki", None, "away"),
)
ROLES = {
    "away": Role((0, 0), (0, 0), (1, 1), (0, 0)),
    "commuter": Role((0.75, 0.15), (13, 14.5), (1, 1), (8, 9.5), 1),
    "courier": Role((0.42, 0.12), (14, 16), (3, 7), (0.1, 0.3), tracking="round"),
    "day cab": Role((0.25, 0.12), (15, 19), (5, 7), (0.1, 0.4), 40, "shift", (1, 2, 3)),
    "night cab": Role((0.25, 0.35), (27, 29), (5, 7), (0.1, 0.4), 40, "shift", (1, 2, 3)),
    "night worker": Role((0.5, 0.4), (27.5, 28.5), (1, 1), (6, 7), 1),
    "private": Role((0.25, 0.3), (15.5, 24), (1, 1), (1, 3)),
    "technician": Role((0.45, 0), (14, 15.5), (2, 3), (1, 2), tracking="job"),
}
