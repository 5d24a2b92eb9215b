"""Clients that openapi-python-client makes, of our document and of the original's interface, read every response."""

import datetime
import importlib
import json

import pytest

from app import openapi_document
from app.config import API
from tests.clients.original import DESCRIPTION
from tests.clients.tools import generate

pytestmark = pytest.mark.clients

TODAY = datetime.datetime.now(datetime.UTC).date()
DAY = datetime.timedelta(days=1)
SINCE, MONDAY = TODAY - 30 * DAY, TODAY - (TODAY.weekday() + 7) * DAY
# One drove, and one did not.
DRIVER_IDS = ["demo-01", "demo-20"]


@pytest.fixture(scope="module")
def import_module(tmp_path_factory):
    """Import a module of a client by name: the packages are `ours` and `original`."""
    folder = tmp_path_factory.mktemp("packages")
    for package, document in {
        "ours": openapi_document("", TODAY),
        "original": json.dumps(DESCRIPTION).encode(),
    }.items():
        (path := folder / f"{package}.json").write_bytes(document)
        options = ("--fail-on-warning", "--meta", "none", "--output-path", folder / package)
        generate("openapi-python-client", "generate", "--path", path, *options)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield importlib.import_module


@pytest.fixture
def call(import_module, live):
    """Call an operation by its module; return the response, of which `parsed` has the content of its JSON."""

    def call(module, *path, key=live.key, **query):
        package = module.partition(".")[0]
        url = live.url if package == "ours" else live.url + API
        with import_module(f"{package}.client").AuthenticatedClient(url, token=key, prefix="APIKEY") as client:
            response = import_module(module).sync_detailed(*path, client=client, **query)
        assert response.parsed is None or response.parsed.to_dict() == json.loads(response.content)
        return response

    return call


@pytest.mark.parametrize(
    ("operation", "path", "query"),
    [
        ("external.get_drivers", [], {"limit": 7, "page": 2}),
        ("external.get_driver_trips", ["demo-01"], {"start_date": SINCE, "limit": 5}),
        ("external.get_trip_by_trip_id", ["demo-01-54-1"], {}),
        ("external.get_trips_by_tracking_id", ["round-04-54"], {"page": 2}),
        ("external.get_daily_aggregates", [], {"start_date": TODAY - 6 * DAY, "driver_id": DRIVER_IDS}),
        ("external.get_weekly_aggregates", [], {"start_date": MONDAY, "driver_id": DRIVER_IDS}),
        ("external.get_report", [], {"report_time": f"{TODAY - TODAY.weekday() * DAY}T00:00:00"}),
        ("health.get_health", [], {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_client_of_the_original_reads_every_response(call, operation, path, query):
    response = call(f"original.api.{operation}", *path, **query)
    assert (response.status_code, response.parsed is None) == (200, False)


def test_a_client_of_the_original_reads_what_is_null_or_absent(call, import_module):
    unset = import_module("original.types").UNSET
    drivers = call("original.api.external.get_drivers").parsed.drivers
    assert isinstance(drivers[0].last_travel_date, datetime.date)
    assert drivers[19].last_travel_date is None
    week = call("original.api.external.get_weekly_aggregates", start_date=MONDAY, driver_id=DRIVER_IDS).parsed.data
    assert [element.driving_summary is unset for element in week] == [False, True]


def test_our_client_pages_through_trips(call):
    trips, page = [], 1
    while page is not None:
        result = call("ours.api.external.list_driver_trips", "demo-01", start_date=SINCE, limit=2, page=page).parsed
        trips += result.trips
        page = result.next_page
    assert [trip.trip_id for trip in trips] == [f"demo-01-{number}-1" for number in range(44, 55)]


def test_our_client_reads_a_trip_in_full(call, import_module):
    trip_id = import_module("ours.models").ListTripsFilterParam.TRIP_ID
    (trip,) = call("ours.api.external.list_trips", trip_id, "demo-01-54-1").parsed.trips
    assert [point.course for point in trip.trail_path] == [90.0, 90.0]
    assert (trip.insurance_period, trip.focus_area.is_overspeeding) == (None, False)
    assert (trip.events[0].event_name, trip.events[0].event_data.user_speed_mph) == ("OVERSPEEDING", 52.0)


def test_our_client_reads_a_month_and_the_score_of_who_drove_and_who_did_not(call, import_module):
    monthly, score = (f"ours.api.external.{name}" for name in ("get_monthly_driver_aggregate", "get_driver_score"))
    drove, idle = call(monthly, start_date=MONDAY.replace(day=1), driver_id=DRIVER_IDS).parsed.data
    assert (drove.driving_summary.start_date, drove.driving_summary.fm_grade) == (MONDAY.replace(day=1), "excellent")
    assert idle.driving_summary is import_module("ours.types").UNSET
    drove, idle = (call(score, driver_id, start_date=MONDAY).parsed for driver_id in DRIVER_IDS)
    assert (drove.total.fm_score, drove.total.behaviours[3].seconds) == (87.8, None)
    assert (idle.total, idle.series) == (None, [])


def test_our_client_revalidates_a_response(call):
    first = call("ours.api.external.list_drivers")
    again = call("ours.api.external.list_drivers", if_none_match=first.headers["ETag"])
    assert (first.status_code, again.status_code, again.parsed) == (200, 304, None)


@pytest.mark.parametrize(
    ("options", "status", "error"),
    [({"page": 0}, 400, "ValidationError"), ({"key": "da_unknown"}, 401, "Unauthorized")],
)
def test_our_client_reads_an_error(call, import_module, options, status, error):
    response = call("ours.api.external.list_drivers", **options)
    assert isinstance(response.parsed, import_module("ours.models").ErrorBody)
    assert (response.status_code, response.parsed.error) == (status, error)


def test_our_client_requests_the_health_check_without_a_key(import_module, live):
    with import_module("ours.client").Client(live.url) as client:
        assert import_module("ours.api.health.get_health").sync(client=client).status == "ok"
