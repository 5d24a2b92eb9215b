"""The messages of failures: each says what to change."""

import asyncio

import pytest
from limits import parse
from mcp import Client
from pymongo.errors import ServerSelectionTimeoutError

from scripts.mcp_server.client import connect
from scripts.mcp_server.server import create_server
from tests.conftest import Service
from tests.factories import make_driver
from tests.service_process import free_port


def test_without_a_key_the_message_names_the_variable(fail):
    assert "DRIVER_ANALYTICS_KEY has no API key" in fail("find_drivers", key="")


@pytest.mark.parametrize("key", ["nonsense", "da_wrong\nX-Evil: 1", "ключ"])
def test_a_wrong_key_is_named_and_never_repeated(fail, key):
    message = fail("find_drivers", key=key)
    assert "DRIVER_ANALYTICS_KEY" in message
    assert key not in message


@pytest.mark.parametrize(
    "at",
    [
        "",
        "localhost",
        "ftp://localhost",
        "http://[",
        "http://127.0.0.1:99999",
        "http://me:secret@127.0.0.1:1",
        "me:secret@localhost",
    ],
)
def test_a_wrong_url_is_named_without_its_password(fail, at):
    message = fail("find_drivers", at=at or "nonsense")
    assert "DRIVER_ANALYTICS_URL" in message
    assert "secret" not in message


def test_a_user_in_the_url_is_refused_and_spaces_are_not(fail, url):
    assert "has a user or password" in fail("find_drivers", at=url.replace("//", "//me:secret@"))
    assert "Use find_drivers" in fail("driver_summary", at=f" {url}/ ", driver_id="nobody")


def test_without_a_service_the_message_says_how_to_start_it(fail):
    message = fail("find_drivers", at=f"http://127.0.0.1:{free_port()}")
    assert "No service responds" in message
    assert "driver-analytics serve" in message


def test_after_a_restart_of_the_service_the_same_client_works_again(servers, service):
    url, key = servers.start(service), service.key("f1")

    async def talk():
        async with connect(url, key) as api, Client(create_server(api)) as client:
            calls = [await client.call_tool("find_drivers", {})]
            servers.stop()
            calls.append(await client.call_tool("find_drivers", {}))
            servers.start(service, int(url.rpartition(":")[2]))
            return [*calls, await client.call_tool("find_drivers", {})]

    assert [result.is_error for result in asyncio.run(talk())] == [False, True, False]


@pytest.mark.parametrize("response", ["<!doctype html>", ("{}", 404), ("[]", 200), ("", 302, {"Location": "/"})])
def test_another_service_is_recognised(fail, service, response):
    service.app.view_functions["drivers.list_drivers"] = lambda **path: response
    assert "is not a Driver Analytics API" in fail("find_drivers")


@pytest.mark.parametrize("status", [429, 502, 503, 504])
@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7), ("Wed, 18 Mar 2026 12:00:20 GMT", 20), ("Wed, 18 Mar 2026 11:00:00 GMT", 1), ("soon", 10)],
)
def test_a_proxy_whose_service_does_not_respond_is_a_temporary_failure(fail, service, status, header, seconds):
    service.app.view_functions["drivers.list_drivers"] = lambda **path: ("<html>", status, {"Retry-After": header})
    message = fail("find_drivers")
    assert "temporary failure" in message
    assert f"Wait {seconds} seconds" in message


def test_a_body_that_cannot_be_decoded_is_recognised(fail, service):
    service.app.view_functions["drivers.list_drivers"] = lambda **path: ("{}", 200, {"Content-Encoding": "gzip"})
    assert "cannot be decoded" in fail("find_drivers")


def test_the_path_of_the_api_may_end_the_url(fail, url):
    assert "driver_id" in fail("driver_summary", at=f"{url}/api/v1/", driver_id="nobody")


def test_over_the_rate_limit_the_message_says_how_long_to_wait(serve, make_service, fail):
    limited = make_service(rate_limit=parse("1 per minute"))
    url, key = serve(limited), limited.key("f1")
    limited.get("/drivers")
    message = fail("find_drivers", at=url, key=key)
    assert "rate limit" in message
    assert "Wait 60 seconds" in message


def test_a_limit_that_is_too_small_for_the_call_is_named(serve, make_service, fail, load):
    load(drivers=[make_driver(f"d{number:03}") for number in range(250)])
    limited = make_service(rate_limit=parse("2 per minute"))
    message = fail("find_drivers", at=serve(limited), key=limited.key("f1"), text="x")
    assert "too small for this call" in message
    assert "more than 2 requests" in message


def test_after_many_attempts_with_a_wrong_key_the_message_says_that_it_is_wrong(serve, make_service, fail):
    limited = make_service(auth_failure_limit=parse("1 per minute"))
    url = serve(limited)
    for _ in range(2):
        message = fail("find_drivers", at=url, key="wrong")
    assert "refuses the API key" in message
    assert "many attempts" in message


def test_while_the_database_hangs_the_message_says_how_long_to_wait(fail, service):
    def hang(**path):
        raise ServerSelectionTimeoutError

    service.app.view_functions["drivers.list_drivers"] = hang
    assert "Wait 2 seconds" in fail("find_drivers")


def test_after_a_defect_the_message_has_the_identifier_of_the_request(fail, service):
    service.app.view_functions["drivers.list_drivers"] = lambda **path: 1 / 0
    assert "request_id" in fail("find_drivers")


def test_an_unknown_driver_is_named_with_the_tool_that_finds_drivers(fail):
    for tool in ("driver_summary", "explain_score", "list_trips"):
        assert 'Not in this fleet: nobody". Use find_drivers' in fail(tool, driver_id="nobody")
    message = fail("compare_drivers", driver_ids=["a,b"])
    assert 'Not in this fleet: a,b". Use find_drivers' in message
    assert ("DRIVER_ANALYTICS_URL" in message, "element of driver_ids" in message) == (False, True)
    assert "find_drivers" in fail("driver_summary", driver_id="..") + fail("list_trips", driver_id=".")


def test_a_path_that_the_service_does_not_have_is_told_from_an_unknown_driver(fail, url):
    assert "different versions" in fail("find_drivers", at=f"{url}/api/v1/x")


def test_another_fleets_driver_is_as_unknown_as_none(fail, load):
    load(drivers=[make_driver("theirs")], fleet="f2")
    theirs, none = (fail("driver_summary", driver_id=driver_id) for driver_id in ("theirs", "nobody"))
    assert theirs.replace("theirs", "nobody") == none


def test_a_trip_id_that_is_none_is_named_with_the_tool_that_lists_trips(fail):
    assert "a trip_id from list_trips" in fail("describe_trip", trip_id="..")


def test_an_unknown_trip_is_named_with_the_tool_that_lists_trips(fail):
    assert "list_trips" in fail("describe_trip", trip_id="nothing")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "driver_id: Field required"),
        ({"driver_id": ""}, "driver_id: String should have at least 1 character"),
        ({"driver_id": "a", "limit": 51}, "limit: Input should be less than or equal to 50"),
        ({"driver_id": "a", "limit": "5"}, "limit: Input should be a valid integer"),
        ({"driver_id": "a", "start_date": "20260309"}, "start_date: Input should be a valid date"),
        ({"driver_id": "a", "start_date": 20260309}, "start_date: Input should be a valid date"),
        ({"driver_id": "a", "from": "2026-03-09"}, "from: Extra inputs are not permitted"),
        ({"driver_id": "a", "order": "best"}, "order: Input should be 'points_lost', 'newest' or 'oldest'"),
    ],
)
def test_wrong_arguments_are_named_with_the_reason(fail, arguments, reason):
    message = fail("list_trips", **arguments)
    assert reason in message
    assert "Today is 2026-03-18" in message


@pytest.mark.parametrize(("tool", "date"), [("driver_summary", "2020-01-01"), ("driver_summary", "2026-04-01")])
def test_a_date_outside_the_history_is_refused_with_the_dates_that_are_possible(fail, tool, date):
    assert "Must be from 2025-09-18 to 2026-03-17" in fail(tool, driver_id="a", date=date)


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"),
    [
        ("driver_summary", {"period": "day", "date": "2026-03-18"}, "date: Must be from 2025-09-18 to 2026-03-17."),
        (
            "driver_summary",
            {"date": "2025-09-19"},
            "date: The week that contains it begins on 2025-09-15. This first day: Must be from 2025-09-18",
        ),
        ("explain_score", {"start_date": "2020-01-01"}, "start_date: Must be from 2025-09-18 to 2026-03-18."),
        ("explain_score", {"end_date": "2026-02-01"}, "start_date is not given, so it is the Monday of last week."),
        ("list_trips", {"end_date": "2026-02-01", "start_date": "2026-02-02"}, "is before start_date 2026-02-02."),
        ("list_trips", {"end_date": "2026-03-19"}, "end_date: Must be from start_date to 2026-03-18."),
        ("driver_summary", {"date": "9999-12-31"}, "9999-12-27 is out of range. Give a date from 2025-09-18"),
        ("driver_summary", {"date": "0001-01-01"}, "0001-01-01 is out of range. Give a date from 2025-09-18"),
        ("list_trips", {"start_date": "9999-12-31"}, "9999-12-31 is out of range."),
        ("explain_score", {"start_date": "0001-01-01", "end_date": "0001-01-01"}, "0001-01-01 is out of range."),
        ("explain_score", {"driver_id": "é" * 100}, "driver_id: Must have 1 to 128 bytes"),
        ("describe_trip", {"trip_id": "é" * 100}, "trip_id: Must have 1 to 128 bytes"),
        ("compare_drivers", {"driver_ids": ["é," * 60]}, "driver_ids: Value 1: Must have 1 to 128 bytes"),
    ],
)
def test_what_the_service_rejects_has_the_name_of_the_argument(fail, tool, arguments, reason):
    driver = {"driver_id": "a"} if tool not in ("describe_trip", "compare_drivers") else {}
    message = fail(tool, **{**driver, **arguments})
    assert reason in message.removeprefix("Correct the arguments. ")
    assert "Repeat" not in message


def test_an_unknown_tool_is_refused_with_the_names_of_the_tools(fail):
    assert "who_needs_coaching" in fail("drop_database")


def test_a_response_that_is_too_long_is_refused(fail, load, monkeypatch):
    monkeypatch.setattr("scripts.mcp_server.client.MAX_RESPONSE_BYTES", 100)
    load(drivers=[make_driver("a" * 100)])
    assert "too long" in fail("find_drivers")


def test_a_service_of_another_version_is_recognised(fail, service):
    service.app.view_functions["drivers.list_drivers"] = lambda **path: {"drivers": []}
    assert "different versions" in fail("find_drivers")


def test_each_request_of_a_tool_counts_and_belongs_to_the_key(call, service: Service):
    remaining = int(service.get("/drivers").headers["X-RateLimit-Remaining"])
    call("find_drivers")
    assert int(service.get("/drivers").headers["X-RateLimit-Remaining"]) == remaining - 2
