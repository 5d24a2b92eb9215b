"""The fleets that the explorer is tested with."""

import datetime
import itertools

from app.store import Store
from schemas.plausibility import LEFT_OUT
from scripts.demo.load import load_demo
from scripts.materialize.fleet_settings import set_settings
from tests.factories import (
    days_ago,
    epoch_ms,
    make_driver,
    make_event,
    make_event_summary,
    make_point,
    make_speeding,
    make_trip,
)
from tests.store_contents import issue_key, load

# Each would run, or break the page, if it were read as HTML, a URL, a style or a pattern.
HOSTILE = (
    "<img src=x onerror=window.ran=1>",
    '"><script>window.ran=1</script>',
    "'-window.ran=1-'",
    "javascript:window.ran=1",
    "</title></main><svg onload=window.ran=1>",
    "{settings} ${window.ran=1} {{7*7}}",
    "\u202eevil\u2066",
    "Z" + "\u0301" * 60,
    "W" * 128,
    "a/b?c#d%2F&amp;",
    "__proto__",
)
POINTS = 10_000
DRIVERS = 10_000


def last_week(day=2, time="08:00"):
    """Return a time of a day of the last full week; day 0 is its Monday."""
    today = datetime.datetime.now(datetime.UTC).date()
    return f"{today - datetime.timedelta(7 + today.weekday() - day)}T{time}"


def load_fleet(db, name):
    """Load a fleet; return a key of it."""
    if name == "demo":
        load_demo(Store.of(db))
    else:
        if name in SETTINGS:
            set_settings(Store.of(db), name, **SETTINGS[name])
        trips, drivers = FLEETS[name]()
        load(db, *trips, drivers=drivers, fleet=name)
    return issue_key(db, name)


def _many():
    drivers = [make_driver(f"d{number:05}", first_name="Driver", last_name=f"N{number}") for number in range(DRIVERS)]
    return [make_trip(last_week(), f"d{number:05}") for number in range(45)], drivers


def _extreme():
    far = [make_trip(last_week(), "far", distance_miles=1.7e308) for _ in range(2)]
    return far, [make_driver("ahead", last_travel_date=days_ago(-30)[:10])]


def _hostile_driver(name):
    return make_driver(name, first_name=name, last_name=name, alias=name)


def _hostile_trips():
    summary = make_event_summary(hard_brake_count=1)
    for name in HOSTILE:
        begin = epoch_ms(last_week())
        events = [make_event(begin + 60_000)]
        yield make_trip(last_week(), name, trip_id=name, tracking_id=name, events=events, event_summary=summary)


def _long_trip():
    """Return a trip with a point each second, and an event of each kind."""
    begin = epoch_ms(last_week())
    trail = [
        make_point(begin + 1000 * n, latitude=41 + n / 20_000, longitude=-96 + n % 50 / 5000) for n in range(POINTS)
    ]
    speeding = make_speeding(0, 70.5, 55, 82.0)["event_data"]
    kinds = ((1, "RAPID_ACCELERATION", {}), (2, "HARD_BRAKE", {}), (7, "PHONE_USE", {}), (9, "OVERSPEEDING", speeding))
    events = [
        make_event(
            begin + 900_000 * number, event_type=kind, event_name=name, event_data=data, **_place(trail, 900 * number)
        )
        for number, (kind, name, data) in enumerate(kinds, 1)
    ]
    totals = {"trip_end_time": begin + 1000 * POINTS, "duration_seconds": POINTS, "distance_miles": 150.0}
    return make_trip(last_week(), "long", trip_id="long", trail_path=trail, events=events, **totals)


def _odd_trips():
    """Yield trips with no trail and with one point, across the antimeridian, and with a common tracking_id."""
    yield make_trip(last_week(3), "long", trip_id="no trail", trail_path=[])
    begin = epoch_ms(last_week(3))
    for name, trail in (("no trail, event", []), ("one point", [make_point(begin)])):
        events = [make_event(begin + 60_000, event_start_latitude=41.3)]
        yield make_trip(last_week(3), "long", trip_id=name, trail_path=trail, events=events)
    begin = epoch_ms(last_week(4))
    crossing = [make_point(begin + 60_000 * n, longitude=(179.9 + n / 50 + 180) % 360 - 180) for n in range(11)]
    yield make_trip(last_week(4), "long", trip_id="crossing", trail_path=crossing)
    for number in range(7):
        yield make_trip(last_week(5), "long", trip_id=f"shared {number}", tracking_id="shared", trail_path=crossing[:1])


def straight_trail(begin=0):
    """Return a trail of a point each ten seconds, at about 20 mph: 61 points, 3.3 miles."""
    return [make_point(begin + 10_000 * n, latitude=41 + n / 1250) for n in range(61)]


def _lost_trip():
    """Return a trip whose device did not know where it was for a moment."""
    trail = straight_trail(epoch_ms(last_week()))
    trail[30] |= {"latitude": 0, "longitude": 0}
    return make_trip(last_week(), "lost", trip_id="lost", trail_path=trail)


def _place(trail, index):
    return {f"event_start_{name}": trail[index][name] for name in ("latitude", "longitude")}


def _crossing_trips():
    """Yield a trip with five events that are close to each other, and one with 5,000 events at one place."""
    begin = epoch_ms(last_week())
    trail = straight_trail(begin)
    events = [make_event(begin + 10_000 * number, **_place(trail, number)) for number in range(28, 33)]
    yield make_trip(last_week(), "crossing", trip_id="crossing", trail_path=trail, events=events)
    storm = [make_event(begin + 100 * number, **_place(trail, 30)) for number in range(5000)]
    yield make_trip(last_week(), "crossing", trip_id="storm", trail_path=trail, events=storm)


def _braking_trips():
    """Yield trips with a point each so many seconds: 12 s of phone use, and braking from 60 to 30 mph in 10 s."""
    begin = epoch_ms(last_week())
    speeds = [min(60, max(30, 60 - 3 * (second - 305))) for second in range(600)]
    latitudes = list(itertools.accumulate((mph / 3600 / 69.0934 for mph in speeds), initial=41))
    for seconds in (1, 10, 30, 31, 60):
        trail = [make_point(begin + 1000 * n, latitude=latitudes[n]) for n in range(0, 600, seconds)]
        phone = {"event_type": 7, "event_name": "PHONE_USE", "event_start_latitude": latitudes[105]}
        events = [
            make_event(begin + 105_000, event_end_timestamp=begin + 117_000, **phone),
            make_event(begin + 305_000, event_end_timestamp=begin + 315_000, event_start_latitude=latitudes[305]),
        ]
        yield make_trip(last_week(), "braking", trip_id=f"every {seconds} s", trail_path=trail, events=events)


def _gap_trip():
    """Return a trip with ten miles in 210 seconds without a point, during which a phone was used."""
    trail = straight_trail(begin := epoch_ms(last_week()))
    phone = {"event_type": 7, "event_name": "PHONE_USE", "event_end_timestamp": begin + 310_000}
    trail[20:] = [point | {"longitude": -96.3} for point in trail[40:]]
    return make_trip(last_week(), "gap", trip_id="gap", trail_path=trail, events=[make_event(begin + 300_000, **phone)])


def _trips_of_wrong_clocks():
    """Yield trips with points of another time."""
    for name, count, back in (("1970", 3, epoch_ms(last_week())), ("weeks", 1, 1024 * 7), ("days", 61, 5)):
        trail = straight_trail(epoch_ms(last_week()))
        for point in trail[:count]:
            point["timestamp"] -= back if name == "1970" else back * 86_400_000
        yield make_trip(last_week(), "clock", trip_id=name, trail_path=trail)


def _trips_of_wrong_totals():
    """Yield trips whose totals differ from their events."""
    begin = epoch_ms(last_week())
    summary = make_event_summary(phone_use_count=2, phone_use_time_seconds=120, hard_brake_count=3)
    brakes = [make_event(begin + 60_000 * n) for n in range(3)]
    for name, totals, events in (
        ("totals", summary, []),
        ("list", make_event_summary(), brakes),
        ("part", summary, brakes[:1]),
        ("both", make_event_summary(hard_brake_count=3), brakes),
    ):
        yield make_trip(last_week(), "numbers", trip_id=name, event_summary=totals, events=events)


def _of_the_field():
    """Return trips as wrong devices record them, and two drivers of one name."""
    names = {"first_name": "Jan", "last_name": "Example"}
    trips = [*_braking_trips(), _gap_trip(), *_trips_of_wrong_clocks(), *_trips_of_wrong_totals()]
    return trips, [make_driver(driver_id, **names) for driver_id in ("jan-1", "jan-2")]


def _denver_trips():
    """Yield a trip on Friday evening in Denver, and one in the hour that is repeated when summer time ends."""
    yield make_trip(last_week(5, "05:30"), trip_id="friday")
    end = epoch_ms("2025-11-02T08:20")
    yield make_trip("2025-11-02T07:40", "hour", trip_id="repeated", trip_end_time=end)


# The names of drivers, and how they are shown.
UNSEEN = {"first_name": "  ", "last_name": "\u200b", "alias": "\t"}
NAMES = {
    "id": (UNSEEN, "id"),
    "alias": (UNSEEN | {"alias": "Van 7"}, "Van 7"),
    "\u00ad": (UNSEEN, 'Driver "\u00ad"'),
    "long": ({"first_name": "Maximiliana" * 20}, "Maximiliana" * 20),
}


def _named():
    """Return drivers with names that are hard to show, all of whom drove, and a trip of a device that was lost.

    And one who braked once in three miles.
    """
    trips = [make_trip(last_week(), driver_id) for driver_id in NAMES]
    one = make_event_summary(hard_brake_count=1)
    trips.append(make_trip(last_week(), "Little", distance_miles=3.0, event_summary=one))
    return [*trips, _lost_trip(), *_crossing_trips()], [
        make_driver(driver_id, **names) for driver_id, (names, _) in NAMES.items()
    ]


def _dated_trips():
    """Yield trips: of today, of each of the 190 days before, of year 1, and 130 of one day, the last one the worst.

    And one that has just ended, which is not listed yet, and one of the first day of the month six months ago.
    """
    now = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    yield make_trip(f"{now:%Y-%m-%dT%H:%M}", "just ended")
    month = 12 * now.year + now.month - 7
    yield make_trip(f"{month // 12}-{month % 12 + 1:02}-01T00:00", "early")
    yield make_trip(days_ago(0, "00:00"), "today")
    yield from (make_trip(days_ago(days), "steady") for days in range(1, 191))
    yield make_trip("0001-01-01T08:00", "steady", trip_id="year 1")
    begin = epoch_ms(last_week(6, "00:00"))
    for number in range(130):
        times = {"trip_start_time": begin + 60_000 * number, "trip_end_time": begin + 60_000 * number + 1000}
        summary = make_event_summary(hard_brake_count=number)
        yield make_trip(last_week(), "busy", trip_id=f"busy {number}", event_summary=summary, trail_path=[], **times)


def _two_broken_devices():
    """Yield a trip a day of twenty drivers in two weeks: one device had metres, another one was loose.

    And trips of a driver who drove less than ten miles.
    """
    for week, number, day in itertools.product((1, 0), range(20), range(5)):
        summary = make_event_summary(hard_brake_count=number % 3, phone_use_count=1, phone_use_time_seconds=30)
        totals = {"distance_miles": 20 + number / 2, "trip_id": f"{number} {week} {day}"}
        if week == 0 and number == 3:
            totals["distance_miles"] *= 1609.344
        if week == 0 and number == 7:
            summary |= {"phone_use_time_seconds": 30_000, "hard_brake_count": 360}
        yield make_trip(last_week(day - 7 * week), f"van {number}", event_summary=summary, **totals)
        yield make_trip(last_week(day, "12:00"), "little", distance_miles=0.1, trip_id=f"little {week} {day}")


def _judged():
    """Yield trips of 250 drivers, of whom each 8th drove 4 miles, with up to 24 brakes and 6 minutes of phone use."""
    for number in range(250):
        summary = make_event_summary(hard_brake_count=number % 25, phone_use_time_seconds=number % 7 * 60)
        miles = 60.0 if number % 8 else 4.0
        yield make_trip(last_week(), f"d{number:03}", distance_miles=miles, event_summary=summary)


def _of_yesterday():
    """Yield trips with events at two places: six of Ann and Bob at one, in no order of time, and five of Cat.

    And a trip of a wrong device, one of two miles, and one over midnight.
    """
    begin = epoch_ms(days_ago(1))
    for number, driver_id in enumerate(("ann", "bob")):
        events = [
            make_event(begin + seconds * 1000, event_start_latitude=41.25 + number / 5000) for seconds in (90, 30)
        ]
        events.append(make_speeding(begin + 60_000, 71, 40, 75) | {"event_end_timestamp": begin + 72_000})
        summary = make_event_summary(hard_brake_count=2, overspeeding_count=1, overspeeding_time_seconds=12 * number)
        yield make_trip(days_ago(1), driver_id, trip_id=driver_id, events=events, event_summary=summary)
    habit = [make_event(begin + 60_000 * n, event_start_latitude=41.4, event_start_longitude=-96.1) for n in range(5)]
    yield make_trip(
        days_ago(1), "cat", trip_id="cat", events=habit, event_summary=make_event_summary(hard_brake_count=5)
    )
    yield make_trip(days_ago(1, "12:00"), "ann", trip_id="wrong", distance_miles=900.0)
    yield make_trip(days_ago(1, "12:10"), "bob", trip_id="short", distance_miles=2.0)
    yield make_trip(days_ago(2, "23:50"), "cat", trip_id="midnight")


def _of_the_pacific():
    """Yield a trip with events 11 km apart across the antimeridian, one at a pole, and one without a position."""
    begin = epoch_ms(days_ago(1))
    places = [(-17.0, 179.95), (-17.05, 179.95), (-17.0, -179.95), (0, 0), (90, 180), (90, 180)]
    events = [
        make_event(begin + 60_000 * n, event_start_latitude=latitude, event_start_longitude=longitude)
        for n, (latitude, longitude) in enumerate(places)
    ]
    yield make_trip(days_ago(1), trip_id="pacific", events=events)


def _of_two_weeks():
    """Yield trips of two weeks: Ann lost 1.5 points and Cat 20, Bob won 10, Dan drove little in the first one.

    And Eve's trip of 100 miles, with more phone use and accelerations than cost points, and a brake.
    """
    weeks = {"ann": (18.5, 20), "bob": (20, 10), "cat": (0, 20), "dan": (0, 20)}
    for (driver_id, weekly), (number, days) in itertools.product(weeks.items(), enumerate((-5, 2))):
        miles = 5.0 if (driver_id, number) == ("dan", 0) else 200.0
        totals = {"distance_miles": miles, "duration_seconds": 14_400, "trip_id": f"{driver_id} {number}"}
        end = epoch_ms(last_week(days)) + 14_400_000
        summary = make_event_summary(hard_brake_count=int(weekly[number] * miles / 100))
        yield make_trip(last_week(days), driver_id, trip_end_time=end, event_summary=summary, **totals)
    yield make_trip(last_week(-90), "eve", distance_miles=100.0, duration_seconds=3600, event_summary=EVE)


EVE = make_event_summary(phone_use_count=9, phone_use_time_seconds=600, rapid_acceleration_count=50, hard_brake_count=1)
DEPOTS = {"ann": ["North"], "bob": ["North"], "cat": ["דרום, 2/3"], "dan": ["North", "W" * 128], "sam": []}


def _of_depots():
    """Yield trips of depots: Bob in the north braked, Cat in the south, and Sam in none. Ann has insurance periods.

    Dan did not drive.
    """
    for driver_id, brakes in (("bob", 3), ("cat", 1), ("sam", 2)):
        begin = epoch_ms(last_week())
        events = [make_event(begin + 60_000 * number) for number in range(1, brakes + 1)]
        summary = make_event_summary(hard_brake_count=brakes)
        yield make_trip(last_week(), driver_id, trip_id=driver_id, events=events, event_summary=summary)
    for number, period in enumerate((1, 1, 3, None)):
        yield make_trip(last_week(3, f"{8 + number:02}:00"), "ann", trip_id=f"ann {number}", insurance_period=period)


SETTINGS = {"denver": {"time_zone": "America/Denver"}, "devices left out": {"implausible_trips": LEFT_OUT}}
# The trips and the drivers of each fleet.
FLEETS = {
    "hostile": lambda: (_hostile_trips(), [_hostile_driver(name) for name in HOSTILE]),
    "many": _many,
    "odd": lambda: ([_long_trip(), *_odd_trips()], [make_driver("idle", first_name="Ida", last_name="Idle")]),
    "dated": lambda: (_dated_trips(), [make_driver("today"), make_driver("steady")]),
    "late": lambda: ([make_trip(days_ago(60), trip_id="t1")], [make_driver("d1", last_travel_date=days_ago(60)[:10])]),
    "brief": lambda: ([make_trip(days_ago(9), "gone", trip_id="only")], []),
    "extreme": _extreme,
    "named": _named,
    "field": _of_the_field,
    "yesterday": lambda: (
        _of_yesterday(),
        [make_driver(name, first_name=name.title()) for name in ("ann", "bob", "cat")],
    ),
    "pacific": lambda: (_of_the_pacific(), []),
    "depots": lambda: (
        _of_depots(),
        [make_driver(name, first_name=name.title(), groups=groups) for name, groups in DEPOTS.items()],
    ),
    "denver": lambda: (_denver_trips(), []),
    "changed": lambda: (
        _of_two_weeks(),
        [make_driver(name, first_name=name.title()) for name in ("ann", "bob", "cat", "dan")],
    ),
    "devices": lambda: (_two_broken_devices(), []),
    "devices left out": lambda: (_two_broken_devices(), []),
    "judged": lambda: (_judged(), []),
    "empty": lambda: ([], []),
}
