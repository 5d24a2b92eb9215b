"""schemas/params.py and query.py: the parameters that a client may send."""

import datetime
import json
from urllib.parse import quote
from zoneinfo import ZoneInfo

import pytest
import time_machine
from hypothesis import given, settings
from hypothesis import strategies as st
from marshmallow import ValidationError

from schemas.params import (
    ChangesParams,
    DailyParams,
    DriversParams,
    DriverTripsParams,
    FleetAggregateParams,
    MonthlyParams,
    NoParams,
    RankingParams,
    ScoreParams,
    TripParams,
    TripsParams,
    WeeklyParams,
    WindowAggregateParams,
)
from schemas.periods import UTC, get_today

OF_DRIVER = {"driver_id": "d1"}
# The schemas, each with the parameters of its path.
SCHEMAS = {
    DriversParams: {},
    DriverTripsParams: OF_DRIVER,
    TripParams: {"filter_param": "trip_id", "filter_value": "t1"},
    DailyParams: {},
    WeeklyParams: {},
    MonthlyParams: {},
    ScoreParams: OF_DRIVER,
    WindowAggregateParams: {},
    FleetAggregateParams: {},
    TripsParams: {},
    RankingParams: {},
    ChangesParams: {},
    NoParams: {},
}
# Those with an end_date.
WITH_END = [DriverTripsParams, ScoreParams, WindowAggregateParams]
DAY = "start_date=2026-03-17"


def parse(schema, query, *options, **path):
    """Return the parameters of a query in a fleet in UTC."""
    return schema().parse(query, get_today(UTC), *options, **path)


def reasons(schema, text, unknown_parameters="reject", **path):
    """Return the reasons for which a query is refused, by parameter; none if it is accepted."""
    path = path or SCHEMAS[schema]
    try:
        parse(schema, text if isinstance(text, bytes) else text.encode(), unknown_parameters, **path)
    except ValidationError as error:
        return error.messages
    return {}


def takes(schema, date):
    """Return whether a schema accepts a start_date."""
    result = reasons(schema, f"start_date={date}" + ("" if SCHEMAS[schema] else "&driver_id=d1"))
    assert list(result) in ([], ["start_date"])
    return not result


@pytest.mark.parametrize(
    ("today", "first"), [("2026-08-31", "2026-02-28"), ("2026-08-27", "2026-02-27"), ("2024-08-31", "2024-02-29")]
)
@pytest.mark.parametrize("schema", [DriverTripsParams, DailyParams, ScoreParams])
def test_dates_reach_six_calendar_months_back(clock, schema, today, first):
    clock.move_to(f"{today}T12:00Z")
    before = datetime.date.fromisoformat(first) - datetime.timedelta(days=1)
    assert (takes(schema, first), takes(schema, before)) == (True, False)


@pytest.mark.parametrize(
    ("interval", "first", "before"),
    [
        ("day", "2024-03-18", "2024-03-17"),
        ("week", "2024-03-18", "2024-03-11"),
        ("month", "2024-03-01", "2024-02-01"),
    ],
)
def test_sums_of_the_fleet_reach_24_calendar_months_back(clock, interval, first, before):
    errors = [reasons(FleetAggregateParams, f"interval={interval}&start_date={date}") for date in (first, before)]
    assert errors == [{}, {"start_date": [f"Must be from {first} to 2026-03-18."]}]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("start_date=2024-03-18&end_date=2024-09-18", None),
        ("start_date=2024-03-18&end_date=2024-09-19", "Must be at most 184 days after start_date: 2024-09-18."),
        ("start_date=2024-03-18", "Must be at most 184 days after start_date: 2024-09-18."),
        ("start_date=2025-09-14", None),
        ("start_date=2024-03-18&end_date=soon", "Must be a date written YYYY-MM-DD."),
    ],
)
def test_a_window_of_drivers_begins_24_months_ago_and_has_184_days(clock, query, reason):
    assert reasons(WindowAggregateParams, query) == ({"end_date": [reason]} if reason else {})
    assert list(reasons(WindowAggregateParams, "start_date=2024-03-17&end_date=2024-03-17")) == ["start_date"]


@pytest.mark.parametrize(
    ("schema", "today_allowed"),
    [(DriverTripsParams, True), (ScoreParams, True), (WindowAggregateParams, True), (DailyParams, False)],
)
def test_today_is_a_start_date_of_trips_and_windows_and_tomorrow_of_nothing(clock, schema, today_allowed):
    assert [takes(schema, f"2026-03-{day}") for day in (17, 18, 19)] == [True, today_allowed, False]


@pytest.mark.parametrize(("today", "first"), [("2026-03-18", "2025-09-01"), ("2026-08-31", "2026-02-01")])
def test_months_reach_back_to_that_of_the_date_six_months_ago(clock, today, first):
    clock.move_to(f"{today}T12:00Z")
    before = datetime.date.fromisoformat(first) - datetime.timedelta(days=1)
    assert [takes(MonthlyParams, date) for date in (first, before.replace(day=1), before)] == [True, False, False]


@pytest.mark.parametrize(
    ("schema", "today", "next_day"),
    [(WeeklyParams, "2026-03-16", "2026-03-17"), (MonthlyParams, "2026-03-01", "2026-03-02")],
)
def test_a_week_or_month_in_progress_is_accepted_from_its_second_day(clock, schema, today, next_day):
    clock.move_to(f"{today}T12:00Z")
    assert not takes(schema, today)
    clock.move_to(f"{next_day}T12:00Z")
    assert takes(schema, today)


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Niue"])
@pytest.mark.parametrize("time", ["2026-03-18T00:00:00Z", "2026-03-18T23:59:59.999Z", "2026-03-17T23:00:00-01:00"])
def test_a_day_changes_at_midnight_utc_in_any_time_zone_of_the_host(time, zone):
    # time-machine sets the time zone of the process to that of the time.
    with time_machine.travel(datetime.datetime.fromisoformat(time).astimezone(ZoneInfo(zone)), tick=False):
        assert [takes(DailyParams, f"2026-03-{day}") for day in ("17", "18")] == [True, False]


def test_a_week_starts_on_a_monday_and_a_month_on_its_first(clock):
    assert [day for day in range(1, 18) if takes(WeeklyParams, f"2026-03-{day:02}")] == [2, 9, 16]
    assert [day for day in range(1, 18) if takes(MonthlyParams, f"2026-03-{day:02}")] == [1]


@pytest.mark.parametrize(
    ("schema", "date", "reason"),
    [
        (WeeklyParams, "2026-03-15", "Must be a Monday, such as 2026-03-09."),
        (MonthlyParams, "2026-03-02", "Must be the first day of a month, such as 2026-03-01."),
        (MonthlyParams, "2026-04-01", "Must be from 2025-09-01 to 2026-03-17."),
    ],
)
def test_the_reason_names_a_date_that_is_accepted(clock, schema, date, reason):
    assert reasons(schema, f"start_date={date}&driver_id=d1")["start_date"] == [reason]


@pytest.mark.parametrize(
    "date",
    ["20260317", "2026-3-17", "2026-W12-2", "2026-076", "2026-03-17T00:00:00", " 2026-03-17", "2026-03-17\n", ""]
    + ["2026-02-30", "0000-01-01", "٢٠٢٦-03-17", "today", "2026-03-17\x00", "-026-03-17", "99999-01-01", "0001-01-01"],
)
@pytest.mark.parametrize("schema", [DailyParams, WeeklyParams, MonthlyParams, *WITH_END])
def test_other_spellings_of_a_date_are_refused(clock, schema, date):
    assert not takes(schema, quote(date))
    assert schema not in WITH_END or "end_date" in reasons(schema, f"{DAY}&end_date={quote(date)}")


@pytest.mark.parametrize(
    ("query", "window_end", "trips_end"),
    [
        ("start_date=2026-03-01", "2026-03-17", None),
        ("start_date=2026-03-18", "2026-03-18", None),
        ("start_date=2026-03-18&end_date=2026-03-18", "2026-03-18", "2026-03-18"),
        ("start_date=2025-09-18&end_date=2025-09-18", "2025-09-18", "2025-09-18"),
    ],
)
def test_a_window_ends_yesterday_unless_it_starts_later_and_trips_without_an_end_have_none(
    clock, query, window_end, trips_end
):
    ends = [parse(schema, query.encode(), **SCHEMAS[schema]).get("end_date") for schema in WITH_END]
    assert ends == [trips_end, window_end, window_end]


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        (f"{DAY}&end_date=2026-03-19", {"end_date"}),
        (f"{DAY}&end_date=2026-03-16&nope=x", {"end_date", "nope"}),
        ("start_date=x&end_date=2026-03-16&nope=", {"start_date", "nope"}),
        (f"{DAY}&{DAY}&end_date=2026-03-19", {"start_date", "end_date"}),
        ("end_date=2025-01-01&nope=", {"start_date", "nope"}),
        ("start_date=2023-11-25&end_date=2023-11-26", {"start_date"}),
    ],
)
@pytest.mark.parametrize("schema", WITH_END)
def test_every_wrong_parameter_with_dates_is_named(clock, schema, query, wrong):
    assert set(reasons(schema, query)) == wrong


@pytest.mark.parametrize("interval", ["", "WEEK", "x"])
def test_an_interval_is_a_day_a_week_or_a_month(clock, interval):
    assert set(reasons(ScoreParams, f"{DAY}&end_date=2026-03-16&interval={interval}")) == {"end_date", "interval"}
    assert parse(ScoreParams, DAY.encode(), **OF_DRIVER)["interval"] == "week"


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("period=x&start_date=2026-03-19", "period start_date"),
        ("period=&start_date=2025-08-25&order=x&min_distance_miles=-1", "min_distance_miles order period start_date"),
        ("start_date=2026-03-17&limit=0&driver_id=d1", "driver_id limit period"),
        ("period=x&start_date=2025-09-01", "period"),
        ("start_date=2025-09-01", "period"),
        *((f"period=week&start_date={date}", "") for date in ("2025-09-22", "2026-03-16")),
        *((f"period=week&start_date={date}", "start_date") for date in ("2025-09-15", "2026-03-10", "2026-03-23")),
        *((f"period=month&start_date={date}", "") for date in ("2025-09-01", "2026-03-01")),
        *((f"period=month&start_date={date}", "start_date") for date in ("2025-08-01", "2026-03-09", "2026-04-01")),
    ],
)
def test_a_ranking_is_of_a_whole_week_or_month_of_the_last_six_months(clock, query, wrong):
    assert sorted(reasons(RankingParams, query)) == wrong.split()


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("start_date=2026-03-10", "start_date"),
        ("start_date=2026-03-09&interval=month", "start_date"),
        ("start_date=2026-03-19&interval=day", "start_date"),
        ("start_date=2026-03-09&end_date=2026-03-02", "end_date"),
        ("start_date=2026-03-09&end_date=2026-03-19", "end_date"),
        ("start_date=soon&end_date=2026-03-09&interval=year", "interval start_date"),
    ],
)
def test_sums_of_the_fleet_begin_with_an_interval_and_end_today_at_the_latest(clock, query, wrong):
    assert sorted(reasons(FleetAggregateParams, query)) == wrong.split()


NO_NUMBERS = ["0", "-1", "+1", "01", "1.0", "1e1", " 1", "1\n", "٣", "１", "", "x", "0x1", "1_0", "9" * 5000]


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_a_number_is_plain_digits_without_a_leading_zero(value):
    assert list(reasons(DriversParams, f"limit={quote(value)}&page={quote(value)}")) == ["limit", "page"]


UNKNOWN = ["nope", "$where", "fleet", " nope", "nope\0", "_schema", "nope[$ne]", "filter_param", "_", "s", ""]


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_parameter_is_refused_by_its_name_or_ignored_if_the_setting_says_so(name):
    query = f"limit=7&{quote(name)}=1&{quote(name)}=2"
    assert reasons(DriversParams, query) == {name: ["Unknown parameter."]}
    assert parse(DriversParams, query.encode(), "ignore") == {"limit": 7, "page": 1}


def test_of_many_unknown_parameters_the_first_five_are_named():
    names = [f"x%20{n}" for n in range(1_000)]
    *others, last = reasons(DriversParams, "&".join([*names, "limit=0"])).items()
    assert others == [("limit", ["Must be from 1 to 100."]), *((f"x {n}", ["Unknown parameter."]) for n in range(4))]
    assert last == ("x 4", ["Unknown parameter. More unknown parameters: 995."])


REPEAT = "Repeat driver_id for several values: driver_id=a&driver_id=b."


@pytest.mark.parametrize("name", ["Limit", "limit[]", "limits", "%20limit", "limit%00", "limt"])
def test_a_name_similar_to_a_parameter_hints_at_it(name):
    (result,) = reasons(DriversParams, f"{name}=1").values()
    assert result == ["Unknown parameter; did you mean limit?"]


@pytest.mark.parametrize("name", ["driver_id[]", "driver_ids", "driverId"])
def test_a_name_similar_to_that_of_a_list_hints_at_repeating_it(clock, name):
    query = f"{DAY}&{name}=d1&{name}=d2"
    hint = f"Unknown parameter; did you mean driver_id? {REPEAT}"
    assert reasons(DailyParams, query) == {"driver_id": ["Must be given."], name: [hint]}
    hint = f"Must be given; a parameter with a similar name was ignored. {REPEAT}"
    assert reasons(DailyParams, query, "ignore") == {"driver_id": [hint]}


@pytest.mark.parametrize("name", ["driver_id", "driver_ids"])
def test_an_identifier_of_the_path_is_no_parameter_and_hinted_at_by_none(clock, name):
    assert reasons(DriverTripsParams, f"{DAY}&{name}=d2") == {name: ["Unknown parameter."]}
    assert parse(DriverTripsParams, f"{DAY}&{name}=d2".encode(), "ignore", **OF_DRIVER)["driver_id"] == "d1"


def test_a_parameter_given_several_times_is_refused_even_when_alike():
    expected = {"limit": ["Must be given once; it is given 3 times."]}
    assert reasons(DriversParams, "limit=1&limit=1&limit=1") == expected


def test_one_error_lists_all_faults(clock):
    result = reasons(DailyParams, "start_date=x&driver_id=&nope=1&driver_id=d1&driver_id=.")
    assert set(result) == {"start_date", "driver_id", "nope"}
    assert [reason.partition(":")[0] for reason in result["driver_id"]] == ["Value 1", "Value 3"]


def test_what_is_required_must_be_given():
    assert reasons(DailyParams, "") == {"driver_id": ["Must be given."], "start_date": ["Must be given."]}


def test_one_to_twenty_drivers_count_as_sent_and_are_returned_once_in_their_order(clock):
    query = f"{DAY}&driver_id=b" + "&driver_id=a" * 19
    assert parse(DailyParams, query.encode())["driver_ids"] == ["b", "a"]
    expected = {"driver_id": ["Must be given at most 20 times; it is given 21 times."]}
    assert reasons(DailyParams, f"{query}&driver_id=") == expected


def test_identifiers_joined_by_commas_beyond_the_length_of_one_hint_at_repeating_the_parameter(clock):
    result = reasons(DailyParams, f"{DAY}&driver_id={'abcd,' * 30}&driver_id={'x' * 129}")["driver_id"]
    assert [reason for reason in result if "Repeat" in reason] == [f"Value 1: {REPEAT}"]


IDS = ["x" * 128, "é" * 64, "a/b", "a b", "a+b", "a&b=c", "%41", "...", "$where", "𝄞", "\u2028", "null", "0"]
NO_IDS = ["", "x" * 129, "é" * 64 + "x", ".", "..", "a\0", "\n", "a\x7f", "\x85", "a\x9f"]
# What is not UTF-8 arrives in a path as surrogates, in a query as bytes or percent-encoded.
NO_TEXTS = [b"\xff", b"d\xed\xa0\x80", b"%ff", b"a%80b", b"%c0%af"]


@pytest.mark.parametrize("value", IDS)
def test_an_identifier_is_any_text_within_its_bounds(clock, value):
    assert parse(TripParams, b"", filter_param="trip_id", filter_value=value)["filter_value"] == value
    assert parse(DailyParams, f"{DAY}&driver_id={quote(value)}".encode())["driver_ids"] == [value]


@pytest.mark.parametrize("value", [*(quote(text).encode() for text in NO_IDS), *NO_TEXTS])
def test_an_identifier_of_the_query_out_of_bounds_is_refused(clock, value):
    assert list(reasons(DailyParams, f"{DAY}&driver_id=".encode() + value)) == ["driver_id"]


def test_a_name_that_is_no_utf_8_is_refused_with_a_name_valid_in_json():
    assert reasons(DriversParams, b"%ff=1") == reasons(DriversParams, b"\xfe=1") == {"?": ["Unknown parameter."]}


@settings(deadline=None)
@given(st.binary(max_size=60) | st.from_regex(rb"(limit|page|start_date|driver_id|%[0-9a-f]{2}|[=&;+1-])*"))
@pytest.mark.parametrize("unknown_parameters", ["reject", "ignore"])
def test_any_query_is_accepted_or_refused_with_reasons(unknown_parameters, text):
    for schema in SCHEMAS:
        result = reasons(schema, text, unknown_parameters)
        assert all(isinstance(reason, str) for reasons in result.values() for reason in reasons)
        assert isinstance(json.dumps(result, ensure_ascii=False).encode(), bytes)


@pytest.mark.parametrize("value", ["0", "4", "null", "", "01", "None"])
def test_an_insurance_period_is_one_of_those_that_the_reason_names(clock, value):
    for schema in (WindowAggregateParams, FleetAggregateParams, TripsParams):
        found = reasons(schema, f"start_date=2026-03-16&insurance_period={value}")
        assert found == {"insurance_period": ["Must be one of: 1, 2, 3, none."]}
    assert list(reasons(FleetAggregateParams, "start_date=2026-03-16&period=1")) == ["period"]


@pytest.mark.parametrize("text", ["page=0", "page=1&page=1", "limit=101", "start_date=x", ""])
def test_known_parameters_stay_strict_while_unknown_ones_are_ignored(clock, text):
    expected = reasons(DriverTripsParams, text)
    assert reasons(DriverTripsParams, f"nope=1&{text}", "ignore") == expected != {}


def test_text_that_is_not_utf_8_may_be_in_another_encoding():
    (reason,) = reasons(DriversParams, b"search=Mart%EDnez")["search"]
    assert "bytes of another encoding" in reason


def test_raw_utf_8_is_read_like_its_percent_encoding(clock):
    assert parse(DailyParams, f"{DAY}&driver_id=é".encode())["driver_ids"] == ["é"]


@pytest.mark.parametrize("value", [*NO_IDS, "\udcff", "a\udc80"])
def test_an_identifier_of_the_path_out_of_bounds_is_refused(value):
    assert list(reasons(TripParams, "", filter_param="trip_id", filter_value=value)) == ["filter_value"]


def test_limit_and_page_have_bounds_and_defaults():
    assert parse(DriversParams, b"limit=100&page=1000000000") == {"limit": 100, "page": 1_000_000_000}
    assert list(reasons(DriversParams, "limit=101&page=1000000001")) == ["limit", "page"]
    assert parse(DriversParams, b"") == {"limit": 50, "page": 1}
