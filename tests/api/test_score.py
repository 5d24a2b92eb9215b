"""GET /driver/{driver_id}/score."""

from tests.factories import make_driver, make_event_summary, make_trip

PATH = "/driver/d1/score"
EXPLANATION = ["fm_score", "fm_grade", "trip_count", "distance_miles", "duration_seconds", "behaviours"]
BEHAVIOUR = ["behaviour", "count", "seconds", "rate", "cap", "weight", "points_lost", "is_focus_area"]


def test_a_response_has_exactly_the_fields_of_the_contract_in_order(service, load):
    load(make_trip("2026-03-10T08:00"), drivers=[make_driver("d1", alias="Ada")])
    body = service.get(PATH, start_date="2026-03-09").json
    assert list(body) == ["driver_info", "start_date", "end_date", "total", "series"]
    assert body["driver_info"] == service.get("/drivers").json["drivers"][0]
    assert list(body["series"][0]) == ["start_date", "end_date", "explanation"]
    for explanation in (body["total"], body["series"][0]["explanation"]):
        assert list(explanation) == EXPLANATION
        assert [list(behaviour) for behaviour in explanation["behaviours"]] == [BEHAVIOUR] * 4


def test_every_behaviour_is_explained_in_the_order_of_the_contract(service, load):
    # Per 1,000 s and 100 miles: half the cap of phone use, past that of overspeeding, a quarter, 0.
    events = {"phone_use_time_seconds": 75, "overspeeding_time_seconds": 300, "hard_brake_count": 5}
    load(make_trip(duration_seconds=1000, distance_miles=100, event_summary=make_event_summary(**events)))
    total = service.get(PATH, start_date="2026-03-10").json["total"]
    assert (total["fm_score"], total["fm_grade"]) == (100 - 17.5 - 30 - 5, "poor")
    assert [list(behaviour.values()) for behaviour in total["behaviours"]] == [
        ["phone_use", 0, 75, 0.075, 0.15, 35, 17.5, True],
        ["overspeeding", 0, 300, 0.3, 0.2, 30, 30, True],
        ["hard_brake", 5, None, 5, 20, 20, 5, False],
        ["rapid_acceleration", 0, None, 0, 20, 15, 0, False],
    ]


def test_a_window_may_end_today_and_counts_trips_that_are_not_visible_yet(service, load):
    load(make_trip("2026-03-18T11:00"))
    assert service.get("/driver/d1/trips", start_date="2026-03-18").json["count"] == 0
    assert service.get(PATH, start_date="2026-03-01", end_date="2026-03-18").json["total"]["trip_count"] == 1


def test_any_identifier_can_be_explained(service, load):
    load(make_trip("2026-03-10T08:00", "../a/score"))
    response = service.get("/driver/..%2Fa%2Fscore/score", start_date="2026-03-10")
    assert response.json["driver_info"]["driver_id"] == "../a/score"


def test_sums_past_what_a_document_can_hold_saturate(service, load):
    events = make_event_summary(hard_brake_count=2**63 - 1, phone_use_time_seconds=1.7e308)
    load(*(make_trip(f"2026-03-0{n}T08:00", distance_miles=5e-324, event_summary=events) for n in (7, 8, 9)))
    total = service.get(PATH, start_date="2026-03-01").json["total"]
    phone_use, _, hard_brake, _ = total["behaviours"]
    assert phone_use["seconds"] == hard_brake["rate"] == 1.7976931348623157e308
    assert (hard_brake["count"], hard_brake["points_lost"], total["fm_score"]) == (2**63 - 1, 20, 45.0)
