"""What each tool returns."""

import pytest

from schemas.plausibility import COUNTED, LEFT_OUT
from scripts.materialize.fleet_settings import set_settings
from tests.factories import make_driver, make_event, make_event_summary, make_speeding, make_trip

pytestmark = pytest.mark.usefixtures("fleet")


def find(data, path):
    """Return what is at a path of the data: `drivers.*.driver_id` has the driver_id of each driver."""
    step, _, rest = path.partition(".")
    if not step:
        return data
    if step == "*":
        return [find(item, rest) for item in data]
    return find(data[int(step) if isinstance(data, list) else step], rest)


IDS, NESTED_IDS, TRIP_IDS = "drivers.*.driver_id", "drivers.*.driver.driver_id", "trips.*.trip_id"
BEHAVIOURS = "behaviours.*.behaviour"
ANN, DEE = {"driver_id": "ann"}, {"driver_id": "dee"}
START_TIMES = ["2026-03-11T08:00:00Z", "2026-03-09T08:00:00Z", "2026-03-09T07:00:00Z"]
THREE = {"driver_ids": ["dee", "ann", "bob", "ann"]}
CASES = {
    "the fleet is shown by week, the last complete one last": (
        "fleet_summary",
        {},
        {
            "intervals.*.start_date": ["2026-03-02", "2026-03-09"],
            "intervals.*.trip_count": [2, 5],
            "intervals.*.driver_count": [2, 3],
            "intervals.1.drivers_by_grade": {"excellent": 1, "good": 2, "fair": 0, "poor": 0},
            "intervals.1.drivers_by_focus_area.is_phone_use": 1,
            "intervals.0.change": None,
            "intervals.1.change.driver_count": 1,
            "intervals.1.change.distance_miles": 30,
            "not_known": 0,
        },
    ),
    "months of the fleet before the last 24 are not known": (
        "fleet_summary",
        {"period": "month", "count": 10, "date": "2024-08-31"},
        {"intervals": [], "not_known": 4},
    ),
    "every driver is listed": ("find_drivers", {}, {IDS: ["ann", "bob", "cem", "dee"], "count": 4, "next_page": None}),
    "a summary is of last week": (
        "driver_summary",
        ANN,
        {
            "window": {"start_date": "2026-03-09", "end_date": "2026-03-15"},
            "window_before": {"start_date": "2026-03-02", "end_date": "2026-03-08"},
            "summary.trip_count": 3,
            "summary.events_summary.hard_brake_count": 3,
            "score_before.fm_score": 100,
        },
    ),
    "the current week ends today": (
        "driver_summary",
        {**ANN, "date": "2026-03-17"},
        {"today": "Wednesday 2026-03-18 (UTC)", "window.end_date": "2026-03-18", "score_change": None},
    ),
    "the month before the last six months is known": (
        "driver_summary",
        {**DEE, "period": "month", "date": "2025-10-18"},
        {"summary": "did_not_drive", "score_before.trip_count": 1},
    ),
    "a window before the last 24 months is not known": (
        "compare_drivers",
        {"driver_ids": ["dee"], "start_date": "2024-03-18", "end_date": "2024-03-20"},
        {"drivers.*.score": ["did_not_drive"], "drivers.*.score_before": ["not_known"]},
    ),
    "the best of a comparison comes first, who did not drive last, and each once": (
        "compare_drivers",
        THREE,
        {NESTED_IDS: ["bob", "ann", "dee"]},
    ),
    "a window is compared with the one of the same length before": (
        "compare_drivers",
        {"driver_ids": ["ann"], "start_date": "2026-03-10", "end_date": "2026-03-12"},
        {
            "window_before": {"start_date": "2026-03-07", "end_date": "2026-03-09"},
            "drivers.*.score.trip_count": [1],
            "drivers.*.score_before.trip_count": [2],
        },
    ),
    "the most costly behaviour comes first": (
        "explain_score",
        {**ANN, "end_date": "2026-03-15"},
        {
            BEHAVIOURS: ["hard_brake", "phone_use"],
            "behaviours.*.points_lost_before": [0, 0],
            "behaviours.*.seconds": [None, 180],
            "behaviours.*.weight": [20, 35],
            "intervals": {"2026-03-09": 88.3, "2026-03-11": 80},
        },
    ),
    "who did not drive before is told": ("explain_score", {"driver_id": "cem"}, {"score_before": "did_not_drive"}),
    "the lowest scores come first, without those who lost nothing": (
        "who_needs_coaching",
        {},
        {NESTED_IDS: ["cem", "ann"], "driver_count": 3, "left_out": 0},
    ),
    "drivers beyond the limit are counted": ("who_needs_coaching", {"limit": 1}, {NESTED_IDS: ["cem"], "left_out": 1}),
    "who lost most by a behaviour comes first, without those who lost nothing by it": (
        "who_needs_coaching",
        {"behaviour": "hard_brake"},
        {NESTED_IDS: ["ann"], "driver_count": 3, "left_out": 0},
    ),
    "who lost more by a behaviour got worse": (
        "who_needs_coaching",
        {"behaviour": "hard_brake", "order": "got_worse"},
        {NESTED_IDS: ["ann"], "compared_driver_count": 2, "left_out": 0},
    ),
    "only those whose score fell got worse": (
        "who_needs_coaching",
        {"order": "got_worse"},
        {
            NESTED_IDS: ["ann"],
            "drivers.*.behaviours.*.behaviour": [["hard_brake", "phone_use"]],
            "compared_driver_count": 2,
            "left_out": 0,
        },
    ),
    "who drove less is left out": (
        "who_needs_coaching",
        {"min_distance_miles": 10.5},
        {NESTED_IDS: ["ann"], "driver_count": 1},
    ),
    "the trips that cost most come first": (
        "list_trips",
        ANN,
        {TRIP_IDS: ["brake", "call", "calm"], "trips.*.trip_start_time": START_TIMES},
    ),
    "the newest trips come first": (
        "list_trips",
        {**ANN, "order": "newest", "limit": 2},
        {TRIP_IDS: ["brake", "call"], "left_out": 1},
    ),
    "trips after the window are left out": (
        "list_trips",
        {**ANN, "end_date": "2026-03-09"},
        {TRIP_IDS: ["call", "calm"], "score.trip_count": 2},
    ),
    "there are no trips of who did not drive": ("list_trips", DEE, {TRIP_IDS: [], "score": "did_not_drive"}),
}


@pytest.mark.parametrize(("tool", "arguments", "expected"), CASES.values(), ids=CASES)
def test_a_result_has(call, tool, arguments, expected):
    data = call(tool, **arguments)
    assert {path: find(data, path) for path in expected} == expected
    assert "example.com" not in str(data)


# The requests to the service, as docs/agents.md has them.
# One of them is for the date of today.
REQUEST_COUNTS = [
    ("fleet_summary", {}, 2),
    ("find_drivers", {"search": "ann"}, 2),
    ("driver_summary", ANN, 4),
    ("compare_drivers", THREE, 3),
    ("explain_score", ANN, 3),
    ("who_needs_coaching", {}, 4),
    ("who_needs_coaching", {"behaviour": "phone_use"}, 4),
    ("who_needs_coaching", {"order": "got_worse"}, 6),
    ("list_trips", ANN, 3),
    ("list_trips", {}, 3),
    ("describe_trip", {"trip_id": "brake"}, 3),
    ("list_events", {}, 3),
    ("list_groups", {}, 2),
]


@pytest.mark.parametrize(("tool", "arguments", "count"), REQUEST_COUNTS)
def test_a_tool_makes_few_requests(call, service, load, tool, arguments, count):
    # More drivers and later trips than are on a page, which must not matter.
    trips = [make_trip(f"2026-03-17T{n // 60:02}:{n % 60:02}", "ann", trail_path=[]) for n in range(120)]
    brakes = make_event_summary(hard_brake_count=1, phone_use_time_seconds=60)
    trips += [make_trip("2026-03-10T08:00", f"x{n}", event_summary=brakes) for n in range(120)]
    load(*trips, drivers=[make_driver(f"x{n}") for n in range(120)])
    requests = []
    service.app.before_request(lambda: requests.append(1))
    call(tool, **arguments, **({"end_date": "2026-03-15"} if tool == "list_trips" else {}))
    assert len(requests) == count


def test_a_search_has_pages_of_twenty_drivers(call, load):
    load(drivers=[make_driver(f"x{number:03}", alias="Van 9" if number > 120 else None) for number in range(150)])
    pages = [call("find_drivers", search="van 9", page=page) for page in (1, 2)]
    assert [(page["count"], len(page["drivers"]), page["next_page"]) for page in pages] == [(29, 20, 2), (29, 9, None)]


def test_the_numbers_are_those_of_the_service(call, service):
    summary = call("driver_summary", driver_id="ann")["summary"]
    response = service.get("/driver-aggregate/weekly", start_date="2026-03-09", driver_id="ann")
    assert summary.items() <= response.json["data"][0]["driving_summary"].items()
    score = call("explain_score", driver_id="ann", start_date="2026-03-09", end_date="2026-03-15")
    assert sum(row["points_lost"] for row in score["behaviours"]) == pytest.approx(100 - summary["fm_score"], abs=0.1)
    assert score["score_change"] == pytest.approx(summary["fm_score"] - 100)


def test_the_fleet_is_that_of_the_service(call, service):
    series = service.get("/fleet-aggregate", start_date="2026-03-02", end_date="2026-03-09").json["series"]
    before, last = (interval["fleet_summary"] for interval in series)
    interval = call("fleet_summary")["intervals"][1]
    shared = interval.keys() & last.keys()
    assert {name: interval[name] for name in shared} == {name: last[name] for name in shared}
    assert sum(interval["points_lost"].values()) == pytest.approx(100 - last["fm_score"], abs=0.2)
    assert interval["change"]["fm_score"] == pytest.approx(last["fm_score"] - before["fm_score"])


@pytest.mark.parametrize("policy", [COUNTED, LEFT_OUT])
def test_the_fleet_is_said_to_include_implausible_trips_if_it_does(call, load, service, policy):
    set_settings(service.store, "f1", implausible_trips=policy)
    assert "implausible" not in call("fleet_summary")["notice"]
    load(make_trip("2026-03-10T08:00", "ann", distance_miles=16_093.0))
    result = call("fleet_summary")
    assert ("Figures of the fleet include implausible trips" in result["notice"]) == (policy == COUNTED)
    assert [one["implausible_trip_count"] for one in result["intervals"]] == [0, 1]


@pytest.mark.parametrize("policy", [COUNTED, LEFT_OUT])
@pytest.mark.parametrize(
    ("tool", "arguments", "whose"), [("driver_summary", ANN, "the driver"), ("who_needs_coaching", {}, "driver 2 of 2")]
)
def test_drivers_whose_figures_include_implausible_trips_are_named(call, load, service, policy, tool, arguments, whose):
    set_settings(service.store, "f1", implausible_trips=policy)
    assert "implausible" not in call(tool, **arguments)["notice"]
    load(make_trip("2026-03-10T08:00", "ann", trip_id="metres", distance_miles=160.0))
    notice = call(tool, **arguments)["notice"]
    assert (f"Figures of {whose} include implausible trips" in notice) == (policy == COUNTED)


def test_a_week_in_which_nobody_drove_is_not_compared(call, load):
    load(make_trip("2026-02-16T08:00", "dee"))
    intervals = call("fleet_summary")["intervals"]
    assert [(one["start_date"], one["change"] is None) for one in intervals] == [
        ("2026-02-16", True),
        ("2026-03-02", True),
        ("2026-03-09", False),
    ]


def test_who_lost_less_than_a_result_shows_is_not_to_coach(call, load):
    brakes = make_event_summary(hard_brake_count=1)
    load(make_trip("2026-03-10T08:00", "dee", distance_miles=5000, event_summary=brakes))
    assert find(call("who_needs_coaching", behaviour="hard_brake"), NESTED_IDS) == ["ann"]


def test_the_points_of_trips_add_up_to_those_of_the_score(call):
    data = call("list_trips", driver_id="ann")
    lost = sum(trip["points_lost"] for trip in data["trips"])
    assert lost == pytest.approx(100 - data["score"]["fm_score"], abs=0.2)


def test_trips_that_the_score_has_and_the_list_not_yet_are_counted(call, load):
    load(make_trip("2026-03-18T07:00", "dee"), make_trip("2026-03-18T11:00", "dee"))
    data = call("list_trips", driver_id="dee", start_date="2026-03-18")
    assert (data["score"]["trip_count"], data["not_listed_yet"], len(data["trips"])) == (2, 1, 1)


def test_trips_are_listed_over_several_pages(call, load):
    load(*(make_trip(f"2026-03-10T{hour:02}:{minute}", "dee") for hour in range(11) for minute in range(10, 20)))
    data = call("list_trips", driver_id="dee", limit=20)
    assert (len(data["trips"]), data["left_out"]) == (20, 90)


def test_a_trip_is_described_with_its_events_and_without_its_trail(call, load):
    begin = 1_773_100_000_000
    fast = make_speeding(begin)
    load(make_trip("2026-03-10T08:00", "bob", trip_id="a/b", events=[fast, make_event(begin - 1000)]))
    data = call("describe_trip", trip_id="a/b")
    assert (data["driver"]["driver_id"], data["driver"]["last_name"]) == ("bob", "Dvořák")
    assert [(event["event_name"], event["event_data"]) for event in data["events"]] == [
        ("HARD_BRAKE", {}),
        ("OVERSPEEDING", fast["event_data"]),
    ]
    assert "trail" not in str(data)


def test_today_is_that_of_the_fleet(call, service, clock):
    set_settings(service.store, "f1", time_zone="America/Denver")
    clock.move_to("2026-03-16T03:00Z")
    result = call("explain_score", **ANN)
    assert result["today"] == "Sunday 2026-03-15 (America/Denver)"
    assert result["window"] == {"start_date": "2026-03-02", "end_date": "2026-03-14"}
    assert call("find_drivers")["today"] == result["today"]


def test_times_are_in_the_time_zone_of_the_fleet(call, service, load, clock):
    set_settings(service.store, "f1", time_zone="America/Denver")
    load(make_trip("2026-03-14T02:30", "dee", trip_id="friday"))
    clock.move_to("2026-03-16T03:00Z")
    (trip,) = call("list_trips", driver_id="dee", start_date="2026-03-13", end_date="2026-03-13")["trips"]
    assert trip["trip_start_time"] == "2026-03-13T20:30:00-06:00"


def test_the_time_of_a_clock_that_was_not_set_is_soon_after_1970(call, load):
    load(make_trip("2026-03-10T08:00", "dee", trip_id="t", events=[make_event(5000)]))
    assert call("describe_trip", trip_id="t")["events"][0]["event_start_timestamp"] == "1970-01-01T00:00:05Z"


LARGEST = 2**63 - 1


@pytest.mark.parametrize(
    ("tool", "arguments", "path"),
    [
        ("compare_drivers", {"driver_ids": ["ann", "dee"]}, "drivers.1.behaviours.0.count"),
        ("who_needs_coaching", {}, "drivers.1.behaviours.0.count"),
        ("explain_score", DEE, "behaviours.0.count"),
        ("driver_summary", DEE, "summary.events_summary.hard_brake_count"),
        ("list_trips", DEE, "trips.0.event_summary.hard_brake_count"),
    ],
)
def test_a_count_may_have_64_bits(call, load, tool, arguments, path):
    load(make_trip("2026-03-10T08:00", "dee", event_summary=make_event_summary(hard_brake_count=LARGEST)))
    assert find(call(tool, **arguments), path) == LARGEST


def test_nobody_is_to_coach_where_nobody_lost_a_point(call, load):
    load(make_trip("2026-02-24T08:00", "dee"))
    data = call("who_needs_coaching", date="2026-02-24")
    assert (data["drivers"], data["driver_count"], data["left_out"]) == ([], 1, 0)
