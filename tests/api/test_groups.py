"""GET /groups, and the parameter `group` of other endpoints."""

import pytest

from tests.factories import make_driver, make_event, make_event_summary, make_trip
from tests.store_contents import load as load_into

MONDAY = "2026-03-09"
# With what a URL, a header or a list could take apart, and letters that are written from right to left.
NAMES = ["\u05e6\u05e4\u05d5\u05df", "North, 2/3", '100% "x"; a=b&c', "\U0001d11e"]
NORTH = NAMES[1]
MEMBERS = {NORTH: ["d1", "d3", "d5"], NAMES[0]: ["d3"], NAMES[2]: ["d1"], NAMES[3]: ["d5", "d6"]}
PATHS = {
    "/drivers": {"limit": 2},
    "/ranking": {"period": "week", "start_date": MONDAY, "limit": 2},
    "/driver-aggregate/window": {"start_date": MONDAY, "limit": 2},
    "/trips": {"start_date": MONDAY},
    "/events": {"start_date": MONDAY},
}


def make_trips():
    """Return a trip of each driver, with an event; the lower the number of the driver, the worse."""
    trips = []
    for n in range(1, 7):
        worse = {
            "distance_miles": 100,
            "duration_seconds": 7200,
            "event_summary": make_event_summary(hard_brake_count=7 - n),
        }
        trips.append(make_trip(f"{MONDAY}T08:0{n}", f"d{n}", trip_id=f"t{n}", **worse))
    return [{**trip, "events": [make_event(trip["trip_start_time"])]} for trip in trips]


def make_drivers(members):
    """Return lines of drivers in these groups."""
    names = [f"d{n}" for n in range(7)]
    return [
        make_driver(name, alias=f"Cab {name}", groups=[group for group in members if name in members[group]])
        for name in names
    ]


@pytest.fixture(scope="module")
def fleet(shared_service):
    """Drivers d0 to d6 of f1, of whom d0 did not drive, in groups."""
    load_into(shared_service.db, *make_trips(), drivers=make_drivers(MEMBERS))
    theirs = make_driver("theirs", groups=["theirs"])
    load_into(shared_service.db, make_trip(f"{MONDAY}T08:00", "theirs"), drivers=[theirs], fleet="f2")
    return shared_service


def find_ids(page):
    """Return the driver of each element of a page."""
    (elements,) = (value for value in page.values() if isinstance(value, list))
    parts = [element.get("driver_info") or element.get("trip") or element for element in elements]
    return [part["driver_id"] for part in parts]


def test_the_groups_come_by_code_point_with_their_number_of_drivers(fleet):
    page = fleet.get("/groups?limit=3").json
    assert list(page) == ["count", "limit", "current_page", "next_page", "groups"]
    assert (page["count"], page["next_page"]) == (4, 2)
    groups = page["groups"] + fleet.get("/groups?limit=3&page=2").json["groups"]
    expected = [{"group": name, "driver_count": len(MEMBERS[name])} for name in sorted(MEMBERS)]
    assert groups == expected
    masked = fleet.get("/groups?limit=1", headers={"X-Fields": "groups{driver_count}"})
    assert masked.json == {"groups": [{"driver_count": expected[0]["driver_count"]}]}
    assert fleet.get("/groups", fleet="f2").json["groups"] == [{"group": "theirs", "driver_count": 1}]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", NAMES)
def test_a_list_has_the_drivers_of_the_group_alone(fleet, path, name):
    page = fleet.get(path, **PATHS[path], group=name).json
    assert find_ids(page) == MEMBERS[name][: PATHS[path].get("limit")]
    if "count" in page:
        assert page["count"] == len(MEMBERS[name])
        rest = fleet.get(path, **PATHS[path], group=name, page=2).json
        assert find_ids(rest) == MEMBERS[name][2:]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("name", "driver"), [("South", None), ("theirs", None), (NORTH, "d1"), (NORTH.lower(), None)])
def test_an_unknown_group_is_named_and_a_driver_key_knows_none(fleet, path, name, driver):
    response = fleet.get(path, **PATHS[path], group=name, driver=driver)
    if (path, driver) == ("/ranking", "d1"):
        assert response.status_code == 403
    else:
        assert (response.status_code, response.json["message"]) == (404, f"No group of this fleet: {name}")


def test_a_search_within_a_group(fleet):
    pages = [fleet.get("/drivers", search="cab", group=NORTH, limit=2, page=number).json for number in (1, 2)]
    assert [page["count"] for page in pages] == [3, 3]
    assert [*map(find_ids, pages)] == [["d1", "d3"], ["d5"]]
    assert find_ids(fleet.get("/drivers", search="3", group=NORTH).json) == ["d3"]
    assert fleet.get("/drivers", search="2", group=NORTH).json["count"] == 0


@pytest.mark.parametrize("behaviour", [None, "hard_brake"])
@pytest.mark.parametrize("order", ["worst", "best"])
def test_ranks_are_those_among_the_group(fleet, order, behaviour):
    query = {**PATHS["/ranking"], "order": order, **({"behaviour": behaviour} if behaviour else {})}
    rows = [row for page in (1, 2) for row in fleet.get("/ranking", **query, group=NORTH, page=page).json["drivers"]]
    assert [row["rank"] for row in rows] == [1, 2, 3]
    drivers = [row["driver_info"]["driver_id"] for row in rows]
    assert drivers == (MEMBERS[NORTH] if order == "worst" else MEMBERS[NORTH][::-1])
    whole = fleet.get("/ranking", **query | {"limit": 100}).json["drivers"]
    assert [row["driving_summary"] for row in rows] == [
        row["driving_summary"] for row in whole if row["driver_info"]["driver_id"] in drivers
    ]


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/trips", {"start_date": MONDAY, "order": "newest"}),
        ("/trips", {"start_date": MONDAY, "order": "worst"}),
        ("/trips", {"at": make_trips()[5]["trip_start_time"]}),
        ("/events", {"start_date": MONDAY, "order": "newest"}),
    ],
)
def test_a_list_by_cursor_has_the_group_in_each_order(fleet, path, query):
    page = fleet.get(path, **query, group=NORTH).json
    whole = fleet.get(path, **query).json
    assert find_ids(page) == [driver_id for driver_id in find_ids(whole) if driver_id in MEMBERS[NORTH]]
    kind = {"Accept": "application/geo+json"}
    features = fleet.get(path, **query, group=NAMES[0], headers=kind).json["features"]
    assert {feature["properties"]["trip_id"] for feature in features} == {"t3"}


@pytest.mark.parametrize("path", ["/driver-aggregate/window", "/trips", "/events"])
def test_a_group_beside_drivers_is_an_error_of_the_group(fleet, path):
    errors = fleet.errors(path, start_date=MONDAY, group=NORTH, driver_id=["d1", "d3"])
    assert errors == {"group": ["Must not be given together with driver_id."]}


@pytest.mark.parametrize("path", [*PATHS, "/fleet-aggregate"])
@pytest.mark.parametrize("group", ["", "..", "a\nb", "x" * 129, "\u05e6" * 65, ["North", "South"]])
def test_a_group_is_one_identifier(fleet, path, group):
    query = {"start_date": MONDAY, **PATHS.get(path, {})}
    if path == "/drivers":
        del query["start_date"]
    assert list(fleet.errors(path, **query, group=group)) == ["group"]


@pytest.mark.parametrize("name", ["depot", "Team", "tags", "groups"])
def test_other_names_of_the_parameter_are_known(fleet, name):
    assert fleet.errors(f"/drivers?{name}=x") == {name: ["Unknown parameter; did you mean group?"]}


def test_who_joins_a_group_changes_no_response_about_the_fleet_or_another_group(service):
    load_into(service.db, *make_trips(), drivers=make_drivers({"North": ["d1"], "South": ["d2", "d3"]}))
    targets = [(path, {**query, **group}) for path, query in PATHS.items() for group in ({}, {"group": "South"})]

    def get_all():
        responses = [service.get(path, **query) for path, query in targets]
        return [(response.headers["ETag"], response.data) for response in responses]

    before, of_north = get_all(), service.get("/drivers?group=North").headers["ETag"]
    load_into(service.db, drivers=make_drivers({"North": ["d1", "d2", "d4"], "South": ["d2", "d3"]}))
    assert get_all() == before
    assert service.get("/drivers?group=North").headers["ETag"] != of_north
