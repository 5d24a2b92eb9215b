"""The explorer as a whole, in a browser: the key, the address, requests, errors, accessibility."""

import itertools
import re
import zlib
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.explorer_fleets import HOSTILE
from tests.browser.visit import RUN_AXE, SCREEN
from tests.service_process import wait_until
from tests.store_contents import issue_key

pytestmark = pytest.mark.clients

PHONE = 320
# How many of the elements break a word.
BROKEN_WORDS = """(elements, word) => elements.filter(({ firstChild: text }) => {
  const range = document.createRange(), start = text.textContent.indexOf(word);
  range.setStart(text, start);
  range.setEnd(text, start + word.length);
  return range.getClientRects().length > 1;
}).length"""
SIGN_IN = "Look at your fleet, or your own driving"
MAX_REQUESTS, MAX_BYTES = 24, 71_000
# The views of each fleet.
VIEWS = {
    "demo": [
        "#/fleet",
        "#/fleet?period=month&order=best&miles=10",
        "#/fleet?miles=999999",
        "#/fleet?group=North",
        "#/idle",
        "#/reports",
        "#/events",
        "#/events?behaviour=overspeeding&over=5&driver=demo-12",
        "#/trips",
        "#/driver/demo-12",
        "#/driver/demo-12?interval=day",
        "#/driver/demo-12?interval=month",
        "#/compare/demo-12",
        "#/compare/demo-12?with=demo-07&interval=day&find=a",
        "#/compare?group=North&with=South",
        f"#/driver/{'y' * 120}",
        "#/search/ami",
        "#/nothing",
    ],
    "odd": [
        "#/driver/idle",
        "#/compare/idle",
        "#/trip/long?event=2",
        "#/trip/no%20trail",
        "#/trip/one%20point",
        "#/trip/nothing",
    ],
    "hostile": [
        "#/fleet",
        *(f"#/{view}/{quote(HOSTILE[0], safe='')}" for view in ("driver", "trip", "search")),
        *(f"#/compare/{quote(HOSTILE[8])}?with={quote(name, safe='')}" for name in HOSTILE[:8]),
    ],
    "extreme": ["#/fleet", "#/driver/far", "#/compare/far"],
    "named": ["#/fleet", "#/search/maximiliana"],
    # With a key of one driver.
    "demo/demo-12": ["#/fleet", "#/trip/nothing"],
}
# Chromium logs every response of an error by itself.
ERROR_STATUS = "the server responded with a status of 4"


def test_whom_to_talk_to_about_what_and_where_it_happened_takes_three_clicks(visit):
    demo = visit("demo")
    assert demo.wait() == "Who needs coaching first"
    assert re.search(r"Overspeeding|Phone use|Hard braking|Rapid acceleration", demo.text(".ranking tbody tr"))
    costs = demo.page.locator(".ranking").get_by_role("img").first.get_attribute("aria-label")
    assert re.fullmatch(r"(.+ minus [\d.]+(, )?){2,4}", costs)
    demo.page.locator(".ranking tbody a").first.click()
    demo.page.locator(".reasons .where a").first.click()
    assert demo.wait("Trip").startswith("Trip on ")
    assert demo.page.locator(".events [aria-pressed=true]").count() == 1
    assert demo.messages == []


def test_signing_in_takes_few_requests_and_bytes_and_the_key_is_in_no_address(visit, live):
    demo, finished = visit(), []
    demo.page.on("requestfinished", lambda request: finished.append(sum(request.sizes().values())))
    demo.sign_in(live.key("demo"))
    demo.page.wait_for_load_state("networkidle")
    assert (len(demo.urls) <= MAX_REQUESTS, sum(finished) <= MAX_BYTES) == (True, True)
    assert [url for url in (demo.page.url, *demo.urls) if "da_" in url] == []
    assert demo.page.evaluate("localStorage.length + document.cookie.length") == 0


def test_a_pasted_key_opens_the_fleet_and_forget_key_forgets_it(visit, live):
    page = (opened := visit()).page
    page.goto(opened.address)
    page.get_by_label("API key").fill(f" {live.key('demo')} ")
    page.get_by_role("button", name="Open").click()
    assert opened.wait("coaching")
    page.get_by_role("button", name="Forget key").click()
    assert opened.wait() == SIGN_IN
    assert page.evaluate("sessionStorage.length") == 0


def test_a_key_that_is_kept_on_the_device_opens_other_tabs_until_one_of_them_forgets_it(visit, live):
    page = (opened := visit()).page
    page.goto(opened.address)
    page.get_by_label("API key").fill(live.key("demo"))
    page.get_by_label("Keep the key on this device").check()
    page.get_by_role("button", name="Open").click()
    opened.wait("coaching")
    other = opened.context.new_page()
    other.goto(opened.address)
    other.get_by_role("button", name="Forget key").click()
    for tab in (other, page):
        tab.get_by_role("heading", name=SIGN_IN).wait_for()
        assert tab.evaluate("localStorage.length + sessionStorage.length") == 0


def enter(opened, key):
    """Enter a key in another tab; return the tab."""
    page = opened.context.new_page()
    page.goto(opened.address)
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Open").click()
    page.get_by_role("heading", name=re.compile("coaching|Your score")).wait_for()
    return page


def hide(page):
    """Let the tab be in the background: without a window, none is."""
    page.evaluate("Object.defineProperty(document, 'visibilityState', {value: 'hidden'})")


def open_tab(opened):
    """Open another tab; return its heading."""
    page = opened.context.new_page()
    page.goto(opened.address)
    return page.locator("main:not([aria-busy]) h1").inner_text()


def test_a_key_that_was_entered_opens_new_tabs_until_one_of_them_forgets_it(visit, live):
    opened = visit()
    hide(first := enter(opened, live.key("demo")))
    other = opened.context.new_page()
    other.goto(f"{opened.address}#/driver/demo-12")
    other.get_by_role("heading", name="Liam O'Connor").wait_for()
    assert other.evaluate("localStorage.length") == 0
    other.get_by_role("button", name="Forget key").click()
    for tab in (other, first):
        tab.get_by_role("heading", name=SIGN_IN).wait_for()
        assert tab.evaluate("sessionStorage.length") == 0
    assert open_tab(opened) == SIGN_IN


def test_a_link_of_a_tab_opens_with_the_key_of_this_tab(visit, live):
    opened = visit()
    hide(enter(opened, live.key("demo")))
    opened.sign_in(live.key("odd"))
    with opened.context.expect_page() as tab:
        opened.page.locator(".ranking tbody a").first.click(modifiers=["Control"])
    expect(tab.value).to_have_title(re.compile("^odd – long, "))


def test_a_key_of_a_link_opens_no_tab_that_was_not_opened_from_its_own(visit):
    opened = visit("demo")
    hide(opened.page)
    assert open_tab(opened) == SIGN_IN


@pytest.mark.parametrize(("answer", "shown"), [("dismiss", "coaching"), ("accept", "Your score")])
def test_a_link_with_another_key_asks_first_and_leaves_the_key_that_is_kept_on_the_device(visit, live, answer, shown):
    page = (opened := visit()).page
    page.goto(opened.address)
    page.evaluate("key => localStorage.setItem('driver-analytics-key', key)", live.key("demo"))
    page.reload()
    opened.wait("coaching")
    page.on("dialog", lambda dialog: getattr(dialog, answer)())
    with page.expect_event("dialog"):
        page.evaluate("key => location.hash = `#key=${key}`", issue_key(live.db, "demo", "demo-12"))
    assert opened.wait(shown)
    other = opened.context.new_page()
    other.goto(opened.address)
    other.get_by_role("heading", name="Who needs coaching first").wait_for()


@pytest.mark.parametrize("key", ["nonsense", "ключ ☃"])
def test_a_key_that_does_not_work_leads_back_to_the_sign_in(visit, key):
    page = (opened := visit()).page
    page.goto(opened.address)
    page.get_by_label("API key").fill(key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("refused this key")
    assert opened.wait() == SIGN_IN


@pytest.mark.parametrize("fleet", VIEWS)
@pytest.mark.parametrize(("width", "scheme"), [(PHONE, "dark"), (SCREEN, "light")])
def test_every_view_is_accessible_and_fits_and_logs_nothing(visit, axe, fleet, width, scheme):
    name, _, driver = fleet.partition("/")
    opened = visit(name, driver=driver, width=width, color_scheme=scheme)
    opened.page.evaluate(axe)
    for view in VIEWS[fleet]:
        opened.open(view)
        assert opened.page.evaluate(RUN_AXE) == [], view
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width, view
    assert [message for message in opened.messages if ERROR_STATUS not in message] == []
    assert [url for url in opened.urls if not url.startswith(opened.address)] == []


def test_bars_and_swatches_keep_their_colours_on_paper_and_where_the_system_sets_the_colours(visit):
    plain, forced = visit("demo"), visit("demo", forced_colors="active")
    for bar in (".loss-bar .overspeeding", ".columns .overspeeding", ".legend .overspeeding"):
        colours = [
            opened.page.locator(bar).first.evaluate("bar => getComputedStyle(bar).backgroundColor")
            for opened in (plain, forced)
        ]
        assert colours == ["rgb(217, 115, 13)"] * 2, bar
    # What the browser draws on paper: each stream of a PDF is compressed, and `rg` sets the colour of what is filled.
    streams = re.findall(rb"/FlateDecode.*?stream\r?\n(.*?)endstream", plain.page.pdf(), re.DOTALL)
    drawn = b"".join(zlib.decompressobj().decompress(stream) for stream in streams)
    assert b".851 .451 .051 rg" in drawn


def test_a_hostile_name_is_text_in_every_view(visit):
    opened = visit("hostile")
    for view, name in itertools.product(("driver", "search", "trip"), HOSTILE):
        opened.open(f"#/{view}/{quote(name, safe='')}")
        assert name in opened.page.evaluate("document.querySelector('main').textContent"), view
    assert opened.page.evaluate("window.ran") is None
    assert opened.messages == []


@pytest.mark.parametrize("days", [-40, 40])
def test_a_wrong_clock_of_the_browser_does_not_change_the_first_view(visit, live, days):
    right, wrong = visit("demo"), visit()
    wrong.page.add_init_script(f"const now = Date.now; Date.now = () => now() + {days} * 86_400_000")
    wrong.sign_in(live.key("demo"))
    expect(wrong.page.locator(".lead")).to_have_text(right.text(".lead"))


def test_back_and_reload_show_the_same_view(visit):
    demo = visit("demo")
    name = demo.open("#/driver/demo-12?interval=month")
    demo.open("#/fleet?period=month")
    demo.page.go_back()
    assert demo.wait(name) == name
    demo.page.reload()
    assert demo.wait(name) == name
    assert demo.page.locator("[aria-current=true]", has_text="Months").count() == 1


def test_going_back_to_a_list_restores_the_scroll_position_and_the_focus(visit):
    demo = visit("demo")
    demo.page.evaluate("scrollTo(0, 300)")
    # Playwright's wait_for_function needs eval, which the page forbids.
    wait_until(lambda: demo.page.evaluate("history.state?.scroll === 300"))
    demo.page.locator(".ranking tbody a").first.evaluate("link => link.click()")
    demo.page.locator(".period").wait_for()
    assert demo.page.evaluate("scrollY") == 0
    demo.page.go_back()
    assert demo.wait("coaching")
    assert demo.page.evaluate("scrollY") == 300
    expect(demo.page.locator(".ranking tbody a").first).to_be_focused()


def test_the_focus_goes_to_the_heading_of_a_view_and_stays_within_it(visit):
    demo = visit("demo", "#/driver/demo-12")
    assert demo.page.evaluate("document.activeElement.tagName") == "H1"
    demo.page.get_by_role("link", name="Months").press("Enter")
    demo.page.locator("[aria-current=true]", has_text="Months").wait_for()
    assert demo.page.evaluate("document.activeElement.textContent") == "Months"


@pytest.mark.parametrize(
    ("view", "title"), [("#/fleet?period=month", "coaching"), ("#/driver/demo-12", "Liam O'Connor")]
)
def test_without_a_connection_the_page_says_so_and_goes_on_when_it_is_back(visit, view, title):
    demo = visit("demo")
    demo.context.set_offline(True)
    assert demo.open(view) == "No connection to the service"
    demo.context.set_offline(False)
    assert demo.wait(title)


@pytest.mark.parametrize(
    ("title", "status"), [("No connection to the service", None), ("The data is not available", 503)]
)
def test_while_requests_fail_the_page_says_so_and_tries_again_by_itself(visit, title, status):
    demo, failure = visit("demo"), {"status": status, "headers": {"Retry-After": "1"}}
    demo.page.route("**/api/v1/ranking?*", lambda route: route.fulfill(**failure) if status else route.abort())
    assert demo.open("#/fleet?period=month") == title
    assert "The page tries again in" in demo.text()
    demo.page.unroute("**/api/v1/ranking?*")
    assert demo.wait("coaching")


def test_without_leaflet_all_but_the_map_is_there(visit):
    odd = visit("odd")
    odd.page.route("**/leaflet.js", lambda route: route.abort())
    assert odd.open("#/trip/long?event=3").startswith("Trip on ")
    odd.page.get_by_text("The map could not be drawn.").wait_for()
    assert "16 mph over the limit" in odd.text(".events [aria-pressed=true]")


def test_over_the_rate_limit_the_page_waits_and_tries_again(visit, busy):
    opened = visit("odd", service=busy)
    opened.page.evaluate("for (const order of ['best', 'worst', 'best']) location.hash = `#/fleet?order=${order}`")
    opened.page.get_by_role("heading", name="Too many requests").wait_for()
    assert opened.wait("Who drives best")


def test_an_error_that_lasts_offers_the_fleet_and_no_retry(visit):
    demo = visit("demo")
    for view in ("#/nothing", "#/driver/nobody", "#/driver/%", "#/trip/nothing"):
        demo.open(view)
        assert demo.page.locator("#retry").count() == 0, view
        demo.page.get_by_role("link", name="Go to the fleet").click()
        assert demo.wait("coaching")


def test_a_trip_can_be_downloaded_and_its_requests_are_listed_once_to_copy_as_curl_without_the_key(visit, live):
    page = visit("odd", "#/trip/long", permissions=["clipboard-read", "clipboard-write"]).page
    for label, start in (("JSON", '{"count":1,'), ("GeoJSON", '{"type":"FeatureCollection"')):
        with page.expect_download() as download:
            page.get_by_role("button", name=f"Download as {label}", exact=True).click()
        assert download.value.path().read_text().startswith(start)
    lines = page.locator("#requests code").all_text_contents()
    trip = "/api/v1/trip/trip_id/long"
    assert [line for line in lines if "/trip/" in line] == [trip, f"{trip} (application/geo+json)"]
    page.locator("#requests summary").click()
    page.get_by_role("button", name="Copy as curl").first.click()
    page.get_by_text("Copied").wait_for()
    line = page.evaluate("navigator.clipboard.readText()")
    assert line == f"curl --compressed -H \"Authorization: APIKEY $KEY\" '{live.address}api/v1/trip/trip_id/long'"


def test_no_word_breaks_on_a_phone(visit):
    page = visit("demo", width=PHONE).page
    for name in ("Overspeeding", "acceleration"):
        reasons = page.locator(".why b", has_text=name)
        assert reasons.count() > 0
        assert reasons.evaluate_all(BROKEN_WORDS, name) == 0, name
