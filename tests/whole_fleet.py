"""Two small fleets whose read models have every kind of document and field."""

from pymongo.database import Database

from app.store import Store
from scripts.materialize.fleet_settings import set_settings
from scripts.materialize.write_sources import delete_trips
from tests.factories import epoch_ms, make_driver, make_event, make_event_summary, make_speeding, make_trip
from tests.store_contents import load
from tests.whole_trip import make_events

START = "2026-03-10T08:00"
# What a search may turn into plain letters.
LATIN = "".join(map(chr, range(0xC0, 0x250)))
PUNCTUATION = "".join(map(chr, (0x2BB, 0x2BC, *range(0x2010, 0x2016), *range(0x2018, 0x201C), 0x2212)))


def write_whole_fleets(db: Database) -> None:
    """Write the fleets f1 and f2 into an empty database."""
    store, begin = Store.of(db), epoch_ms(START)
    set_settings(store, "f1", implausible_trips="left_out")
    set_settings(store, "f2", time_zone="Etc/GMT+5")
    counts = make_event_summary(phone_use_count=1, hard_brake_count=30, phone_use_time_seconds=1.5)
    trips = [
        make_trip(
            START,
            trip_id="whole",
            tracking_id="k",
            insurance_period=2,
            # The last one starts after the end of the trip.
            events=[*make_events(begin), make_speeding(begin + 60_000), make_event(2 * begin)],
            event_summary=counts,
            trail_path=[{"timestamp": begin, "latitude": 41.25, "longitude": -96.5, "course": 1 / 3}],
        ),
        make_trip("2026-03-11T08:00", trip_id="corrected", events=[make_event(begin)], event_summary=counts),
        make_trip("2026-03-12T08:00", trip_id="implausible", distance_miles=500.0),
        make_trip("2026-03-13T08:00", "d2", trip_id="t4", insurance_period=1, highway_miles=1 / 3),
        make_trip("2026-04-13T08:00", "d3", trip_id="t5", tracking_id="k"),
        *(make_trip("2026-03-14T09:00", trip_id=f"gone{n}") for n in range(3)),
    ]
    drivers = [
        make_driver("d1", first_name=LATIN, last_name=PUNCTUATION, groups=["North", "Vans"]),
        make_driver("d2", alias="A", groups=["North"], first_travel_date="2026-01-05"),
        make_driver("idle"),
    ]
    load(db, *trips, drivers=drivers)
    load(db, {**trips[1], "distance_miles": 12.5})
    delete_trips(store, "f1", [f"gone{n}" for n in range(3)])
    load(db, make_trip(START, trip_id="whole", distance_miles=500), fleet="f2")
