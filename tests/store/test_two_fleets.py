"""No key reveals what it does not open: responses are identical, bit for bit, if all else does not exist.

Two databases, one of two fleets and one of the first fleet or of one driver of it alone, are asked the same with the
same key at the same time.
"""

import random
from collections import Counter

import pytest
from pymongo import MongoClient

from app.store import Store
from app.store.changes import find_changes
from app.store.scope import Scope
from schemas.report import ReportWindow
from scripts.mongodb.collections import prepare_collections
from scripts.reports.build import build_report
from tests import store_contents
from tests.conftest import NO_LIMITS, Service
from tests.factories import make_driver, make_event, make_trip
from tests.operations import OPERATIONS, get_start_date, make_target, parameters_of

# `make test` makes the first requests of those that `make test-large` makes.
REQUESTS = [15, pytest.param(300, marks=pytest.mark.large)]
# The beginning of one is the other: a query by prefix would find both.
MINE, THEIRS = "acme", "acme2"
SETTINGS = {"secret_key": "secret", "public_base_url": "http://x", **NO_LIMITS}
DATES = [f"2026-03-{date:02}" for date in range(2, 18)]
REPORT_DATES = {MINE: ["2026-03-16"], THEIRS: ["2026-03-16", "2026-03-09"]}
# Whose ids only one has, and whose both have, with other contents.
SHARED = [f"d{n}" for n in range(5)]
DRIVERS = {MINE: [f"d1{n}" for n in range(20)], THEIRS: [f"d1{n}x" for n in range(140)]}
# Of both; each has one of its own name as well.
GROUPS = ["North", "South", "East"]
UNKNOWN = ["nobody", "d", "d1", "d9x"]
MASKS = ["*", "{}", "count", "{count,nope}", "drivers{driver_id}", "trips{trip_id,driver_id},*", "total{fm_score}"]
MASKS += ["data{driver_info{last_name}}", "data{driving_summary{fm_score}}", "trips{"]
KINDS = ["*/*", "application/geo+json", "application/problem+json", "text/csv"]


def trips_of(fleet):
    """Return lines of a trips file: shared ids and the fleet's own, of trips, drivers and tracking ids."""
    trips = []
    for n, driver_id in enumerate(SHARED + DRIVERS[fleet][:15]):
        for m, date in enumerate(DATES[n % 2 :: 2]):
            own = "" if driver_id in SHARED and m % 2 else f"-{fleet}"
            named = {"trip_id": f"t{n}-{date}{own}", "tracking_id": f"k{m % 4}{own}", "distance_miles": n + len(fleet)}
            trip = make_trip(f"{date}T08:{len(fleet):02}", driver_id, **named)
            trips.append({**trip, "events": [make_event(trip["trip_start_time"])]})
    return trips


def load(db, fleet):
    """Load a fleet, and build its reports."""
    drivers = [
        make_driver(name, first_name=f"of {fleet}", alias=f"{fleet} {name}", groups=GROUPS[n % 2 :: 2] + [fleet])
        for n, name in enumerate(SHARED + DRIVERS[fleet])
    ]
    store_contents.load(db, *trips_of(fleet), drivers=drivers, fleet=fleet)
    for report_date in REPORT_DATES[fleet]:
        build_report(Store.of(db), fleet, ReportWindow(report_date))


def copy(both, alone, scope):
    """Copy all that is the fleet's, or one driver's."""
    own = {"fleets": {"_id": scope.fleet}}
    for name in both.list_collection_names():
        if documents := list(both[name].find(own.get(name, scope.match()))):
            alone[name].insert_many(documents)


@pytest.fixture
def twins(mongod_uri, clock, scope):
    """The service on a database of both fleets, and on one of what the scope has alone, with the same keys."""
    with MongoClient(mongod_uri) as client:
        both, alone = client["both"], client["alone"]
        for db in (both, alone):
            prepare_collections(Store.of(db))
        for fleet in (MINE, THEIRS):
            load(both, fleet)
        service, twin = Service(both, **SETTINGS), Service(alone, **SETTINGS)
        for each in (Scope(MINE), Scope(THEIRS), scope):
            service.key(*each)
        twin.keys.update(service.keys)
        copy(both, alone, scope)
        yield service, twin
        client.drop_database("both")
        client.drop_database("alone")


class RequestGenerator:
    """Makes up requests for the ids of the other fleet, most of them amid others."""

    def __init__(self, service, seed):
        self.rng = random.Random(seed)
        trips = [trip for fleet in (THEIRS, THEIRS, MINE) for trip in trips_of(fleet)]
        # The values of parameters. A parameter that is not here gets one that the OpenAPI document lists, or a name.
        self.values = {
            "driver_id": SHARED * 20 + DRIVERS[THEIRS] + DRIVERS[MINE] * 5 + UNKNOWN,
            **{name: [trip[name] for trip in trips] for name in ("trip_id", "tracking_id")},
            "start_date": DATES,
            "end_date": DATES[7:],
            "search": [*SHARED, *UNKNOWN, "a", "d 1", " "],
            "min_distance_miles": ["0", "5", "9.5", "50"],
            "min_seconds": ["0", "1", "100"],
            "min_over_mph": ["0", "5"],
            "bbox": ["-180,-90,180,90", "-97,41,-96,42"],
            "at": [trip["trip_end_time"] for trip in trips],
            "event_type": [1, 2, 7, 9],
            "limit": [1, 2, 5, 50, 99, 100, 101],
            "page": range(1, 6),
            "group": [*GROUPS, MINE, THEIRS, "nobody"],
            "report_time": [f"{date}T00:00:00" for date in REPORT_DATES[THEIRS]],
            "cursor": ["x", *make_cursors(service)],
        }

    def make_target(self, path):
        """Return a path and query below the API for an operation."""
        chosen = {}
        for name, parameter in parameters_of(path).items():
            if parameter["in"] != "header":
                kind = chosen["filter_param"] if name == "filter_value" else name
                chosen[name] = self.choose(path, kind, parameter)
        if chosen.get("at"):
            chosen |= {"start_date": None, "end_date": None}
        return make_target(path, **chosen)

    def choose(self, path, name, parameter):
        """Return a value of a parameter; of one that may be left out, most often None."""
        if not parameter["required"] and self.rng.random() > 0.3:
            return None
        schema, values = parameter["schema"], self.values
        choices = schema.get("enum") or values.get(name) or SHARED
        if name == "start_date" and self.rng.random() < 0.8:
            return get_start_date(path)
        if name == "event_type":
            return self.rng.sample(choices, k=2)
        if schema["type"] == "array":
            several = self.rng.choice([SHARED, SHARED + DRIVERS[THEIRS][:15], SHARED + DRIVERS[MINE], choices])
            return self.rng.choices(several, k=self.rng.randint(1, 20))
        return self.rng.choice(choices)

    def make_headers(self):
        """Return headers that a response may depend on, and often none."""
        choices = {"X-Fields": MASKS, "Accept": KINDS, "Accept-Encoding": ["gzip"]}
        return {name: self.rng.choice(values) for name, values in choices.items() if self.rng.random() < 0.3}


def make_cursors(service):
    """Return cursors of both fleets, of the beginning and the end of their feeds."""
    return [
        find_changes(service.store, fleet, limit=limit, processing_delay_hours=4.0)["cursor"]
        for fleet in (MINE, THEIRS)
        for limit in (1, 5, 1000)
    ]


def get_response(service, scope, target, headers):
    """Return status, headers and body of the response to a request with a key of the scope."""
    fleet, driver = scope
    sent = {"X-Request-ID": "same", **headers}
    response = service.get(target, fleet=fleet, driver=driver, headers=sent, buffered=True)
    return response.status_code, dict(response.headers), response.data


@pytest.mark.parametrize("requests", REQUESTS)
@pytest.mark.parametrize(("scope", "others"), [(Scope(MINE), Scope(THEIRS)), (Scope(MINE, SHARED[0]), Scope(MINE))])
def test_no_response_depends_on_another_fleet_or_driver(twins, scope, others, report, requests):
    service, twin = twins
    generator, found = RequestGenerator(service, 0), Counter()
    paths = [path for path in OPERATIONS if "429" in OPERATIONS[path]["responses"]]
    for path in paths:
        for _ in range(requests):
            target, headers = generator.make_target(path), generator.make_headers()
            status, theirs, _ = get_response(service, others, target, headers)
            found[path] += status == 200
            if "ETag" in theirs and generator.rng.random() < 0.3:
                headers["If-None-Match"] = theirs["ETag"]
            responses = [get_response(each, scope, target, headers) for each in (service, twin)]
            assert responses[0] == responses[1], (target, headers)
    report(f"ids of others ({scope.kind} key): {requests:,} requests of {len(paths)} endpoints each, as if not there")
    assert min(found[path] for path in paths) > requests / 10
