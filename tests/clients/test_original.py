"""A Python client generated from the original service's interface reads every response over the demonstration fleet."""

import datetime
import json
from types import SimpleNamespace

import pytest
from openapi_spec_validator import validate

from app.config import API
from scripts.demo.fleet import make_trips
from tests.clients.original import DESCRIPTION
from tests.service_process import ServiceProcess

pytestmark = pytest.mark.clients

DRIVER_IDS = [f"demo-{number:02d}" for number in range(1, 21)]
DAY = datetime.timedelta(days=1)


@pytest.fixture(scope="module")
def client_module(tmp_path_factory, python_client):
    """Import a module of the client by name."""
    path = tmp_path_factory.mktemp("original") / "openapi.json"
    path.write_text(json.dumps(DESCRIPTION))
    return python_client(path, "client_of_the_original")


@pytest.fixture(scope="module")
def client(tmp_path_factory, client_module):
    """The generated client, connected to a live service with the demonstration fleet."""
    folder = tmp_path_factory.mktemp("demonstration")
    with ServiceProcess(folder, "--demo") as process:
        process.read(1)
        key = (folder / "demo.key").read_text().strip()
        url = f"http://{process.bind}{API}"
        with client_module("client").AuthenticatedClient(url, token=key, prefix="APIKEY") as client:
            yield client


@pytest.fixture(scope="module")
def call(client, client_module):
    """Call an operation by name; return the typed response and its JSON, which have the same content."""

    def call(name, *path, tag="external", **query):
        response = client_module(f"api.{tag}.{name}").sync_detailed(*path, client=client, **query)
        body = json.loads(response.content)
        assert response.status_code == 200, body
        assert response.parsed.to_dict() == body
        return response.parsed, body

    return call


@pytest.fixture(scope="module")
def trips():
    """The trips of the fleet, oldest first."""
    return list(make_trips(datetime.datetime.now(datetime.UTC)))


@pytest.fixture(scope="module")
def trip(trips):
    """A trip of some weeks ago that has a tracking_id, and its date."""
    tracked = [trip for trip in trips if trip["tracking_id"]]
    body = tracked[len(tracked) // 2]
    return SimpleNamespace(**body, date=date_of(body))


def date_of(trip):
    return datetime.datetime.fromtimestamp(trip["trip_start_time"] / 1000, datetime.UTC).date()


def test_the_description_is_valid_openapi():
    validate(DESCRIPTION)


def test_it_lists_drivers(call):
    page, body = call("get_drivers", limit=20)
    assert [driver.driver_id for driver in page.drivers] == DRIVER_IDS
    assert (page.count, page.next_page) == (body["count"], body["next_page"]) == (20, None)
    for driver, raw in zip(page.drivers, body["drivers"], strict=True):
        assert (driver.first_name, driver.email, driver.alias) == (raw["first_name"], raw["email"], raw["alias"])
    assert isinstance(page.drivers[0].last_travel_date, datetime.date)
    assert page.drivers[19].last_travel_date is None


def test_it_pages_through_the_trips_of_a_driver(call, trip, trips):
    page, body = call("get_driver_trips", trip.driver_id, start_date=trip.date, limit=2)
    own = [one for one in trips if one["driver_id"] == trip.driver_id and date_of(one) >= trip.date]
    assert [one.trip_id for one in page.trips] == [one["trip_id"] for one in own[:2]]
    assert (page.current_page, page.limit, page.next_page) == (1, 2, 2)
    assert page.trips[0].trip_start_time == body["trips"][0]["trip_start_time"] == own[0]["trip_start_time"]
    assert page.trips[0].event_summary.hard_brake_count == own[0]["event_summary"]["hard_brake_count"]


def test_it_reads_a_trip_by_its_trip_id(call, trips):
    expected = next(trip for trip in trips if any(event["event_type"] == 9 for event in trip["events"]))
    page, body = call("get_trip_by_trip_id", expected["trip_id"])
    (trip,), (raw,) = page.trips, body["trips"]
    assert (trip.trip_id, trip.distance_miles) == (raw["trip_id"], raw["distance_miles"])
    assert len(trip.trail_path) == len(expected["trail_path"])
    assert trip.trail_path[0].course == raw["trail_path"][0]["course"]
    assert trip.focus_area.is_rapid_acceleration == raw["focus_area"]["is_rapid_acceleration"]
    speeding = next(event for event in trip.events if event.event_name == "OVERSPEEDING")
    speeds = next(event["event_data"] for event in expected["events"] if event["event_type"] == 9)
    assert speeding.event_data.user_speed_mph == speeds["user_speed_mph"]


def test_it_reads_trips_by_their_tracking_id(call, trip, trips):
    page, body = call("get_trips_by_tracking_id", trip.tracking_id)
    same = [one["trip_id"] for one in trips if one["tracking_id"] == trip.tracking_id]
    assert page.count == body["count"] == len(same)
    assert [one.trip_id for one in page.trips] == same[:5]
    assert page.trips[0].insurance_period == body["trips"][0]["insurance_period"]


def who_did_not_drive(elements, client_module):
    unset = client_module("types").UNSET
    return {element.driver_info.driver_id for element in elements if element.driving_summary is unset}


def test_it_reads_a_day_on_which_some_did_not_drive(call, client_module, trip, trips):
    day, body = call("get_daily_aggregates", start_date=trip.date, driver_id=DRIVER_IDS)
    drove = {one["driver_id"] for one in trips if date_of(one) == trip.date}
    assert {trip.driver_id} <= drove < set(DRIVER_IDS)
    assert who_did_not_drive(day.data, client_module) == set(DRIVER_IDS) - drove
    for element, raw in zip(day.data, body["data"], strict=True):
        assert element.driver_info.driver_id == raw["driver_info"]["driver_id"]
        if "driving_summary" in raw:
            assert element.driving_summary.date == trip.date
            assert element.driving_summary.fm_score == raw["driving_summary"]["fm_score"]


def test_it_reads_a_week_in_which_some_did_not_drive(call, client_module, trip, trips):
    monday = trip.date - trip.date.weekday() * DAY
    week, body = call("get_weekly_aggregates", start_date=monday, driver_id=DRIVER_IDS)
    drove = {one["driver_id"] for one in trips if monday <= date_of(one) < monday + 7 * DAY}
    assert {trip.driver_id} <= drove < set(DRIVER_IDS)
    assert who_did_not_drive(week.data, client_module) == set(DRIVER_IDS) - drove
    element, raw = (data[DRIVER_IDS.index(trip.driver_id)] for data in (week.data, body["data"]))
    assert (element.driving_summary.start_date, element.driving_summary.end_date) == (monday, monday + 6 * DAY)
    scores = [day.fm_score for day in element.driving_summary.daily_summary_breakdown]
    assert scores == [day["fm_score"] for day in raw["driving_summary"]["daily_summary_breakdown"]]


def test_it_gets_links_to_a_report(call):
    today = datetime.datetime.now(datetime.UTC).date()
    monday = today - today.weekday() * DAY
    report, body = call("get_report", report_time=f"{monday}T00:00:00")
    assert (report.report_link, report.report_page) == (body["report_link"], body["report_page"])
    assert report.expires_at == body["expires_at"]


def test_it_requests_the_health_check(call):
    health, _ = call("get_health", tag="health")
    assert health.status == "ok"
