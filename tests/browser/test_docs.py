"""The page on which to read and try the API, in a browser."""

import json

import pytest

from app.store import Store
from scripts.reports.build import build_report, find_current_windows
from tests.browser.explorer_fleets import last_week
from tests.factories import make_driver, make_trip
from tests.operations import DOCUMENT
from tests.store_contents import issue_key, load

pytestmark = pytest.mark.clients

PATHS = DOCUMENT["paths"]
# Nobody types a signed link.
SIGNED = "/api/v1/report/{link}"


@pytest.fixture
def docs(window, live):
    """A visit to the page."""
    docs = window(f"{live.address}api/v1/docs")
    docs.page.goto(docs.address)
    docs.page.locator(".opblock").first.wait_for()
    return docs


def execute(page, operation):
    """Try an operation out with its examples; return the status and body that are shown."""
    block = page.locator(f".opblock[id$='-{operation['operationId']}']")
    block.locator(".opblock-summary-control").click()
    block.locator(".try-out__btn").click()
    block.locator(".execute").click()
    shown = block.locator(".live-responses-table tbody tr").first
    (body := shown.locator(".highlight-code code").first).wait_for()
    status, text = shown.locator(".response-col_status").inner_text().strip(), body.inner_text()
    # The page draws every open operation again with each key that is typed.
    block.locator(".opblock-summary-control").click()
    return status, text


def test_every_operation_is_shown_and_can_be_tried_with_a_pasted_key_alone(docs, live):
    # A fleet with one trip, that of the examples: the page takes long to colour what is long.
    trip = make_trip(last_week(), "demo-01", trip_id="demo-01-54-1")
    load(live.db, trip, drivers=[make_driver("demo-01", groups=["North"])], fleet="docs")
    for window in find_current_windows(store := Store.of(live.db), "docs"):
        build_report(store, "docs", window)
    shown = docs.page.locator(".opblock-summary-path").all_inner_texts()
    assert [path.replace("\u200b", "") for path in shown] == list(PATHS)
    docs.page.locator(".btn.authorize").first.click()
    docs.page.locator(".auth-container input").fill(issue_key(live.db, "docs"))
    docs.page.locator(".auth-btn-wrapper .authorize").click()
    docs.page.locator(".auth-btn-wrapper .btn-done").click()
    tried = {path: execute(docs.page, item["get"])[0] for path, item in PATHS.items() if path != SIGNED}
    assert tried == dict.fromkeys(tried, "200")
    assert docs.messages == []
    assert [url for url in docs.urls if not url.startswith((live.address, "data:"))] == []


def test_a_response_without_a_key_says_how_to_send_one(docs):
    status, body = execute(docs.page, PATHS["/api/v1/drivers"]["get"])
    assert (status, json.loads(body)["error"]) == ("401", "Unauthorized")


def test_a_parameter_that_may_be_repeated_is_filled_with_its_example(docs):
    block = docs.page.locator(".opblock[id$='-getWindowDriverAggregate']")
    block.locator(".opblock-summary-control").click()
    block.locator(".try-out__btn").click()
    row = block.locator("tr[data-param-name='driver_id']")
    row.locator(".json-schema-form-item-add").click()
    assert row.locator("input").last.input_value() == "demo-01"
