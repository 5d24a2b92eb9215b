"""GET /trip/{filter_param}/{filter_value} as GeoJSON (RFC 7946)."""

import gzip
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.geojson import trip_map
from schemas.introspection import example
from schemas.page import TripDetailPage
from tests.api.test_openapi import OF_RECORDS, OPERATIONS, asked, fits
from tests.factories import make_event, make_point, make_trip

GEO_JSON = "application/geo+json"
START = 1_773_129_600_000  # 2026-03-10T08:00
DESCRIBED = OPERATIONS["/api/v1/trip/{filter_param}/{filter_value}"]["responses"]["200"]["content"][GEO_JSON]


def ask(service, path="/trip/trip_id/t1", accept=GEO_JSON, *, headers=(), **options):
    return service.get(path, headers={"Accept": accept, **dict(headers)}, **options)


def example_trip():
    """Return the trip that the examples of the document speak of."""
    return {**example(TripDetailPage())["trips"][0], "tracking_id": None}


def features(answer):
    assert (answer.status_code, answer.content_type) == (200, GEO_JSON), answer.text
    fits(DESCRIBED["schema"], json.loads(answer.text))
    return json.loads(answer.text)["features"]


def line(*places):
    """Return what becomes of a trail of (longitude, latitude)."""
    trail = [make_point(START, longitude=longitude, latitude=latitude) for longitude, latitude in places]
    page = {**example(TripDetailPage()), "trips": [make_trip(trail_path=trail)]}
    (feature,) = trip_map(page)["features"]
    return feature["geometry"]


def test_a_trip_is_a_line_with_its_summary(service, load):
    load(make_trip(trip_id="t1"))
    (feature,) = features(ask(service))
    trip = service.get("/trip/trip_id/t1").json["trips"][0]
    summary = {name: trip[name] for name in trip if name not in ("focus_area", "trail_path", "events")}
    assert feature["geometry"] == {"type": "LineString", "coordinates": [[-96.5, 41.25], [-96.6, 41.3]]}
    assert list(feature["properties"].items()) == list(summary.items())
    assert {**feature, "geometry": 0, "properties": 0} == {
        "type": "Feature",
        "id": "t1",
        "geometry": 0,
        "properties": 0,
    }


def test_an_event_is_a_point_where_it_began_with_its_fields_and_its_trip(service, load):
    speeds = {"user_speed_mph": 50.5, "speed_limit_mph": 35, "max_user_speed_mph": 61.0}
    speeding = {"event_type": 9, "event_name": "OVERSPEEDING", "event_data": speeds}
    event = make_event(START, event_start_longitude=-96.25, event_start_latitude=41.5, **speeding)
    load(make_trip(trip_id="t1", events=[event]))
    _, feature = features(ask(service))
    point = {"type": "Point", "coordinates": [-96.25, 41.5]}
    assert feature == {"type": "Feature", "geometry": point, "properties": {**event, "trip_id": "t1"}}


def test_trips_come_oldest_first_each_followed_by_its_events(service, load):
    events = [make_event(START + second) for second in range(3)]
    load(make_trip("2026-03-10T09:00", trip_id="t2", tracking_id="k", events=events[:1]))
    load(make_trip("2026-03-10T08:00", trip_id="t1", tracking_id="k", events=events))
    found = features(ask(service, "/trip/tracking_id/k"))
    shown = [feature["properties"].get("event_start_timestamp", feature.get("id")) for feature in found]
    assert shown == ["t1", START, START + 1, START + 2, "t2", START]


@pytest.mark.parametrize("points", [0, 1])
def test_a_trail_of_fewer_than_two_points_has_no_geometry(service, load, points):
    load(make_trip(trip_id="t1", trail_path=[make_point(START)] * points))
    (feature,) = features(ask(service))
    assert feature["geometry"] is None


def test_numbers_are_those_of_the_trail(service, load):
    load(make_trip(trip_id="t1", trail_path=[make_point(START, longitude=-7, latitude=0.1 + 0.2)] * 2))
    assert "[[-7,0.30000000000000004],[-7,0.30000000000000004]]" in ask(service).text


@pytest.mark.parametrize(
    ("places", "parts"),
    [
        ([(179, 10), (-177, 14)], [[[179, 10], [180, 11]], [[-180, 11], [-177, 14]]]),
        ([(-179, 10), (179, 12)], [[[-179, 10], [-180, 11]], [[180, 11], [179, 12]]]),
        (
            [(179, 0), (-179, 0), (179, 0)],
            [[[179, 0], [180, 0]], [[-180, 0], [-179, 0], [-180, 0]], [[180, 0], [179, 0]]],
        ),
    ],
)
def test_a_trail_across_the_antimeridian_is_cut_there(places, parts):
    assert line(*places) == {"type": "MultiLineString", "coordinates": parts}
    fits({"$ref": "#/components/schemas/MultiLineString"}, line(*places))


@given(st.lists(st.tuples(st.floats(-180, 180), st.floats(-90, 90)), min_size=2))
def test_no_line_goes_more_than_half_way_round(places):
    found = line(*places)
    fits({"$ref": f"#/components/schemas/{found['type']}"}, found)
    parts = found["coordinates"] if found["type"] == "MultiLineString" else [found["coordinates"]]
    assert all(abs(right - left) <= 180 for part in parts for (left, _), (right, _) in itertools.pairwise(part))


@pytest.mark.parametrize(
    ("places", "kept"),
    [
        ([(180, 1), (-180, 2)], [[-180, 1], [-180, 2]]),
        ([(180, 1), (-179, 2)], [[-180, 1], [-179, 2]]),
        ([(179, 1), (-180, 2)], [[179, 1], [180, 2]]),
        ([(180, 1), (-180, 1)], [[180, 1], [-180, 1]]),
    ],
)
def test_a_trail_that_only_touches_the_antimeridian_is_whole(places, kept):
    assert line(*places) == {"type": "LineString", "coordinates": kept}


@pytest.mark.parametrize("places", [[(-1, 50), (1, 50)], [(-90, 0), (90, 0)], [(179, 0), (180, 0)]])
def test_other_trails_are_one_line(places):
    assert line(*places) == {"type": "LineString", "coordinates": list(map(list, places))}


def test_a_map_is_paged_as_trips_are(service, load):
    load(*(make_trip(f"2026-03-{number + 10}T08:00", trip_id=f"t{number}", tracking_id="k") for number in range(7)))
    pages = [ask(service, "/trip/tracking_id/k", page=page) for page in (1, 2, 3)]
    assert [[feature["id"][1:] for feature in features(page)] for page in pages] == [list("01234"), list("56"), []]
    members = [list(json.loads(page.text).items())[:-1] for page in pages]
    shared = [("type", "FeatureCollection"), ("count", 7)]
    told = [[("current_page", at), ("next_page", then), ("limit", 5)] for at, then in ((1, 2), (2, None), (3, None))]
    assert members == [shared + own for own in told]


@pytest.mark.parametrize("mask", ["count", "{}", "{count", "count{x}", "trips{trip_id}", "features"])
def test_a_mask_does_not_apply_be_it_broken(service, load, mask):
    load(make_trip(trip_id="t1"))
    masked = ask(service, headers={"X-Fields": mask})
    assert (masked.data, masked.headers["ETag"]) == (ask(service).data, ask(service).headers["ETag"])


@pytest.mark.parametrize(
    ("accept", "mapped"),
    [
        ("APPLICATION/Geo+JSON; charset=utf-8", True),
        ("application/json, application/geo+json", True),
        ("application/geo+json;q=0.9, text/html", True),
        ("application/geo+json, */*", True),
        ("application/geo+json;q=0.9, application/json;q=0.1, */*", True),
        ("application/geo+json;q=0.9, application/json", False),
        ("application/geo+json;q=0.9, */*", False),
        ("application/geo+json;q=0.9, application/*", False),
        ("application/geo+json;q=0", False),
        ("application/vnd.geo+json", False),
        ("application/geo+json2", False),
        ("application/*", False),
        ("*/*", False),
        ("", False),
        ("garbage;;;,", False),
    ],
)
def test_a_map_comes_to_those_who_name_it_and_like_it_no_less_than_json(service, load, accept, mapped):
    load(make_trip(trip_id="t1"))
    answer = ask(service, accept=accept)
    assert answer.content_type == (GEO_JSON if mapped else "application/json")
    assert mapped or answer.data == service.get("/trip/trip_id/t1").data


@pytest.mark.parametrize("accept", ["application/json", GEO_JSON])
def test_either_form_tells_caches_what_it_depends_on(service, load, accept):
    load(make_trip(trip_id="t1"))
    answer = ask(service, accept=accept)
    held = ask(service, accept=accept, headers={"If-None-Match": answer.headers["ETag"]})
    assert set(answer.vary) == set(held.vary) == {"Accept", "X-Fields", "Accept-Encoding"}


def test_whoever_holds_the_map_is_not_sent_it_again(service, load):
    load(make_trip(trip_id="t1"))
    tag = ask(service).headers["ETag"]
    held = ask(service, headers={"If-None-Match": tag})
    assert (held.status_code, held.data, held.headers["ETag"]) == (304, b"", tag)
    load(make_trip(trip_id="t1", distance_miles=11.0))
    assert ask(service, headers={"If-None-Match": tag}).status_code == 200


@pytest.mark.parametrize("mask", ["", GEO_JSON])
def test_whoever_holds_the_json_is_sent_the_map_and_the_other_way_round(service, load, mask):
    load(make_trip(trip_id="t1"))
    tags = [service.get("/trip/trip_id/t1", headers={"X-Fields": mask}).headers["ETag"], ask(service).headers["ETag"]]
    assert ask(service, headers={"If-None-Match": tags[0]}).status_code == 200
    assert service.get("/trip/trip_id/t1", headers={"X-Fields": mask, "If-None-Match": tags[1]}).status_code == 200


def test_a_long_map_comes_compressed_with_a_tag_of_its_own(service, load):
    load(make_trip(trip_id="t1", trail_path=[make_point(START)] * 100))
    plain, packed = ask(service), ask(service, headers={"Accept-Encoding": "gzip"})
    assert (packed.headers["Content-Encoding"], gzip.decompress(packed.data)) == ("gzip", plain.data)
    assert packed.headers["ETag"] == f'"{plain.headers["ETag"].strip(chr(34))}-gzip"'


def test_head_tells_what_get_tells(service, load):
    load(make_trip(trip_id="t1"))
    whole, head = ask(service), ask(service, method="HEAD")
    told = ("Content-Type", "Content-Length", "ETag", "Vary", "Cache-Control")
    assert [head.headers[name] for name in told] == [whole.headers[name] for name in told]
    assert (head.status_code, head.data) == (200, b"")


@pytest.mark.parametrize(("path", "status"), [("/trip/trip_id/t1?page=0", 400), ("/trip/driver_id/t1", 404)])
def test_errors_stay_json(service, path, status):
    answer = ask(service, path)
    assert (answer.status_code, answer.content_type) == (status, "application/json")


def test_a_map_takes_a_key(service):
    assert (ask(service, fleet=None).status_code, ask(service, fleet=None).json["error"]) == (401, "Unauthorized")


def test_another_fleets_trip_answers_as_one_that_does_not_exist(service, load):
    load(make_trip(trip_id="t1", tracking_id="k"), fleet="f2")
    for path in ("/trip/trip_id/t1", "/trip/tracking_id/k", "/trip/trip_id/nothing"):
        answer = ask(service, path)
        assert (features(answer), json.loads(answer.text)["count"]) == ([], 0)


def test_a_trip_that_ended_less_than_four_hours_ago_is_not_on_the_map_yet(service, load, clock):
    load(make_trip("2026-03-18T08:00", trip_id="t1"))
    empty = ask(service)
    assert features(empty) == []
    clock.move_to("2026-03-18T12:31:00Z")
    assert len(features(ask(service, headers={"If-None-Match": empty.headers["ETag"]}))) == 1


@pytest.mark.parametrize("path", [path for path in OF_RECORDS if "filter_param" not in path])
def test_other_endpoints_answer_json_as_ever(service, load, path):
    load(example_trip())
    path, query = asked(path, OPERATIONS[path])
    plain, answer = service.get(path, **query), ask(service, path, **query)
    assert (answer.status_code, answer.content_type, answer.data) == (200, "application/json", plain.data)
    assert "Accept" not in answer.vary


def test_the_example_of_the_document_is_what_the_service_answers(service, load):
    load(trip := example_trip())
    answer = ask(service, f"/trip/trip_id/{trip['trip_id']}")
    assert answer.text == json.dumps(DESCRIBED["example"], separators=(",", ":"))
