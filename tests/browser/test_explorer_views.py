"""The views of the explorer, in a browser: the fleet, a driver, a trip, the search."""

import datetime
import itertools
import re
from urllib.parse import quote
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import expect

from schemas.score import compute_trip_score, make_driving_summary
from schemas.summary import GRADES
from tests.browser.explorer_fleets import DRIVERS, FLEETS, NAMES, last_week, straight_trail
from tests.factories import days_ago, make_event_summary, make_point
from tests.service_process import wait_until

pytestmark = pytest.mark.clients


# The labels of columns that are cut by the chart's edge, or less than three pixels from the one before.
CROWDED_LABELS = """chart => {
  const box = chart.getBoundingClientRect(), range = document.createRange();
  const labels = [...chart.querySelectorAll("small")].map((label) => {
    range.selectNodeContents(label);
    return range.getBoundingClientRect();
  }).filter(({ left, right }) => right > box.left && left < box.right);
  return labels.filter(({ left, right }, i) =>
    left < box.left || right > box.right || (i > 0 && left < labels[i - 1].right + 3)).length;
}"""
# The colours of elements with these classes.
COLOURS = """names => names.map((name) => {
  const element = document.createElement("i");
  element.className = name;
  document.body.append(element);
  return getComputedStyle(element).backgroundColor.match(/\\d+/g).map(Number);
})"""
# Whether the elements with these selectors are wholly in view, one of them not below the other.
IN_VIEW = """selectors => {
  const boxes = selectors.map((selector) => document.querySelector(selector).getBoundingClientRect());
  const [first, second] = boxes;
  return boxes.every(({ top, bottom }) => top >= 0 && bottom <= innerHeight)
    && (second.top >= first.bottom || second.left >= first.right);
}"""


def start_of(visit, period, number=0):
    """Return the first day of a week or month that the page offers: the oldest one has the number 0."""
    shifted = f"f.shift('{period}', f.oldestStart('{period}'), {number})"
    return visit.page.evaluate(f"import('./explorer/format.js').then(f => {shifted})")


@pytest.mark.parametrize(
    ("fleet", "view", "text"),
    [
        ("empty", "#/fleet", "No drivers and trips are stored yet."),
        ("empty", "#/fleet", "driver-analytics import --fleet 'empty' --drivers drivers.ndjson --trips trips.ndjson"),
        ("changed", "#/fleet?miles=500", "4 drivers drove less than 500 miles. Show all who drove"),
        ("extreme", "#/fleet", "1.798E308 mi"),
        ("extreme", "#/driver/ahead", "The last one is dated "),
        ("odd", "#/driver/idle", "This driver has no trips yet."),
        ("odd", "#/search/shared", "shared 6"),
        ("dated", "#/driver/today", "1 trip"),
        ("dated", "#/driver/just%20ended", "1 trip more: a trip is listed 4 hours after its end."),
        ("dated", "#/fleet", ", the last full week"),
        ("dated", "#/driver/steady", "the last week with trips"),
        ("dated", "#/driver/today", "the last week with trips, so far"),
        ("dated", "#/search/null", "None."),
        ("dated", "#/search/..", "Nothing has the id “..”."),
    ],
)
def test_the_page_says_what_there_is_and_what_there_is_not(visit, fleet, view, text):
    opened = visit(fleet, view)
    expect(opened.page.locator("main")).to_contain_text(text)


def test_a_fleet_of_10000_drivers_has_pages_and_finds_its_last_driver(visit):
    many = visit("many")
    lead = r"45 of 10,000 drivers drove .+, the last full week\. 9,955 did not drive\. Always the last week"
    assert re.fullmatch(lead, many.text(".lead"))
    many.page.get_by_role("link", name="Next page").click()
    expect(many.page.locator(".ranking .rank").first).to_have_text("21")
    many.page.get_by_label("Search").fill(f"n{DRIVERS - 1}")
    many.page.keyboard.press("Enter")
    many.wait("Search")
    assert many.text(".found") == f"Driver N{DRIVERS - 1}\nd0{DRIVERS - 1}"


@pytest.mark.parametrize(
    ("view", "shown"),
    [
        ("#/fleet?start=2001-01-01&miles=-5", r"#/fleet\?start=20\d\d-\d\d-\d\d&miles=0"),
        ("#/fleet?period=year&order=odd&page=x", r"#/fleet\?period=week&order=worst&page=1"),
        ("#/fleet?start=x&nonsense=1", r"#/fleet\?start=20\d\d-\d\d-\d\d"),
        ("#/fleet?miles=1e99", r"#/fleet\?miles=999999"),
        ("#/driver/steady?interval=year&at=x", r"#/driver/steady\?interval=week"),
        ("#/driver/steady?at=2001-01-01", r"#/driver/steady\?at=20\d\d-\d\d-\d\d"),
        ("#/compare/steady?interval=year&with=steady", r"#/compare/steady\?interval=week"),
        ("#/trip/busy%200?event=7&about=x&constructor=1", "#/trip/busy%200"),
        ("#/search/n?page=2", "#/search/n"),
    ],
)
def test_a_choice_that_does_not_exist_becomes_the_nearest_one_in_the_address_too_and_a_note_says_so(visit, view, shown):
    dated = visit("dated", view)
    wrong = view.split("?")[1].replace("&", ", ")
    why = " Dates go back six months." * ("2001" in view)
    assert dated.text(".note") == f"The address had {wrong}, which cannot be shown. This is shown instead.{why}"
    assert re.fullmatch(rf"{shown}(&(start|at)=[\d-]{{10}})?", dated.page.evaluate("location.hash"))
    dated.page.reload()
    dated.wait()
    assert dated.page.locator(".note").count() == 0
    assert dated.messages == []


def test_the_least_distance_is_ten_miles_unless_the_address_says_none_or_another_one(visit):
    named = visit("named")
    least, less = named.page.get_by_label("At least"), named.page.get_by_role("link", name="1 drove less")
    expect(least).to_have_value("10")
    assert "Little" not in named.text(".ranking")
    expect(named.page.locator(".lead")).to_contain_text("1 drove less, too little to judge.")
    less.click()
    expect(named.page.locator(".ranking tbody tr").first).to_contain_text("Little")
    assert named.view() == "#/fleet?miles=0"
    least.fill("2.5")
    least.press("Enter")
    expect(named.page.locator(".lead")).to_contain_text("drove at least 2.5 miles in")
    assert named.view() == "#/fleet?miles=2.5"
    least.fill("-5")
    least.press("Enter")
    assert least.evaluate("input => input.validationMessage")
    assert named.view() == "#/fleet?miles=2.5"


@pytest.mark.parametrize("miles", [0, 10, 99])
def test_grades_and_drivers_to_coach_are_counted_of_the_drivers_on_the_list(visit, miles):
    opened = visit("judged", f"#/fleet?miles={miles}")
    trips = [trip for trip in FLEETS["judged"]()[0] if trip["distance_miles"] >= miles]
    summaries = [
        make_driving_summary({**trip, "trip_count": 1, "events_summary": trip["event_summary"]}) for trip in trips
    ]
    assert opened.text(".lead").startswith(f"{len(summaries)} of 250")
    grades = [f"{sum(one['fm_grade'] == grade for one in summaries)} {grade}" for grade in GRADES]
    assert opened.text(".grades").split("\n") == grades
    to_coach = [sum(one["focus_area"][flag] for one in summaries) for flag in ("is_hard_brake", "is_phone_use")]
    for label, count in zip(("Hard braking", "Phone use"), to_coach, strict=True):
        assert f"{label}: {count}\n" in f"{opened.text('.to-coach')}\n"


def test_a_manager_sees_that_figures_include_implausible_trips_and_are_not_compared(visit):
    devices = visit("devices")
    assert devices.text(".doubt").startswith("Figures include 10 implausible trips of 2 drivers")
    tiles = devices.text(".over-time .tiles")
    assert ("data look wrong" in tiles, re.search("[▲▼]|excellent|good|fair|poor", tiles)) == (True, None)
    row = devices.page.locator(".ranking tr", has_text="van 3").inner_text()
    assert ("data look wrong" in row, re.search("[▲▼]|excellent", row)) == (True, None)
    devices.page.locator(".doubt a").click()
    devices.wait("Trips whose data look wrong")
    left_out = visit("devices left out")
    assert left_out.text(".doubt").startswith("Figures leave out 10 implausible trips")
    assert "data look wrong" not in left_out.text(".over-time .tiles")


@pytest.mark.parametrize(
    ("view", "what"),
    [
        (
            f"driver/van%203?at={last_week(0, '')[:10]}",
            r"5 implausible trips, whose data look wrong\. .+: mean speed [\d,]{6} mph\.",
        ),
        ("trip/3%200%200", r"this trip, whose data look wrong: mean speed [\d,]{6} mph\."),
        ("trip/7%200%200", "this trip, .+: phone use longer than the trip, 361 events in 30 min"),
    ],
)
@pytest.mark.parametrize(("fleet", "does"), [("devices", "include"), ("devices left out", "leave out")])
def test_a_driver_and_a_trip_whose_data_look_wrong_are_not_praised_and_say_why(visit, fleet, does, view, what):
    opened = visit(fleet, f"#/{view}")
    assert re.match(f"Figures {does} {what}", opened.text(".doubt"))
    score = opened.text(".tiles, .trips tbody")
    assert ("data look wrong" in score, re.search("[▲▼]|excellent", score)) == (True, None)


def test_a_driver_whose_data_look_wrong_is_not_compared(visit):
    sides = visit("devices", "#/compare/van%203").text(".sides")
    assert ("not compared" in sides, re.search("[▲▼]|excellent", sides)) == (True, None)


def test_the_fleet_says_how_recent_its_data_are(visit):
    received = datetime.datetime.now(ZoneInfo("America/Denver"))
    assert f"Last trip received {received.day} {received:%b}, " in visit("denver").text()


def test_who_did_not_drive_is_a_click_away_and_a_large_fleet_is_looked_through_in_parts(visit):
    many = visit("many")
    many.page.get_by_role("link", name="9,955 did not drive").click()
    assert many.wait("not drive") == "Who did not drive"
    lead = "Of drivers 1 to 600 of 10,000 by driver id, 555 did not drive in"
    expect(many.page.locator(".lead")).to_contain_text(lead)
    expect(many.page.locator(".found li").first).to_have_text("Driver N45d00045No trips yet.")
    many.page.get_by_role("link", name="Drivers from 601 on").click()
    expect(many.page.locator(".found li").first).to_contain_text("d00600")


def test_the_fleet_over_time_has_its_score_and_a_bar_changes_the_week(visit):
    page = (demo := visit("demo")).page
    section = page.locator(".over-time")
    expect(section.locator(".tiles")).to_contain_text("Score of the fleet")
    chosen, other = section.locator(".columns [aria-current=true]"), section.locator(".columns a:not([aria-current])")
    score = chosen.locator("b").inner_text()
    expect(section.locator(".tiles .grade")).to_contain_text(score)
    before, start = page.locator(".lead").inner_text(), other.last.get_attribute("href")
    other.last.click()
    expect(page.locator(".lead")).not_to_have_text(before)
    assert demo.page.url.endswith(start)


def test_choosing_a_behaviour_orders_the_drivers_by_what_it_costs(visit):
    page = visit("demo").page
    page.locator(".to-coach", has_text="Drivers to coach").get_by_role(
        "link", name=re.compile("^Overspeeding: ")
    ).click()
    page.locator(".to-coach [aria-current=true]", has_text="Overspeeding").wait_for()
    points = [
        float(text.rpartition("−")[2])
        for text in page.locator(".why").all_inner_texts()
        for text in [text.split("\n")[0]]
        if "−" in text
    ]
    assert points == sorted(points, reverse=True) != []


def test_reports_open_print_and_download_each_through_a_fresh_link_and_lead_to_the_drivers(visit):
    page = (demo := visit("demo")).page
    demo.context.add_init_script("window.print = () => { window.printed = true; }")
    page.get_by_role("link", name="Reports").click()
    demo.wait("Reports")
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").first.click()
    assert download.value.suggested_filename.startswith("demo-report-")
    with page.expect_popup() as popup:
        page.get_by_role("button", name="Print").first.click()
    wait_until(lambda: popup.value.evaluate("window.printed === true"))
    page.get_by_role("button", name="Open").first.click()
    page.get_by_role("heading", name="ly driving report demo").wait_for()
    name = page.locator(".ranking a").first.inner_text()
    page.locator(".ranking a").first.click()
    assert demo.wait(re.escape(name)) == name
    assert demo.page.locator(".note").count() == 0
    odd = visit("odd", "#/reports")
    odd.page.get_by_text("No report is built yet.").wait_for()


def test_a_link_to_a_report_that_is_not_valid_any_more_leads_to_the_reports(visit):
    demo = visit("demo")
    demo.page.goto(f"{demo.address}api/v1/report/W10.x")
    demo.page.get_by_role("link", name="Open the list of reports").click()
    assert demo.wait() == "Reports"


@pytest.mark.parametrize("interval", ["day", "week", "month"])
def test_a_driver_leads_to_the_fleet_at_that_time(visit, interval):
    dated = visit("dated")
    dated.open(f"#/driver/steady?interval={interval}&at={start_of(dated, interval, 3)}")
    dated.page.locator(".up span a").click()
    dated.wait("coaching")
    assert "steady" in dated.text(".ranking")
    assert dated.page.locator(".note").count() == 0


def test_a_trip_leads_to_the_driver_s_trips_before_and_after_it(visit):
    page = (dated := visit("dated", "#/trip/busy%2098")).page
    for name, trip in (("Next", 99), ("Next", 100), ("Previous", 99)):
        page.get_by_role("link", name=f"{name} trip").click()
        expect(page.locator(".lead")).to_have_text(f"Trip busy {trip}")
    dated.open("#/trip/busy%200")
    expect(page.get_by_role("link", name="Previous trip")).to_be_disabled()


def test_kilometres_are_a_choice_that_the_browser_keeps(visit):
    page = (odd := visit("odd")).page
    page.get_by_label("Units").select_option("km")
    expect(page.get_by_label("At least")).to_have_value("16.09")
    (least := page.get_by_label("At least")).fill("5")
    least.press("Enter")
    expect(page.locator(".lead")).to_contain_text("at least 5 km in")
    assert odd.view() == "#/fleet?miles=3.107"
    page.reload()
    odd.wait()
    assert least.input_value() == "5"


@pytest.mark.parametrize(
    ("fleet", "view", "text"),
    [
        ("odd", "#/fleet", "418 km"),
        ("odd", "#/trip/long", "Highest speed\n64 km/h by GPS"),
        ("odd", "#/trip/long?event=3", "25 km/h over the limit of 89 km/h"),
        ("demo", "#/driver/demo-12", " per 100 km"),
    ],
)
def test_a_view_in_kilometres_has_no_miles(visit, fleet, view, text):
    (opened := visit(fleet)).page.get_by_label("Units").select_option("km")
    opened.open(view)
    assert text in opened.text()
    assert re.search(r"\d (mi|mph|miles)\b", opened.text()) is None


FORMATTED = {
    "duration": {0: "0 s", 59.6: "1 min", 115: "1 min 55 s", 600: "10 min", 7200: "2 h", 8640: "2 h 24 min"},
    "speed": {-0.4: "0 mph", -0.6: "-1 mph", 0: "0 mph"},
}


@pytest.mark.parametrize(("name", "texts"), FORMATTED.items(), ids=FORMATTED)
def test_a_short_duration_has_seconds_and_what_rounds_to_zero_has_no_sign(visit, name, texts):
    formatted = "([name, values]) => import('./explorer/format.js').then(f => values.map(f[name]))"
    shown = visit("odd").page.evaluate(formatted, [name, list(texts)])
    assert [text.replace("\xa0", " ") for text in shown] == list(texts.values())


def test_a_fleet_that_did_not_drive_leads_to_when_it_last_did(visit):
    late = visit("late")
    late.page.get_by_role("link", name="Look at").click()
    late.page.locator(".ranking").wait_for()


def test_the_steps_end_at_the_earliest_week_and_the_focus_stays_on_them(visit):
    dated = visit("dated")
    dated.open(f"#/fleet?start={start_of(dated, 'week', 1)}")
    previous = dated.page.get_by_role("link", name="Previous week")
    previous.press("Enter")
    expect(previous).to_be_disabled()
    expect(previous).to_be_focused()
    expect(dated.page.locator(".lead")).to_contain_text(", the earliest week: dates go back six months.")


def test_the_chart_of_a_driver_keeps_the_chosen_start_and_goes_back_and_forth(visit):
    page = (dated := visit("dated")).page
    start = last_week(0, "")[:10]
    dated.open(f"#/driver/steady?interval=week&at={start}")
    page.get_by_role("link", name="Days").click()
    expect(page.locator(f"#at-{start}")).to_have_attribute("aria-current", "true")
    earlier, later = (page.get_by_role("link", name=f"{name} days") for name in ("Previous", "Next"))
    expect(later).to_be_disabled()
    earlier.click()
    later.click()
    expect(later).to_be_disabled()
    assert dated.messages == []


def test_a_column_of_the_chart_has_the_score_as_it_is_written_beside_the_grade(visit):
    demo = visit("demo", "#/driver/demo-12")
    assert demo.text(".columns [aria-current=true] b") == demo.text(".period .grade b")


def test_what_to_talk_about_is_found_in_all_trips_of_the_period(visit):
    dated = visit("dated", f"#/driver/busy?at={last_week(0, '')[:10]}")
    assert "129 times" in dated.text(".where li")
    assert dated.page.locator(".trips tbody tr").count() == 130


def test_a_trip_has_the_score_of_its_own_totals(visit):
    amounts = itertools.product((0, 1, 37), (0, 90.5, 1e308), (0, 0.3, 61.7), (0, 1800.5))
    trips = [
        {
            "distance_miles": miles,
            "duration_seconds": seconds,
            "event_summary": make_event_summary(
                hard_brake_count=count, phone_use_time_seconds=time, overspeeding_time_seconds=time / 3
            ),
        }
        for count, time, miles, seconds in amounts
    ]
    rated = "trips => import('./explorer/format.js').then(f => trips.map(f.rateTrip))"
    expected = list(map(compute_trip_score, trips))
    for shown, right in zip(visit("odd").page.evaluate(rated, trips), expected, strict=True):
        assert (shown["fm_score"], shown["fm_grade"]) == (right["fm_score"], right["fm_grade"])


def test_trips_are_sorted_by_date_score_or_events_and_the_address_keeps_that(visit):
    page = visit("dated", f"#/driver/busy?at={last_week(0, '')[:10]}").page
    first = page.locator(".trips tbody a").first
    for label, name, trip in (("Most events", "events", 129), ("Worst score", "score", 2), ("Date", "date", 0)):
        page.get_by_role("link", name=label, exact=True).click()
        expect(first).to_have_attribute("href", f"#/trip/busy%20{trip}")
        assert page.url.endswith(f"&sort={name}")
    page.get_by_role("link", name="Days").click()
    page.locator(".choice [aria-current=true]", has_text="Days").wait_for()
    assert "&sort=date" in page.url


def test_on_a_phone_the_score_comes_first_and_then_what_would_raise_it(visit):
    page = (dated := visit("dated", f"#/driver/busy?at={last_week(0, '')[:10]}", width=390)).page
    assert re.fullmatch(r"[\d,]+ hard brakes fewer: \+10.0; none: \+20.0", dated.text(".raises"))
    tops = [page.locator(part).first.bounding_box()["y"] for part in (".period .grade", ".raises", ".score-chart")]
    assert tops == sorted(tops)
    assert tops[1] < page.viewport_size["height"]


def test_the_page_of_a_driver_leads_to_periods_with_trips_only(visit):
    page = visit("many", f"#/driver/d00001?at={last_week(0, '')[:10]}").page
    page.get_by_role("link", name="Days").click()
    page.locator(f"#at-{last_week(2, '')[:10]}[aria-current=true]").wait_for()
    late = visit("late", f"#/driver/d1?interval=day&at={days_ago(0)[:10]}")
    assert "No trips in this time." in late.text(".period")
    expect(late.page.get_by_role("link", name="Next days")).to_be_disabled()
    for name in ("Previous days", "Look at the last trips"):
        late.open(f"#/driver/d1?interval=day&at={days_ago(0)[:10]}")
        late.page.get_by_role("link", name=name).click()
        expect(late.page.locator(".period .grade")).to_have_count(1)


def read_scores(visit, *drivers):
    """Return the score of each driver in the last full week, as the page of the driver has it."""
    for driver_id in drivers:
        visit.open(f"#/driver/{driver_id}?at={last_week(0, '')[:10]}")
        yield visit.text(".period .grade b")


def test_a_driver_is_compared_with_the_fleet_or_another_driver_by_an_address_that_can_be_shared(visit):
    page, shared = (demo := visit("demo")).page, visit("demo")
    fleet = demo.text(".over-time .tiles .grade b")
    drivers = [*read_scores(demo, "demo-12"), *read_scores(demo, "demo-02")]
    demo.open(f"#/driver/demo-12?at={last_week(0, '')[:10]}")
    page.get_by_role("link", name="Compare with").click()
    assert demo.wait("and the fleet") == "Liam O'Connor and the fleet"
    score = page.locator(".sides tbody tr").first.locator(".grade b")
    assert score.all_inner_texts() == [drivers[0], fleet]
    page.get_by_label("Another driver").fill("BENJ clarke")
    page.keyboard.press("Enter")
    page.locator(".found a").press("Enter")
    assert demo.wait("and Benjamin") == "Liam O'Connor and Benjamin Clarke"
    assert score.all_inner_texts() == drivers
    shared.open(f"#{page.url.partition('#')[2]}")
    assert shared.text() == demo.text()


def test_a_row_of_the_fleet_leads_to_a_comparison_in_that_period(visit):
    page = (many := visit("many")).page
    page.get_by_role("link", name="Compare Driver N7", exact=True).click()
    many.wait("Driver N7 and the fleet")
    expect(page.locator(".columns [aria-current=true]")).to_have_attribute("id", f"at-{last_week(0, '')[:10]}")
    expect(page.locator(".sides tbody tr").first.locator(".change")).to_have_text("none")


def test_a_trip_of_10000_points_links_the_map_the_chart_the_slider_and_the_events(visit):
    page = (odd := visit("odd", "#/trip/long")).page
    page.get_by_label("Point of the trail").press("End")
    assert odd.text("output").startswith("10:46:39 UTC")
    plot, dot = page.locator(".plot").bounding_box(), page.locator(".marker.dot")
    before = dot.bounding_box()
    page.mouse.move(plot["x"] + plot["width"] / 4, plot["y"] + 20)
    assert dot.bounding_box() != before
    page.locator(".marker.overspeeding").last.click()
    assert "16 mph over the limit of 55 mph" in odd.text(".events [aria-pressed=true]")
    assert page.url.endswith("#/trip/long?event=3")


def measure(visit, points):
    """Return what the page measures of the trail of a trip of ten minutes."""
    trip = {"trip_start_time": 0, "trip_end_time": 600_000, "trail_path": points}
    return visit.page.evaluate("trip => import('./explorer/trail.js').then(t => t.measure(trip))", trip)


@pytest.mark.parametrize(
    ("steps", "most"), [([84, 83, 101, 67, 84], 84), ([25, 25, 61, 61, 32], 32), ([0, 10, 20, 20, 0], 20)]
)
def test_a_speed_that_no_car_gets_to_in_a_second_is_left_out(visit, steps, most):
    latitudes = [41 + sum(steps[:second]) / 3600 / 69.0934 for second in range(len(steps) + 1)]
    points = [make_point(1000 * second, latitude=latitude) for second, latitude in enumerate(latitudes)]
    assert max(measure(visit("odd"), points)["mph"]) == pytest.approx(most, abs=0.1)


def moved(*indexes, **position):
    """Return the straight trail with some points at another position."""
    return [point | position if n in indexes else point for n, point in enumerate(straight_trail())]


NULL_ISLAND = {"latitude": 0, "longitude": 0}
TRAIL, ONE_TIME = straight_trail(), straight_trail()
ONE_TIME[30]["timestamp"] = ONE_TIME[29]["timestamp"] = ONE_TIME[31]["timestamp"] - 10_000
TRAILS = {
    "nowhere for a moment": (moved(30, **NULL_ISLAND), 1),
    "nowhere at first": (moved(*range(5), **NULL_ISLAND), 5),
    "nowhere at both ends": (moved(0, 1, 59, 60, **NULL_ISLAND), 4),
    "nowhere for a while": (moved(*range(20, 45), **NULL_ISLAND), 25),
    "three jumps": ([*moved(15, latitude=44)[:30], *moved(30, longitude=-92, latitude=41)[30:]], 2),
    "out of order": ([*TRAIL[20:40], *TRAIL[:20], *TRAIL[40:]], 0),
    "a late batch": ([*TRAIL[:25], *TRAIL[40:], *TRAIL[25:40]], 0),
    "backwards": (TRAIL[::-1], 0),
    "one time twice": (ONE_TIME, 0),
    "all of it nowhere": ([], 0),
}


@pytest.mark.parametrize(("trail", "left_out"), TRAILS.values(), ids=TRAILS)
def test_a_trail_has_the_points_where_a_car_can_have_been_in_order_of_time(visit, trail, left_out):
    measured = measure(visit("odd"), trail)
    times, miles = measured["times"], measured["miles"]
    assert times == sorted(times)
    assert (len(times), measured["otherPlace"]) == (len(trail) - left_out, left_out)
    if trail:
        assert times[-1] - times[0] == pytest.approx(600_000, abs=50_000)
        assert miles[-1] == pytest.approx(3.3, abs=0.3)
        assert max(measured["mph"]) == pytest.approx(20, abs=20)


def test_a_position_that_was_lost_is_named_and_not_on_the_map(visit):
    page = (named := visit("named", "#/trip/lost")).page
    assert "1 position left out: no car gets so far in so short a time." in named.text()
    expect(page.locator(".leaflet-control-scale-line")).to_have_text(re.compile(r"^(\d+ ft|1 mi)$"))
    page.get_by_label("Point of the trail").press("End")
    assert " · 3.3 mi · " in named.text("output")


def test_a_name_that_nobody_sees_is_replaced_and_a_long_one_leaves_room(visit):
    page = visit("named").page
    for driver_id, (_, shown) in NAMES.items():
        link = page.locator(".ranking a", has=page.locator(f"[title='{shown}']"))
        assert link.get_attribute("href").startswith(f"#/driver/{quote(driver_id)}"), shown
        assert link.bounding_box()["width"] > 10
    assert page.locator(".ranking tbody td:nth-child(3)").first.bounding_box()["width"] > 140


@pytest.mark.parametrize(
    ("trip", "text"), [("no trail, event", "There is no trail to draw."), ("one point", "There is only one point")]
)
def test_a_trip_with_hardly_a_trail_shows_its_events_and_where_they_were(visit, trip, text):
    odd = visit("odd", f"#/trip/{quote(trip)}?event=0")
    assert text in odd.text()
    assert "Hard braking\nFor 1 s, at 41.30000, -96.50000" in odd.text(".events [aria-pressed=true]")
    assert odd.text("output") == "08:01:00 UTC · 41.30000, -96.50000"
    expect(odd.page.locator(".map .hard_brake")).to_have_count(1)


def test_events_that_are_close_to_each_other_can_be_told_apart_and_chosen(visit):
    page = visit("named", "#/trip/crossing").page
    markers = page.locator(".map .hard_brake")
    expect(page.locator(".map .joint")).not_to_have_count(0)
    for zoom in (False, True):
        if zoom:
            page.get_by_role("button", name="Zoom in").click()
        for number in range(5):
            markers.nth(number).click()
            expect(page.locator(f"#event-{number}")).to_have_attribute("aria-pressed", "true")
            expect(page.locator(".map .chosen")).to_have_count(1)


def test_5000_events_at_one_place_are_one_marker_that_leads_to_each(visit):
    page = visit("named", "#/trip/storm").page
    page.locator(".leaflet-control-zoom-in").click()
    marker = page.locator(".map .hard_brake", has_text="5,000")
    for number in range(2):
        marker.click()
        expect(page.locator(f"#event-{number}")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".map .hard_brake")).to_have_count(1)


CLOSE = ("For 12 s and 0.2 mi, up to 60 mph, at", "From about 60 to 30 mph in 10 s, at", " · 5.1 mi · ")
APART = ("For 12 s, at", "For 10 s, at", "08:05:05 UTC · 41.07")


@pytest.mark.parametrize(("seconds", "texts"), [(1, CLOSE), (10, CLOSE), (30, CLOSE), (31, APART), (60, APART)])
def test_an_event_has_its_place_and_the_speeds_around_it_if_points_are_close(visit, seconds, texts):
    field = visit("field", f"#/trip/every%20{seconds}%20s?event=1")
    shown = (field.text("#event-0"), field.text("#event-1"), field.text("output"))
    assert all(part in text for part, text in zip(texts, shown, strict=True))
    assert shown[1].split(" at ")[1] == shown[2].split(" · ")[-1]


def test_a_gap_in_the_trail_is_a_hole_in_the_chart_dashed_on_the_map_and_without_a_speed(visit):
    page = (field := visit("field", "#/trip/gap")).page
    assert "Highest speed\n20 mph by GPS" in field.text(".tiles")
    assert page.locator(".plot .speed-line").get_attribute("d").count("M") == 2
    assert page.locator(".map .gap").evaluate("line => getComputedStyle(line).strokeDasharray") != "none"
    assert field.text(".events small").startswith("For 10 s, at ")


@pytest.mark.parametrize(
    ("trip", "text", "first"),
    [
        ("1970", "3 positions are not from the time of the trip.", "08:00:30 UTC"),
        ("weeks", "1 position is not from the time of the trip.", "08:00:10 UTC"),
        ("days", "There is no trail to draw. 61 positions are not from the time of the trip.", None),
    ],
)
def test_positions_that_are_not_from_the_time_of_the_trip_are_named_and_not_drawn(visit, trip, text, first):
    field = visit("field", f"#/trip/{trip}")
    assert text in field.text()
    assert "no car gets" not in field.text()
    assert first is None or field.text("output").startswith(first)


DIFFER = "The score is from the totals of the trip, which differ from this list."
PHONE = "Phone use: counted 2 times, 2 min; 0 listed"


@pytest.mark.parametrize(
    ("trip", "texts"),
    [
        ("totals", ["0 events listed", DIFFER, PHONE, "Hard braking: counted 3 times; 0 listed"]),
        ("list", ["3 events listed", DIFFER, "Hard braking: counted 0 times; 3 listed"]),
        ("part", ["1 event listed", DIFFER, PHONE, "Hard braking: counted 3 times; 1 listed"]),
        ("both", ["3 events"]),
    ],
)
def test_totals_that_differ_from_the_events_of_a_trip_are_shown_with_them(visit, trip, texts):
    shown = visit("field", f"#/trip/{trip}").text(".trip-events").split("\n")
    assert [text for text in shown if text][: len(texts)] == texts
    assert DIFFER in texts or DIFFER not in shown


def test_drivers_of_one_name_are_compared_with_their_ids(visit):
    assert visit("field", "#/compare/jan-1?with=jan-2").text("h1") == "Jan Example (jan-1) and Jan Example (jan-2)"


@pytest.mark.parametrize(("width", "height"), [(390, 600), (1024, 768), (1440, 900)])
def test_a_shared_link_to_an_event_and_choosing_one_keep_the_map_and_the_event_in_view(visit, width, height):
    page = (named := visit("named", width=width)).page
    page.set_viewport_size({"width": width, "height": height})
    named.open("#/trip/crossing?event=4")
    assert page.evaluate(IN_VIEW, [".map", "#event-4"])
    page.locator("#event-0").click()
    assert page.evaluate(IN_VIEW, [".map", "#event-0"])
    for number in (1, 2, 3, 4, 3, 2, 1, 0):
        page.keyboard.press("Tab" if number > page.evaluate("+document.activeElement.id.at(-1)") else "Shift+Tab")
        assert page.evaluate(IN_VIEW, [".map", "#event-" + str(number)]), number


def test_a_place_opens_in_openstreetmap_by_a_link_that_tells_it_nothing(visit):
    page = (odd := visit("odd", "#/trip/no%20trail%2C%20event?event=0")).page
    link = page.get_by_role("link", name="Open this place in OpenStreetMap")
    url = "https://www.openstreetmap.org/"
    expect(link).to_have_attribute("href", f"{url}?mlat=41.30000&mlon=-96.50000#map=17/41.30000/-96.50000")
    expect(link).to_have_attribute("rel", "noreferrer")
    assert [address for address in odd.urls if not address.startswith(odd.address)] == []


def test_a_bar_has_the_numbers_of_all_its_segments_in_sight(visit):
    demo, dated = visit("demo"), visit("dated")
    row = demo.page.locator(".ranking tbody tr").first
    spoken = row.get_by_role("img").get_attribute("aria-label").split(",")
    shown = row.locator(".why").inner_text()
    assert [loss for loss in spoken if loss.replace("minus ", "−") not in shown.replace("\n", " ")] == []
    dated.open(f"#/driver/busy?at={last_week(0, '')[:10]}")
    assert "Hard braking −20.0" in dated.text(".legend")


def test_a_replay_moves_along_the_trail_until_pause_or_the_slider(visit):
    page = (odd := visit("odd", "#/trip/long")).page
    point, replay = page.get_by_label("Point of the trail"), page.get_by_role("button", name="Replay")
    replay.click()
    expect(point).to_have_value(re.compile(r"\d{3,}"))
    page.get_by_role("button", name="Pause").click()
    replay.click()
    point.press("End")
    assert replay.is_visible()
    assert odd.text("output").startswith("10:46:39 UTC")


def test_map_tiles_of_the_operator_are_the_only_requests_to_another_host(visit, busy):
    opened, tiles = visit("odd", service=busy), []
    tile = {"content_type": "image/svg+xml", "body": "<svg xmlns='http://www.w3.org/2000/svg'/>"}
    opened.page.route("http://tiles.invalid/**", lambda route: tiles.append(route.fulfill(**tile)))
    opened.wait("coaching")
    opened.open("#/trip/long")
    opened.page.locator(".map .leaflet-marker-icon").first.wait_for()
    assert opened.text(".attribution") == "© <b>Tiles"
    assert "MAP_TILES_URL" not in opened.text()
    assert tiles
    assert [url for url in opened.urls if not url.startswith((opened.address, "http://tiles.invalid/", "data:"))] == []


def test_a_trip_that_a_search_finds_has_the_name_of_its_driver(visit):
    demo = visit("demo", "#/driver/demo-12")
    demo.page.locator(".trips a").first.click()
    demo.wait("Trip")
    demo.open(f"#/search/{demo.text('.lead code')}")
    expect(demo.page.locator(".found small")).to_have_text(re.compile(r"^Liam O'Connor · .+ UTC · .+ mi$"))


def test_a_search_says_how_many_of_the_drivers_it_shows(visit):
    many = visit("many", "#/search/n99%20DRIVER")
    many.page.get_by_text("50 of 111 drivers. Type more of the name.").wait_for()
    assert many.page.locator(".found li").count() == 50


def test_times_and_dates_are_in_the_time_zone_of_the_fleet_wherever_the_browser_is(visit):
    start = datetime.datetime.fromisoformat(f"{last_week(5, '05:30')}+00:00").astimezone(ZoneInfo("America/Denver"))
    time = start.strftime("%H:%M")
    denver = visit("denver", "#/trip/friday")
    title = denver.wait("Trip on Fri")
    assert f"{start.day} {start:%b %Y}, {time}" in title
    assert title.endswith(" America/Denver")
    denver.page.get_by_role("link", name="d1").click()
    denver.wait("d1")
    assert "Start (America/Denver)" in denver.text()
    assert denver.page.locator("footer p").inner_text() == "Dates and times are in America/Denver."
    assert f"Fri {start.day} {start:%b}, {time}" in denver.text()


@pytest.mark.parametrize(
    ("locale", "title"),
    [
        ("en-US", "Sun, Nov 2, 2025, 1:40 AM MDT – 1:20 AM MST"),
        ("de-DE", "So., 2. Nov. 2025, 01:40 MDT – 01:20 MST"),
        ("fa-IR", "2025"),
    ],
)
def test_dates_and_times_are_as_the_language_of_the_browser_has_them_in_the_calendar_of_the_data(visit, locale, title):
    shown = visit("denver", "#/trip/repeated", locale=locale).text("h1").replace("\u202f", " ")
    assert (title in shown, shown.startswith("Trip on ")) == (True, True)


def test_the_first_tab_stop_skips_to_the_content(visit):
    page = (demo := visit("demo", "#/driver/demo-12")).page
    page.reload()
    demo.wait("Liam")
    page.evaluate("document.activeElement.blur()")
    page.locator("#skip").focus()
    expect(page.locator("#skip")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_be_focused()
    assert demo.view() == "#/driver/demo-12"


@pytest.mark.parametrize("period", ["week", "month"])
def test_a_driver_of_the_earliest_period_is_shown_without_a_request_of_what_is_before_it(visit, period):
    dated = visit("dated")
    dated.open(f"#/fleet?period={period}&start={start_of(dated, period)}")
    assert dated.page.get_by_role("link", name=f"Previous {period}").get_attribute("href") is None
    dated.page.get_by_role("link", name="steady", exact=True).click()
    dated.wait("steady")
    assert dated.page.locator(".period .grade").count() == 1
    assert dated.messages == []


def test_a_duration_has_seconds_if_it_is_short(visit):
    durations = {
        0: "0 s",
        59.6: "1 min",
        115: "1 min 55 s",
        240: "4 min",
        600: "10 min",
        7200: "2 h",
        8640: "2 h 24 min",
    }
    texts = visit("odd").page.evaluate(
        "seconds => import('./explorer/format.js').then(f => seconds.map(f.duration))", list(durations)
    )
    assert [text.replace("\xa0", " ") for text in texts] == list(durations.values())


def test_a_jump_of_the_position_does_not_set_the_highest_speed(visit):
    odd = visit("odd", "#/trip/long")
    assert odd.text(".chart .scale span") == "60"
    assert "Highest speed\n40 mph by GPS" in odd.text(".tiles")


def test_a_place_and_a_trip_open_in_openstreetmap_by_a_link_that_tells_it_nothing(visit):
    page = (odd := visit("odd", "#/trip/no%20trail%2C%20event?event=0")).page
    link = page.get_by_role("link", name="Open this place in OpenStreetMap")
    url = "https://www.openstreetmap.org/"
    expect(link).to_have_attribute("href", f"{url}?mlat=41.30000&mlon=-96.50000#map=17/41.30000/-96.50000")
    odd.open("#/trip/long")
    page.get_by_label("Point of the trail").press("End")
    latitude, longitude = odd.text("output").split(" · ")[-1].split(", ")
    expect(link).to_have_attribute("href", f"{url}?mlat={latitude}&mlon={longitude}#map=17/{latitude}/{longitude}")
    expect(link).to_have_attribute("rel", "noreferrer")
    area = page.get_by_role("link", name="Open the trip in OpenStreetMap")
    assert area.get_attribute("href").startswith(f"{url}?minlon=-96&minlat=41&maxlon=-95.99")
    expect(area).to_have_attribute("rel", "noreferrer")
    assert "If the service has the setting MAP_TILES_URL" in odd.text()
    assert [address for address in odd.urls if not address.startswith(odd.address)] == []


def test_a_replay_moves_along_the_trail_until_pause_or_the_slider_or_another_view(visit):
    page = (odd := visit("odd", "#/trip/long")).page
    point, replay = page.get_by_label("Point of the trail"), page.get_by_role("button", name="Replay")
    replay.click()
    expect(point).to_have_value(re.compile(r"\d{3,}"))
    page.get_by_role("button", name="Pause").click()
    replay.click()
    point.press("End")
    assert replay.is_visible()
    assert odd.text("output").startswith("10:46:39 UTC")
    replay.click()
    odd.open("#/fleet")
    odd.page.evaluate("new Promise((done) => { let n = 0; setInterval(() => ++n === 5 && done(), 50); })")
    assert odd.messages == []


def test_a_search_takes_a_request_of_drivers_and_says_how_many_it_shows(visit):
    many = visit("many")
    requested = len(many.urls)
    many.open("#/search/n99%20DRIVER")
    many.page.get_by_text("50 of 111 drivers. Type more of the name.").wait_for()
    assert many.page.locator(".found li").count() == 50
    found = [url for url in many.urls[requested:] if "/api/v1/" in url]
    assert [url.split("/api/v1/")[1] for url in found] == [
        "drivers?search=n99+DRIVER&limit=50",
        "trip/trip_id/n99%20DRIVER",
        "trip/tracking_id/n99%20DRIVER",
    ]


def test_a_trail_without_times_is_drawn_as_it_is(visit):
    measured = measure(visit("odd"), [point | {"timestamp": 0} for point in straight_trail()])
    assert (len(measured["positions"]), measured["otherTime"], measured["otherPlace"]) == (61, 0, 0)
    assert {*measured["mph"]} == {None}


def test_a_trip_across_the_antimeridian_shows_its_id_an_imperial_scale_and_the_point_that_is_hovered_over(visit):
    page = (odd := visit("odd", "#/trip/crossing")).page
    assert odd.text(".lead") == "Trip crossing"
    assert re.fullmatch(r"\d+ (mi|ft)", odd.text(".leaflet-control-scale"))
    end = page.locator(".marker.end").bounding_box()
    page.mouse.move(end["x"] + 5, end["y"] + 5)
    assert page.get_by_label("Point of the trail").input_value() == "10"
    assert odd.text("output").endswith(" · 41.25000, -179.90000")


def test_a_trip_of_year_1_leads_to_its_driver(visit):
    dated = visit("dated")
    assert dated.open("#/trip/year%201").startswith("Trip on Mon, 1 Jan 1, ")
    dated.page.locator(".up a").click()
    assert dated.wait("steady") == "steady"


def test_an_event_is_above_the_marker_of_the_start_and_the_chosen_one_above_others(visit):
    page, hostile = (odd := visit("odd")).page, visit("hostile")
    odd.open("#/trip/long?event=1")
    # A click fails if another element covers this one.
    page.locator(".map .hard_brake").click(trial=True)
    page.locator("#event-0").click()
    page.locator(".map .rapid_acceleration").click(trial=True)
    hostile.open("#/trip/__proto__")
    hostile.page.locator(".map .hard_brake").click(trial=True)


def test_events_at_one_place_can_be_told_apart_and_chosen(visit):
    page = visit("named", "#/trip/crossing").page
    markers = page.locator(".map .hard_brake")
    for zoom in (False, True):
        if zoom:
            page.get_by_role("button", name="Zoom in").click()
        for number in range(5):
            markers.nth(number).click()
            expect(page.locator(f"#event-{number}")).to_have_attribute("aria-pressed", "true")
            expect(page.locator(".map .chosen")).to_have_count(1)


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_no_label_of_a_chart_is_cut_or_touches_another(visit, width):
    dated = visit("dated", width=width)
    for interval in ("day", "week", "month"):
        dated.open(f"#/driver/steady?interval={interval}")
        assert dated.page.locator(".columns").evaluate(CROWDED_LABELS) == 0, interval


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_colours_of_speeds_on_the_map_have_no_hue_so_they_are_not_those_of_events(visit, scheme):
    named = visit("named", color_scheme=scheme)
    speeds, events = (
        [f"speed-{number}" for number in range(5)],
        ["phone_use", "overspeeding", "hard_brake", "rapid_acceleration"],
    )
    spans = [max(colour) - min(colour) for colour in named.page.evaluate(COLOURS, [*speeds, *events])]
    assert max(spans[:5]) < 30 < 90 < min(spans[5:])
    lightness = [sum(colour) for colour in named.page.evaluate(COLOURS, speeds)]
    assert lightness == sorted(lightness, reverse=scheme == "light")


def test_the_first_interval_of_the_chart_is_compared_with_the_one_before_it(visit):
    dated = visit("dated")
    for weeks in (10, 22):
        dated.open(f"#/driver/steady?at={last_week(-7 * weeks, '')[:10]}")
        assert dated.page.locator(".columns li").first.locator("[aria-current=true]").count() == 1
        assert "Against the week before\nno change" in dated.text(".period .tiles")


def test_the_oldest_month_is_shown_as_a_whole(visit):
    page = (dated := visit("dated")).page
    dated.open(f"#/driver/steady?interval=month&at={start_of(dated, 'month')}")
    miles = page.locator(".tiles div", has_text="Distance").locator("dd").inner_text()
    assert f", {miles}" in page.locator(".columns [aria-current=true]").get_attribute("title")
    dated.open(f"#/driver/steady?interval=month&at={start_of(dated, 'month', 1)}")
    expect(page.locator(".tiles div", has_text="Against the month before")).to_contain_text("no change")


def test_the_trip_before_may_be_of_an_earlier_day(visit):
    dated = visit("dated", f"#/driver/steady?interval=day&at={days_ago(9)[:10]}")
    dated.page.locator(".trips a").click()
    later = dated.wait("Trip on")
    dated.page.get_by_role("link", name="Previous trip").click()
    expect(dated.page.locator("h1")).not_to_have_text(later)


def test_whoever_drove_on_any_day_of_the_oldest_month_is_not_listed_as_if_not(visit):
    dated = visit("dated")
    dated.open(f"#/idle?period=month&start={start_of(dated, 'month')}")
    shown = dated.text(".found")
    assert [name for name in ("busy", "early", "steady", "today") if f"{name}\n" in shown] == ["busy", "today"]
