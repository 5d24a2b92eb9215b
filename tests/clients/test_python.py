"""The Python client that openapi-python-client makes, against a live service."""

import datetime

import pytest

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def import_module_of_client(document, python_client):
    """Import a module of the client by name."""
    return python_client(document, "client_made_from_the_document")


@pytest.fixture
def operation(import_module_of_client):
    """Find an operation of the client by name."""
    return lambda name: import_module_of_client(f"api.external.{name}")


@pytest.fixture
def client(import_module_of_client, live):
    with import_module_of_client("client").AuthenticatedClient(live.url, token=live.key, prefix="APIKEY") as client:
        yield client


@pytest.fixture
def since():
    return datetime.datetime.now(datetime.UTC).date() - datetime.timedelta(days=30)


@pytest.fixture
def monday():
    today = datetime.datetime.now(datetime.UTC).date()
    return today - datetime.timedelta(days=today.weekday() + 7)


def test_it_lists_drivers(operation, client):
    page = operation("list_drivers").sync(client=client, limit=20)
    assert [driver.driver_id for driver in page.drivers] == [f"demo-{number:02d}" for number in range(1, 21)]
    assert page.drivers[0].email == "amina.yusuf@example.com"
    assert isinstance(page.drivers[0].last_travel_date, datetime.date)
    assert (page.drivers[19].first_name, page.drivers[19].last_travel_date) == ("Thandiwe", None)


def test_it_pages_through_all_trips(operation, client, since):
    trips, page = [], 1
    while page is not None:
        result = operation("list_driver_trips").sync("demo-01", client=client, start_date=since, limit=2, page=page)
        trips += result.trips
        page = result.next_page
    assert [trip.trip_id for trip in trips] == [f"demo-01-{number}-1" for number in range(44, 55)]
    assert result.current_page == 6
    assert sum(trip.distance_miles for trip in trips) == 137.5


def test_it_reads_a_trip_in_full(import_module_of_client, operation, client):
    trip_id = import_module_of_client("models").ListTripsFilterParam.TRIP_ID
    (trip,) = operation("list_trips").sync(trip_id, "demo-01-54-1", client=client).trips
    assert [point.course for point in trip.trail_path] == [90.0, 90.0]
    assert trip.insurance_period is None
    assert trip.focus_area.is_overspeeding is False
    assert (trip.events[0].event_name, trip.events[0].event_data.user_speed_mph) == ("OVERSPEEDING", 52.0)


def test_it_reads_a_week_and_its_days(operation, client, monday):
    weekly = operation("get_weekly_driver_aggregate")
    week = weekly.sync(client=client, start_date=monday, driver_id=["demo-01"]).data[0].driving_summary
    assert (week.start_date, week.fm_score, week.fm_grade) == (monday, 87.8, "excellent")
    assert {day.distance_miles for day in week.daily_summary_breakdown} == {12.5}
    assert len(week.daily_summary_breakdown) == week.trip_count


def test_it_reads_a_month_and_the_score_of_its_days(operation, client, monday):
    first = monday.replace(day=1)
    monthly, score = operation("get_monthly_driver_aggregate"), operation("get_driver_score")
    month = monthly.sync(client=client, start_date=first, driver_id=["demo-01"]).data[0].driving_summary
    days = score.sync("demo-01", client=client, start_date=monday, end_date=monday + datetime.timedelta(6)).total
    assert (month.start_date, month.fm_grade) == (first, "excellent")
    assert (days.fm_score, days.behaviours[0].behaviour, days.behaviours[3].seconds) == (87.8, "phone_use", None)


def test_a_driver_who_never_drove_has_no_total(operation, client, monday):
    score = operation("get_driver_score").sync("demo-20", client=client, start_date=monday)
    assert (score.driver_info.driver_id, score.total, score.series) == ("demo-20", None, [])


def test_a_driver_who_did_not_drive_has_no_summary(import_module_of_client, operation, client, monday):
    weekly = operation("get_weekly_driver_aggregate")
    (result,) = weekly.sync(client=client, start_date=monday, driver_id=["demo-20"]).data
    assert (result.driver_info.driver_id, result.driving_summary) == ("demo-20", import_module_of_client("types").UNSET)


def test_it_revalidates_a_response(operation, client):
    first = operation("list_drivers").sync_detailed(client=client)
    again = operation("list_drivers").sync_detailed(client=client, if_none_match=first.headers["ETag"])
    assert (first.status_code, again.status_code, again.parsed) == (200, 304, None)


def test_it_reads_an_error_of_parameters(import_module_of_client, operation, client):
    response = operation("list_drivers").sync_detailed(client=client, page=0)
    assert response.status_code == 400
    assert isinstance(response.parsed, import_module_of_client("models").ErrorBody)
    assert response.parsed.error == "ValidationError"
    assert response.parsed.errors["page"][0].startswith("Must be a whole number")


def test_it_reads_the_error_of_a_refused_key(import_module_of_client, operation, live):
    with import_module_of_client("client").AuthenticatedClient(live.url, token="da_unknown", prefix="APIKEY") as client:
        response = operation("list_drivers").sync_detailed(client=client)
    assert (response.status_code, response.parsed.error) == (401, "Unauthorized")


def test_it_requests_the_health_check_without_a_key(import_module_of_client, live):
    with import_module_of_client("client").Client(live.url) as client:
        assert import_module_of_client("api.health.get_health").sync(client=client).status == "ok"
