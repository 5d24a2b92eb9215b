"""The explorer with the key of one driver, in a browser."""

import datetime
import re
from pathlib import Path

import pytest

from app.store import Store
from schemas.score import compute_score
from scripts.materialize.write_sources import delete_trips
from tests.browser.explorer_fleets import EVE
from tests.store_contents import issue_key

pytestmark = pytest.mark.clients

CLIENTS = Path(__file__).parents[2] / "docs/clients.md"
# What only a key of the fleet opens, and the words for whoever has one.
OF_FLEETS = re.compile("fleet|search|report|coaching|talk about|this driver", re.IGNORECASE)
OWN_WORDS = ("Liam O'Connor", "Your score over time", "What costs you points", " cost you ", "Your trips")
ADDRESSES = (
    "#/fleet?period=month",
    "#/search/liam",
    "#/driver/demo-12",
    "#/driver/nobody?interval=day",
    "#/compare/demo-12",
    "#/nothing",
)


def test_a_driver_on_a_phone_sees_the_score_what_costs_points_and_the_trips_on_the_map(visit, live):
    page = (demo := visit("demo", driver="demo-12", width=390)).page
    # The only trip of this week may have ended less than four hours ago: then no trip is listed.
    first = live.db.trips.find_one({"driver_id": "demo-12"}, sort=["trip_start_time"])
    date = datetime.datetime.fromtimestamp(first["trip_start_time"] / 1000, datetime.UTC).date()
    demo.open(f"#/driver/demo-12?at={date}")
    page.locator(".reasons .where a").first.click()
    demo.wait("Trip on")
    page.locator(".map .leaflet-marker-icon").first.wait_for()
    page.get_by_role("link", name="your score").click()
    assert demo.wait() == "Your score"
    assert [words for words in OWN_WORDS if words not in demo.text()] == []
    assert demo.messages == []


def test_addresses_of_the_fleet_and_of_other_drivers_lead_to_the_own_score(visit):
    demo = visit("demo", driver="demo-11")
    for address in ADDRESSES:
        demo.open(address)
        assert demo.wait() == "Your score", address
        assert demo.view() == "#/driver/demo-11", address
        assert OF_FLEETS.search(demo.text("body")) is None, address


@pytest.mark.parametrize(("driver", "title"), [(None, "Who needs coaching first"), ("d1", "Your score")])
@pytest.mark.parametrize("header", ["no header", "ratelimit"])
def test_the_page_knows_a_driver_key_even_if_the_fleet_has_one_driver_or_requests_are_not_counted(
    visit, live, driver, title, header
):
    live.key("late")
    late = visit()
    late.page.route("**/api/v1/**", lambda route: fulfil_without(header, route))
    late.sign_in(issue_key(live.db, "late", driver))
    assert late.wait() == title


def fulfil_without(header, route):
    """Respond as the service does, but without the headers with this name in theirs."""
    response = route.fetch()
    headers = {name: value for name, value in response.headers.items() if header not in name}
    route.fulfill(response=response, headers=headers)


def test_a_driver_sees_how_many_points_less_of_a_behaviour_brings_by_the_rule_of_the_score(visit):
    changed = visit("changed", driver="eve")
    assert changed.text(".raises").split("\n") == [
        f"6 min less phone use: +{gain(phone_use_time_seconds=240)}; none: +{gain(phone_use_time_seconds=0)}",
        f"40 rapid accelerations fewer: +{gain(rapid_acceleration_count=10)}; none: +15.0",
        "1 hard brake fewer: +1.0",
    ]
    assert gain(rapid_acceleration_count=10) == 7.5


def gain(**changed):
    """Return by how much the score of Eve's week would be higher with other totals."""
    totals = {"distance_miles": 100.0, "duration_seconds": 3600}
    scores = [compute_score({**totals, "events_summary": EVE | more})["fm_score"] for more in ({}, changed)]
    return round(scores[1] - scores[0], 1)


def test_a_driver_sees_no_links_for_those_who_run_or_use_the_service(visit):
    for driver, count in (("demo-12", 0), (None, 3)):
        assert visit("demo", driver=driver).page.locator("footer nav a").filter(visible=True).count() == count


def test_a_driver_sees_a_sentence_before_the_first_trip_and_after_the_driver_is_gone(visit, live):
    assert "You have no trips yet." in visit("odd", driver="idle").text()
    gone = visit("brief", "#/trip/nothing", driver="gone")
    assert "no trip nothing among yours" in gone.text()
    delete_trips(Store.of(live.db), "brief", ["only"])
    gone.open("#/driver/gone")
    assert gone.wait() == "No data about you"
    assert "Ask the people who gave you the key." in gone.text()


def test_a_web_view_of_an_app_needs_no_key_in_an_address_and_gives_it_to_no_other_origin(window, live):
    live.key("demo")
    key, opened = issue_key(live.db, "demo", "demo-12"), window(live.address)
    (script,) = re.findall(r"^ +(if \(location.origin.*)", CLIENTS.read_text(), re.MULTILINE)
    opened.page.add_init_script(script.replace("ORIGIN", live.address.rstrip("/")).replace("KEY", key))
    opened.page.goto(live.address)
    assert opened.wait() == "Your score"
    addresses = opened.page.evaluate("navigation.entries().map(entry => entry.url)")
    assert [address for address in [*addresses, *opened.urls] if key in address] == []
    assert opened.view() == "#/driver/demo-12"
    opened.page.route("http://other.invalid/", lambda route: route.fulfill(body="", content_type="text/html"))
    opened.page.goto("http://other.invalid/")
    assert opened.page.evaluate("sessionStorage.length") == 0


def test_over_the_limit_of_the_driver_the_page_says_when_it_tries_again(visit, busy):
    odd = visit("odd", driver="long", service=busy)
    odd.page.get_by_role("heading", name="Too many requests").wait_for()
    assert re.search(r"The page tries again in [12] seconds?\.", odd.text())
    assert odd.wait("score") == "Your score"
