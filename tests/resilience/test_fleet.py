"""What a load expects does not depend on the day on which a request arrives."""

import datetime

import time_machine

from tests.conftest import Service
from tests.resilience.fleet import FLEET, TODAY, make_drivers, make_trips, requests
from tests.store_contents import load


def test_the_responses_stay_the_same_at_midnight(mongod):
    load(mongod, *make_trips(), drivers=make_drivers(), fleet=FLEET)
    service, bodies = Service(mongod), []
    midnight = datetime.datetime.combine(TODAY, datetime.time(), datetime.UTC) + datetime.timedelta(days=1)
    for time in midnight - datetime.timedelta(seconds=1), midnight:
        with time_machine.travel(time, tick=False):
            responses = [service.get(r.path, fleet=FLEET, headers=r.headers) for r in requests()]
        assert {response.status_code for response in responses} == {200}
        bodies.append([response.data for response in responses])
    before, after = bodies
    assert [r for r, old, new in zip(requests(), before, after, strict=True) if old != new] == []
