"""A stand-in for the original service: endpoints 1 to 3 as published, and nothing that this service adds."""

import datetime
import json
import socket
from collections import Counter
from urllib.parse import unquote

from dateutil.relativedelta import relativedelta
from werkzeug.test import Client
from werkzeug.wrappers import Request, Response

from tests.factories import NOT_RETURNED

KEY = "the-original-key"
PAGE = {"limit": "50", "page": "1"}


def drop(request):
    """Break the connection."""
    request.environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    return Response()


def respond(status, text="<!doctype html>", **headers):
    """Return a function that responds with a status, text and headers."""
    return lambda request: Response(text, status, headers)


class Original:
    """The service with its `drivers` and `trips`, which a test changes. `app` is a WSGI application.

    `faults` are pairs of the beginning of a path under /api/v1 and a function that makes the response to one request.
    """

    def __init__(self):
        self.drivers, self.trips, self.faults, self.paths = {}, {}, [], []

    def load(self, *trips, drivers=()):
        """Add or replace drivers and trips in import format. The trips are visible at once."""
        focus = dict.fromkeys(("is_phone_use", "is_rapid_acceleration", "is_hard_brake", "is_overspeeding"), False)
        self.drivers |= {driver["driver_id"]: driver for driver in drivers}
        for trip in trips:
            *summary, trail, events = [(name, value) for name, value in trip.items() if name not in NOT_RETURNED]
            self.trips[trip["trip_id"]] = dict([*summary, ("focus_area", focus), trail, events])

    def counts(self):
        """Return how many requests of each kind were made since this was called last, as `drivers=1 trips=3 trip=2`."""
        kinds = ["trips" if path.startswith("driver/") else path.partition("/")[0] for path in self.paths]
        self.paths = []
        return " ".join(f"{kind}={count}" for kind, count in Counter(kinds).items())

    def get(self, path):
        """Return the response to a request, which is not counted."""
        response = Client(self.app).get(f"/api/v1{path}", headers={"Authorization": f"APIKEY {KEY}"})
        self.paths.pop()
        return response

    @Request.application
    def app(self, request):
        """Respond to a request."""
        path = request.environ["REQUEST_URI"].partition("?")[0].removeprefix("/api/v1/")
        self.paths.append(path)
        for fault in self.faults:
            if path.startswith(fault[0]):
                self.faults.remove(fault)
                return fault[1](request)
        if request.headers["Authorization"] != f"APIKEY {KEY}":
            return Response("{}", 401)
        match [unquote(segment) for segment in path.split("/")]:
            case ["drivers"]:
                return self._page(request, "drivers", [*self.drivers.values()])
            case ["driver", driver_id, "trips"] if driver_id in self.drivers:
                return self._list_trips(request, driver_id)
            case ["trip", "trip_id", trip_id]:
                found = [self.trips[trip_id]] if trip_id in self.trips else []
                return self._page(request, "trips", found, {"page": "1", "limit": 5})
        return Response("<!doctype html>", 404)

    def _list_trips(self, request, driver_id):
        today = datetime.datetime.now(datetime.UTC).date()
        start = datetime.date.fromisoformat(request.args["start_date"])
        if not today - relativedelta(months=6) <= start <= today:
            return Response("{}", 400)
        start_ms = datetime.datetime.combine(start, datetime.time(), datetime.UTC).timestamp() * 1000
        oldest_first = sorted(self.trips.values(), key=lambda trip: trip["trip_start_time"])
        trips = [trip for trip in oldest_first if trip["driver_id"] == driver_id]
        summaries = [dict([*trip.items()][:-3]) for trip in trips if trip["trip_start_time"] >= start_ms]
        return self._page(request, "trips", summaries, {**PAGE, "start_date": ""})

    @staticmethod
    def _page(request, name, records, parameters=PAGE):
        values = {**parameters, **request.args.to_dict()}
        limit, number = int(values["limit"]), int(values["page"])
        # No parameter but the published ones, none of them twice, and no larger page.
        if (
            values.keys() != parameters.keys()
            or len(request.args) != len(request.args.to_dict(flat=False))
            or limit > 100
        ):
            return Response("{}", 400)
        following = number + 1 if number * limit < len(records) else None
        content = {"count": len(records), "current_page": number, "next_page": following, "limit": limit}
        text = json.dumps({**content, name: records[(number - 1) * limit : number * limit]})
        return Response(text, mimetype="application/json")
