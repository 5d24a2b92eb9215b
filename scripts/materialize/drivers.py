"""Writing drivers and the read models that depend on them."""

from collections.abc import Sequence

from pymongo import ReplaceOne
from pymongo.client_session import ClientSession

from app.store import Document, Store
from scripts.materialize.update import run_transaction, update_read_models


def write_drivers(store: Store, fleet: str, drivers: Sequence[Document]) -> None:
    """Write drivers (schema StoredDriver) in one transaction.

    Of several with the same driver_id, the last one is written.
    """
    newest = {driver["driver_id"]: driver for driver in drivers}

    def write_newest(session: ClientSession) -> None:
        operations = [
            ReplaceOne({"fleet": fleet, "driver_id": driver_id}, driver, upsert=True)
            for driver_id, driver in newest.items()
        ]
        store.drivers.bulk_write(operations, ordered=False, session=session)
        update_read_models(store, session, fleet, (), newest)

    run_transaction(store, fleet, write_newest)
