"""What each tool returns."""

import pytest

from tests.factories import make_driver, make_event, make_event_summary, make_trip

pytestmark = pytest.mark.usefixtures("fleet")


def ids(data):
    return [
        driver["driver_id"] if "driver_id" in driver else driver["driver"]["driver_id"] for driver in data["drivers"]
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [("", ["ann", "bob", "cem", "dee"]), ("ØDEG ann", ["ann"]), ("van", ["bob", "cem"]), ("2 van", ["cem"]), ("x", [])],
)
def test_drivers_are_found_by_words_of_their_names(call, text, found):
    data, _ = call("find_drivers", text=text)
    assert ids(data) == found
    assert (data["fleet_driver_count"], data["next_skip"]) == (4, None)


def test_a_list_of_drivers_goes_on_where_it_was_cut(call):
    first, text = call("find_drivers", limit=3)
    assert (ids(first), first["more"], first["next_skip"]) == (["ann", "bob", "cem"], 1, 3)
    assert "1 more" in text
    assert ids(call("find_drivers", skip=3)[0]) == ["dee"]


def test_a_search_counts_what_the_limit_leaves_out(call):
    data, _ = call("find_drivers", text="van", limit=1)
    assert (ids(data), data["more"], data["next_skip"]) == (["bob"], 1, 2)
    assert ids(call("find_drivers", text="van", skip=data["next_skip"])[0]) == ["cem"]


def test_a_search_ignores_accents(call, load):
    load(drivers=[make_driver("zoe", first_name="Zoë", last_name="Dvořák")])
    for text in ("zoe dvorak", "ZOË", "Zoe\u0308"):
        assert ids(call("find_drivers", text=text)[0]) == ["zoe"]


def test_a_search_goes_over_several_pages_of_drivers(call, load):
    load(drivers=[make_driver(f"x{number:03}", alias="Van 9" if number == 140 else None) for number in range(150)])
    assert ids(call("find_drivers", text="van 9")[0]) == ["x140"]


def test_a_summary_is_of_last_week_by_default_and_compares_it_with_the_week_before(call):
    data, _ = call("driver_summary", driver_id="ann")
    assert data["period"] == {"start_date": "2026-03-09", "end_date": "2026-03-15", "is_in_progress": False}
    assert (data["previous_period"]["start_date"], data["previous_period"]["end_date"]) == ("2026-03-02", "2026-03-08")
    assert (data["summary"]["trip_count"], data["previous"]["fm_score"]) == (3, 100.0)
    assert data["change"] == pytest.approx(data["summary"]["fm_score"] - 100)
    assert [(day["date"], day["trip_count"]) for day in data["days"]] == [("2026-03-09", 2), ("2026-03-11", 1)]


def test_the_numbers_of_a_summary_are_those_of_the_service(call, service):
    data, _ = call("driver_summary", driver_id="ann")
    response = service.get("/driver-aggregate/weekly", start_date="2026-03-09", driver_id="ann")
    summary = response.json["data"][0]["driving_summary"]
    assert {name: data["summary"][name] for name in ("fm_score", "fm_grade")} == {
        name: summary[name] for name in ("fm_score", "fm_grade")
    }
    assert (data["summary"]["phone_use_percent"], data["summary"]["hard_brakes_per_100_miles"]) == (3.3, 10.0)


@pytest.mark.parametrize(
    ("period", "date", "start"), [("day", "2026-03-11", "2026-03-11"), ("month", "2026-03-11", "2026-03-01")]
)
def test_any_date_of_a_period_selects_it(call, period, date, start):
    data, _ = call("driver_summary", driver_id="ann", period=period, date=date)
    assert (data["period"]["start_date"], data["summary"]["fm_grade"] != "") == (start, True)


def test_a_summary_says_that_a_driver_did_not_drive(call):
    data, text = call("driver_summary", driver_id="dee")
    assert (data["summary"], data["previous"], data["change"]) == (None, None, None)
    assert "did not drive" in text


def test_a_comparison_has_the_best_driver_first_and_who_did_not_drive_last(call):
    data, text = call("compare_drivers", driver_ids=["dee", "ann", "bob"])
    assert ids(data) == ["bob", "ann", "dee"]
    assert "did not drive" in text.splitlines()[-1]


def test_an_explanation_has_the_points_of_each_behaviour_now_and_before(call):
    data, _ = call("explain_score", driver_id="ann")
    costs = {behaviour["behaviour"]: behaviour["points_lost"] for behaviour in data["behaviours"]}
    assert list(costs) == ["hard_brake", "phone_use"]
    assert data["score"]["fm_score"] == pytest.approx(100 - sum(costs.values()), abs=0.1)
    assert [behaviour["points_lost_before"] for behaviour in data["behaviours"]] == [0, 0]
    assert [interval["start_date"] for interval in data["intervals"]] == ["2026-03-09", "2026-03-11"]


def test_an_explanation_has_the_newest_fifty_intervals(call, load):
    load(*(make_trip(f"2026-{month:02}-{day:02}T08:00", "dee") for month in (1, 2) for day in range(1, 29)))
    data, text = call("explain_score", driver_id="dee", start_date="2026-01-01", end_date="2026-02-28")
    assert (len(data["intervals"]), data["more"]) == (50, 6)
    assert (data["intervals"][0]["start_date"], data["intervals"][-1]["start_date"]) == ("2026-01-07", "2026-02-28")
    assert text.endswith("6 older, not shown.")


def test_an_explanation_may_be_of_any_window(call):
    data, _ = call("explain_score", driver_id="ann", start_date="2026-03-10", end_date="2026-03-12")
    assert (data["window_before"]["start_date"], data["window_before"]["end_date"]) == ("2026-03-07", "2026-03-09")
    assert (data["score"]["trip_count"], data["score_before"]["trip_count"]) == (1, 2)


def test_the_lowest_scores_come_first(call, service):
    data, _ = call("who_needs_coaching")
    ranking = service.get("/ranking", period="week", start_date="2026-03-09").json["drivers"]
    assert ids(data) == [driver["driver_info"]["driver_id"] for driver in ranking]
    assert data["drivers"][0]["behaviours"][0]["behaviour"] == "phone_use"


def test_only_those_whose_score_fell_got_worse(call):
    data, _ = call("who_needs_coaching", order="got_worse")
    assert ids(data) == ["ann"]
    assert data["drivers"][0]["change"] < 0
    assert (data["ranked_driver_count"], data["compared_driver_count"]) == (3, 3)


def test_who_drove_less_is_left_out(call):
    data, text = call("who_needs_coaching", min_distance_miles=10.5)
    assert (ids(data), data["min_distance_miles"]) == (["ann"], 10.5)
    assert "1 driver drove at least 10.5 miles." in text


def test_a_week_that_is_not_over_is_in_progress(call):
    data, text = call("driver_summary", driver_id="ann", date="2026-03-17")
    assert (data["period"]["is_in_progress"], data["previous_period"]["is_in_progress"]) == (True, False)
    assert "2026-03-22 (still in progress)" in text


def test_drivers_beyond_the_limit_are_counted(call):
    data, text = call("who_needs_coaching", limit=1)
    assert (len(data["drivers"]), data["more"]) == (1, 2)
    assert text.endswith("2 more.")


def test_trips_that_cost_most_come_first_and_their_points_add_up(call):
    data, _ = call("list_trips", driver_id="ann")
    assert [trip["trip_id"] for trip in data["trips"]] == ["brake", "call", "calm"]
    lost = sum(trip["points_lost"] for trip in data["trips"])
    assert lost == pytest.approx(100 - data["fm_score"], abs=0.2)


@pytest.mark.parametrize(("order", "listed"), [("oldest", ["calm", "call"]), ("newest", ["brake", "call"])])
def test_trips_may_come_in_order_of_time(call, order, listed):
    data, _ = call("list_trips", driver_id="ann", order=order, limit=2)
    assert ([trip["trip_id"] for trip in data["trips"]], data["more"]) == (listed, 1)


def test_trips_after_the_window_are_left_out(call):
    data, _ = call("list_trips", driver_id="ann", start_date="2026-03-02", end_date="2026-03-09")
    assert (data["trip_count"], {trip["start_time"][:10] for trip in data["trips"]}) == (
        3,
        {"2026-03-02", "2026-03-09"},
    )


def test_trips_that_the_score_has_and_the_list_not_yet_are_counted(call, load):
    load(make_trip("2026-03-18T07:00", "dee"), make_trip("2026-03-18T11:00", "dee"))
    data, text = call("list_trips", driver_id="dee", start_date="2026-03-18")
    assert (data["trip_count"], data["not_listed_yet_count"], len(data["trips"])) == (2, 1, 1)
    assert "1 trip is not listed yet: a trip is visible four hours after its end" in text


def test_trips_are_listed_over_several_pages(call, load):
    load(
        *(
            make_trip(f"2026-03-1{day}T{hour:02}:0{minute}", "dee")
            for day in (0, 1)
            for hour in range(9)
            for minute in range(6)
        )
    )
    data, _ = call("list_trips", driver_id="dee", limit=50)
    assert (data["trip_count"], len(data["trips"]), data["more"]) == (108, 50, 58)


def test_a_trip_is_described_with_its_events_and_without_its_trail(call, load):
    speeds = {"user_speed_mph": 50.0, "speed_limit_mph": 40.0, "max_user_speed_mph": 55.5}
    begin = 1_773_100_000_000
    fast = make_event(begin, event_type=9, event_name="OVERSPEEDING", event_data=speeds)
    load(make_trip("2026-03-10T08:00", "dee", trip_id="a/b", events=[fast, make_event(begin - 1000)]))
    data, text = call("describe_trip", trip_id="a/b")
    assert [(event["event"], event["max_speed_mph"]) for event in data["events"]] == [
        ("HARD_BRAKE", None),
        ("OVERSPEEDING", 55.5),
    ]
    assert "trail" not in text
    assert "up to 55.5 mph at 40" in text


def test_events_beyond_fifty_are_counted(call, load):
    load(make_trip("2026-03-10T08:00", "dee", trip_id="t", events=[make_event(1_773_100_000_000)] * 62))
    data, text = call("describe_trip", trip_id="t")
    assert (len(data["events"]), data["more"]) == (50, 12)
    assert text.endswith("12 more.")


def test_who_got_worse_and_which_two_trips_mattered_takes_four_calls(call):
    worse, _ = call("who_needs_coaching", order="got_worse")
    driver = worse["drivers"][0]
    assert [behaviour["behaviour"] for behaviour in driver["behaviours"]] == ["hard_brake", "phone_use"]
    trips, _ = call("list_trips", driver_id=driver["driver"]["driver_id"], limit=2)
    described = [call("describe_trip", trip_id=trip["trip_id"])[0]["trip"] for trip in trips["trips"]]
    assert [trip["hard_brake_count"] for trip in described] == [3, 0]
    assert [trip["phone_use_seconds"] for trip in described] == [0, 180]


@pytest.fixture
def autumn(load) -> None:
    """Dee drove in each of the first two months, whose first is served as a whole alone."""
    load(
        make_trip("2025-09-02T08:00", "dee", event_summary=make_event_summary(hard_brake_count=1)),
        make_trip("2025-10-02T08:00", "dee", event_summary=make_event_summary(hard_brake_count=2)),
    )


def test_the_month_that_contains_the_first_date_is_compared_whole(call, autumn):
    data, _ = call("who_needs_coaching", period="month", date="2025-10-02", order="got_worse")
    (driver,) = data["drivers"]
    assert (driver["before"]["trip_count"], driver["before_status"], driver["change"] < 0) == (1, "known", True)
    data, _ = call("driver_summary", driver_id="dee", period="month", date="2025-10-02")
    assert (data["previous"]["trip_count"], data["previous_status"]) == (1, "known")


def test_what_costs_points_in_a_month_that_is_not_explained_is_not_known(call, autumn):
    data, text = call("who_needs_coaching", period="month", date="2025-09-18")
    (driver,) = data["drivers"]
    assert (driver["behaviours"], driver["totals"]["hard_brake_count"], driver["before_status"]) == (
        None,
        1,
        "not_known",
    )
    assert "before: older than six months, not known" in text
    assert "Why: points older than six months, not known; phone use 0 %" in text


def test_who_got_worse_since_a_period_that_is_not_served_is_not_known(call, autumn):
    data, text = call("who_needs_coaching", period="month", date="2025-09-18", order="got_worse")
    assert (data["previous_period_is_known"], data["compared_driver_count"]) == (False, 0)
    assert "Nobody" not in text
    assert "not known" in text


@pytest.mark.parametrize(
    ("tool", "arguments", "status"),
    [
        ("driver_summary", {"date": "2025-09-22"}, "previous_status"),
        ("explain_score", {"start_date": "2025-09-19", "end_date": "2025-09-20"}, "score_before_status"),
    ],
)
def test_what_is_older_than_six_months_is_not_known(call, tool, arguments, status):
    data, text = call(tool, driver_id="dee", **arguments)
    assert data[status] == "not_known"
    assert "older than six months, not known" in text


def test_a_driver_who_did_not_drive_before_is_told_from_one_who_is_not_known(call):
    data, text = call("explain_score", driver_id="cem")
    assert data["score_before_status"] == "did_not_drive"
    assert "2026-03-08: did not drive" in text
