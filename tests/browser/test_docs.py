"""The page on which to read and try the API, in a browser."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from app.store import Store
from scripts.reports.build import build_report, current_report_date
from tests.factories import days_ago, make_driver, make_trip
from tests.service_process import run_service
from tests.store_contents import issue_key, load

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def live(tmp_path_factory, mongod_uri):
    """The address of a running service, and a key of a fleet with two drivers and a trip."""
    with run_service(mongod_uri, tmp_path_factory.mktemp("browser"), "browser") as (process, db):
        drivers = [make_driver(f"d{number}", first_name="Ada") for number in (1, 2)]
        load(db, make_trip(days_ago(8), trip_id="t1"), drivers=drivers)
        build_report(Store.of(db), "f1", current_report_date())
        yield f"http://{process.bind}/api/v1", issue_key(db, "f1")


class Visit:
    """The page, opened by someone with a key."""

    def __init__(self, page: Page, address: str, key: str) -> None:
        self.page, self.key = page, key
        self.messages, self.requested_urls, self.failed = [], [], []
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.on("request", lambda request: self.requested_urls.append(request.url))
        page.on("requestfailed", lambda request: self.failed.append(request.url))
        page.goto(f"{address}/docs")
        page.locator(".opblock").first.wait_for()

    def authorize(self) -> None:
        """Paste the key."""
        self.page.locator(".btn.authorize").first.click()
        self.page.locator(".auth-container input").fill(self.key)
        self.page.locator(".auth-btn-wrapper .authorize").click()
        self.page.locator(".auth-btn-wrapper .btn-done").click()

    def execute(self, operation: str, **values: str) -> tuple[str, str]:
        """Try an operation out, with `values` typed in; return the status and body that the page shows."""
        block = self.page.locator(f".opblock[id$='-{operation}']")
        block.locator(".opblock-summary-control").click()
        block.locator(".try-out__btn").click()
        for name, value in values.items():
            row = block.locator(f"tr[data-param-name='{name}']")
            row.locator("input").first.fill(value)
        block.locator(".execute").click()
        shown = block.locator(".live-responses-table tbody tr").first
        body = shown.locator(".highlight-code code").first
        body.wait_for()
        status, text = shown.locator(".response-col_status").inner_text().strip(), body.inner_text()
        # The page draws every open operation again with each key that is typed.
        block.locator(".opblock-summary-control").click()
        return status, text


@pytest.fixture
def visit(chromium, live) -> Iterator[Visit]:
    page = chromium.new_page(viewport={"width": 1280, "height": 1400})
    yield Visit(page, *live)
    page.close()


def test_the_page_shows_every_operation(visit):
    paths = visit.page.locator(".opblock-summary-path").all_inner_texts()
    assert [path.replace("\u200b", "") for path in paths] == [
        "/api/v1/drivers",
        "/api/v1/driver/{driver_id}/trips",
        "/api/v1/trip/{filter_param}/{filter_value}",
        "/api/v1/driver-aggregate/daily",
        "/api/v1/driver-aggregate/weekly",
        "/api/v1/driver-aggregate/monthly",
        "/api/v1/driver/{driver_id}/score",
        "/api/v1/ranking",
        "/api/v1/report",
        "/api/v1/report/{link}",
        "/api/v1/changes",
        "/api/v1/healthz",
        "/api/v1/livez",
    ]


def test_a_pasted_key_shows_the_drivers(visit):
    visit.authorize()
    status, body = visit.execute("listDrivers")
    assert status == "200"
    assert [driver["driver_id"] for driver in json.loads(body)["drivers"]] == ["d1", "d2"]


def test_a_response_without_a_key_says_how_to_send_one(visit):
    status, body = visit.execute("listDrivers")
    assert (status, json.loads(body)["error"]) == ("401", "Unauthorized")


def test_every_endpoint_can_be_tried_with_an_identifier_alone(visit):
    visit.authorize()
    tried = {
        "listDriverTrips": {"driver_id": "d1"},
        "listTrips": {"filter_value": "t1"},
        "getDailyDriverAggregate": {"driver_id": "d1"},
        "getWeeklyDriverAggregate": {"driver_id": "d1"},
        "getMonthlyDriverAggregate": {"driver_id": "d1"},
        "getDriverScore": {"driver_id": "d1"},
        "getRanking": {},
        "getReportLinks": {},
        "getHealth": {},
    }
    assert [visit.execute(operation, **values)[0] for operation, values in tried.items()] == ["200"] * len(tried)


def test_the_page_requests_only_its_own_service_and_logs_no_error(visit, live):
    visit.authorize()
    visit.execute("listDrivers")
    assert visit.messages == []
    assert visit.failed == []
    assert [url for url in visit.requested_urls if not url.startswith((live[0], "data:"))] == []


def test_a_script_written_into_the_page_does_not_run(visit):
    with visit.page.expect_console_message() as message:
        visit.page.evaluate(
            "document.body.append(Object.assign(document.createElement('script'), {text: 'window.ran = 1'}))"
        )
    assert "script-src 'self'" in message.value.text
    assert visit.page.evaluate("window.ran") is None
