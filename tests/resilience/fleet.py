"""A small fleet: what is imported, the requests, and their expected responses."""

import datetime
import json

from tests.factories import make_driver, make_event, make_point, make_trip
from tests.operations import OF_DATA, make_target
from tests.resilience.load import Request
from tests.resilience.processes import DATABASE, run_command

FLEET = "acme"
DRIVERS = 20
# The last full week that ended a week ago at least: whatever day it is, responses stay the same while a test runs.
TODAY = datetime.datetime.now(datetime.UTC).date()
MONDAY = TODAY - datetime.timedelta(days=TODAY.weekday() + 14)
SUNDAY = MONDAY + datetime.timedelta(days=6)


def make_drivers():
    """Return lines of a drivers file."""
    return [make_driver(f"d{n:02}", first_name=f"Driver {n}", email=f"d{n}@example.com") for n in range(DRIVERS)]


def make_trips():
    """Return lines of a trips file: a trip a driver and day of the week; seven at a time share a tracking id."""
    trips = []
    for n in range(7 * DRIVERS):
        start = f"{MONDAY + datetime.timedelta(days=n % 7)}T{8 + n % 9:02}:00"
        named = {"trip_id": f"t{n:03}", "tracking_id": f"k{n // 7:02}", "distance_miles": 3 + n / 7}
        trip = make_trip(start, f"d{n % DRIVERS:02}", **named)
        trips.append({**trip, "events": [make_event(trip["trip_start_time"])]})
    return trips


def write_file(path, lines):
    """Write an NDJSON file, and return its path."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def load_fleet(uri, folder, fleet=FLEET, database=DATABASE):
    """Import the fleet with the project's own commands; return a key of it."""
    files = ["--drivers", write_file(folder / "drivers", make_drivers())]
    files += ["--trips", write_file(folder / "trips", make_trips())]
    run_command("import", "--fleet", fleet, *files, uri=uri, database=database)
    return issue_key(uri, fleet, database)


def load_long_trip(uri, folder, fleet, points):
    """Import a fleet whose only trip, `long`, has a trail of so many points; return a key of it."""
    trip = make_trip(f"{MONDAY}T08:00", "d1", trip_id="long", trail_path=[make_point(0)] * points)
    run_command("import", "--fleet", fleet, "--trips", write_file(folder / "trips", [trip]), uri=uri)
    return issue_key(uri, fleet)


def issue_key(uri, fleet=FLEET, database=DATABASE):
    """Return a new key."""
    return run_command("keys", "issue", "--fleet", fleet, uri=uri, database=database).strip()


def requests():
    """Return requests to every endpoint that reads what was imported, whole and masked."""
    some = "&".join(f"driver_id=d{n:02}" for n in range(0, DRIVERS, 3))
    required = {"driver_id": "d03", "filter_value": "t017"}
    paths = [
        *(make_target(path, required, monday=str(MONDAY)) for path in OF_DATA),
        "/drivers?limit=100",
        "/drivers?limit=7&page=2",
        f"/driver/d04/trips?start_date={MONDAY}&limit=3&page=2",
        "/trip/tracking_id/k02",
        f"/driver-aggregate/weekly?start_date={MONDAY}&{some}",
        "/drivers?search=driver+d1",
        f"/driver-aggregate/window?start_date={MONDAY}&end_date={SUNDAY}&limit=7&page=2",
        f"/driver-aggregate/window?start_date={MONDAY}&end_date={SUNDAY}&{some}",
        f"/driver/d06/score?start_date={MONDAY}&end_date={SUNDAY}&interval=day",
        f"/ranking?period=week&start_date={MONDAY}&limit=7&page=2",
    ]
    masked = [
        Request("/drivers", "{count,drivers{driver_id,alias}}"),
        Request(f"/driver/d05/trips?start_date={MONDAY}", "{trips{trip_id,distance_miles}}"),
        Request("/trip/tracking_id/k03", "{trips{trip_id,events{event_name}}}"),
        Request(f"/driver-aggregate/weekly?start_date={MONDAY}&{some}", "{data{driving_summary{fm_score,trip_count}}}"),
        Request(f"/driver/d07/score?start_date={MONDAY}&end_date={SUNDAY}", "{total{fm_score}}"),
    ]
    return [*map(Request, paths), *masked]


def expected_responses(service, key):
    """Return a set of the body of each response, from a healthy service."""
    responses = {request: service.get(request.path, key, **request.headers) for request in requests()}
    assert {response.status for response in responses.values()} == {200}
    served = responses[Request("/trip/trip_id/t017")].json["trips"][0]
    imported = make_trips()[17]
    assert {name: served[name] for name in imported if name in served} == {
        name: value for name, value in imported.items() if name != "tracking_id"
    }
    listed = responses[Request("/drivers?limit=100")].json["drivers"]
    assert [driver["email"] for driver in listed] == [driver["email"] for driver in make_drivers()]
    return {request: {response.body} for request, response in responses.items()}
