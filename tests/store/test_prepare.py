"""The collections as the writing commands make them."""

from app.store.indexes import INDEXES, VALIDATORS
from scripts.store import prepare


def test_every_collection_has_its_validator_and_indexes_fleet_first(mongod):
    for name, indexes in INDEXES.items():
        found = mongod[name].index_information()
        assert set(found) == {"_id_", *(index.document["name"] for index in indexes)}
        assert mongod[name].options()["validator"] == VALIDATORS[name]
        first = {index["key"][0][0] for key, index in found.items() if key != "_id_"}
        assert first == ({"fleet", "digest", "key_id"} if name == "keys" else {"fleet"})


def test_a_validator_of_an_earlier_version_is_replaced(mongod):
    mongod.command("collMod", "trips", validator={})
    prepare(mongod)
    assert mongod.trips.options()["validator"] == VALIDATORS["trips"]
