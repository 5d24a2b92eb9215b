"""The page of a weekly report, in a browser: legible on a phone, on a screen and on paper, and asking for nothing."""

import pytest

from scripts.reports.charts import TEXT_SIZE, WIDTH
from scripts.reports.figures import Row
from scripts.reports.page import make_page
from tests.factories import make_driver, make_figures, make_summary

pytestmark = pytest.mark.clients

NAMES = ("Ada", "W" * 128, "\u202eevil", "Z" + "\u0301" * 60, "<script>alert(1)</script>", "👩‍👩‍👧‍👦" * 5)
COACH = ["is_phone_use", "is_overspeeding", "is_hard_brake", "is_acceleration"]
COUNTS = ("phone_use_count", "rapid_acceleration_count", "hard_brake_count", "overspeeding_count")
ROWS = [
    Row(make_driver(f"driver-{number}", alias=NAMES[number % len(NAMES)]), make_summary(number, 10_000.5, COACH))
    for number in range(60)
]
FLEETS = {
    "usual": make_figures(*ROWS),
    "hostile": make_figures(*[Row(make_driver("W" * 128), make_summary(0.0, 1e308))] * 3, fleet="W" * 128),
    "huge": make_figures(*ROWS, total=make_summary(0.0, 1e6, **dict.fromkeys(COUNTS, 10**15))),
    "empty": make_figures(),
}
# Of the window and of an A4 page within its margins, in pixels.
PHONE, SCREEN, PAPER = 390, 1280, 688


@pytest.fixture
def messages():
    """The messages of pages to the console, and their errors."""
    return []


@pytest.fixture
def requests():
    """The URLs that pages request."""
    return []


@pytest.fixture
def visit(chromium, tmp_path, messages, requests):
    """Open the page of a fleet in a window of so many pixels."""
    opened = []

    def visit(fleet="usual", width=SCREEN, **options):
        path = tmp_path / "report.html"
        path.write_bytes(make_page(FLEETS[fleet]))
        page = chromium.new_page(viewport={"width": width, "height": 900})
        opened.append(page)
        page.emulate_media(**options)
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        return page

    yield visit
    for page in opened:
        page.close()


@pytest.mark.parametrize("fleet", FLEETS)
def test_the_page_asks_for_nothing_and_has_nothing_to_complain_of(visit, messages, requests, fleet):
    page = visit(fleet)
    assert (messages, requests) == ([], [page.url])


@pytest.mark.parametrize("fleet", FLEETS)
@pytest.mark.parametrize(("width", "media"), [(PHONE, "screen"), (SCREEN, "screen"), (PAPER, "print")])
def test_nothing_reaches_beyond_the_page(visit, fleet, width, media):
    page = visit(fleet, width, media=media)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_on_paper_the_table_of_all_drivers_is_not_cut(visit):
    page = visit(width=PAPER, media="print")
    assert page.locator(".all table").evaluate("table => table.getBoundingClientRect().right") <= PAPER


def test_on_a_phone_the_table_of_all_drivers_scrolls_in_its_own_box(visit):
    page = visit(width=PHONE)
    assert page.locator(".scroll").evaluate("box => box.scrollWidth > box.clientWidth")
    assert page.locator(".scroll tbody th").first.evaluate("name => name.offsetWidth") < PHONE / 2


def test_the_text_of_charts_is_legible_on_a_phone(visit):
    page = visit(width=PHONE)
    widths = page.locator("svg").evaluate_all("charts => charts.map(chart => chart.getBoundingClientRect().width)")
    assert min(widths) / WIDTH * TEXT_SIZE > 10


def test_names_keep_to_their_cells(visit):
    beyond = """cells => cells.filter(cell => cell.querySelector("bdi").getBoundingClientRect().right
                                          > cell.getBoundingClientRect().right).length"""
    assert visit(width=PHONE).locator("th:has(bdi)").evaluate_all(beyond) == 0


def test_the_page_follows_light_and_dark(visit):
    colours = {
        visit(color_scheme=scheme, media=media).evaluate("getComputedStyle(document.body).backgroundColor")
        for scheme, media in (("light", "screen"), ("dark", "screen"))
    }
    assert len(colours) == 2


def test_on_paper_the_page_is_light(visit):
    page = visit(color_scheme="dark", media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_the_page_prints(visit):
    assert visit().pdf(format="A4").startswith(b"%PDF")
