"""No key reveals what it does not open: responses are identical, bit for bit, if all else does not exist.

Two databases, one of two fleets and one of the first fleet or of one driver of it alone, are asked the same with the
same key at the same time.
"""

import random
from collections import Counter
from urllib.parse import urlencode

import pytest
from limits import parse
from pymongo import MongoClient

from app.config import API
from app.middleware.auth import PUBLIC_ENDPOINTS, REPORT_FILE_ENDPOINT
from app.report_links import ReportLinkSigner
from app.services import get_services
from app.store import Store
from app.store.changes import find_changes
from app.store.reports import BUCKET
from app.store.scope import Scope
from scripts.mongodb.connection import prepare_collections
from scripts.reports.build import build_report
from tests import store_contents
from tests.conftest import Service
from tests.factories import make_driver, make_event, make_trip

REQUESTS = 300
# The beginning of one is the other: a query by prefix would find both.
MINE, THEIRS = "acme", "acme2"
SETTINGS = {"secret_key": "secret", "public_base_url": "http://x"}
SETTINGS |= dict.fromkeys(("rate_limit", "driver_rate_limit"), parse("1000000000 per minute"))
MONDAY, DATES = "2026-03-09", [f"2026-03-{date:02}" for date in range(2, 18)]
REPORT_DATES = {MINE: ["2026-03-16"], THEIRS: ["2026-03-16", "2026-03-09"]}
# Whose ids only one has, and whose both have, with other contents.
SHARED = [f"d{n}" for n in range(5)]
DRIVERS = {MINE: [f"d1{n}" for n in range(20)], THEIRS: [f"d1{n}x" for n in range(140)]}
UNKNOWN = ["nobody", "d", "d1", "d9x"]
MASKS = ["*", "{}", "count", "{count,nope}", "drivers{driver_id}", "trips{trip_id,driver_id},*", "total{fm_score}"]
MASKS += ["data{driver_info{last_name}}", "data{driving_summary{fm_score}}", "trips{"]
KINDS = ["*/*", "application/geo+json", "application/problem+json", "text/html"]


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
    drivers = [make_driver(name, first_name=f"of {fleet}", alias=f"{fleet} {name}") for name in SHARED + DRIVERS[fleet]]
    store_contents.load(db, *trips_of(fleet), drivers=drivers, fleet=fleet)
    for report_date in REPORT_DATES[fleet]:
        build_report(Store.of(db), fleet, report_date)


def copy(both, alone, scope):
    """Copy all that is the fleet's, or one driver's."""
    files = {"$regex": f"^{scope.fleet}\t"}
    own = {f"{BUCKET}.files": {"_id": files}, f"{BUCKET}.chunks": {"files_id": files}, "fleets": {"_id": scope.fleet}}
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
    """Makes up requests for the ids of the other fleet, most of them amid others: a method for each endpoint.

    Each returns a path and its parameters, of which those that are None are left out.
    """

    def __init__(self, service, seed):
        self.rng, self.signer = random.Random(seed), ReportLinkSigner(get_services(service.app).config)
        self.key_ids = {key["fleet"]: key["key_id"] for key in service.db["keys"].find()}
        self.cursors = [
            find_changes(service.store, fleet, cursor=None, limit=limit, processing_delay_hours=4.0)["cursor"]
            for fleet in (MINE, THEIRS)
            for limit in (1, 5, 1000)
        ]
        self.drivers = SHARED * 5 + DRIVERS[THEIRS] + DRIVERS[MINE] + UNKNOWN
        trips = [trip for fleet in (THEIRS, THEIRS, MINE) for trip in trips_of(fleet)]
        self.trips = {name: [trip[name] for trip in trips] for name in ("trip_id", "tracking_id")}

    def target(self, endpoint):
        """Return a path and query below the API for an endpoint."""
        path, query = getattr(self, endpoint.partition(".")[2])()
        query = {name: value for name, value in query.items() if value is not None}
        return f"{path}?{urlencode(query, doseq=True)}"

    def headers(self):
        """Return the headers that a response may depend on."""
        named = {"X-Fields": self.some(MASKS), "Accept": self.some(KINDS), "Accept-Encoding": self.some(["gzip"])}
        return {name: value for name, value in named.items() if value is not None}

    def some(self, choices):
        """Return one of the choices, or most often nothing."""
        return self.rng.choice(choices) if self.rng.random() < 0.3 else None

    def list_drivers(self):
        return "/drivers", {**self.some_page(), "search": self.some([*self.drivers, "a", "d 1", " "])}

    def some_page(self):
        return {"page": self.some(range(1, 6)), "limit": self.some([1, 2, 5, 50, 99, 100, 101])}

    def list_driver_trips(self):
        query = {"start_date": self.rng.choice(DATES), "end_date": self.some(DATES), **self.some_page()}
        return f"/driver/{self.rng.choice(self.drivers)}/trips", query

    def list_trips(self):
        name = self.rng.choice(list(self.trips))
        return f"/trip/{name}/{self.rng.choice(self.trips[name])}", {"page": self.some(range(1, 5))}

    def get_daily_driver_aggregate(self):
        choices = [SHARED, SHARED + DRIVERS[THEIRS][:15], SHARED + DRIVERS[MINE], self.drivers]
        several = self.rng.choices(self.rng.choice(choices), k=self.rng.randint(1, 20))
        return "/driver-aggregate/daily", {"start_date": self.rng.choice(DATES), "driver_id": several}

    def get_weekly_driver_aggregate(self):
        _, query = self.get_daily_driver_aggregate()
        return "/driver-aggregate/weekly", {**query, "start_date": MONDAY}

    def get_monthly_driver_aggregate(self):
        _, query = self.get_daily_driver_aggregate()
        return "/driver-aggregate/monthly", {**query, "start_date": f"{MONDAY[:7]}-01"}

    def get_window_driver_aggregate(self):
        _, query = self.get_daily_driver_aggregate()
        drivers = self.rng.choice([{"driver_id": query["driver_id"]}, self.some_page()])
        query = {"start_date": self.rng.choice(DATES), "end_date": self.some(DATES), **drivers}
        return "/driver-aggregate/window", query

    def get_driver_score(self):
        window = {"start_date": self.rng.choice(DATES), "end_date": self.some(DATES)}
        return f"/driver/{self.rng.choice(self.drivers)}/score", {**window, "interval": self.some(["day", "month"])}

    def get_ranking(self):
        query = self.some_page()
        period, start_date = self.rng.choice([("week", MONDAY), ("week", "2026-03-16"), ("month", "2026-03-01")])
        query |= {"order": self.some(["worst", "best"]), "min_distance_miles": self.some(["0", "5", "9.5", "50"])}
        return "/ranking", {**query, "period": period, "start_date": start_date}

    def list_changes(self):
        """A cursor of either fleet, most of them of the beginning or the end of its feed."""
        return "/changes", {"cursor": self.rng.choice([None, *self.cursors, "x"]), "limit": self.some([1, 5, 1000])}

    def get_report_links(self):
        return "/report", {"report_time": f"{self.rng.choice(REPORT_DATES[THEIRS])}T00:00:00"}

    def get_report_file(self):
        """A link of a fleet's report for the key of another, of the parts of two links, or to what they alone have."""
        date, file = self.rng.choice(REPORT_DATES[THEIRS]), self.rng.choice(["csv", "page"])
        links = {
            (fleet, owner): self.signer.build_url("", fleet, date, file, key_id, 2**50).rpartition("/")[2]
            for fleet in (MINE, THEIRS)
            for owner, key_id in self.key_ids.items()
        }
        theirs, mine = links.pop((THEIRS, THEIRS)), links[MINE, MINE]
        swapped = theirs.partition(".")[0] + "." + mine.partition(".")[2]
        return f"/report/{self.rng.choice([swapped, *links.values()])}", {}


def get_response(service, scope, target, headers):
    """Return status, headers and body of the response to a request with a key of the scope."""
    fleet, driver = scope
    sent = {"X-Request-ID": "same", **headers}
    response = service.get(target, fleet=fleet, driver=driver, headers=sent, buffered=True)
    return response.status_code, dict(response.headers), response.data


@pytest.mark.large
@pytest.mark.parametrize(("scope", "others"), [(Scope(MINE), Scope(THEIRS)), (Scope(MINE, SHARED[0]), Scope(MINE))])
def test_no_response_depends_on_another_fleet_or_driver(twins, scope, others, report):
    service, twin = twins
    generator, counts = RequestGenerator(service, 0), Counter()
    rules = {rule.endpoint for rule in service.app.url_map.iter_rules() if rule.rule.startswith(API)}
    endpoints = sorted(rules - PUBLIC_ENDPOINTS | ({REPORT_FILE_ENDPOINT} if scope.driver_id is None else set()))
    for endpoint in endpoints:
        for _ in range(REQUESTS):
            target, headers = generator.target(endpoint), generator.headers()
            if generator.some([True]):
                status, theirs, _ = get_response(service, others, target, headers)
                counts[endpoint] += status == 200
                headers["If-None-Match"] = theirs.get("ETag", "*")
            responses = [get_response(each, scope, target, headers) for each in (service, twin)]
            assert responses[0] == responses[1], (target, headers)
    report(
        f"ids of others ({scope.kind} key): {REQUESTS:,} requests of {len(endpoints)} endpoints each, as if not there"
    )
    assert min(counts[endpoint] for endpoint in endpoints if endpoint != REPORT_FILE_ENDPOINT) > REQUESTS / 40
