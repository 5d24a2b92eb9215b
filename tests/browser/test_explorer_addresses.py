"""Addresses of the explorer that are opened later or in another tab, and the titles of tabs, in a browser."""

import datetime
import email.utils
import re
from types import SimpleNamespace

import pytest
from playwright.sync_api import expect

from tests.factories import days_ago

pytestmark = pytest.mark.clients

OLDEST = days_ago(150)[:10]
# The views with dates, and what of them moves on with time.
VIEWS = {
    "#/fleet": "Always the last week",
    "#/fleet?period=month": "Always the last month",
    "#/idle": "Always the last week",
    "#/driver/steady?interval=day": "Always the last day with trips",
    "#/driver/steady": "Always the last week with trips",
    "#/compare/steady": "Always the last week with trips",
    "#/events": "Always yesterday",
    "#/trips": "Always yesterday",
    "#/trips?start=last-week": "Always the last week",
}


@pytest.fixture
def earlier(visit):
    """Open a view as if it was 35 days ago, and load the page again as of today."""
    days = 35

    def respond(route):
        # The service does not know of the clock of the page, and has nothing older than six months.
        url = re.sub(r"(/score\?start_date=)[\d-]+", rf"\g<1>{OLDEST}", route.request.url)
        response = route.fetch(url=url)
        date = email.utils.parsedate_to_datetime(response.headers["date"]) - datetime.timedelta(days)
        route.fulfill(response=response, headers={**response.headers, "date": email.utils.format_datetime(date, True)})

    def open_earlier(view):
        opened = visit("dated")
        opened.page.route("**/api/v1/**", respond)
        opened.page.reload()
        opened.wait()
        opened.open(view)
        return opened

    def load_today(opened):
        nonlocal days
        days = 0
        opened.page.reload()
        opened.wait()

    return SimpleNamespace(open=open_earlier, load_today=load_today)


@pytest.mark.parametrize("view", VIEWS)
def test_an_address_shows_the_same_dates_later(earlier, view):
    page = (opened := earlier.open(view)).page
    if "last" in view:
        page.get_by_role("link", name="Keep these dates").click()
        opened.wait()
    title = page.title()
    assert re.search(r"\d{4}$", title)
    earlier.load_today(opened)
    assert page.title() == title
    expect(page.locator("#stays")).to_have_text(VIEWS[view])


@pytest.mark.parametrize(("view", "label"), VIEWS.items())
def test_an_address_always_shows_the_last_dates_if_that_is_chosen(earlier, view, label):
    page = (opened := earlier.open(view)).page
    if "last" not in view:
        page.get_by_role("link", name=label).click()
        page.get_by_role("link", name="Keep these dates").wait_for()
    title = page.title()
    earlier.load_today(opened)
    assert page.title() != title
    expect(page.locator(".stays")).to_have_text(f"{label}. Keep these dates")


def test_the_fleet_is_named_at_the_top_of_each_page_and_in_the_title_of_its_tab(visit):
    page = (odd := visit("odd")).page
    for view, title in (
        ("trip/long", "odd – Trip on "),
        ("search/x", "odd – Search for “x”"),
        ("nothing", "odd – Not found"),
    ):
        odd.open(f"#/{view}")
        assert page.title().startswith(title)
        assert odd.text("header .brand") == "Driver Analytics odd"
    page.get_by_role("button", name="Forget key").click()
    odd.wait("Look at your fleet")
    assert odd.text("header .brand").strip() == "Driver Analytics"


def test_the_pages_of_a_driver_and_a_trip_keep_the_group(visit):
    page = (depots := visit("depots", "#/fleet?group=North")).page
    page.get_by_role("link", name="Bob", exact=True).click()
    depots.wait("Bob")
    page.locator(".trips a").first.click()
    depots.wait("Trip")
    page.get_by_role("link", name="Bob").click()
    depots.wait("Bob")
    page.locator(".up a").first.click()
    assert depots.wait("coaching") == "Who needs coaching first · North"
