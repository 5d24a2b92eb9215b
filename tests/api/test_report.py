"""/api/v1/report: links to a fleet's report, and what lies behind them."""

import csv
import gzip
import io

import pytest
from limits import parse

from app.config import API
from app.report_links import ReportLinkSigner
from app.services import get_services
from schemas.report import HEADER, ReportWindow
from scripts.admin.keys import issue_key
from scripts.reports.build import build_report
from tests.factories import epoch_ms, make_driver, make_trip

DATE = "2026-03-16"
SECRET = "a secret of the tests"
PATH = f"/report?report_time={DATE}T00:00:00"


@pytest.fixture
def service(make_service):
    """The service, which keeps its secret."""
    return make_service(secret_key=SECRET)


@pytest.fixture
def build(store):
    """Build a report of a fleet."""
    return lambda fleet="f1": build_report(store, fleet, ReportWindow(DATE))


@pytest.fixture
def ready(load, build):
    """A fleet of two drivers, one of whom drove, whose report is built."""
    load(make_trip("2026-03-10T08:00"), drivers=[make_driver("d1", alias="Ünï"), make_driver("d2")])
    build()


def link_of(service, name="report_link", **options):
    """Return what a link is, as a path below the API."""
    response = service.get(PATH, **options)
    assert response.status_code == 200, response.text
    return response.json[name].partition(API)[2]


def rows(response):
    return list(csv.DictReader(io.StringIO(response.data.decode("utf-8-sig"), newline="")))


def test_a_report_that_is_not_built_is_not_ready(service):
    response = service.get(PATH)
    assert (response.status_code, response.json["error"]) == (404, "NotFound")
    assert response.json["message"] == "Report not ready yet"
    assert int(response.headers["Retry-After"]) >= 1


@pytest.mark.parametrize(
    ("date", "reason"),
    [
        ("2026-03-19", "is built once they are over."),
        ("2026-03-09", "has no trips that ended before that date. /api/v1/reports lists those that are built."),
    ],
)
def test_a_report_that_cannot_come_says_why(service, load, date, reason):
    load(make_trip("2026-03-10T08:00"))
    response = service.get(f"/report?report_time={date}T00:00:00")
    assert (response.status_code, "Retry-After" in response.headers) == (404, False)
    assert response.json["message"].startswith(f"There is no report of {date}")
    assert response.json["message"].endswith(reason)
    assert service.get("/report?report_time=2026-03-18T00:00:00").json["message"] == "Report not ready yet"


def test_a_report_that_is_built_has_two_links_and_their_end(service, ready):
    response = service.get(PATH).json
    assert list(response) == ["report_link", "report_page", "expires_at"]
    assert response["expires_at"] == epoch_ms("2026-03-18T12:15")
    assert {response[name].partition("/api/v1/report/")[0] for name in ("report_link", "report_page")} == {
        "http://localhost"
    }


def test_any_time_of_the_date_and_no_other_leads_to_its_report(service, ready):
    link = service.get(f"/report?report_time={DATE}T23:59:59").json["report_link"].partition(API)[2]
    assert rows(service.get(link, fleet=None))[0]["trip_count"] == "1"
    for time in ("2026-03-15T23:59:59", "2026-03-17T00:00:00"):
        assert service.get(f"/report?report_time={time}").json["message"] == "Report not ready yet"


def test_any_time_of_the_next_month_leads_to_the_report_on_a_month(service, store, load):
    load(make_trip("2026-02-10T08:00"))
    build_report(store, "f1", ReportWindow("2026-03-01", "month"))
    for time in ("2026-03-01T00:00:00", "2026-03-31T23:59:59"):
        link = service.get("/report", report_time=time, period="month").json["report_link"].partition(API)[2]
        response = service.get(link, fleet=None)
        assert response.headers["Content-Disposition"] == "attachment; filename=f1-report-2026-02.csv"
        assert rows(response)[0]["trip_count"] == "1"
    assert service.get("/report", report_time="2026-03-01T00:00:00").json["message"] == "Report not ready yet"
    message = service.get("/report", report_time="2026-04-01T00:00:00", period="month").json["message"]
    assert message.startswith("There is no report of 2026-04-01 yet: it covers the days of the month before that date")
    assert list(service.errors("/report?report_time=2026-03-01T00:00:00&period=day")) == ["period"]


def test_the_public_address_decides_the_host(make_service, ready):
    service = make_service(public_base_url="https://api.example.com/driving")
    for name in ("report_link", "report_page"):
        assert service.get(PATH).json[name].startswith("https://api.example.com/driving/api/v1/report/")


@pytest.mark.parametrize("host", ['ev"il<>.example', "a b", "x/y", "my_host"])
def test_an_invalid_host_is_not_used_in_links(service, ready, host):
    assert service.errors(PATH, headers={"Host": host})["Host"][0].startswith("Must be a host name of letters, digits")


@pytest.mark.parametrize(
    "time",
    ["", "2026-3-16T1:2:3", "2026-03-16", "2026-03-16 00:00:00", "2026-03-16T00:00", "2026-03-16T00:00:00Z"]
    + ["2026-03-16T00:00:00.000", "2026-02-30T00:00:00", "2026-03-16T24:00:00", "2026-03-16T00:00:60"]
    + ["0000-03-16T00:00:00", "２026-03-16T00:00:00", "20260316T000000", "2026-03-16T00:00:00%0A"],
)
def test_a_time_in_another_spelling_is_refused(service, time):
    assert list(service.errors(f"/report?report_time={time}")) == ["report_time"]


def test_a_link_needs_no_key_and_returns_the_file(service, ready):
    response = service.get(link_of(service), fleet=None)
    assert (response.status_code, response.content_type) == (200, "text/csv; charset=utf-8")
    assert response.headers["Content-Disposition"] == "attachment; filename=f1-report-2026-03-16.csv"
    assert tuple(rows(response)[0]) == HEADER
    assert len(rows(response)) == 2
    assert int(response.headers["Content-Length"]) == len(response.data)


def test_the_page_link_returns_a_page_that_may_not_run_scripts(service, ready):
    response = service.get(link_of(service, "report_page"), fleet=None)
    assert (response.status_code, response.content_type) == (200, "text/html; charset=utf-8")
    assert response.headers["Content-Disposition"] == "inline; filename=f1-report-2026-03-16.html"
    assert response.headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert response.data.startswith(b"<!doctype html>")


@pytest.mark.parametrize("fleet", ["a..b\\c", 'x"; filename=evil', "Flotte Ünï", "=1+1", "ü"])
def test_a_file_has_a_sensible_name_whatever_the_fleet_is_called(service, load, build, fleet):
    load(make_trip("2026-03-10T08:00"), fleet=fleet)
    build(fleet)
    disposition = service.get(link_of(service, fleet=fleet), fleet=None).headers["Content-Disposition"]
    name = disposition.removeprefix("attachment; filename=")
    assert name.endswith("report-2026-03-16.csv")
    assert name[0].isalnum()
    assert name.replace("-", "").replace(".", "").isalnum()


@pytest.mark.parametrize("minutes", [15, 1])
def test_a_link_is_valid_until_it_expires(make_service, ready, clock, minutes):
    service = make_service(secret_key=SECRET, report_link_minutes=minutes)
    link = link_of(service)
    clock.shift(minutes * 60 - 1)
    assert service.get(link, fleet=None).status_code == 200
    clock.shift(1)
    refused(service, link)


def refused(service, link):
    """Assert that a link is refused, in the one way."""
    response = service.get(link, fleet=None)
    assert (response.status_code, list(response.json)) == (403, ["message", "error", "request_id"]), link
    assert response.json["error"] == "Forbidden"
    assert "WWW-Authenticate" not in response.headers


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html"),
        ("*/*", "application/json"),
        ("application/json, text/html;q=0.9", "application/json"),
        ("application/problem+json, text/html;q=0.9", "application/problem+json"),
    ],
)
def test_a_browser_gets_a_page_that_says_how_to_get_a_new_link(service, ready, clock, accept, media_type):
    link = link_of(service, "report_page")
    clock.shift(15 * 60)
    response = service.get(link, fleet=None, headers={"Accept": accept})
    assert (response.status_code, response.mimetype) == (403, media_type)
    assert ('href="http://localhost/#/reports"' in response.text) is (media_type == "text/html")
    assert "Accept" in response.headers["Vary"]


def test_a_link_altered_anywhere_is_refused(service, ready):
    prefix, link = "/report/", link_of(service).removeprefix("/report/")
    for place, letter in enumerate(link):
        for other in {chr(ord(letter) ^ 1), chr(ord(letter) + 1), "_"} - {letter, "?", "#", "%"}:
            refused(service, prefix + link[:place] + other + link[place + 1 :])
    for bent in (link[:-1], link[1:], f"{link}A", f"{link}/", f"{link}%00", link.swapcase(), "..", "%F0", "." * 5000):
        refused(service, prefix + bent)


def test_a_link_takes_no_parameters_unless_the_setting_says_so(make_service, service, ready):
    link = link_of(service)
    assert service.errors(f"{link}?x=1", fleet=None) == {"x": ["Unknown parameter."]}
    refused(service, f"{link[:-9]}?x=1")
    service = make_service(secret_key=SECRET, unknown_parameters="ignore")
    assert service.get(f"{link}?x=1&link=y", fleet=None, buffered=True).status_code == 200


def test_a_link_of_a_revoked_key_is_refused(service, ready, db):
    link = link_of(service)
    db["keys"].update_one({"fleet": "f1"}, {"$set": {"revoked_at": 1}})
    refused(service, link)


def test_a_link_of_a_key_that_expired_is_refused(service, ready, db, clock):
    key = issue_key(service.store, "f1", expires_in_days=1)
    link = link_of(service, headers={"Authorization": f"APIKEY {key}"})
    db["keys"].update_many({"expires_at": {"$ne": None}}, {"$set": {"expires_at": epoch_ms("2026-03-18T12:05")}})
    assert service.get(link, fleet=None).status_code == 200
    clock.shift(5 * 60)
    refused(service, link)


def test_a_key_of_one_fleet_gives_no_link_to_another(service, ready, db):
    links, end = ReportLinkSigner(get_services(service.app).config), epoch_ms("2026-03-18T13:00")
    paths = {}
    for fleet in ("f1", "f2"):
        service.key(fleet)
        key_id = db["keys"].find_one({"fleet": fleet})["key_id"]
        paths[fleet] = links.build_url("", "f1", DATE, "week", "csv", key_id, end).removeprefix(API)
    assert service.get(paths["f1"], fleet=None).status_code == 200
    refused(service, paths["f2"])


def test_a_link_is_valid_if_its_secret_is_that_of_the_service_or_a_fallback(make_service, ready):
    link = link_of(make_service(secret_key="older"))
    service = make_service(secret_key="newer", secret_key_fallbacks=("oldest", "older"))
    assert service.get(link, fleet=None).status_code == 200
    refused(make_service(secret_key="older"), link_of(service))
    refused(make_service(), link)


def test_a_link_to_a_deleted_report_is_not_found(service, ready, db):
    link = link_of(service)
    db.reports.delete_many({})
    assert service.get(link, fleet=None).status_code == 404


def test_a_link_request_is_not_counted_and_has_no_rate_limit_headers(make_service, ready):
    service = make_service(secret_key=SECRET, rate_limit=parse("2 per minute"))
    link = link_of(service)
    responses = [service.get(link, fleet=None) for _ in range(5)]
    assert {response.status_code for response in responses} == {200}
    assert "X-RateLimit-Limit" not in responses[0].headers
    assert service.get("/drivers").status_code == 200


def test_a_rebuilt_report_is_sent_again(service, ready, load, build):
    link = link_of(service)
    first = service.get(link, fleet=None)
    load(make_trip("2026-03-11T08:00", "d2"))
    build()
    again = service.get(link, fleet=None, headers={"If-None-Match": first.headers["ETag"]})
    assert [row["trip_count"] for row in rows(first)] == ["1", ""]
    assert [row["trip_count"] for row in rows(again)] == ["1", "1"]


def test_a_file_is_compressed_for_clients_that_accept_it(service, ready):
    link = link_of(service)
    plain = service.get(link, fleet=None)
    packed = service.get(link, fleet=None, headers={"Accept-Encoding": "gzip"}, buffered=True)
    assert packed.headers["ETag"] == f'{plain.headers["ETag"][:-1]}-gzip"'
    assert gzip.decompress(packed.data) == plain.data


@pytest.mark.parametrize("junk", ["x", "..", ".e30.x", "W10.x", "%F0", "%2F", "." * 5000])
def test_a_malformed_link_is_refused(service, junk):
    refused(service, f"/report/{junk}")


def test_a_mask_prunes_the_links(service, ready):
    assert list(service.get(PATH, headers={"X-Fields": "{expires_at,nope}"}).json) == ["expires_at"]
    assert service.get(PATH, headers={"X-Fields": "{}"}).json == {}
    assert service.get(PATH, headers={"X-Fields": "{expires_at"}).json["error"] == "ParseError"
