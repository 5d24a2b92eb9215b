"""The time zone of a fleet: which date a trip has, and what happens when the time zone of a fleet with data is set."""

import datetime
import json

import dateutil.tz
import pytest

from app.store import Store
from scripts.lifecycle import fleets
from scripts.materialize import fleet_settings
from scripts.materialize.write_sources import prepare_trip, write_trips
from tests.commands.test_import import dates_driven, profiles
from tests.factories import make_driver, make_trip
from tests.fleet_states import differences, empty
from tests.following import Following, make_source
from tests.store_contents import TRIP, contents, load

ZONES = ("UTC", "America/Denver", "Asia/Kolkata", "Pacific/Apia", "America/Sao_Paulo", "America/Havana")
# Around a local midnight of each zone, in winter and in summer, and around days on which a clock changes.
MOMENTS = [
    *(f"2026-{day}T{hour:02}:{minute}" for day in ("01-10", "07-10") for hour in range(24) for minute in (29, 30)),
    *(f"2026-{day}T{hour:02}:30" for day in ("03-08", "11-01") for hour in range(3, 11)),
    *(f"{day}T{hour:02}:30" for day in ("2018-11-04", "2019-02-17", "2011-12-30", "2011-12-31") for hour in range(12)),
]


def make_trips(moments=MOMENTS):
    return [make_trip(moment, f"d{index % 3}", trip_id=moment) for index, moment in enumerate(moments)]


def reference_date(start_ms, zone):
    """Return the date of a trip, by another implementation of time zones than that of the service."""
    utc = datetime.datetime.fromtimestamp(start_ms / 1000, dateutil.tz.UTC)
    return str(utc.astimezone(dateutil.tz.gettz(zone)).date())


def reference_days(trips, zone):
    """Return how many trips each driver has on each date."""
    days = [(trip["driver_id"], reference_date(trip["trip_start_time"], zone)) for trip in trips]
    return {day: days.count(day) for day in days}


@pytest.fixture
def set_zone(command):
    """Set the time zone of f1, and return what was printed."""

    def set_zone(zone, status=0):
        result = command("fleets", "set", "--fleet", "f1", "--time-zone", zone)
        assert result.exit_code == status, result.output
        return result.stdout if status == 0 else result.stderr

    return set_zone


@pytest.fixture
def small_steps(monkeypatch):
    """Move a few trips at a time."""
    monkeypatch.setattr(fleet_settings, "TRIPS_PER_TRANSACTION", 7)


@pytest.mark.parametrize("zone", ZONES)
def test_a_trip_has_its_local_date_whichever_way_it_comes(command, mongod, write_lines, set_zone, clock, zone):
    clock.move_to("2026-12-01T00:00Z")
    trips = make_trips()
    set_zone(zone)
    assert command("import", "--fleet", "f1", "--trips", str(write_lines("trips", *trips[::2]))).exit_code == 0
    following = Following(mongod)
    following.catch_up()
    mongod.trips.insert_many([make_source(trip) for trip in trips[1::2]])
    following.catch_up()
    assert dates_driven(mongod) == reference_days(trips, zone)
    assert command("rollups", "verify").exit_code == 0
    dates = sorted(reference_date(trip["trip_start_time"], zone) for trip in trips if trip["driver_id"] == "d1")
    served = profiles(mongod)["d1"]
    assert (served["first_travel_date"], served["last_travel_date"]) == (dates[0], dates[-1])


def test_a_fleet_with_data_is_as_if_it_always_had_its_time_zone(mongod, set_zone, small_steps):
    trips, drivers = make_trips(), [make_driver("d1", last_travel_date="2026-08-01"), make_driver("idle")]
    expected = {}
    for zone in ZONES:
        empty(mongod)
        set_zone(zone)
        load(mongod, *trips, drivers=drivers)
        expected[zone] = contents(mongod)
    for zone in (*ZONES[::-1], *ZONES):
        set_zone(zone)
        assert contents(mongod) == expected[zone], zone
        assert set_zone(zone) == f"f1: the time zone is {zone}; 0 trips moved to another date\n"


def test_a_move_is_no_change_of_a_trip(mongod, set_zone):
    load(mongod, *make_trips())
    before = list(mongod.trip_changes.find())
    details = {trip["_id"]: trip["version"] for trip in mongod.trip_details.find()}
    set_zone("Asia/Kolkata")
    assert list(mongod.trip_changes.find()) == before
    assert {trip["_id"]: trip["version"] for trip in mongod.trip_details.find()} == details


@pytest.mark.parametrize("zone", ["America/Denver", "Asia/Kolkata"])
def test_killed_at_any_moment_each_trip_is_on_one_date_and_repeated_it_ends(mongod, command, kills, small_steps, zone):
    trips = make_trips()
    load(mongod, *trips)
    allowed = [reference_days([trip], one) for trip in trips for one in ("UTC", zone)]
    possible = {day for days in allowed for day in days}
    words = ("fleets", "set", "--fleet", "f1", "--time-zone", zone)
    for _ in kills(fleets, lambda: command(*words), 6, 7, 30):
        days = dates_driven(mongod)
        assert sum(days.values()) == len(trips)
        assert days.keys() <= possible
        for driver in ("d0", "d1", "d2"):
            found = mongod.driver_periods.find({"driver_id": driver, "period": "day"}, sort=[("start_date", 1)])
            listed = [json.loads(text)["trip_start_time"] for day in found for text in day["trips"]]
            assert listed == sorted(trip["trip_start_time"] for trip in trips if trip["driver_id"] == driver)
        weeks = [json.loads(week["json"]) for week in mongod.fleet_periods.find({"period": "week"})]
        assert sum(week["trip_count"] for week in weeks) == len(trips)
        # What is left is named, unless the command was killed before it set the time zone, or at its end.
        left = days != reference_days(trips, zone)
        is_set = (mongod.fleets.find_one({"_id": "f1"}) or {}).get("time_zone") == zone
        assert bool(differences(mongod)) is (left and is_set)
    assert dates_driven(mongod) == reference_days(trips, zone)
    assert differences(mongod) == []


def test_a_rebuild_ends_what_was_killed(mongod, command):
    load(mongod, *make_trips())
    fleet_settings.set_settings(Store.of(mongod), "f1", time_zone="America/Denver")
    assert command("rollups", "verify").exit_code == 1
    assert command("rollups", "rebuild").exit_code == 0
    assert dates_driven(mongod) == reference_days(make_trips(), "America/Denver")
    assert command("rollups", "verify").exit_code == 0


def test_an_import_that_began_before_writes_the_dates_of_the_new_time_zone(mongod, set_zone):
    prepared = [prepare_trip("f1", TRIP.load(trip)) for trip in make_trips()]
    set_zone("Pacific/Apia")
    write_trips(Store.of(mongod), "f1", prepared)
    assert dates_driven(mongod) == reference_days(make_trips(), "Pacific/Apia")


def test_a_new_fleet_is_named_and_listed_with_its_time_zone(command, mongod):
    result = command("fleets", "set", "--fleet", "acme", "--time-zone", "Asia/Kolkata")
    assert result.stderr == "acme: a new fleet\n"
    load(mongod, make_trip())
    assert command("fleets", "list").stdout == "acme\t0\t0\t0\tAsia/Kolkata\tcounted\nf1\t1\t1\t0\tUTC\tcounted\n"


def test_a_command_names_a_time_zone_that_this_host_does_not_know(run_main, mongod, mongod_uri):
    load(mongod, make_trip())
    mongod.fleets.update_one({"_id": "f1"}, {"$set": {"time_zone": "Mars/Olympus"}})
    words = ("rollups", "verify", "--fleet", "f1")
    ended = run_main(*words, MONGODB_URI=mongod_uri, MONGODB_DATABASE=mongod.name)
    (line,) = ended.stderr.splitlines()
    assert ended.status == 1
    assert line.endswith(
        "{'_id': 'f1'}: this host does not know the time zone Mars/Olympus. Update its time zone database, or the "
        "package tzdata."
    )


def test_a_date_has_room_for_its_trips_while_others_leave_it(mongod, set_zone, small_steps, monkeypatch):
    monkeypatch.setattr("scripts.materialize.trips.MAX_TRIPS_A_DAY", 24)
    moments = [f"2026-07-{day}T{hour:02}:30" for day in (10, 11, 12) for hour in range(24)]
    load(mongod, *(make_trip(moment, trip_id=moment) for moment in moments))
    for zone in ("America/Denver", "Asia/Kolkata", "UTC"):
        set_zone(zone)
        assert mongod.trip_details.count_documents({}) == len(moments)
        assert mongod.trip_changes.count_documents({"deleted_at": {"$exists": True}}) == 0


def test_a_trip_without_a_date_in_the_years_1_to_9999_is_invalid(command, mongod, set_zone, write_lines):
    trips = [make_trip("0001-01-01T03:00", trip_id="first"), make_trip("0001-01-01T08:00", trip_id="second")]
    load(mongod, *trips)
    set_zone("America/Denver", status=1)
    assert dates_driven(mongod) == {("d1", "0001-01-01"): 1}
    result = command("import", "--fleet", "f1", "--trips", str(write_lines("trips", *trips)))
    assert "trip_start_time: Its date in America/Denver is not in the years 1 to 9999." in result.output
    set_zone("UTC")
    assert dates_driven(mongod) == {("d1", "0001-01-01"): 2}
    assert differences(mongod) == []
