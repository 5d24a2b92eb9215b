"""The page of a weekly report, in a browser: legible on a phone, on a screen and on paper, without requests."""

import pytest

from schemas.report import MILES, UNITS
from scripts.reports.content import Group, Row
from scripts.reports.page import make_page
from tests.browser.visit import RUN_AXE, SCREEN
from tests.factories import make_driver, make_figures, make_summary

pytestmark = pytest.mark.clients

NAMES = ("Ada", "W" * 128, "\u202eevil", "Z" + "\u0301" * 60, "<script>alert(1)</script>", "👩‍👩‍👧‍👦" * 5)
COACH = ["is_phone_use", "is_overspeeding", "is_hard_brake", "is_acceleration"]
COUNTS = ("phone_use_count", "rapid_acceleration_count", "hard_brake_count", "overspeeding_count")
ROWS = [
    Row(make_driver(f"driver-{number}", alias=NAMES[number % len(NAMES)]), make_summary(number, 10_000.5, COACH))
    for number in range(60)
]
HUGE = Group(10**9, 10**9, make_summary(0.0, 1e308), make_summary(100.0, 1e308))
PARTS = {
    "groups": {**dict.fromkeys(NAMES, HUGE), "Idle": Group(3)},
    "insurance_periods": dict.fromkeys(("1", "none"), make_summary(0.0, 1e308)),
}
FLEETS = {
    "usual": make_figures(*ROWS, **PARTS),
    "hostile": make_figures(*[Row(make_driver("W" * 128), make_summary(0.0, 1e308))] * 3, fleet="W" * 128, **PARTS),
    "huge": make_figures(*ROWS, total=make_summary(0.0, 1e6, **dict.fromkeys(COUNTS, 10**15))),
    "empty": make_figures(),
}
# Of the window and of an A4 page within its margins, in pixels.
PHONE, PAPER = 390, 688
NAMES_OUT_OF_CELLS = """cells => cells.filter(cell => cell.querySelector("bdi").getBoundingClientRect().right
                                          > cell.getBoundingClientRect().right).length"""
TEXT_SIZES = """texts => texts.map(text => parseFloat(getComputedStyle(text).fontSize)
                            * text.ownerSVGElement.getScreenCTM().a)"""
BACKGROUND = "(element, part) => getComputedStyle(element, part).backgroundColor"


@pytest.fixture
def visit(window, tmp_path):
    """Open the page of a fleet in a window of so many pixels."""

    def visit(fleet="usual", width=SCREEN, **media):
        path = tmp_path / "report.html"
        path.write_bytes(make_page(FLEETS[fleet], UNITS[MILES]))
        visit = window(path.as_uri(), width)
        visit.page.emulate_media(**media)
        visit.page.goto(visit.address)
        return visit

    return visit


@pytest.mark.parametrize("fleet", FLEETS)
def test_the_page_fits_on_phone_screen_and_paper_and_requests_nothing_and_logs_no_error(visit, fleet):
    opened = visit(fleet)
    for width, media in ((SCREEN, "screen"), (PHONE, "screen"), (PAPER, "print")):
        opened.page.set_viewport_size({"width": width, "height": 900})
        opened.page.emulate_media(media=media)
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    assert (opened.messages, opened.urls) == ([], [opened.address])


@pytest.mark.parametrize(("width", "scheme"), [(PHONE, "dark"), (SCREEN, "light")])
def test_the_page_is_accessible(visit, axe, width, scheme):
    page = visit(width=width, color_scheme=scheme).page
    page.evaluate(axe)
    assert page.evaluate(RUN_AXE) == []


def test_on_a_phone_names_stay_in_their_cells_charts_are_legible_and_the_long_table_scrolls_in_its_box(visit):
    page = visit(width=PHONE).page
    assert page.locator("th:has(bdi)").evaluate_all(NAMES_OUT_OF_CELLS) == 0
    assert page.locator("th bdi").evaluate_all("names => Math.max(...names.map(name => name.offsetHeight))") < 50
    assert min(page.locator("svg text").evaluate_all(TEXT_SIZES)) > 10
    assert page.locator(".scroll").evaluate("box => box.scrollWidth > box.clientWidth")
    assert page.locator(".scroll tbody th").first.evaluate("name => name.offsetWidth") < PHONE / 2


def test_the_page_follows_light_and_dark_but_on_paper_it_is_light_and_the_long_table_is_not_cut(visit):
    page = visit(width=PAPER).page
    colours = []
    for options in ({"color_scheme": "light"}, {"color_scheme": "dark"}, {"color_scheme": "dark", "media": "print"}):
        page.emulate_media(**options)
        colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert colours[0] != colours[1]
    assert colours[2] == "rgb(255, 255, 255)"
    assert page.locator(".all table").evaluate("table => table.getBoundingClientRect().right") <= PAPER


def test_bars_and_swatches_keep_their_colours_where_the_system_sets_the_colours(visit):
    page = visit().page
    for element, part in (("figcaption i", None), (".share span", None), (".grade.excellent", "::before")):
        colours = []
        for forced in ("none", "active"):
            page.emulate_media(forced_colors=forced)
            colours.append(page.locator(element).first.evaluate(BACKGROUND, part))
        assert colours[0] == colours[1], element
