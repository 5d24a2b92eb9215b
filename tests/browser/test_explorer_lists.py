"""The events and the trips of the whole fleet in the explorer, in a browser."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.explorer_fleets import last_week
from tests.factories import days_ago, epoch_ms

pytestmark = pytest.mark.clients

ROWS = ".events-list tbody tr"
TRIPS = "table.trips tbody"


def test_yesterdays_events_are_filtered_by_the_address_and_lead_to_the_trip_at_the_event(visit):
    page = (opened := visit("yesterday", "#/events")).page
    expect(page.locator(".lead")).to_contain_text("11 events of 3 drivers: yesterday, ")
    page.get_by_role("link", name="Overspeeding").click()
    expect(page.locator(ROWS)).to_have_count(2)
    page.get_by_label("over the limit").fill("35")
    page.get_by_label("over the limit").press("Enter")
    expect(page.locator(ROWS)).to_have_count(2)
    assert opened.view() == "#/events?behaviour=overspeeding&over=35"
    assert "31 mph over the limit of 40 mph for 12 s" in opened.text(f"{ROWS}:last-child")
    page.get_by_label("over the limit").fill("35.5")
    page.get_by_label("over the limit").press("Enter")
    expect(page.locator(".lead")).to_contain_text("No events: yesterday, ")
    page.go_back()
    page.locator(f"{ROWS}:last-child th a").first.click()
    opened.wait("Trip")
    expect(page.locator(".events [aria-pressed=true]")).to_contain_text("31 mph over")


def test_a_behaviour_without_speeds_has_no_limit_to_exceed(visit):
    opened = visit("yesterday", "#/events?behaviour=hard_brake&over=35&seconds=1")
    expect(opened.page.locator(".lead")).to_contain_text("9 events of 3 drivers")
    assert "The address had over=35, which cannot be shown." in opened.text(".note")
    assert opened.view() == "#/events?behaviour=hard_brake&seconds=1"


def test_a_circle_opens_into_its_events_and_going_back_shows_the_map_as_it_was(visit):
    page = (opened := visit("yesterday", "#/events?behaviour=hard_brake")).page
    circles = page.locator(".map .marker")
    expect(circles).to_have_text(["5", "4"])
    circles.last.click()
    expect(circles).to_have_text(["2", "2"])
    circles.last.click()
    opened.wait("Events")
    expect(page.locator(ROWS)).to_have_count(2)
    page.go_back()
    expect(page.locator(ROWS)).to_have_count(9)
    expect(circles).to_have_text(["2", "2"])


def test_places_have_each_driver_once_and_lead_to_their_events(visit):
    page = visit("yesterday", "#/events").page
    places = page.locator(".places li > a")
    expect(places).to_have_text(["6 events of 2 drivers", "5 events of 1 driver"])
    places.last.click()
    expect(page.locator(ROWS)).to_have_count(5)
    page.get_by_role("link", name="Show all places").click()
    expect(places).to_have_count(2)


def test_an_event_without_a_position_is_in_the_list_only_and_one_at_a_pole_has_a_place(visit):
    page = (opened := visit("pacific", "#/events")).page
    expect(page.locator(ROWS)).to_have_count(6)
    assert "1 event of a device without a position is in the list only." in opened.text(".quiet")
    expect(page.locator(".places li > a")).to_have_text(["2 events of 1 driver"])
    page.locator(".places li > a").click()
    expect(page.locator(ROWS)).to_have_count(2)


def test_more_than_5000_events_are_read_on_request(visit):
    day = last_week()[:10]
    page = visit("named", f"#/events?start={day}&end={day}").page
    expect(page.locator(".lead")).to_contain_text("5,000 events of ")
    page.get_by_role("button", name="Show more").click()
    expect(page.locator(ROWS)).to_have_count(100)
    page.get_by_role("button", name="Read on").click()
    expect(page.locator(".lead")).to_have_text(re.compile(r"^5,005 events of 1 driver: [^.]+\. $"))
    expect(page.locator(ROWS)).to_have_count(100)


def test_a_figure_of_the_fleet_opens_its_events(visit):
    page = (opened := visit("yesterday", f"#/fleet?start={days_ago(1)[:10]}&miles=0")).page
    page.get_by_role("link", name="Hard braking: 9").click()
    opened.wait("Events")
    expect(page.locator(".lead")).to_contain_text("9 events of 3 drivers")


def test_the_dates_are_a_day_a_week_or_a_chosen_window(visit):
    page = visit("yesterday", "#/events").page
    page.get_by_label("From").fill(days_ago(3)[:10])
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator(".lead")).to_contain_text("11 events")
    page.get_by_role("link", name="Previous 3 days").click()
    expect(page.locator(".lead")).to_contain_text("No events")
    assert page.url.endswith(f"#/events?start={days_ago(6)[:10]}&end={days_ago(4)[:10]}")


def test_the_worst_trips_of_a_week_come_first_without_short_ones_and_wrong_data_which_are_a_click_away(visit):
    page = (opened := visit("yesterday", f"#/fleet?start={days_ago(1)[:10]}&miles=0")).page
    page.get_by_role("link", name="Worst trips").click()
    assert opened.wait() == "Worst trips"
    assert re.findall("Ann|Bob|Cat", opened.text(TRIPS))[:3] == ["Bob", "Ann", "Cat"]
    assert "2.0 mi" not in opened.text(TRIPS)
    page.get_by_role("link", name="Data look wrong").click()
    opened.wait("Trips whose data look wrong")
    expect(page.locator(f"{TRIPS} tr")).to_have_count(1)
    assert re.search(r"data look wrong\s+mean speed [\d,]+ mph", opened.text(TRIPS))


def test_who_drove_at_a_time_is_asked_in_the_time_of_the_fleet(visit):
    page = (opened := visit("yesterday", "#/trips")).page
    page.get_by_label("Who drove at").fill(days_ago(1, "12:15"))
    page.get_by_label("Who drove at").press("Enter")
    opened.wait("Who drove at .+, 12:15")
    assert re.findall("Ann|Bob|Cat", opened.text(TRIPS)) == ["Bob", "Ann"]
    assert opened.view() == f"#/trips?at={epoch_ms(days_ago(1, '12:15'))}"


def test_trips_are_listed_newest_first_from_a_distance_on_and_more_on_request(visit):
    day = last_week()[:10]
    page = (opened := visit("dated", f"#/trips?start={day}&end={days_ago(1)[:10]}&order=newest")).page
    page.get_by_role("button", name="Show more").click()
    expect(page.locator(f"{TRIPS} tr")).to_have_count(100)
    page.locator(f"{TRIPS} tr").last.locator("a").last.click()
    opened.wait("Trip on")
    page.go_back()
    expect(page.locator(f"{TRIPS} tr")).to_have_count(100)
    page.get_by_label("At least").fill("99")
    page.get_by_label("At least").press("Enter")
    expect(page.locator(".empty")).to_have_text("There are no such trips.")
