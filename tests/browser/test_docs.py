"""The page on which to read and try the API, in a browser."""

import json

import pytest

from app import openapi_document
from app.store import Store
from scripts.reports.build import build_report, current_report_date

pytestmark = pytest.mark.clients

PATHS = json.loads(openapi_document(""))["paths"]
# What the page does not fill in by itself. Nobody types a signed link.
IDENTIFIERS = {"driver_id": "d1", "filter_value": "t1"}
SIGNED = "/api/v1/report/{link}"


@pytest.fixture
def docs(window, live):
    """A visit to the page."""
    docs = window(f"{live.address}api/v1/docs")
    docs.page.goto(docs.address)
    docs.page.locator(".opblock").first.wait_for()
    return docs


def execute(page, operation):
    """Try an operation out, with the identifiers that it needs typed in; return the status and body that are shown."""
    block = page.locator(f".opblock[id$='-{operation['operationId']}']")
    block.locator(".opblock-summary-control").click()
    block.locator(".try-out__btn").click()
    for name in {one["name"] for one in operation["parameters"] if one.get("required")} & {*IDENTIFIERS}:
        block.locator(f"tr[data-param-name='{name}']").locator("input").first.fill(IDENTIFIERS[name])
    block.locator(".execute").click()
    shown = block.locator(".live-responses-table tbody tr").first
    (body := shown.locator(".highlight-code code").first).wait_for()
    status, text = shown.locator(".response-col_status").inner_text().strip(), body.inner_text()
    # The page draws every open operation again with each key that is typed.
    block.locator(".opblock-summary-control").click()
    return status, text


def test_every_operation_is_shown_and_can_be_tried_with_a_pasted_key_and_an_identifier_alone(docs, live):
    # A fleet with one trip: the page takes long to colour what is long.
    key = live.key("late")
    build_report(Store.of(live.db), "late", current_report_date(Store.of(live.db), "late"))
    shown = docs.page.locator(".opblock-summary-path").all_inner_texts()
    assert [path.replace("\u200b", "") for path in shown] == list(PATHS)
    docs.page.locator(".btn.authorize").first.click()
    docs.page.locator(".auth-container input").fill(key)
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
    assert row.locator("input").input_value() == "demo-01"
