"""The explorer on paper, in a browser."""

import re

import pytest

pytestmark = pytest.mark.clients

PAPER = 703
# The elements that are not within the map.
OUTSIDE_MAP = """() => {
  const edges = document.querySelector(".map").getBoundingClientRect();
  return [...document.querySelectorAll(".map .marker, .map path")].filter((element) => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    return left < edges.left || right > edges.right || top < edges.top || bottom > edges.bottom;
  }).map((element) => element.outerHTML.slice(0, 200));
}"""


@pytest.fixture
def on_paper(visit):
    """Open a view as a browser lays it out on a sheet of A4 with the margins of the page."""

    def on_paper(fleet, view):
        page = visit(fleet, view).page
        page.wait_for_load_state("networkidle")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        page.set_viewport_size({"width": PAPER, "height": 1000})
        return page

    return on_paper


def test_each_printed_page_has_the_fleet_the_date_and_the_time_zone(on_paper):
    page = on_paper("denver", "#/fleet")
    rule = page.evaluate("document.adoptedStyleSheets[0].cssRules[0].cssText")
    text = r"denver · Printed \w{3},? .+ 20\d\d, \d\d:\d\d.*\. Dates and times are in America/Denver\."
    assert re.search(rf'@top-left {{ content: "{text}"', rule)


@pytest.mark.parametrize(("fleet", "view"), [("named", "#/trip/crossing"), ("yesterday", "#/events")])
def test_on_paper_the_map_has_all_that_it_shows(on_paper, fleet, view):
    page = on_paper(fleet, view)
    assert page.evaluate(OUTSIDE_MAP) == []
    assert page.locator(".map").bounding_box()["width"] <= PAPER


@pytest.mark.parametrize(
    ("fleet", "view"), [("demo", "#/fleet"), ("demo", "#/driver/demo-12?interval=day"), ("named", "#/fleet?miles=0")]
)
def test_nothing_is_wider_than_the_paper(on_paper, fleet, view):
    page = on_paper(fleet, view)
    wide = "elements => elements.filter((each) => each.getBoundingClientRect().right > innerWidth + 1).length"
    assert page.locator("main *:not(.visually-hidden)").evaluate_all(wide) == 0


def test_print_all_prints_all_drivers_of_the_list(visit):
    page = visit("judged").page
    page.evaluate("window.print = () => { window.printed = document.querySelectorAll('.ranking tbody tr').length; }")
    page.get_by_role("button", name="Print all 218").click()
    page.get_by_text("Printed", exact=True).wait_for()
    assert page.evaluate("window.printed") == 218
    assert page.locator(".rank").last.inner_text() == "218"
    assert page.locator(".pages").count() == 0
