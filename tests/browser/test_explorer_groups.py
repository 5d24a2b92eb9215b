"""Groups of drivers and insurance periods in the explorer, in a browser."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.clients

PHONE = 320
SOUTH = "דרום, 2/3"
LONG = "W" * 128
ROWS = ".insurance tbody tr"


def test_a_group_is_chosen_for_all_figures_of_the_fleet_and_the_address_keeps_it(visit):
    page = (depots := visit("depots")).page
    assert depots.text(".lead").startswith("4 of 5 drivers drove ")
    page.get_by_label("Group").select_option("North")
    expect(page.locator(".lead")).to_contain_text("2 of 3 drivers of the group drove ")
    assert depots.view() == "#/fleet?group=North"
    assert depots.wait() == "Who needs coaching first · North"
    assert re.findall("Ann|Bob|Cat|Sam", depots.text(".ranking")) == ["Bob", "Ann"]
    assert "50.0 mi 5 trips" in depots.text(".over-time .tiles").replace("\n", " ")
    page.get_by_role("link", name="Best first").click()
    expect(page.locator(".ranking tbody th a").first).to_have_text("Ann")
    page.get_by_label("Group").select_option("All drivers")
    expect(page.locator(".ranking tbody tr")).to_have_count(4)


def test_a_group_is_carried_to_events_trips_and_who_did_not_drive_and_back(visit):
    page = (depots := visit("depots", f"#/fleet?group={quote(SOUTH)}")).page
    page.get_by_role("link", name="Hard braking: 1").last.click()
    assert depots.wait("Events") == f"Events · {SOUTH}"
    expect(page.locator(".lead")).to_contain_text("1 event of 1 driver")
    page.get_by_label("Group").select_option("North")
    expect(page.locator(".lead")).to_contain_text("3 events of 1 driver")
    page.get_by_role("link", name="Only this driver").first.click()
    page.get_by_role("link", name="Show all drivers of North").click()
    page.get_by_role("link", name="Trips of these dates").click()
    depots.wait("Worst trips · North")
    assert set(re.findall("Ann|Bob|Cat|Sam", depots.text("table.trips"))) == {"Ann", "Bob"}
    page.get_by_role("link", name="Fleet", exact=True).click()
    page.get_by_role("link", name="1 did not drive").click()
    assert depots.wait("not drive") == "Who did not drive · North"
    assert depots.text(".lead").startswith("1 of 3 drivers did not drive")


def test_two_groups_are_compared_by_an_address_that_can_be_shared(visit):
    page = (depots := visit("depots", "#/fleet?group=North")).page
    score = depots.text(".over-time .tiles .grade b")
    page.get_by_role("link", name="Compare groups").click()
    depots.wait(" and ")
    page.get_by_label("compared with").select_option(SOUTH)
    assert depots.wait(SOUTH) == f"North and {SOUTH}"
    scores = page.locator(".sides tbody tr").first.locator(".grade b").all_inner_texts()
    assert scores == [score, "90.0"]
    (shared := visit("depots")).open(f"#{page.url.partition('#')[2]}")
    assert shared.text() == depots.text()
    page.get_by_label("compared with").select_option("The fleet")
    assert depots.wait("the fleet") == "North and the fleet"
    page.get_by_role("link", name="North", exact=True).click()
    assert depots.wait("coaching") == "Who needs coaching first · North"


def test_insurance_periods_have_a_table_where_there_are_some_also_in_a_group(visit):
    page = (depots := visit("depots")).page
    texts = [re.sub(r"\s+", " ", text) for text in page.locator(ROWS).all_inner_texts()]
    assert texts == [
        "1 waiting 20.0 mi 2 trips 1 h 1 driver 100.0 excellent",
        "2 on the way no trips",
        "3 with a passenger 10.0 mi 1 trip 30 min 1 driver 100.0 excellent",
        "None 40.0 mi 4 trips 2 h 4 drivers 85.0 excellent",
    ]
    depots.open("#/fleet?group=North")
    expect(page.locator(ROWS).last).to_contain_text("2 trips")
    depots.open(f"#/fleet?group={quote(SOUTH)}")
    assert page.locator(ROWS).count() == 0
    assert len([url for url in depots.urls if "insurance_period" in url]) == 4 + 4 + 1


@pytest.mark.parametrize("view", ["fleet", "events", "trips", "idle"])
def test_a_group_that_does_not_exist_is_named_with_a_way_back(visit, view):
    depots = visit("depots", f"#/{view}?group=Nowhere")
    assert "No group of this fleet: Nowhere" in depots.text(".notice")
    depots.page.get_by_role("link", name="Go to the fleet").click()
    assert depots.wait() == "Who needs coaching first"


def test_a_fleet_without_groups_has_no_choice_of_one(visit):
    assert visit("odd").page.get_by_label("Group").count() == 0


@pytest.mark.parametrize("view", ["fleet?group=", "events?group=", "trips?group=", "compare?with=North&group="])
def test_a_long_name_of_a_group_fits_a_phone(visit, view):
    depots = visit("depots", f"#/{view}{LONG}", width=PHONE)
    assert LONG in depots.text("h1")
    assert depots.page.evaluate("document.documentElement.scrollWidth") <= PHONE
