"""schemas/params.py and query.py: the parameters that a client may send."""

import datetime
import json
from urllib.parse import quote

import pytest
import time_machine
from hypothesis import given
from hypothesis import strategies as st
from marshmallow import ValidationError

from schemas.params import (
    DailyParams,
    DriversParams,
    DriverTripsParams,
    MonthlyParams,
    NoParams,
    ScoreParams,
    TripParams,
    WeeklyParams,
)
from schemas.query import Params
from schemas.ranking_params import RankingParams

QUERIES = {
    DriversParams: {},
    DriverTripsParams: {"driver_id": "d1"},
    TripParams: {"filter_param": "trip_id", "filter_value": "t1"},
    DailyParams: {},
    WeeklyParams: {},
    MonthlyParams: {},
    ScoreParams: {"driver_id": "d1"},
    RankingParams: {},
    NoParams: {},
}


@pytest.fixture
def on():
    """Make it noon of a date, UTC."""
    travellers = []

    def on(date):
        travellers.append(time_machine.travel(f"{date}T12:00:00Z", tick=False))
        travellers[-1].start()

    yield on
    for traveller in reversed(travellers):
        traveller.stop()


@pytest.fixture
def wednesday(on):
    on("2026-03-18")


def reasons(query: Params, text: bytes | str, **path):
    with pytest.raises(ValidationError) as caught:
        query.parse(text if isinstance(text, bytes) else text.encode(), **path)
    return caught.value.messages


def faults(query, text, path, unknown_parameters="reject"):
    try:
        query.parse(text, unknown_parameters, **path)
    except ValidationError as error:
        return error.messages
    return {}


def takes(query, date):
    """Return whether a query takes a start_date."""
    path = QUERIES[type(query)]
    text = f"start_date={date}" if path else f"start_date={date}&driver_id=d1"
    result = faults(query, text.encode(), path)
    assert list(result) in ([], ["start_date"])
    return not result


@pytest.mark.parametrize(
    ("today", "first"),
    [
        ("2026-08-31", "2026-02-28"),
        ("2026-08-30", "2026-02-28"),
        ("2026-08-29", "2026-02-28"),
        ("2026-08-28", "2026-02-28"),
        ("2026-08-27", "2026-02-27"),
        ("2024-08-31", "2024-02-29"),
        ("2024-08-29", "2024-02-29"),
        ("2024-02-29", "2023-08-29"),
        ("2026-12-31", "2026-06-30"),
        ("2026-03-31", "2025-09-30"),
        ("2026-03-18", "2025-09-18"),
        ("2026-01-01", "2025-07-01"),
        ("2026-06-30", "2025-12-30"),
    ],
)
@pytest.mark.parametrize("query", [DriverTripsParams(), DailyParams(), ScoreParams()])
def test_dates_reach_six_calendar_months_back(on, query, today, first):
    on(today)
    before = datetime.date.fromisoformat(first) - datetime.timedelta(days=1)
    assert (takes(query, first), takes(query, before)) == (True, False)


@pytest.mark.parametrize(
    ("query", "today_allowed"), [(DriverTripsParams(), True), (ScoreParams(), True), (DailyParams(), False)]
)
def test_today_is_a_start_date_of_trips_and_scores_and_tomorrow_of_nothing(wednesday, query, today_allowed):
    assert [takes(query, f"2026-03-{day}") for day in (17, 18, 19)] == [True, today_allowed, False]


@pytest.mark.parametrize(
    ("today", "first"),
    [
        ("2026-03-18", "2025-09-01"),
        ("2026-03-01", "2025-09-01"),
        ("2026-08-31", "2026-02-01"),
        ("2024-08-31", "2024-02-01"),
        ("2026-01-01", "2025-07-01"),
    ],
)
def test_months_reach_back_to_that_of_the_date_six_months_ago(on, today, first):
    on(today)
    before = datetime.date.fromisoformat(first) - datetime.timedelta(days=1)
    assert [takes(MonthlyParams(), date) for date in (first, before.replace(day=1), before)] == [True, False, False]


@pytest.mark.parametrize(("today", "accepted"), [("2026-03-01", False), ("2026-03-02", True)])
def test_a_month_in_progress_is_accepted_from_its_second_day(on, today, accepted):
    on(today)
    assert takes(MonthlyParams(), "2026-03-01") is accepted


@pytest.mark.parametrize("time", ["2026-03-18T00:00:00Z", "2026-03-18T23:59:59.999Z", "2026-03-17T23:00:00-01:00"])
def test_a_day_changes_at_midnight_utc(time):
    with time_machine.travel(time, tick=False):
        assert [takes(DailyParams(), f"2026-03-{day}") for day in ("17", "18")] == [True, False]


def test_a_week_starts_on_a_monday(wednesday):
    assert [day for day in range(1, 18) if takes(WeeklyParams(), f"2026-03-{day:02}")] == [2, 9, 16]


def test_the_reason_names_the_monday_of_the_week(wednesday):
    result = reasons(WeeklyParams(), "start_date=2026-03-15&driver_id=d1")
    assert result == {"start_date": ["Must be a Monday, such as 2026-03-09."]}


def test_a_week_that_starts_today_is_refused(on):
    on("2026-03-16")
    assert not takes(WeeklyParams(), "2026-03-16")


def test_the_reason_names_the_window(on):
    on("2026-08-31")
    path = {"driver_id": "d1"}
    expected = {"start_date": ["Must be from 2026-02-28 to 2026-08-31."]}
    assert reasons(DriverTripsParams(), "start_date=2027-01-01", **path) == expected


def test_a_date_stays_as_it_is_written(wednesday):
    result = DriverTripsParams().parse(b"start_date=2026-03-17", driver_id="d1")
    assert result == {"driver_id": "d1", "start_date": "2026-03-17", "limit": 50, "page": 1}


@pytest.mark.parametrize(
    "date",
    ["20260317", "2026-3-17", "2026-W12-2", "2026-076", "2026-03-17T00:00:00", " 2026-03-17", "2026-03-17 ", ""]
    + ["2026-02-30", "2026-00-01", "2026-03-32", "0000-01-01", "٢٠٢٦-03-17", "today", "2026-03-17\n", "2026-03-17\x00"]
    + ["+2026-03-17", "26-03-17", "2026/03/17", "99999-01-01", "-026-03-17", "0001-01-01", "9999-12-31"],
)
@pytest.mark.parametrize("query", [DriverTripsParams(), DailyParams(), WeeklyParams(), MonthlyParams(), ScoreParams()])
def test_other_spellings_of_a_date_are_refused(wednesday, query, date):
    assert not takes(query, quote(date))


@pytest.mark.parametrize(
    "date", ["20260317", "2026-3-17", " 2026-03-17", "", "2026-02-30", "today", "2026-03-19", "2025-09-17"]
)
def test_an_end_date_is_a_date_of_the_six_months(wednesday, date):
    text = f"start_date=2026-03-17&end_date={quote(date)}"
    assert list(reasons(ScoreParams(), text, driver_id="d1")) == ["end_date"]


@pytest.mark.parametrize(
    ("query", "end", "interval"),
    [
        ("start_date=2026-03-01", "2026-03-17", "week"),
        ("start_date=2026-03-17&interval=day", "2026-03-17", "day"),
        ("start_date=2026-03-18", "2026-03-18", "week"),
        ("start_date=2026-03-18&end_date=2026-03-18", "2026-03-18", "week"),
        ("start_date=2025-09-18&end_date=2025-09-18&interval=month", "2025-09-18", "month"),
    ],
)
def test_a_window_of_a_score_ends_yesterday_unless_it_starts_later(wednesday, query, end, interval):
    params = ScoreParams().parse(query.encode(), driver_id="d1")
    assert (params["end_date"], params["interval"]) == (end, interval)


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("start_date=2026-03-17&end_date=2026-03-16", {"end_date"}),
        ("start_date=2026-03-17&end_date=2026-03-16&interval=x", {"end_date", "interval"}),
        ("start_date=x&end_date=2026-03-16&interval=WEEK", {"start_date", "interval"}),
        ("start_date=2026-03-17&start_date=2026-03-17&end_date=2026-03-19", {"start_date", "end_date"}),
        ("end_date=2025-01-01&interval=", {"start_date", "end_date", "interval"}),
    ],
)
def test_every_wrong_parameter_of_a_window_is_named(wednesday, query, wrong):
    assert set(reasons(ScoreParams(), query, driver_id="d1")) == wrong


NO_NUMBERS = ["0", "-1", "+1", "01", "1.0", "1e1", " 1", "1 ", "1\n", "٣", "１", "", "x", "0x1", "1_0", "9" * 5000]


@pytest.mark.parametrize("value", [*NO_NUMBERS, "101"])
def test_a_limit_is_1_to_100_in_plain_digits(value):
    assert list(reasons(DriversParams(), f"limit={quote(value)}")) == ["limit"]


@pytest.mark.parametrize("value", [*NO_NUMBERS, "1000000001"])
def test_a_page_is_1_to_a_billion_in_plain_digits(value):
    assert list(reasons(TripParams(), f"page={quote(value)}", filter_param="trip_id", filter_value="t1")) == ["page"]


@pytest.mark.parametrize(("limit", "page"), [(1, 1), (99, 10), (100, 1_000_000_000)])
def test_limit_and_page_are_taken_up_to_their_bounds(limit, page):
    assert DriversParams().parse(f"limit={limit}&page={page}".encode()) == {"limit": limit, "page": page}


def test_limit_and_page_have_defaults():
    assert DriversParams().parse(b"") == {"limit": 50, "page": 1}


UNKNOWN = ["nope", "$where", "fleet", "%20nope", "nope%00", "_schema", "nope[$ne]", "filter_param", "_", "s", ""]


@pytest.mark.parametrize("name", UNKNOWN)
@pytest.mark.parametrize("query", QUERIES)
def test_an_unknown_parameter_is_refused_by_its_name(wednesday, query, name):
    text = f"{name}=1" if QUERIES[query] else f"start_date=2026-03-09&driver_id=d1&{name}=1"
    result = reasons(query(), text, **QUERIES[query])
    assert result[name.replace("%20", " ").replace("%00", "\0")] == ["Unknown parameter."]


def test_an_unknown_parameter_given_twice_is_unknown():
    assert reasons(DriversParams(), "nope=1&nope=1") == {"nope": ["Unknown parameter."]}


REPEAT = "Repeat driver_id for several values: driver_id=a&driver_id=b."


@pytest.mark.parametrize("name", ["Limit", "limit[]", "limits", "%20limit", "limit%00", "LIMIT[0]", "limt"])
def test_a_name_similar_to_a_parameter_hints_at_it(name):
    (result,) = reasons(DriversParams(), f"{name}=1").values()
    assert result == ["Unknown parameter; did you mean limit?"]


@pytest.mark.parametrize("name", ["driver_id[]", "driver_ids", "driver_ids[]", "Driver_ID", "driverId"])
def test_a_name_similar_to_that_of_a_list_hints_at_repeating_it(wednesday, name):
    result = reasons(DailyParams(), f"start_date=2026-03-17&{name}=d1&{name}=d2")
    assert result == {"driver_id": ["Must be given."], name: [f"Unknown parameter; did you mean driver_id? {REPEAT}"]}


@pytest.mark.parametrize("name", ["driver_id", "driver_ids"])
def test_an_identifier_of_the_path_is_no_parameter_and_hinted_at_by_none(wednesday, name):
    result = reasons(DriverTripsParams(), f"start_date=2026-03-17&{name}=d1", driver_id="d1")
    assert result == {name: ["Unknown parameter."]}


@pytest.mark.parametrize("name", [*UNKNOWN, "Limit", "limit[]", "%ff"])
def test_unknown_parameters_are_ignored_on_request(name):
    text = f"limit=7&{name}=1&{name}=2".encode()
    assert DriversParams().parse(text, "ignore") == {"limit": 7, "page": 1}


def test_the_path_wins_over_an_ignored_parameter_of_the_same_name(wednesday):
    result = DriverTripsParams().parse(b"driver_id=x&driver_id=y&start_date=2026-03-17", "ignore", driver_id="d1")
    assert result["driver_id"] == "d1"


@pytest.mark.parametrize("text", ["page=0", "page=1&page=1", "limit=101", "start_date=x", "start_date=2026-3-17", ""])
def test_known_parameters_stay_strict_while_unknown_ones_are_ignored(wednesday, text):
    query, path = DriverTripsParams(), {"driver_id": "d1"}
    with pytest.raises(ValidationError) as caught:
        query.parse(f"nope=1&{text}".encode(), "ignore", **path)
    assert caught.value.messages == reasons(query, text, **path)


@pytest.mark.parametrize("name", ["driver_id[]", "driver_ids"])
def test_an_ignored_parameter_whose_similar_one_is_missing_is_hinted_at(wednesday, name):
    with pytest.raises(ValidationError) as caught:
        DailyParams().parse(f"start_date=2026-03-17&{name}=d1".encode(), "ignore")
    reason = f"Must be given; a parameter with a similar name was ignored. {REPEAT}"
    assert caught.value.messages == {"driver_id": [reason]}


def test_an_ignored_parameter_changes_no_reason_of_a_similar_one_that_is_given(wednesday):
    with pytest.raises(ValidationError) as caught:
        DailyParams().parse(b"start_date=2026-03-17&driver_ids=a&driver_id=.", "ignore")
    assert caught.value.messages == {"driver_id": ["Value 1: Must not be '.' or '..'."]}


def test_identifiers_joined_by_commas_beyond_the_length_of_one_hint_at_repeating_the_parameter(wednesday):
    result = reasons(DailyParams(), f"start_date=2026-03-17&driver_id={'abcd,' * 30}&driver_id={'x' * 129}")[
        "driver_id"
    ]
    assert [reason for reason in result if "Repeat" in reason] == [f"Value 1: {REPEAT}"]


@pytest.mark.parametrize("times", [2, 3])
def test_a_parameter_given_several_times_is_refused_even_when_alike(times):
    result = reasons(DriversParams(), "&".join(["limit=1"] * times))
    assert result == {"limit": [f"Must be given once; it is given {times} times."]}


def test_one_error_lists_all_faults(wednesday):
    result = reasons(DailyParams(), "start_date=x&driver_id=&nope=1&driver_id=d1&driver_id=.")
    assert set(result) == {"start_date", "driver_id", "nope"}
    assert [reason.partition(":")[0] for reason in result["driver_id"]] == ["Value 1", "Value 3"]


@pytest.mark.parametrize("query", [DailyParams(), WeeklyParams(), MonthlyParams()])
def test_what_is_required_must_be_given(query):
    assert reasons(query, "") == {"driver_id": ["Must be given."], "start_date": ["Must be given."]}


def test_repeated_driver_ids_are_removed_and_the_order_is_kept(wednesday):
    result = DailyParams().parse(b"driver_id=b&start_date=2026-03-17&driver_id=a&driver_id=b")
    assert result == {"driver_id": ["b", "a"], "start_date": "2026-03-17"}


@pytest.mark.parametrize(("count", "fine"), [(1, True), (20, True), (21, False)])
def test_one_to_twenty_drivers_count_as_sent(wednesday, count, fine):
    text = b"start_date=2026-03-17" + b"&driver_id=same" * count
    if fine:
        assert DailyParams().parse(text)["driver_id"] == ["same"]
    else:
        assert reasons(DailyParams(), text) == {"driver_id": ["Must be given 1 to 20 times; it is given 21 times."]}


def test_too_many_drivers_of_whom_some_are_no_identifiers_are_too_many(wednesday):
    text = b"start_date=2026-03-17" + b"&driver_id=same" * 21 + b"&driver_id="
    assert reasons(DailyParams(), text) == {"driver_id": ["Must be given 1 to 20 times; it is given 22 times."]}


IDS = ["x" * 128, "é" * 64, "a/b", "a b", "a+b", "a&b=c", "%41", "...", "$where", "𝄞", "\u2028", "null", "0"]
NO_IDS = ["", "x" * 129, "é" * 64 + "x", ".", "..", "a\0", "\n", "a\x7f", "\x85", "a\x9f"]


@pytest.mark.parametrize("value", IDS)
def test_an_identifier_is_any_text_within_its_bounds(wednesday, value):
    assert TripParams().parse(b"", filter_param="trip_id", filter_value=value)["filter_value"] == value
    assert DailyParams().parse(f"start_date=2026-03-17&driver_id={quote(value)}".encode())["driver_id"] == [value]


@pytest.mark.parametrize("value", [*NO_IDS, "\udcff", "a\udc80"])
def test_an_identifier_of_the_path_out_of_bounds_is_refused(value):
    assert list(reasons(TripParams(), "", filter_param="trip_id", filter_value=value)) == ["filter_value"]


@pytest.mark.parametrize("value", [*(quote(text) for text in NO_IDS), "%ff", "a%80b", "%ed%a0%80", "%c0%af"])
def test_an_identifier_of_the_query_out_of_bounds_is_refused(wednesday, value):
    assert list(reasons(DailyParams(), f"start_date=2026-03-17&driver_id={value}")) == ["driver_id"]


@pytest.mark.parametrize("text", [b"driver_id=\xff", b"driver_id=d\xed\xa0\x80", b"driver_id=%ff\xff"])
def test_raw_bytes_that_are_no_utf_8_are_refused(wednesday, text):
    assert list(reasons(DailyParams(), b"start_date=2026-03-17&" + text)) == ["driver_id"]


def test_raw_utf_8_is_read_like_its_percent_encoding(wednesday):
    assert DailyParams().parse("start_date=2026-03-17&driver_id=é".encode())["driver_id"] == ["é"]


def test_a_name_that_is_no_utf_8_is_refused_with_a_name_valid_in_json():
    assert reasons(DriversParams(), b"%ff=1") == reasons(DriversParams(), b"\xfe=1") == {"?": ["Unknown parameter."]}


@given(st.binary(max_size=60) | st.from_regex(rb"(limit|page|start_date|driver_id|%[0-9a-f]{2}|[=&;+1-])*"))
@pytest.mark.parametrize("unknown_parameters", ["reject", "ignore"])
def test_any_query_is_accepted_or_refused_with_reasons(unknown_parameters, text):
    for query, path in QUERIES.items():
        result = faults(query(), text, path, unknown_parameters)
        assert all(isinstance(reason, str) for reasons in result.values() for reason in reasons)
        assert isinstance(json.dumps(result, ensure_ascii=False).encode(), bytes)
