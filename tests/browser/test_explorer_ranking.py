"""The list of the fleet in the explorer: what the first screen has, the orders, and an axis that shows changes."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.clients


def names(visit):
    """Return the names of the drivers on the list, in order."""
    return visit.page.locator(".ranking tbody th > a").all_inner_texts()


@pytest.mark.parametrize(("width", "height", "drivers"), [(1280, 900, 3), (390, 844, 1)])
def test_the_first_drivers_to_coach_are_in_view_without_scrolling(visit, width, height, drivers):
    page = visit("demo", width=width).page
    page.set_viewport_size({"width": width, "height": height})
    box = page.locator(".ranking tbody tr").nth(drivers - 1).bounding_box()
    assert box["y"] + box["height"] <= height


def test_on_a_wide_screen_the_fleet_over_time_is_beside_the_list_and_on_a_phone_a_button_leads_to_it(visit):
    wide, phone = visit("demo", width=1920).page, visit("demo", width=390).page
    table, chart = (wide.locator(part).bounding_box() for part in (".ranking", ".over-time"))
    assert (chart["x"] > table["x"] + table["width"], chart["x"] + chart["width"] > 1800) == (True, True)
    expect(phone.locator(".over-time")).not_to_be_in_viewport()
    phone.get_by_role("button", name="Over time").click()
    expect(phone.locator(".over-time h2")).to_be_in_viewport()


@pytest.mark.parametrize("view", ["#/driver/ann", "#/driver/ann?interval=month", "#/compare/ann"])
def test_the_axis_of_a_chart_begins_below_the_lowest_score_and_says_where(visit, view):
    changed = visit("changed", view)
    assert "The axis begins at 70, not at 0." in changed.text(".score-chart")
    assert changed.text(".score-chart .scale").split() == ["100", "85", "70"]


def test_a_change_of_a_point_and_a_half_is_seen_in_the_chart(visit):
    before, after = visit("changed", "#/driver/ann").page.locator(".columns .score").all()
    assert after.bounding_box()["y"] - before.bounding_box()["y"] >= 8


def test_the_number_of_a_score_fits_into_its_bar(visit):
    page = visit("demo", "#/driver/demo-12").page
    for bar in page.locator(".columns .score").all():
        assert bar.bounding_box()["height"] >= bar.locator("b").bounding_box()["height"]


@pytest.mark.parametrize(
    ("order", "drivers", "text"),
    [
        ("Most worsened", ["Cat", "Ann"], "2 of 4 drivers drove worse than in the week before."),
        ("Most improved", ["Bob"], "1 of 4 drivers drove better than in the week before."),
    ],
)
def test_who_changed_most_since_the_week_before_in_which_they_drove_far_enough_comes_first(visit, order, drivers, text):
    changed = visit("changed")
    changed.page.get_by_role("link", name=order).click()
    left_out = "Who drove less than 10 miles in it, or has data that look wrong, is left out."
    expect(changed.page.locator(".fleet > div > p").first).to_have_text(f"{text} {left_out}")
    expect(changed.page.get_by_role("button", name="Download CSV by score")).to_be_visible()
    assert names(changed) == drivers
    changed.page.reload()
    changed.wait()
    assert names(changed) == drivers


@pytest.mark.parametrize(("order", "did"), [("worsened", "worse"), ("improved", "better")])
def test_a_driver_whose_data_look_wrong_has_not_changed(visit, order, did):
    assert visit("devices", f"#/fleet?order={order}").text(".fleet").startswith(f"0 of 20 drivers drove {did} than")


def test_of_10000_drivers_500_are_compared_and_the_page_says_which(visit):
    many = visit("many")

    def claim(route):
        response = route.fetch()
        route.fulfill(response=response, json={**response.json(), "count": 10_000})

    many.page.route("**/api/v1/ranking?*limit=100*", claim)
    before = len(many.urls)
    many.open("#/fleet?order=improved")
    assert re.search("^0 of the 500 with the highest scores drove better than", many.text(".fleet"))
    assert len([url for url in many.urls[before:] if "/ranking?" in url and "order=best" in url]) == 5


def test_the_headings_of_columns_sort_the_whole_list_by_keyboard_and_say_so(visit):
    page = (changed := visit("changed")).page
    expect(page.get_by_role("columnheader", name="Score")).to_have_attribute("aria-sort", "ascending")
    for heading, direction, first in (("Score", "descending", "Bob"), ("Driver", "ascending", "Ann")):
        page.locator(".ranking thead").get_by_role("link", name=heading).press("Enter")
        expect(page.get_by_role("columnheader", name=heading)).to_have_attribute("aria-sort", direction)
        assert names(changed)[0] == first
    judged = visit("judged", "#/fleet?order=name")
    assert names(judged) == sorted(names(judged))
    assert (len(names(judged)), "The pages are in order of the score." in judged.text()) == (100, True)


def test_by_a_behaviour_the_reasons_are_the_column_that_is_sorted(visit):
    page = visit("demo", "#/fleet?behaviour=overspeeding").page
    heading = page.get_by_role("columnheader", name="Why")
    expect(heading).to_have_attribute("aria-sort", "descending")
    heading.get_by_role("link").click()
    expect(heading).to_have_attribute("aria-sort", "ascending")
    assert page.url.endswith("&order=best")
