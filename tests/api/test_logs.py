"""The log."""

import logging

from app.config import API
from app.links import Links
from app.logs import RedactingFormatter
from app.store.keys import make_key


def formatted(caplog):
    return "\n".join(RedactingFormatter("%(message)s").format(record) for record in caplog.records)


def test_a_line_names_route_status_fleet_and_request(service, caplog):
    caplog.set_level(logging.INFO, "app")
    answer = service.get("/driver/nobody/trips", start_date="2026-03-01")
    line = caplog.messages[-1]
    assert line.startswith("GET /api/v1/driver/<segment:driver_id>/trips 404 ")
    assert all(part in line for part in ("fleet=f1", answer.json["request_id"]))


def test_no_line_holds_a_key_wherever_it_was_put(service, caplog):
    caplog.set_level(logging.DEBUG)
    key = make_key()
    for path in (f"/driver/{key}/trips", f"/{key}", f"/drivers?{key}={key}", "/drivers"):
        service.get(path, headers={"Authorization": f"APIKEY {key}", "X-Request-ID": key})
        service.get(path, headers={"X-Request-ID": key})
    assert caplog.records
    assert key not in formatted(caplog)


def test_a_traceback_is_blotted_too():
    key = make_key()
    try:
        raise ValueError(key)
    except ValueError as error:
        record = logging.LogRecord("app", logging.ERROR, "", 0, "defect %s", (key,), (ValueError, error, None))
    text = RedactingFormatter().format(record)
    assert key not in text
    assert "ValueError: da_[redacted]" in text


def test_no_line_holds_a_report_link_wherever_it_went(make_service, caplog):
    caplog.set_level(logging.DEBUG)
    service = make_service(secret_key="secret")
    links = Links(service.app.extensions["config"])
    url = links.url("http://x", "f1", "2026-03-16T00:00:00", "csv", "key", 2**50)
    service.get(url.removeprefix(f"http://x{API}"), fleet=None)
    logging.getLogger("gunicorn.error").error("Error handling request %s", url.removeprefix("http://x"))
    assert f"Error handling request {API}/report/[redacted]" in formatted(caplog)
    assert url.rpartition("/")[2] not in formatted(caplog)
    assert f"GET {API}/report/<rest:link> 403" in formatted(caplog)


def test_a_link_that_was_bent_is_blotted_out_to_its_end():
    record = logging.LogRecord("app", logging.ERROR, "", 0, f"failed {API}/report/abc/def.ghi?x at 9", (), None)
    assert RedactingFormatter("%(message)s").format(record) == f"failed {API}/report/[redacted] at 9"
