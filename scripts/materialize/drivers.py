"""Writing drivers, with everything that follows from them."""

from collections.abc import Sequence

from pymongo import ReplaceOne
from pymongo.client_session import ClientSession

from app.store import Document, Store
from scripts.materialize.update import update, write


def write_drivers(store: Store, fleet: str, drivers: Sequence[Document]) -> None:
    """Write drivers (schema StoredDriver) in one transaction, a later one over an earlier one of the same driver_id."""
    newest = {driver["driver_id"]: driver for driver in drivers}

    def write_newest(session: ClientSession) -> None:
        operations = [
            ReplaceOne({"fleet": fleet, "driver_id": driver_id}, driver, upsert=True)
            for driver_id, driver in newest.items()
        ]
        store.drivers.bulk_write(operations, ordered=False, session=session)
        update(store, session, fleet, (), newest)

    write(store, fleet, write_newest)
