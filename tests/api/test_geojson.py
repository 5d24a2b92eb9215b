"""GET /trip/{filter_param}/{filter_value} as GeoJSON (RFC 7946)."""

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.fields import example
from schemas.geojson import make_map
from schemas.page import TripDetailPage
from tests.api.test_openapi import assert_valid
from tests.factories import make_event, make_point, make_speeding, make_trip
from tests.operations import OPERATIONS, REPORT, make_target, resolved
from tests.store_contents import load as load_documents

GEO_JSON, GPX = "application/geo+json", "application/gpx+xml"
START = 1_773_129_600_000  # 2026-03-10T08:00
WITHOUT_A_MAP = [
    path
    for path, operation in OPERATIONS.items()
    if path != REPORT and [*resolved(operation["responses"]["200"])["content"]] == ["application/json"]
]
DESCRIBED = OPERATIONS["/api/v1/trip/{filter_param}/{filter_value}"]["responses"]["200"]["content"][GEO_JSON]


def get_map(service, path="/trip/trip_id/t1", accept=GEO_JSON, *, headers=(), **options):
    return service.get(path, headers={"Accept": accept, **dict(headers)}, **options)


def example_trip():
    """Return the trip that the examples of the document speak of."""
    return {**example(TripDetailPage())["trips"][0], "tracking_id": None}


def features(response):
    assert (response.status_code, response.content_type) == (200, GEO_JSON), response.text
    assert_valid(DESCRIBED["schema"], json.loads(response.text))
    return json.loads(response.text)["features"]


def trip_feature(*places):
    """Return what becomes of a trail of (longitude, latitude) with ten seconds between two points."""
    trail = [
        make_point(START + 10_000 * number, longitude=longitude, latitude=latitude)
        for number, (longitude, latitude) in enumerate(places)
    ]
    page = {**example(TripDetailPage()), "trips": [make_trip(trail_path=trail)]}
    ((feature,),) = make_map(page)["features"]
    return feature


def line(*places):
    """Return the geometry of such a trail."""
    return trip_feature(*places)["geometry"]


def test_a_trip_is_a_line_with_its_summary(service, load):
    load(make_trip(trip_id="t1"))
    (feature,) = features(get_map(service))
    trip = service.get("/trip/trip_id/t1").json["trips"][0]
    summary = {name: trip[name] for name in trip if name not in ("focus_area", "trail_path", "events")}
    assert feature["geometry"] == {"type": "LineString", "coordinates": [[-96.5, 41.25], [-96.6, 41.3]]}
    times = [point["timestamp"] for point in trip["trail_path"]]
    assert list(feature["properties"].items()) == [*summary.items(), ("kind", "trip"), ("coordTimes", times)]
    assert {**feature, "geometry": 0, "properties": 0} == {
        "type": "Feature",
        "kind": "trip",
        "id": "t1",
        "geometry": 0,
        "properties": 0,
    }


def test_an_event_is_a_point_where_it_began_with_its_fields_and_its_trip(service, load):
    event = make_speeding(START) | {"event_start_longitude": -96.25, "event_start_latitude": 41.5}
    load(make_trip(trip_id="t1", events=[event]))
    _, feature = features(get_map(service))
    point = {"type": "Point", "coordinates": [-96.25, 41.5]}
    properties = {**event, "trip_id": "t1", "kind": "event"}
    assert feature == {"type": "Feature", "kind": "event", "geometry": point, "properties": properties}


def test_trips_come_oldest_first_each_followed_by_its_events(service, load):
    events = [make_event(START + second) for second in range(3)]
    load(make_trip("2026-03-10T09:00", trip_id="t2", tracking_id="k", events=events[:1]))
    load(make_trip("2026-03-10T08:00", trip_id="t1", tracking_id="k", events=events))
    result = features(get_map(service, "/trip/tracking_id/k"))
    shown = [feature["properties"].get("event_start_timestamp", feature.get("id")) for feature in result]
    assert shown == ["t1", START, START + 1, START + 2, "t2", START]


def test_a_trail_of_fewer_than_two_points_has_no_geometry(service, load):
    load(*(make_trip(tracking_id="k", trail_path=[make_point(START)] * points) for points in (0, 1)))
    shown = features(get_map(service, "/trip/tracking_id/k"))
    assert [(feature["geometry"], feature["properties"]["coordTimes"]) for feature in shown] == [(None, [])] * 2


def test_each_position_of_a_trail_that_is_cut_has_its_time():
    times = trip_feature((178, 10), (-179, 14), (-178, 14))["properties"]["coordTimes"]
    assert times == [[START, START + 6_667], [START + 6_667, START + 10_000, START + 20_000]]


@pytest.mark.parametrize(
    ("places", "parts"),
    [
        ([(179, 10), (-177, 14)], [[[179, 10], [180, 11]], [[-180, 11], [-177, 14]]]),
        (
            [(179, 0), (-179, 0), (179, 0)],
            [[[179, 0], [180, 0]], [[-180, 0], [-179, 0], [-180, 0]], [[180, 0], [179, 0]]],
        ),
    ],
)
def test_a_trail_across_the_antimeridian_is_cut_there(places, parts):
    assert line(*places) == {"type": "MultiLineString", "coordinates": parts}


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-180, 180), st.floats(-90, 90)), min_size=2))
def test_no_line_goes_more_than_half_way_round(places):
    result = line(*places)
    assert_valid({"$ref": f"#/components/schemas/{result['type']}"}, result)
    parts = result["coordinates"] if result["type"] == "MultiLineString" else [result["coordinates"]]
    assert all(abs(right - left) <= 180 for part in parts for (left, _), (right, _) in itertools.pairwise(part))


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([(180, 1), (-180, 2)], [[-180, 1], [-180, 2]]),
        ([(180, 1), (-179, 2)], [[-180, 1], [-179, 2]]),
        ([(179, 1), (-180, 2)], [[179, 1], [180, 2]]),
        ([(180, 1), (-180, 1)], [[180, 1], [-180, 1]]),
        ([(-90, 0), (90, 0)], [[-90, 0], [90, 0]]),
    ],
)
def test_a_trail_that_only_touches_the_antimeridian_or_does_not_is_whole(places, expected):
    assert line(*places) == {"type": "LineString", "coordinates": expected}


@pytest.mark.parametrize("accept", [GEO_JSON, GPX])
def test_trips_that_are_too_long_together_are_refused_and_given_one_by_one(service, load, accept, monkeypatch):
    for name in ("MAX_WHOLE_LENGTH", "MAX_PARSED_LENGTH"):
        monkeypatch.setattr(f"app.store.rendered.{name}", 1_000)
    load(*(make_trip(trip_id=f"t{number}", tracking_id="k") for number in range(2)))
    refused = get_map(service, "/trip/tracking_id/k", accept)
    assert refused.status_code == 400
    assert "Request each trip by its trip_id" in refused.json["errors"]["Accept"][0]
    assert [get_map(service, f"/trip/trip_id/t{number}", accept).status_code for number in range(2)] == [200, 200]


def test_a_map_is_paged_as_trips_are(service, load):
    load(*(make_trip(trip_id=f"t{number}", tracking_id="k") for number in range(7)))
    pages = [get_map(service, "/trip/tracking_id/k", page=page) for page in (1, 2, 3)]
    assert [[feature["id"] for feature in features(page)][-1:] for page in pages] == [["t4"], ["t6"], []]
    second = {"type": "FeatureCollection", "count": 7, "current_page": 2, "next_page": None, "limit": 5}
    assert list(json.loads(pages[1].text).items())[:-1] == list(second.items())


@pytest.fixture(scope="module")
def loaded(shared_service):
    """The service with the trip of the examples."""
    load_documents(shared_service.db, example_trip())
    return shared_service


TRIP = f"/trip/trip_id/{example_trip()['trip_id']}"


@pytest.mark.parametrize("mask", ["{}", "{count", "count{x}"])
def test_a_map_ignores_masks(loaded, mask):
    plain, masked = get_map(loaded, TRIP), get_map(loaded, TRIP, headers={"X-Fields": mask})
    assert (masked.data, masked.headers["ETag"]) == (plain.data, plain.headers["ETag"])


JSON = "application/json"
CHOICES = {
    GEO_JSON: ["APPLICATION/Geo+JSON; charset=utf-8", f"{GEO_JSON};q=0.9, {JSON};q=0.1, */*", f"{GPX}, {GEO_JSON}"],
    GPX: [f"{GEO_JSON};q=0.5, {GPX}", f"{GPX}, {JSON};q=0.9"],
    JSON: [f"{JSON}, {GEO_JSON}", f"{GEO_JSON};q=0.9, */*", f"{GEO_JSON};q=0", "*/*", "", "garbage;;;,"],
}


@pytest.mark.parametrize(("expected", "accept"), [(name, text) for name, texts in CHOICES.items() for text in texts])
def test_a_client_gets_the_media_type_that_it_names_and_prefers(loaded, accept, expected):
    response = get_map(loaded, TRIP, accept=accept)
    assert response.content_type.removesuffix("; charset=utf-8") == expected
    assert expected != "application/json" or response.data == loaded.get(TRIP).data


def test_the_example_of_the_document_is_the_response_of_the_service(loaded):
    response = get_map(loaded, TRIP)
    assert response.text == json.dumps(DESCRIBED["example"], separators=(",", ":"))


@pytest.mark.parametrize("accept", [GEO_JSON, GPX])
def test_each_media_type_has_an_etag_of_its_own_which_changes_with_the_trip(service, load, accept):
    load(make_trip(trip_id="t1"))
    own, json_etag = (get_map(service, accept=name).headers["ETag"] for name in (accept, "application/json"))
    not_modified = get_map(service, accept=accept, headers={"If-None-Match": own})
    assert (not_modified.status_code, not_modified.data, not_modified.headers["ETag"]) == (304, b"", own)
    assert service.get("/trip/trip_id/t1", headers={"If-None-Match": own}).status_code == 200
    assert get_map(service, accept=accept, headers={"If-None-Match": json_etag}).status_code == 200
    load(make_trip(trip_id="t1", distance_miles=11.0))
    assert get_map(service, accept=accept, headers={"If-None-Match": own}).status_code == 200


@pytest.mark.parametrize("path", WITHOUT_A_MAP)
def test_other_endpoints_return_json(loaded, path):
    plain, response = loaded.get(make_target(path)), get_map(loaded, make_target(path))
    assert (response.status_code, response.content_type, response.data) == (200, "application/json", plain.data)


@pytest.mark.parametrize("accept", ["application/json", GEO_JSON, GPX])
def test_all_media_types_have_the_same_vary_header(loaded, accept):
    response = get_map(loaded, TRIP, accept=accept)
    not_modified = get_map(loaded, TRIP, accept=accept, headers={"If-None-Match": response.headers["ETag"]})
    assert set(response.vary) == set(not_modified.vary) == {"Accept", "X-Fields", "Accept-Encoding"}


@pytest.mark.parametrize("accept", [GEO_JSON, GPX])
@pytest.mark.parametrize(("path", "status"), [("/trip/trip_id/t1?page=0", 400), ("/trip/driver_id/t1", 404)])
def test_errors_are_json(service, path, status, accept):
    response = get_map(service, path, accept)
    assert (response.status_code, response.content_type) == (status, "application/json")
