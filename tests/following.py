"""Following in this process, and what another program writes directly."""

import contextlib
import logging

from app.logs import make_logger
from app.store import Store
from schemas.identity import make_id
from scripts.ingest.follow import Follower, FollowMetrics
from tests.fleet_states import FLEET


def make_source(line, fleet=FLEET, **fields):
    """Return a document as another program writes it, from a line of an import file."""
    source = {"fleet": fleet, **line, **fields}
    return {"_id": make_id(source["fleet"], source["trip_id" if "trip_id" in source else "driver_id"]), **source}


class Following:
    """A follower of a database, with its metrics."""

    def __init__(self, db):
        self.db, self.metrics = db, FollowMetrics()
        self.follower = Follower(Store.of(db), self.metrics, make_logger(logging.INFO))

    def catch_up(self):
        """Apply all changes; return how many were read, those of the commands included."""
        count = 0
        with contextlib.closing(self.follower.follow()) as batches:
            for batch in batches:
                count += batch.change_count
                if not batch.change_count:
                    break
        return count

    def value(self, name, **labels):
        """Return the value of a metric."""
        return self.metrics.registry.get_sample_value(f"driver_analytics_follow_{name}", labels)
