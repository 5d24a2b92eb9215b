"""The limit of a window in Redis: when it reopens."""

import time

from tests.resilience.fleet import issue_key
from tests.service_process import wait_until

PERIODS, PERIOD_SECONDS = 4, 2


def test_a_call_passes_after_retry_after(store, make_service, report):
    limit = {"RATE_LIMIT": f"2 per {PERIOD_SECONDS} seconds", "MONGODB_URI": store.uri}
    key, waits = issue_key(store.uri, "limited"), []
    with make_service(**limit) as service:
        responses = []

        def is_refused():
            responses.append(service.get("/drivers", key))
            return responses[-1].status == 429

        for _ in range(PERIODS):
            wait_until(is_refused)
            waits.append(int(responses[-1].headers["Retry-After"]))
            time.sleep(waits[-1])
            assert not is_refused()
    report(f"2 calls in {PERIOD_SECONDS} s: a call passed after each Retry-After, of {waits} s")
    assert all(1 <= wait <= PERIOD_SECONDS + 1 for wait in waits)
