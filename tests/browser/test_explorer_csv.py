"""Lists of the explorer as CSV files, and its tables in the clipboard, in a browser."""

import csv
import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.explorer_fleets import last_week

pytestmark = pytest.mark.clients

WEEK, DAY, SUNDAY = (last_week(day)[:10] for day in (0, 2, 6))
DEPOT = f"group={quote('דרום, 2/3')}&miles=0"
# A view of a fleet: the file that it saves, and the number of rows, each with a value of its own in a column.
LISTS = {
    "ranking": ("judged", "#/fleet?miles=0", f"judged-ranking-{WEEK}", 250, "rank"),
    "ranking of a group": ("depots", f"#/fleet?{DEPOT}", f"depots-ranking-{WEEK}-דרום-2-3", 1, "rank"),
    "idle": ("depots", "#/idle", f"depots-idle-{WEEK}", 1, "driver_info.driver_id"),
    "drivers": ("judged", "#/search/d0", "judged-drivers-d0", 100, "driver_id"),
    "trips": ("judged", f"#/trips?start={DAY}&end={DAY}", f"judged-trips-{DAY}", 250, "trip.trip_id"),
    "trips of a driver": ("depots", "#/driver/ann", f"depots-trips-of-ann-{WEEK}-to-{SUNDAY}", 4, "trip_id"),
    "events": ("depots", f"#/events?start={DAY}&end={DAY}&driver=bob", f"depots-events-{DAY}-bob", 3, "event_index"),
    "two drivers": (
        "depots",
        "#/compare/ann?with=bob",
        f"depots-comparison-{WEEK}-ann-bob",
        2,
        "driver_info.driver_id",
    ),
    "the fleet": ("depots", "#/fleet", "depots-weeks", 1, "start_date"),
    "insurance periods": ("depots", "#/fleet", f"depots-insurance-periods-{WEEK}", 3, "insurance_period"),
    "a group": ("depots", "#/compare?group=North", "depots-weeks-North", 1, "start_date"),
}


# The name of the button, if the view has another one first.
BUTTONS = {"the fleet": "Download CSV of all weeks", "insurance periods": "Download CSV of the insurance periods"}


@pytest.mark.parametrize("what", LISTS)
def test_a_list_is_saved_as_a_whole_under_a_name_that_tells_what_it_is(visit, what):
    fleet, view, name, count, column = LISTS[what]
    page = visit(fleet, view).page
    button = page.get_by_role("button", name=BUTTONS.get(what, "Download CSV"), exact="ranking" in what).first
    with page.expect_download() as download:
        button.click()
    text = download.value.path().read_text()
    rows = list(csv.DictReader(text.removeprefix("\ufeff").splitlines()))
    assert text.count("\ufeff") == 1
    assert download.value.suggested_filename == f"{name}.csv"
    assert len({row[column] for row in rows}) == len(rows) == count
    expect(button.locator("xpath=following-sibling::output")).to_have_text(re.compile(f"^{count} rows? saved$"))


def test_a_download_that_fails_says_so_and_saves_nothing(visit):
    page = visit("judged", "#/fleet?miles=0").page
    page.route("**/ranking?*page=3*", lambda route: route.fulfill(status=429, headers={"Retry-After": "7"}))
    page.on("download", lambda download: pytest.fail("saved"))
    (button := page.get_by_role("button", name="Download CSV", exact=True)).click()
    expect(button.locator("xpath=following-sibling::output")).to_have_text("Too many requests. Try again in 7 seconds.")


def test_a_copied_table_has_a_line_for_each_row_and_a_tab_between_cells(visit):
    page = visit("depots", "#/fleet?miles=0", permissions=["clipboard-read", "clipboard-write"]).page
    with page.expect_response("**/download.js"):
        page.locator(".ranking").evaluate("table => getSelection().selectAllChildren(table)")
    page.evaluate("import('./explorer/download.js')")
    page.keyboard.press("Control+c")
    lines = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert lines[0] == "#\tDriver\tScore\tWhy"
    assert [line.split("\t")[0] for line in lines[1:]] == ["1", "2", "3", "4"]
