"""The collections as the writing commands make them."""

from concurrent.futures import ThreadPoolExecutor

from pymongo import MongoClient

from app.store import Store
from scripts.mongodb.collections import VALIDATORS, prepare_collections


def test_a_validator_of_an_earlier_version_is_replaced(mongod):
    mongod.command("collMod", "trips", validator={"fleet": {"$type": "string"}})
    prepare_collections(Store.of(mongod))
    assert mongod.trips.options()["validator"] == VALIDATORS["trips"]


def test_several_commands_may_make_a_new_store_at_once(mongod_uri):
    with MongoClient(mongod_uri) as client, ThreadPoolExecutor(4) as pool:
        for name in ("race1", "race2", "race3"):
            list(pool.map(prepare_collections, [Store.of(client[name])] * 4))
            client.drop_database(name)
