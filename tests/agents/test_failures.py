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


@pytest.mark.parametrize("at", ["", "localhost", "ftp://localhost", "http://[", "http://me:secret@127.0.0.1:1"])
def test_a_wrong_url_is_named_without_its_password(fail, at):
    message = fail("find_drivers", at=at or "nonsense")
    assert "DRIVER_ANALYTICS_URL" in message
    assert "secret" not in message


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


def test_the_path_of_the_api_may_end_the_url(fail, url):
    assert "driver_id" in fail("driver_summary", at=f"{url}/api/v1/", driver_id="nobody")


def test_over_the_rate_limit_the_message_says_how_long_to_wait(serve, make_service, fail):
    limited = make_service(rate_limit=parse("1 per minute"))
    url, key = serve(limited), limited.key("f1")
    limited.get("/drivers")
    message = fail("find_drivers", at=url, key=key)
    assert "rate limit" in message
    assert "Wait 60 seconds" in message


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
    assert "Use find_drivers" in fail("compare_drivers", driver_ids=["nobody"])


def test_another_fleets_driver_is_as_unknown_as_none(fail, load):
    load(drivers=[make_driver("theirs")], fleet="f2")
    theirs, none = (fail("driver_summary", driver_id=driver_id) for driver_id in ("theirs", "nobody"))
    assert theirs.replace("theirs", "nobody") == none


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
