"""The log."""

import logging

import pytest

from app.config import API
from app.logs import JsonHandler, make_logger
from app.report_links import ReportLinkSigner
from app.services import get_services
from app.store.api_keys import make_key

LINK = "WyJmMSIsIjIwMjYtMDMtMTYiXQ.x-Y_z"


def test_a_line_names_route_status_fleet_and_request(service, log):
    response = service.get("/driver/nobody/trips", start_date="2026-03-01")
    line = log()[-1]
    assert line.pop("duration_ms") >= 0
    assert line == {
        "timestamp": "2026-03-18T12:00:00Z",
        "level": "info",
        "event": "request",
        "method": "GET",
        "route": "/api/v1/driver/<segment:driver_id>/trips",
        "status": 404,
        "bytes": len(response.data),
        "fleet": "f1",
        "scope": "fleet",
        "key_id": service.db["keys"].find_one()["key_id"],
        "client": None,
        "request_id": response.json["request_id"],
    }


def test_a_line_of_a_refused_key_names_the_client_and_no_path(service, log):
    service.get("/no/such/path", fleet=None)
    line = log()[-1]
    assert [line[name] for name in ("status", "route", "fleet", "client")] == [401, None, None, "127.0.0.1"]


def test_above_the_level_of_a_line_there_is_none(make_service, log):
    make_service(log_level="WARNING").get("/drivers")
    assert not [line for line in log() if line["event"] == "request"]


def test_no_log_line_contains_a_key(service, log):
    key = make_key()
    for path in (f"/driver/{key}/trips", f"/{key}", f"/drivers?{key}={key}", "/drivers"):
        service.get(path, headers={"Authorization": f"APIKEY {key}", "X-Request-ID": key})
        service.get(path, headers={"X-Request-ID": key})
    lines = log()
    assert len(lines) == 8
    assert key not in str(lines)
    assert lines[-1]["request_id"] == "da_[redacted]"


@pytest.mark.parametrize("fleet", ["f1", "ü", "1" * 120])
def test_no_log_line_contains_a_report_link(make_service, log, fleet):
    service = make_service(secret_key="secret")
    links = ReportLinkSigner(get_services(service.app).config)
    url = links.build_url("http://x", fleet, "2026-03-16", "week", "csv", "key", 2**50)
    service.get(url.removeprefix(f"http://x{API}"), fleet=None, headers={"X-Request-ID": url.rpartition("/")[2][:64]})
    line = log()[-1]
    assert [line[name] for name in ("status", "route", "request_id")] == [
        403,
        f"{API}/report/<path:link>",
        "[redacted]",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"failed {API}/report/abc/def.ghi?x at 9", f"failed {API}/report/[redacted] at 9"),
        (f'failed {API}/report/ab"c\\\né at 9', f"failed {API}/report/[redacted] at 9"),
        (f"Invalid HTTP method: '{LINK}'", "Invalid HTTP method: '[redacted]'"),
        (f"Invalid HTTP method: 'da_{'0aZ' * 12}'", "Invalid HTTP method: 'da_[redacted]'"),
        ("100 %s \udc80", "100 %s \udc80"),
    ],
)
def test_log_lines_of_libraries_are_redacted(text, expected, log):
    JsonHandler().emit(logging.LogRecord("gunicorn.error", logging.WARNING, "", 0, "%s", (text,), None))
    (line,) = log()
    assert [line[name] for name in ("logger", "level", "event")] == ["gunicorn.error", "warning", expected]


def test_invalid_http_that_gunicorn_quotes_is_not_logged(service, log):
    logger = logging.getLogger("gunicorn.error")
    logger.warning("Invalid request from ip=127.0.0.1: Invalid HTTP method: 'get /%64a_'")
    logger.error("Worker was sent SIGKILL!")
    assert [line["event"] for line in log()] == ["Worker was sent SIGKILL!"]


def test_warnings_of_libraries_are_logged(service, log):
    logger = logging.getLogger("any.library")
    logger.info("not of interest")
    logger.warning("key %s", make_key())
    assert [(line["logger"], line["event"]) for line in log()] == [("any.library", "key da_[redacted]")]


def test_keys_inside_values_and_tracebacks_are_redacted(log):
    key = make_key()
    try:
        raise ValueError(key)
    except ValueError as error:
        make_logger(logging.INFO).error("what", exc_info=error, document={"days": [{key: 1}]}, error=error)
    (line,) = log()
    assert (line["document"], line["error"]) == ({"days": [{"da_[redacted]": 1}]}, "da_[redacted]")
    assert line["exception"].startswith("Traceback")
    assert line["exception"].endswith("ValueError: da_[redacted]")
