"""The explorer, in a browser."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.explorer_fleets import DRIVERS, HOSTILE, last_week, load_fleets, make_long_trip
from tests.service_process import run_service
from tests.store_contents import issue_key, load

pytestmark = pytest.mark.clients

PHONE, SCREEN = 320, 1280
MAX_REQUESTS, MAX_BYTES = 10, 300_000
TIMEOUT_MS = 10_000
# The views, each with its fleet.
VIEWS = {
    "#/fleet": "demo",
    "#/fleet?period=month&order=best&miles=10": "demo",
    "#/fleet?miles=999999": "demo",
    "#/driver/demo-12": "demo",
    "#/driver/demo-12?interval=day": "demo",
    "#/driver/demo-12?interval=month": "demo",
    "#/search/ami": "demo",
    "#/driver/nobody": "demo",
    "#/driver/idle": "odd",
    "#/trip/long?event=2": "odd",
    "#/trip/no%20trail": "odd",
    "#/trip/one%20point": "odd",
    "#/trip/nothing": "odd",
    **{f"#/{view}/{quote(name, safe='')}": "hostile" for view in ("driver", "trip", "search") for name in HOSTILE[:1]},
    "#/fleet?page=1": "hostile",
}
TILES = {"MAP_TILES_URL": "http://tiles.invalid/{z}/{x}/{y}.png", "MAP_TILES_ATTRIBUTION": "© <b>Tiles"}
# Nobody reads the log, and the service waits while the pipe of its log is full.
QUIET = {"LOG_LEVEL": "WARNING"}
RUN_AXE = """axe.run({rules: {'target-size': {enabled: true}}})
    .then(({violations}) => violations.map(v => [v.id, v.nodes[0].html]))"""
# Chromium logs every response of an error by itself.
ERROR_STATUS = "the server responded with a status of 4"


@pytest.fixture(scope="module")
def live(tmp_path_factory, mongod_uri):
    """The address of a service with several fleets, and a key of each."""
    with run_service(mongod_uri, tmp_path_factory.mktemp("explorer"), "explorer", **QUIET) as (process, db):
        yield f"http://{process.bind}/", load_fleets(db)


@pytest.fixture(scope="module")
def busy(tmp_path_factory, mongod_uri):
    """The address of a service with map tiles that allows two requests in two seconds, and a key."""
    settings = {**QUIET, **TILES, "RATE_LIMIT": "2 per 2 second"}
    with run_service(mongod_uri, tmp_path_factory.mktemp("busy"), "explorer_busy", **settings) as (process, db):
        load(db, make_long_trip())
        yield f"http://{process.bind}/", issue_key(db)


class Visit:
    """The page in a window of its own, and what it logged and requested."""

    def __init__(self, context, address):
        self.context, self.address, self.page = context, address, context.new_page()
        self.messages, self.urls = [], []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("request", lambda request: self.urls.append(request.url))

    def sign_in(self, key):
        """Open the link that `make run` prints."""
        self.page.goto(f"{self.address}#key={key}")
        return self.wait()

    def open(self, view):
        """Go to a view and wait for it."""
        self.page.evaluate("view => { location.hash = view }", view)
        return self.wait()

    def wait(self, title=".+"):
        """Wait until a view with this heading is there; return its heading."""
        self.page.wait_for_load_state("networkidle")
        heading = self.page.locator("main:not([aria-busy]) h1", has_text=re.compile(title))
        heading.wait_for()
        return heading.inner_text()

    def text(self, selector="main"):
        """Return the text of the element."""
        return self.page.locator(selector).first.inner_text()


@pytest.fixture
def visit(chromium, live):
    """Open the page: `visit("demo")` signs in to a fleet; options are those of a browser context."""
    contexts = []

    def visit(fleet=None, address=live[0], key=None, **options):
        viewport = {"width": options.pop("width", SCREEN), "height": 900}
        contexts.append(chromium.new_context(viewport=viewport, **options))
        contexts[-1].set_default_timeout(TIMEOUT_MS)
        opened = Visit(contexts[-1], address)
        if fleet or key:
            opened.sign_in(key or live[1][fleet])
        return opened

    yield visit
    for context in contexts:
        context.close()


def test_whom_to_talk_to_about_what_and_where_it_happened_takes_three_clicks(visit):
    demo = visit("demo")
    assert demo.wait() == "Who needs coaching first"
    assert re.search(r"Overspeeding|Phone use|Hard braking|Rapid acceleration", demo.text(".ranking tbody tr"))
    demo.page.locator(".ranking a").first.click()
    demo.page.locator(".reasons .where a").first.click()
    assert demo.wait("Trip").startswith("Trip on ")
    assert demo.page.locator(".events [aria-pressed=true]").count() == 1
    assert demo.messages == []


def test_the_first_view_takes_few_requests_and_bytes(visit, live):
    demo = visit()
    finished = []
    demo.page.on("requestfinished", lambda request: finished.append(sum(request.sizes().values())))
    demo.sign_in(live[1]["demo"])
    assert len(demo.urls) <= MAX_REQUESTS
    assert sum(finished) <= MAX_BYTES


def test_the_key_leaves_the_address_at_once_and_is_never_in_the_url_of_a_request(visit, live):
    demo = visit("demo")
    assert "da_" not in demo.page.url
    assert [url for url in demo.urls if live[1]["demo"] in url] == []
    assert demo.page.evaluate("localStorage.length + document.cookie.length") == 0


def test_a_pasted_key_opens_the_fleet_and_forget_key_forgets_it(visit, live):
    page = (opened := visit()).page
    page.goto(opened.address)
    page.get_by_label("API key").fill(f" {live[1]['demo']} ")
    page.get_by_role("button", name="Open the fleet").click()
    assert opened.wait("coaching")
    page.get_by_role("button", name="Forget key").click()
    assert opened.wait() == "Look at your fleet"
    assert page.evaluate("sessionStorage.length") == 0


@pytest.mark.parametrize("key", ["expired", "nonsense", "ключ ☃"])
def test_a_key_that_does_not_work_leads_back_to_the_sign_in(visit, live, key):
    opened = visit(key=live[1].get(key, key))
    assert opened.wait() == "Look at your fleet"
    assert "refused this key" in opened.text("[role=alert]")


@pytest.mark.parametrize(("view", "fleet"), VIEWS.items())
@pytest.mark.parametrize(("width", "scheme"), [(PHONE, "dark"), (SCREEN, "light")])
def test_a_view_is_accessible_and_fits_and_logs_nothing(visit, axe, view, fleet, width, scheme):
    opened = visit(fleet, width=width, color_scheme=scheme)
    opened.open(view)
    opened.page.evaluate(axe)
    violations = opened.page.evaluate(RUN_AXE)
    assert violations == []
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    assert [message for message in opened.messages if ERROR_STATUS not in message] == []
    assert [url for url in opened.urls if not url.startswith(opened.address)] == []


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_text_in_every_view(visit, name):
    opened = visit("hostile")
    for view in ("driver", "search", "trip"):
        opened.open(f"#/{view}/{quote(name, safe='')}")
        assert name in opened.page.evaluate("document.querySelector('main').textContent"), view
    assert opened.page.evaluate("window.ran") is None
    assert opened.messages == []


def test_a_fleet_of_10000_drivers_has_pages_and_finds_its_last_driver(visit):
    many = visit("many")
    assert "45 drivers drove" in many.text(".lead")
    many.page.get_by_role("link", name="Next page").click()
    many.wait()
    assert many.text(".ranking .rank") == "21"
    many.page.get_by_label("Search").fill(f"n{DRIVERS - 1}")
    many.page.keyboard.press("Enter")
    many.page.get_by_text(f"1 found of {DRIVERS:,} drivers.").wait_for()
    assert many.text(".found") == f"Driver N{DRIVERS - 1}\nd0{DRIVERS - 1}"


def test_search_lists_exact_matches_first_and_says_how_many_it_shows(visit):
    many = visit("many")
    many.open("#/search/n99")
    many.page.get_by_text("111 found of 10,000 drivers. These are 50 of 111").wait_for()
    assert many.text(".found li").startswith("Driver N99\n")
    assert many.page.locator(".found li").count() == 50


def test_search_requests_the_drivers_of_the_key_each_time_it_is_opened(visit, live):
    opened = visit("odd")
    opened.open("#/search/i")
    opened.page.goto(f"{live[0]}#key={live[1]['dated']}")
    opened.wait()
    opened.open("#/search/i")
    opened.page.get_by_text("found").or_(opened.page.get_by_text("None of")).first.wait_for()
    assert "Ida" not in opened.text()
    opened.open("#/search/today")
    assert len([url for url in opened.urls if "/drivers?" in url]) == 3


def test_all_trips_of_a_tracking_id_are_found(visit):
    odd = visit("odd")
    odd.open("#/search/shared")
    expect(odd.page.locator(".found li", has_text="shared ")).to_have_count(7)


def test_a_trip_of_10000_points_links_the_map_the_chart_the_slider_and_the_events(visit):
    page = (odd := visit("odd")).page
    odd.open("#/trip/long")
    page.get_by_label("Point of the trail").press("End")
    assert odd.text("output").startswith("10:46:39 UTC")
    plot, dot = page.locator(".plot").bounding_box(), page.locator(".marker.dot")
    before = dot.bounding_box()
    page.mouse.move(plot["x"] + plot["width"] / 4, plot["y"] + 20)
    assert dot.bounding_box() != before
    page.locator(".marker.overspeeding").last.click()
    assert "16 mph over the limit of 55 mph" in odd.text(".events [aria-pressed=true]")
    assert page.url.endswith("#/trip/long?event=3")


@pytest.mark.parametrize(
    ("trip", "text"), [("no trail, event", "This trip has no trail."), ("one point", "has only one point.")]
)
def test_a_trip_with_hardly_a_trail_shows_its_events_and_where_they_were(visit, trip, text):
    odd = visit("odd")
    odd.open(f"#/trip/{quote(trip)}?event=0")
    assert text in odd.text()
    assert "Hard brake\nFor 1 s, at 41.30000, -96.50000" in odd.text(".events [aria-pressed=true]")
    assert odd.text("output") == "08:01:00 UTC · 41.30000, -96.50000"
    expect(odd.page.locator(".map .hard_brake")).to_have_count(1)


def test_a_trip_shows_its_id_and_the_position_of_the_moment(visit):
    odd = visit("odd")
    odd.open("#/trip/crossing")
    odd.page.get_by_label("Point of the trail").press("End")
    assert odd.text(".lead") == "Trip crossing"
    assert odd.text("output").endswith(" · 41.25000, -179.90000")


def test_hovering_over_the_trail_selects_its_point(visit):
    page = (odd := visit("odd")).page
    odd.open("#/trip/crossing")
    end = page.locator(".marker.end").bounding_box()
    page.mouse.move(end["x"] + 5, end["y"] + 5)
    assert odd.page.get_by_label("Point of the trail").input_value() == "10"


def test_replay_moves_along_the_trail_and_pauses(visit):
    page = (odd := visit("odd")).page
    odd.open("#/trip/long")
    page.get_by_role("button", name="Replay").click()
    expect(page.get_by_label("Point of the trail")).to_have_value(re.compile(r"\d{3,}"))
    page.get_by_role("button", name="Pause").click()
    assert page.get_by_role("button", name="Replay").is_visible()


@pytest.mark.parametrize(
    ("view", "address"),
    [
        ("#/fleet?start=2001-01-01&miles=-5", r"#/fleet\?start=20\d\d-\d\d-\d\d$"),
        ("#/fleet?miles=1e99", r"#/fleet\?miles=999999$"),
    ],
)
def test_a_choice_that_does_not_exist_becomes_the_nearest_one_in_the_address_too(visit, view, address):
    dated = visit("dated")
    dated.open(view)
    assert re.search(address, dated.page.url)
    assert dated.messages == []


@pytest.mark.parametrize("days", [-40, 40])
def test_a_wrong_clock_of_the_browser_does_not_change_the_first_view(visit, live, days):
    right, wrong = visit("demo"), visit()
    wrong.page.add_init_script(f"const now = Date.now; Date.now = () => now() + {days} * 86_400_000")
    wrong.sign_in(live[1]["demo"])
    expect(wrong.page.locator(".lead")).to_have_text(right.text(".lead"))


def test_a_fleet_that_did_not_drive_says_when_it_last_did(visit):
    opened = visit("empty")
    assert "No drivers and trips are stored yet." in opened.text()
    late = visit("late")
    late.page.get_by_role("link", name="Look at").click()
    late.page.locator(".ranking").wait_for()


def test_back_and_reload_show_the_same_view(visit):
    demo = visit("demo")
    demo.open("#/driver/demo-12?interval=month")
    name = demo.wait()
    demo.open("#/fleet?period=month")
    demo.page.go_back()
    assert demo.wait(name) == name
    demo.page.reload()
    assert demo.wait(name) == name
    assert demo.page.locator("[aria-current=true]", has_text="Months").count() == 1


def test_going_back_to_a_list_restores_the_scroll_position(visit):
    demo = visit("demo")
    demo.page.evaluate("scrollTo(0, 300)")
    demo.page.wait_for_function("history.state?.scroll === 300")
    demo.page.locator(".ranking a").first.evaluate("link => link.click()")
    demo.page.locator(".score-chart").wait_for()
    assert demo.page.evaluate("scrollY") == 0
    demo.page.go_back()
    assert demo.wait("coaching")
    assert demo.page.evaluate("scrollY") == 300


def test_what_each_behaviour_cost_is_read_out(visit):
    bar = visit("demo").page.locator(".ranking").get_by_role("img").first
    assert re.fullmatch(r"(.+ minus [\d.]+(, )?){2,4}", bar.get_attribute("aria-label"))


def test_the_focus_goes_to_the_heading_of_a_view_and_stays_within_it(visit):
    demo = visit("demo")
    demo.open("#/driver/demo-12")
    assert demo.page.evaluate("document.activeElement.tagName") == "H1"
    demo.page.get_by_role("link", name="Months").press("Enter")
    demo.page.locator("[aria-current=true]", has_text="Months").wait_for()
    assert demo.page.evaluate("document.activeElement.textContent") == "Months"


def test_a_driver_without_trips_is_shown_as_such(visit):
    odd = visit("odd")
    assert odd.open("#/driver/idle") == "Ida Idle"
    assert "This driver has no trips yet." in odd.text()


def test_a_driver_who_drove_only_today_is_shown(visit):
    dated = visit("dated")
    dated.open("#/driver/today")
    assert dated.text(".period .tiles").count("1 trip") == 1
    assert dated.page.locator(".columns a").count() == 1


def test_the_first_interval_of_the_chart_is_compared_with_the_one_before_it(visit):
    dated = visit("dated")
    for start in (last_week(-7 * 10, "")[:10], last_week(-7 * 22, "")[:10]):
        dated.open(f"#/driver/steady?at={start}")
        assert dated.page.locator(".columns li").first.locator("[aria-current=true]").count() == 1
        assert "Against the week before\nno change" in dated.text(".period .tiles")


def test_the_chart_of_a_driver_goes_back_to_the_earliest_date_and_forth_again(visit):
    page = (dated := visit("dated")).page
    dated.open("#/driver/steady?interval=day")
    earlier, later = (page.get_by_role("link", name=f"{name} days") for name in ("Previous", "Next"))
    expect(later).to_be_disabled()
    earlier.click()
    later.click()
    expect(later).to_be_disabled()
    assert dated.messages == []


def test_what_to_talk_about_is_found_in_all_trips_of_the_period(visit):
    dated = visit("dated")
    dated.open(f"#/driver/busy?at={last_week(0, '')[:10]}")
    assert "129 times" in dated.text(".where li")
    assert dated.page.locator(".trips tbody tr").count() == 130


@pytest.mark.parametrize("period", ["week", "month"])
def test_no_view_requests_or_offers_what_is_before_the_earliest_date(visit, period):
    dated = visit("dated")
    oldest = dated.page.evaluate(f"import('./explorer/format.js').then(f => f.oldestStart('{period}'))")
    dated.open(f"#/fleet?period={period}&start={oldest}")
    assert dated.page.get_by_role("link", name=f"Previous {period}").get_attribute("href") is None
    dated.page.get_by_role("link", name="steady").click()
    dated.wait("steady")
    assert dated.page.locator(".period .grade").count() == 1
    assert dated.messages == []


def test_a_trip_of_year_1_leads_to_its_driver(visit):
    dated = visit("dated")
    assert dated.open("#/trip/year%201").startswith("Trip on Mon 1 Jan")
    dated.page.locator(".up a").click()
    assert dated.wait("steady") == "steady"


@pytest.mark.parametrize(
    ("view", "title"), [("#/fleet?period=month", "coaching"), ("#/driver/demo-12", "Liam O'Connor")]
)
def test_without_a_connection_the_page_says_so_and_goes_on_when_it_is_back(visit, view, title):
    demo = visit("demo")
    demo.context.set_offline(True)
    assert demo.open(view) == "No connection to the service"
    demo.context.set_offline(False)
    assert demo.wait(title)


def test_while_the_service_restarts_the_page_tries_again_by_itself(visit):
    demo = visit("demo")
    demo.page.route("**/api/v1/ranking?*", lambda route: route.abort())
    assert demo.open("#/fleet?period=month") == "No connection to the service"
    assert "The page tries again in" in demo.text()
    demo.page.unroute("**/api/v1/ranking?*")
    assert demo.wait("coaching")


def test_over_the_rate_limit_the_page_waits_and_tries_again(visit, busy):
    opened = visit(address=busy[0], key=busy[1])
    opened.page.evaluate("for (const order of ['best', 'worst', 'best']) location.hash = `#/fleet?order=${order}`")
    opened.page.get_by_role("heading", name="Too many requests").wait_for()
    assert opened.wait("Who drives best")


def test_while_the_data_is_not_available_the_page_says_so(visit):
    demo = visit("demo")
    body = {"message": "No response.", "error": "StoreUnavailable", "request_id": "r1"}
    failure = {"status": 503, "headers": {"Retry-After": "1"}, "json": body}
    demo.page.route("**/api/v1/ranking?*", lambda route: route.fulfill(**failure))
    assert demo.open("#/fleet?period=month") == "The data is not available"
    demo.page.unroute("**/api/v1/ranking?*")
    assert demo.wait("coaching")


def test_map_tiles_of_the_operator_are_the_only_requests_to_another_host(visit, busy):
    opened, tiles = visit(address=busy[0], key=busy[1]), []
    tile = {"content_type": "image/svg+xml", "body": "<svg xmlns='http://www.w3.org/2000/svg'/>"}
    opened.page.route("http://tiles.invalid/**", lambda route: tiles.append(route.fulfill(**tile)))
    opened.wait("coaching")
    opened.open("#/trip/long")
    opened.page.locator(".map .leaflet-marker-icon").first.wait_for()
    assert opened.text(".attribution") == "© <b>Tiles"
    assert tiles
    assert [url for url in opened.urls if not url.startswith((opened.address, "http://tiles.invalid/", "data:"))] == []


@pytest.mark.parametrize(("label", "start"), [("JSON", '{"count":1,'), ("GeoJSON", '{"type":"FeatureCollection"')])
def test_a_trip_can_be_downloaded(visit, label, start):
    odd = visit("odd")
    odd.open("#/trip/long")
    with odd.page.expect_download() as download:
        odd.page.get_by_role("button", name=f"Download as {label}", exact=True).click()
    assert download.value.path().read_text().startswith(start)


def test_each_request_is_listed_once_with_its_media_type(visit):
    odd = visit("odd")
    odd.open("#/trip/long")
    for label in ("JSON", "GeoJSON"):
        with odd.page.expect_download():
            odd.page.get_by_role("button", name=f"Download as {label}", exact=True).click()
    lines = odd.page.locator("#requests code").all_text_contents()
    trip = "/api/v1/trip/trip_id/long"
    assert [line for line in lines if "aggregate" not in line] == [trip, f"{trip} (application/geo+json)"]


def test_a_request_of_the_view_is_copied_as_curl_without_the_key(visit, live):
    page = (odd := visit("odd", permissions=["clipboard-read", "clipboard-write"])).page
    odd.open("#/trip/long")
    page.locator("#requests summary").click()
    page.get_by_role("button", name="Copy as curl").first.click()
    page.get_by_text("Copied").wait_for()
    line = page.evaluate("navigator.clipboard.readText()")
    assert line == f"curl --compressed -H \"Authorization: APIKEY $KEY\" '{live[0]}api/v1/trip/trip_id/long'"
