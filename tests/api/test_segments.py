"""Segments: a group, an insurance period, or both, has the sums of a fleet that has its trips alone."""

import itertools

import pytest

from app.store import Store
from scripts.lifecycle.erase import erase_driver
from tests.factories import make_driver, make_event_summary, make_trip
from tests.fleet_states import differences

GROUPS = {"d0": ["north"], "d1": ["north", "south, \u0645/1"], "d2": [], "d3": ["south, \u0645/1"]}
PERIODS = (None, 1, 2, 3)
# In two months and three weeks. d2 has days and a week without any insurance period, d3 has trips of one alone.
DAYS = ("02-26", "03-02", "03-03", "03-09")
SEGMENTS = [*itertools.product((None, "north", "south, \u0645/1"), (None, "1", "2", "3", "none"))]
SUMS = ("trip_count", "implausible_trip_count", "distance_miles", "duration_seconds", "highway_miles")


def trips_of(drivers=GROUPS, period=None, shift=0):
    """Return the trips of drivers, of an insurance period or of all, the periods shifted by so many."""
    for (number, driver), (place, day) in itertools.product(enumerate(GROUPS), enumerate(DAYS)):
        for leg in range(4):
            of_trip = {"d2": None if place < 2 else 2, "d3": 3}.get(driver, PERIODS[(number + place * leg + shift) % 4])
            if driver in drivers and period in (None, "none" if of_trip is None else str(of_trip)):
                yield make_trip(
                    f"2026-{day}T{8 + leg:02}:00",
                    driver,
                    trip_id=f"{driver} {day} {leg}",
                    insurance_period=of_trip,
                    distance_miles=10.1 + number + place / 8 + leg / 16,
                    event_summary=make_event_summary(
                        hard_brake_count=(number + leg) % 3, phone_use_time_seconds=leg * 90.5
                    ),
                )


def lines_of(groups):
    return [make_driver(driver, groups=names) for driver, names in groups.items()]


def read(service, fleet, **segment):
    """Return the sums of a fleet over time, and those of each driver who drove in a window."""
    segment = {name: value for name, value in segment.items() if value}
    series = [
        service.get("/fleet-aggregate", **segment, interval=name, start_date=date, fleet=fleet).json["series"]
        for name, date in {"day": "2026-02-01", "week": "2026-02-02", "month": "2026-02-01"}.items()
    ]
    dates = {"start_date": "2026-02-01", "end_date": "2026-03-09"}
    window = service.get("/driver-aggregate/window", **segment, **dates, fleet=fleet).json["data"]
    return series, {
        item["driver_info"]["driver_id"]: item["driving_summary"] for item in window if "driving_summary" in item
    }


def check_segments(service, load, groups, shift=0):
    """Assert that each segment of f1 is that of a fleet with its trips alone."""
    for number, (group, period) in enumerate(SEGMENTS):
        drivers = [driver for driver in groups if group is None or group in groups[driver]]
        fleet = f"s{shift}-{len(groups)}-{number}"
        load(*trips_of(drivers, period, shift), drivers=[make_driver(driver) for driver in GROUPS], fleet=fleet)
        assert read(service, "f1", group=group, insurance_period=period) == read(service, fleet), (group, period)


def test_a_segment_has_the_sums_of_a_fleet_that_has_its_trips_alone(service, load):
    load(*trips_of(), drivers=lines_of(GROUPS))
    check_segments(service, load, GROUPS)
    assert differences(service.db) == []


def test_a_correction_of_the_insurance_period_alone_moves_the_sums(service, load):
    load(*trips_of(), drivers=lines_of(GROUPS))
    load(*trips_of(shift=1))
    check_segments(service, load, GROUPS, shift=1)
    assert differences(service.db) == []


def test_drivers_bring_their_sums_into_a_group_and_take_them_away(service, load):
    moved = {"d0": ["south, \u0645/1"], "d1": [], "d2": ["north", "south, \u0645/1"], "d3": ["north"]}
    load(*trips_of(), drivers=lines_of(GROUPS))
    whole = read(service, "f1")
    load(drivers=lines_of(moved))
    assert read(service, "f1") == whole
    check_segments(service, load, moved)
    assert differences(service.db) == []


def test_an_erased_driver_leaves_each_segment(service, load):
    load(*trips_of(), drivers=lines_of(GROUPS))
    for _ in erase_driver(Store.of(service.db), "f1", "d1"):
        pass
    check_segments(service, load, {driver: names for driver, names in GROUPS.items() if driver != "d1"})
    assert differences(service.db) == []


@pytest.mark.parametrize("group", [None, "north"])
def test_the_four_insurance_periods_add_up_to_the_whole_exactly(service, load, group):
    trips = [
        {**trip, "distance_miles": 1 / (3 + number), "highway_miles": 2 / (7 + number), "duration_seconds": number / 7}
        for number, trip in enumerate(trips_of())
    ]
    load(*trips, drivers=lines_of(GROUPS))
    (_, _, whole), _ = read(service, "f1", group=group)
    parts = [read(service, "f1", group=group, insurance_period=name)[0][2] for name in ("1", "2", "3", "none")]
    for month in whole:
        found = [item["fleet_summary"] for part in parts for item in part if item["start_date"] == month["start_date"]]
        for name in SUMS:
            assert sum(round(summary[name] * 10**6) for summary in found) == round(month["fleet_summary"][name] * 10**6)
