"""The messages of failures: each says what to change."""

import pytest
from limits import parse
from pymongo.errors import ServerSelectionTimeoutError

from tests.agents.conftest import call_tool
from tests.factories import make_driver
from tests.service_process import free_port


@pytest.mark.parametrize("key", ["", "nonsense", "da_wrong\nX-Evil: 1", "ключ"])
def test_a_wrong_key_is_named_and_never_repeated(fail, key):
    message = fail("find_drivers", key=key)
    assert "DRIVER_ANALYTICS_KEY" in message
    assert "driver-analytics keys issue" in message
    assert not key or key not in message


@pytest.mark.parametrize(
    "at", ["localhost", "ftp://localhost", "http://127.0.0.1:99999", "http://me:secret@127.0.0.1:1"]
)
def test_a_wrong_url_is_named_without_its_password(fail, at):
    message = fail("find_drivers", at=at)
    assert "DRIVER_ANALYTICS_URL" in message
    assert "secret" not in message


@pytest.mark.parametrize("form", [" {}/ ", "{}/api/v1/"])
def test_the_url_may_have_spaces_and_the_path_of_the_api(fail, url, form):
    assert "use find_drivers" in fail("driver_summary", at=form.format(url), driver_id="nobody")


def test_a_path_too_many_in_the_url_is_named(fail, url):
    assert "DRIVER_ANALYTICS_URL is the address of the service without a path" in fail("find_drivers", at=f"{url}/x/y")


def test_without_a_service_the_message_says_how_to_start_it(fail):
    message = fail("find_drivers", at=f"http://127.0.0.1:{free_port()}")
    assert "No service responds" in message
    assert "driver-analytics serve" in message


def hang():
    raise ServerSelectionTimeoutError


@pytest.mark.parametrize(
    ("respond", "messages"),
    [
        (lambda: "<!doctype html>", ["may not be a Driver Analytics API"]),
        (lambda: ("{}", 404), ["not a Driver Analytics API", "correct DRIVER_ANALYTICS_URL"]),
        (lambda: ("", 302, {"Location": "/"}), ["not a Driver Analytics API"]),
        (lambda: ("{}", 200, {"Content-Encoding": "gzip"}), ["DRIVER_ANALYTICS_URL"]),
        (lambda: {"drivers": []}, ["different versions"]),
        (lambda: ("<html>", 429, {"Retry-After": "7"}), ["Wait 7 seconds"]),
        (lambda: ("<html>", 503), ["Wait 10 seconds"]),
        (lambda: ("<html>", 502, {"Retry-After": "soon"}), ["Wait 10 seconds"]),
        (hang, ["status 503", "Wait 2 seconds"]),
        (lambda: 1 / 0, ["status 500", "request_id"]),
    ],
)
def test_what_the_service_or_another_one_responds_is_explained(fail, service, respond, messages):
    service.app.view_functions["drivers.list_drivers"] = lambda **path: respond()
    message = fail("find_drivers")
    assert [text for text in messages if text not in message] == []
    assert "Traceback" not in message


def test_fields_that_are_missing_in_a_response_are_explained(fail, service):
    service.app.view_functions["fleet.get_fleet_aggregate"] = dict
    assert "different versions" in fail("fleet_summary")


def test_over_the_rate_limit_the_message_says_how_long_to_wait(serve, make_service, fail):
    limited = make_service(rate_limit=parse("1 per minute"))
    url, key = serve(limited), limited.key("f1")
    limited.get("/drivers")
    message = fail("find_drivers", at=url, key=key)
    assert "status 429" in message
    assert "Wait 60 seconds" in message
    assert "ask for less" in message


@pytest.mark.parametrize("tool", ["driver_summary", "explain_score", "list_trips", "list_events", "compare_drivers"])
def test_an_unknown_driver_is_named_with_the_tool_that_finds_drivers(fail, load, tool):
    load(drivers=[make_driver("theirs")], fleet="f2")
    messages = [
        fail(tool, **({"driver_ids": [name]} if tool == "compare_drivers" else {"driver_id": name}))
        for name in ("theirs", "nobody")
    ]
    assert "Not in this fleet: nobody" in messages[1]
    assert "use find_drivers" in messages[1]
    assert messages[0].replace("theirs", "nobody") == messages[1]


OWN = {"driver_id": "ann"}
DRIVER_CALLS = [
    ("find_drivers", {}, None),
    ("find_drivers", {"search": "a"}, None),
    ("driver_summary", OWN, None),
    ("explain_score", OWN, None),
    ("list_trips", OWN, None),
    ("list_trips", {}, None),
    ("compare_drivers", {"driver_ids": ["ann"]}, None),
    ("describe_trip", {"trip_id": "brake"}, None),
    ("list_events", {}, None),
    ("list_events", {"driver_id": "bob"}, "a key of one driver opens no other driver"),
    ("who_needs_coaching", {}, "The API key opens one driver"),
    ("who_needs_coaching", {"behaviour": "hard_brake"}, "The API key opens one driver"),
    ("fleet_summary", {}, "The API key opens one driver"),
    ("list_groups", {}, "The API key opens one driver"),
    ("list_events", {"group": "North"}, "a key of one driver opens none"),
    ("compare_drivers", {"driver_ids": ["ann", "bob"]}, "a key of one driver opens no other driver"),
]


@pytest.mark.usefixtures("fleet")
@pytest.mark.parametrize(("tool", "arguments", "reason"), DRIVER_CALLS)
def test_with_a_key_of_a_driver_a_tool_is_about_the_driver_or_says_what_it_cannot(
    url, service, tool, arguments, reason
):
    data, text = call_tool(url, service.key("f1", "ann"), tool, arguments)
    assert (data is None, "Ødegård" in text or "hard_brake" in text) == (bool(reason), not reason)
    assert (reason or "") in text
    assert [name for name in ("cem", "Dvořák", "Van 1") if name in text] == []


def test_an_unknown_trip_is_named_with_the_tool_that_lists_trips(fail):
    assert "list_trips" in fail("describe_trip", trip_id="nothing")


ARGUMENTS = [
    ("list_trips", {"driver_id": "a", "limit": 51}, "less than or equal to 20"),
    (
        "list_trips",
        {"driver_id": "a", "from": "2026-03-09"},
        '"from": There is no such argument. There are: driver_id,',
    ),
    ("list_trips", {"driver_id": "a", "end_date": "2026-02-29"}, "Must be a date that exists"),
    ("driver_summary", {"driver_id": "a", "date": "2020-01-01"}, "date: The week must begin from 2025-09-18"),
    ("driver_summary", {"driver_id": "a", "date": "2026-03-18", "period": "day"}, "use explain_score with start_date"),
    ("who_needs_coaching", {"date": "2026-04-18", "period": "month"}, "and not on 2026-04-01"),
    (
        "who_needs_coaching",
        {"date": "2025-10-18", "period": "month", "order": "got_worse"},
        "month before is not known",
    ),
    ("list_events", {"behaviour": "speeding"}, "should be 'phone_use', 'overspeeding', 'hard_brake'"),
    ("fleet_summary", {"date": "2024-03-17"}, "date: The week must begin from 2024-03-18 to 2026-03-17"),
    ("explain_score", {"driver_id": "a", "end_date": "2026-02-01"}, '"start_date":"2026-03-09"'),
    ("describe_trip", {"trip_id": "x" * 900_000}, "Correct the arguments. They are too long."),
    ("find_drivers", {"x" * 900_000: 1}, "There is no such argument."),
    ("list_trips", {"driver_id": "a", "group": "North"}, "group: "),
    ("explain_score", {"driver_id": ""}, "If this is about a driver"),
    ("no_tool", {}, "Unknown tool: no_tool"),
]


@pytest.mark.parametrize(("tool", "arguments", "reason"), ARGUMENTS)
def test_wrong_arguments_are_named_with_the_reason(fail, tool, arguments, reason):
    message = fail(tool, **arguments)
    assert reason in message
    assert len(message) < 20_000
