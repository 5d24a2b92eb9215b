"""The collections as the writing commands make them."""

from concurrent.futures import ThreadPoolExecutor

from pymongo import MongoClient

from app.store import COLLECTIONS, Store
from app.store.indexes import INDEXES, VALIDATORS
from scripts.mongodb.connection import prepare_collections

# A key and a deleted driver are looked up before the fleet is known, and MongoDB removes the tombstones of all fleets.
OTHER_FIRST_KEYS = {
    "keys": {"digest", "key_id"},
    "trip_changes": {"deleted_at"},
}


def test_every_collection_has_its_validator_and_indexes_fleet_first(mongod):
    assert {*INDEXES} == {*VALIDATORS} == {*COLLECTIONS}
    for name, indexes in INDEXES.items():
        result = mongod[name].index_information()
        assert set(result) == {"_id_", *(index.document["name"] for index in indexes)}
        assert mongod[name].options()["validator"] == VALIDATORS[name]
        first = {index["key"][0][0] for key, index in result.items() if key != "_id_"}
        assert first == ({"fleet"} if indexes else set()) | OTHER_FIRST_KEYS.get(name, set())


def test_a_validator_of_an_earlier_version_is_replaced(mongod):
    mongod.command("collMod", "trips", validator={})
    prepare_collections(Store.of(mongod))
    assert mongod.trips.options()["validator"] == VALIDATORS["trips"]


def test_several_commands_may_make_a_new_store_at_once(mongod_uri):
    with MongoClient(mongod_uri) as client, ThreadPoolExecutor(4) as pool:
        for name in ("race1", "race2", "race3"):
            list(pool.map(prepare_collections, [Store.of(client[name])] * 4))
            client.drop_database(name)
