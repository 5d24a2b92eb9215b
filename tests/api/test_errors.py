"""The one error body, and the order in which errors are decided."""

import pytest
from pymongo.errors import AutoReconnect, ConfigurationError, OperationFailure


@pytest.fixture
def service(shared_service):
    """The service. No test of this module writes."""
    return shared_service


def test_an_error_body_has_exactly_its_members_in_order(service):
    assert list(service.get("/nothing").json) == ["message", "error", "request_id"]
    assert list(service.get("/drivers?limit=0").json) == ["message", "error", "request_id", "errors"]


def test_a_problem_has_the_members_of_rfc_9457_and_those_of_the_plain_body(service):
    response = service.get("/drivers?limit=0", headers={"Accept": "application/problem+json"})
    assert response.content_type == "application/problem+json"
    assert list(response.json) == ["type", "title", "status", "detail", "message", "error", "request_id", "errors"]
    assert (response.json["status"], response.json["title"]) == (400, "Bad Request")
    assert response.json["detail"] == response.json["message"]


@pytest.mark.parametrize(
    ("accept", "problem"),
    [
        ("application/json, application/problem+json", True),
        ("application/problem+json;q=0.1, */*", True),
        ("APPLICATION/Problem+JSON; charset=utf-8", True),
        ("application/problem+json;q=0.1, application/json", False),
        ("*/*", False),
        ("application/problem+json;q=0", False),
        ("garbage;;;,", False),
    ],
)
def test_a_client_that_accepts_problem_json_gets_it(service, accept, problem):
    response = service.get("/nothing", headers={"Accept": accept})
    assert response.content_type == ("application/problem+json" if problem else "application/json")


def test_every_response_has_a_request_id_and_an_error_repeats_it(service):
    response = service.get("/nothing")
    assert response.headers["X-Request-ID"] == response.json["request_id"]
    assert response.json["request_id"] != service.get("/nothing").json["request_id"]


@pytest.mark.parametrize(("sent", "taken"), [("abc-1.2_3", True), ("x" * 65, False), ("a b", False), ("é", False)])
def test_a_valid_request_id_is_used(service, sent, taken):
    assert (service.get("/nothing", headers={"X-Request-ID": sent}).json["request_id"] == sent) is taken


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "TRACE", "CONNECT", "BREW"])
@pytest.mark.parametrize("path", ["/drivers", "/trip/trip_id/x", "/healthz"])
def test_other_methods_are_not_allowed_and_need_no_key(service, method, path):
    response = service.get(path, method=method, fleet=None)
    assert (response.status_code, response.json["error"]) == (405, "MethodNotAllowed")
    assert response.headers["Allow"] == "GET, HEAD, OPTIONS"


def test_options_returns_the_methods_and_needs_no_key(service):
    response = service.get("/drivers", method="OPTIONS", fleet=None)
    assert (response.status_code, response.data, response.headers["Allow"]) == (204, b"", "GET, HEAD, OPTIONS")


def test_other_methods_on_an_unknown_path_take_a_key_first(service):
    assert [service.get("/nothing", method="POST", fleet=fleet).status_code for fleet in (None, "f1")] == [401, 404]


@pytest.mark.parametrize("path", ["/drivers", "/drivers?limit=0", "/nothing", "/healthz"])
def test_head_has_the_response_of_get_without_the_body(service, path):
    get, head = (service.get(path, method=method) for method in ("GET", "HEAD"))
    assert (head.status_code, head.data) == (get.status_code, b"")
    assert head.headers["Content-Length"] == get.headers["Content-Length"]


@pytest.mark.parametrize("path", ["/driver/a/b/trips", "/driver//trips", "/Drivers", "/drivers/"])
def test_an_unknown_path_gets_the_likely_mistakes_and_the_list_of_paths(service, path):
    message = service.get(path).json["message"]
    assert all(text in message for text in ("slashes", "upper case", "%2F", "/llms.txt"))


PERIODS = ("daily", "weekly", "monthly", "window")


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/trip/driver_id/x", ["/trip/trip_id/{filter_value}", "/trip/tracking_id/{filter_value}"]),
        ("/trip/x", ["/trip/trip_id/{filter_value}", "/trip/tracking_id/{filter_value}"]),
        ("/trip/Trip_ID/x", ["/trip/trip_id/{filter_value}"]),
        ("/trips/trip_id/x", ["/trip/trip_id/{filter_value}"]),
        ("/drivers/d-1/trips", ["/driver/{driver_id}/trips"]),
        ("/driver/d-1/trip", ["/driver/{driver_id}/trips"]),
        ("/driver/d-1", ["/driver/{driver_id}/trips", "/driver/{driver_id}/score"]),
        ("/driver-aggregate/yearly", [f"/driver-aggregate/{name}" for name in PERIODS]),
        ("/Driver-Agregate/daily/", ["/driver-aggregate/daily"]),
        ("/changes/new", ["/changes"]),
        ("/trip", ["/trips"]),
    ],
)
def test_an_unknown_path_names_the_paths_that_are_similar(service, path, meant):
    response = service.get(path)
    paths = " or ".join(f"/api/v1{known}" for known in meant)
    assert response.status_code == 404
    assert response.json["message"].startswith(f"There is no such path; did you mean {paths}? Check ")


def test_an_unknown_path_that_is_similar_to_none_names_none(service):
    for path in ("/nothing", "/x/trips", "/", f"/{8_000 * 'd'}", 4_000 * "/d"):
        assert service.get(path).json["message"].startswith("There is no such path. Check "), path[:10]


HOSTILE = "%3Cscript%3E%0D%0A%1B%ED%A0%80%22"


def test_the_message_of_an_unknown_path_never_repeats_it(service):
    hostile, plain = (service.get(f"/{text}").json["message"] for text in (HOSTILE, "x"))
    assert hostile == plain


def test_the_path_of_a_driver_with_commas_hints_at_no_parameter(service):
    message = service.get("/driver/a,b/trips?start_date=2026-03-10").json["message"]
    assert message == "Not in this fleet: a,b"


def test_the_message_names_parameters_as_a_url_does(service):
    error = service.get("/drivers?%3Cb%3E%0D%0A=1&limit=0").json
    assert error["message"] == "Invalid parameters: limit: Must be from 1 to 100. %3Cb%3E%0D%0A: Unknown parameter."
    assert error["errors"]["<b>\r\n"] == ["Unknown parameter."]


@pytest.mark.parametrize(
    "path", ["/index.html", "/api", "/api/v2/drivers", "/API/V1/drivers", "/api/v1x", "//api/v1/drivers", "/%2e"]
)
def test_paths_outside_the_api_are_not_found(service, path):
    response = service.app.test_client().get(path)
    assert (response.status_code, response.json["error"]) == (404, "NotFound")


@pytest.mark.parametrize("error", [OperationFailure("secret"), KeyError("secret"), RecursionError("secret")])
def test_an_internal_error_is_500_without_details(service, monkeypatch, error, log):
    def fail():
        raise error

    monkeypatch.setitem(service.app.view_functions, "drivers.list_drivers", fail)
    response = service.get("/drivers")
    assert (response.status_code, response.json["error"]) == (500, "InternalError")
    assert "secret" not in response.text
    failure, line = log()
    assert (failure["event"], failure["request_id"]) == ("unhandled exception", response.json["request_id"])
    assert "secret" in failure["exception"]
    assert line["status"] == 500


def test_a_path_that_begins_with_two_slashes_is_unknown(service):
    # The test client would take what follows for a host; RAW_URI is the path as gunicorn passes it on.
    for path, status in (("/api/v1/livez", 200), ("//api/v1/livez", 404)):
        response = service.app.test_client().open("/", environ_overrides={"RAW_URI": path})
        assert response.status_code == status


@pytest.mark.parametrize(
    "error", [AutoReconnect("connection closed"), ConfigurationError("Sessions are not supported")]
)
def test_a_store_that_does_not_respond_is_503_with_retry_after(service, monkeypatch, error):
    def fail(*args, **options):
        raise error

    monkeypatch.setattr("app.store.drivers.find_drivers", fail)
    response = service.get("/drivers")
    assert (response.status_code, response.json["error"]) == (503, "StoreUnavailable")
    assert int(response.headers["Retry-After"]) >= 1


def test_an_invalid_host_header_is_no_internal_error(service):
    for host in ("a..b", "[", "x" * 300, "host:port", "é"):
        assert service.get("/drivers", headers={"Host": host}).status_code in (200, 400), host


def test_a_get_is_served_with_and_without_a_content_type(service):
    assert service.get("/drivers", headers={"Content-Type": "application/json"}).status_code == 200
    assert service.get("/drivers").content_type == "application/json"
