"""GET /fleet, /fleet-aggregate and /reports."""

import random
from fractions import Fraction

import pytest

from schemas.fleet import MAX_CONTRIBUTION
from schemas.report import ReportWindow
from scripts.materialize.write_sources import delete_trips
from scripts.reports.build import build_report
from tests.api.test_aggregates import SUMMARY_FIELDS
from tests.factories import epoch_ms, make_driver, make_event_summary, make_trip
from tests.store_contents import load as load_documents

MONDAY, BEFORE, MONTH = "2026-03-09", "2026-03-02", "2026-03-01"
MAX_INT = 2**63 - 1


def find_series(service, **query):
    response = service.get("/fleet-aggregate", **{"start_date": BEFORE, **query})
    assert response.status_code == 200, response.text
    return response.json["series"]


def get_summary(service, **query):
    """Return the summary of the only interval."""
    (interval,) = find_series(service, **query)
    return interval["fleet_summary"]


def test_what_a_key_opens(service, load):
    load(make_trip(driver_id="d1"))
    fleet = {
        "fleet": "f1",
        "driver_id": None,
        "time_zone": "UTC",
        "today": "2026-03-18",
        "processing_delay_hours": 4,
        "implausible_trips": "counted",
        "last_trip_received_at": epoch_ms("2026-03-18T12:00"),
    }
    assert list(service.get("/fleet").json.items()) == list(fleet.items())
    of_driver = {"driver_id": "d1", "last_trip_received_at": None}
    assert service.get("/fleet", driver="d1").json == fleet | of_driver


def test_the_fleet_as_a_whole_has_exactly_the_fields_of_the_contract_in_order(service, load):
    load(make_trip(f"{MONDAY}T08:00"), make_trip(f"{BEFORE}T08:00"))
    body = service.get("/fleet-aggregate", start_date=BEFORE).json
    head = {"start_date": BEFORE, "end_date": "2026-03-18", "interval": "week"}
    assert list(body.items())[:-1] == list(head.items())
    assert [list(interval) for interval in body["series"]] == [["start_date", "end_date", "fleet_summary"]] * 2
    assert [(one["start_date"], one["end_date"]) for one in body["series"]] == [
        (BEFORE, "2026-03-08"),
        (MONDAY, "2026-03-15"),
    ]
    summary = body["series"][0]["fleet_summary"]
    after = SUMMARY_FIELDS.index("trip_count") + 1
    fields = [*SUMMARY_FIELDS[:after], "implausible_trip_count", *SUMMARY_FIELDS[after:]]
    assert list(summary) == ["driver_count", *fields, "drivers_by_grade", "drivers_by_focus_area"]
    assert list(summary["drivers_by_grade"]) == ["excellent", "good", "fair", "poor"]
    assert list(summary["drivers_by_focus_area"]) == list(summary["focus_area"])


def test_the_score_is_that_of_the_sums_and_drivers_count_by_their_own(service, load):
    brakes = {"calm": 0, "fair": 25, "poor": 30}
    trips = [
        make_trip(f"{MONDAY}T08:00", driver, distance_miles=100, event_summary=make_event_summary(hard_brake_count=n))
        for driver, n in brakes.items()
    ]
    load(*trips, drivers=[make_driver("idle")])
    summary = get_summary(service)
    # 55 brakes in 300 miles are 18.3 per 100 miles of 20, so 18.3 of 20 points.
    assert (summary["fm_score"], summary["fm_grade"], summary["driver_count"]) == (81.7, "good", 3)
    assert (summary["trip_count"], summary["distance_miles"]) == (3, 300)
    assert summary["drivers_by_grade"] == {"excellent": 1, "good": 2, "fair": 0, "poor": 0}
    assert summary["drivers_by_focus_area"]["is_hard_brake"] == 2


def test_amounts_are_exact_in_any_order(service):
    rng, factors = random.Random(1), {"distance_miles": 10**6, "duration_seconds": 10**3}
    # As doubles, 5e-7 is less than the half of a millionth and 1.5e-6 less than one and a half; 1/128 is a tie.
    miles = [5e-7, 1.5e-6, 2.5e-6, 1 / 128, *(rng.random() for _ in range(20))]
    amounts = [{"distance_miles": one, "duration_seconds": 1e4 * rng.random()} for one in miles]
    for n, of_driver in enumerate(amounts):
        load_documents(service.db, make_trip(f"{MONDAY}T08:00", f"d{n}", **of_driver))
    for interval, start_date in {"day": MONDAY, "week": MONDAY, "month": MONTH}.items():
        summary = get_summary(service, start_date=start_date, interval=interval)
        for name, factor in factors.items():
            assert summary[name] == sum(round(Fraction(of_driver[name]) * factor) for of_driver in amounts) / factor


def test_amounts_at_the_edge_come_back_when_the_trip_is_corrected(service, load):
    load(make_trip(f"{MONDAY}T08:00", "d1", distance_miles=2))
    before = get_summary(service)
    huge = make_trip(f"{MONDAY}T09:00", "d2", trip_id="huge", distance_miles=1e308)
    load({**huge, "event_summary": make_event_summary(phone_use_count=MAX_INT)})
    summary = get_summary(service)
    assert summary["distance_miles"] == MAX_CONTRIBUTION / 10**6 + 2
    assert summary["events_summary"]["phone_use_count"] == MAX_CONTRIBUTION
    load({**huge, "distance_miles": 1})
    assert get_summary(service)["distance_miles"] == 3
    delete_trips(service.store, "f1", ["huge"])
    assert get_summary(service) == before


def test_an_interval_in_which_nobody_drives_any_more_is_gone(service, load):
    load(make_trip(f"{MONDAY}T08:00", trip_id="t"))
    delete_trips(service.store, "f1", ["t"])
    assert find_series(service) == find_series(service, interval="day") == []


@pytest.mark.parametrize(
    ("query", "starts"),
    [
        ({"start_date": MONDAY}, [MONDAY, "2026-03-16"]),
        ({"start_date": BEFORE, "end_date": MONDAY}, [BEFORE, MONDAY]),
        ({"start_date": BEFORE, "end_date": "2026-03-08"}, [BEFORE]),
        ({"start_date": "2026-03-18", "interval": "day"}, ["2026-03-18"]),
        ({"start_date": MONTH, "interval": "month"}, [MONTH]),
        ({"start_date": "2025-09-01", "end_date": "2025-09-02", "interval": "month"}, []),
    ],
)
def test_the_intervals_are_those_that_begin_between_the_dates(service, load, query, starts):
    load(*(make_trip(f"2026-03-{day:02}T08:00") for day in (2, 9, 18)))
    assert [interval["start_date"] for interval in find_series(service, **query)] == starts


def test_reports_are_listed_newest_first(service, load):
    load(make_trip(f"{MONDAY}T08:00"))
    for window in (ReportWindow("2026-03-01", "month"), ReportWindow("2026-03-16")):
        build_report(service.store, "f1", window)
    page = service.get("/reports", limit=1).json
    assert list(page) == ["count", "limit", "current_page", "next_page", "reports"]
    (report,) = page.pop("reports")
    assert page == {"count": 2, "limit": 1, "current_page": 1, "next_page": 2}
    head = {"report_date": "2026-03-16", "period": "week", "start_date": MONDAY, "end_date": "2026-03-15"}
    built = {"built_at": epoch_ms("2026-03-18T12:00"), "driver_count": 1, "units": "miles"}
    assert list(report.items()) == list((head | built).items())
    assert service.get("/report", report_time="2026-03-16T00:00:00").status_code == 200
    (monthly,) = service.get("/reports", limit=1, page=2).json["reports"]
    assert [monthly[name] for name in ("period", "start_date", "end_date")] == ["month", "2026-02-01", "2026-02-28"]
    assert service.get("/reports", fleet="f2").json["reports"] == []
