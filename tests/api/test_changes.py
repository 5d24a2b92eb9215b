"""The change feed, as a client reads it."""

import base64
import hashlib
import json

import pytest

from app.store import Store
from schemas.cursor import CursorParam, encode_cursor
from schemas.query import SCOPE
from scripts.materialize.write_sources import delete_trips
from tests.factories import epoch_ms, make_driver, make_trip
from tests.feed_client import Client
from tests.store_contents import load as load_documents

HOUR_MS = 3_600_000
DAY_SECONDS = 86_400
NOW_MS = epoch_ms("2026-03-18T12:00")


def ended(hours, **fields):
    """Return a trip that ended so many hours ago and is named after them."""
    end = int(NOW_MS - hours * HOUR_MS)
    times = {"trip_start_time": end - HOUR_MS, "trip_end_time": end}
    return make_trip(**{"trip_id": f"ended {hours}", **times, **fields})


@pytest.fixture
def client(service):
    return Client(service)


@pytest.fixture
def delete(store):
    """Delete trips of the fleet f1."""
    return lambda *trip_ids: delete_trips(store, "f1", trip_ids)


def test_a_page_has_the_summary_form_of_trips(client, load):
    load(ended(5, trip_id="t1", driver_id="d1", tracking_id="k", distance_miles=5, highway_miles=5.0))
    page = client.get_page()
    (trip,) = client.service.get("/driver/d1/trips?start_date=2026-03-01").json["trips"]
    assert list(page) == ["changes", "cursor", "has_more"]
    expected = [{"trip_id": "t1", "driver_id": "d1", "tracking_id": "k", "deleted": False, "trip": trip}]
    assert json.dumps(page["changes"]) == json.dumps(expected)


def test_the_feed_of_a_fleet_without_data_is_empty_and_its_cursor_stays_valid(client, load):
    assert client.sync() == []
    load(ended(5))
    assert client.sync() == [("ended 5", False)]


def test_the_feed_begins_with_trips_older_than_six_months(client, load):
    load(ended(5), ended(24 * 400))
    assert client.sync() == [("ended 5", False), ("ended 9600", False)]


@pytest.mark.parametrize(("limit", "sizes"), [(1, [1, 1, 1]), (2, [2, 1]), (3, [3]), (1000, [3])])
def test_a_page_has_up_to_limit_changes_and_says_whether_there_are_more(service, load, limit, sizes):
    load(ended(5), ended(6), ended(7))
    client, result = Client(service, limit), []
    while not result or result[-1]["has_more"]:
        result.append(client.get_page())
    assert [len(page["changes"]) for page in result] == sizes


def test_a_page_of_changes_and_of_trips_that_became_visible_keeps_to_the_limit(service, load, clock):
    client = Client(service, 2)
    load(ended(5), ended(3), ended(2))
    client.get_page()
    clock.shift(3 * HOUR_MS / 1000)
    load(ended(6))
    assert [len(client.get_page()["changes"]) for _ in range(3)] == [2, 1, 0]


def test_nothing_comes_twice_if_nothing_changes(client, load):
    load(ended(5), ended(3))
    client.sync()
    assert client.get_page() | {"cursor": ""} == {"changes": [], "cursor": "", "has_more": False}


@pytest.mark.parametrize("ends_later", [0, HOUR_MS])
def test_a_trip_comes_once_it_is_visible(client, load, clock, ends_later):
    load(ended(3), ended(3.5))
    client.sync()
    load(ended(3, trip_end_time=NOW_MS - 3 * HOUR_MS + ends_later))
    assert client.sync() == []
    clock.shift(HOUR_MS / 1000 - 0.001)
    assert client.sync() == [("ended 3.5", False)]
    clock.shift((1 + ends_later) / 1000)
    assert client.sync() == [("ended 3", False)]


def test_the_setting_of_the_delay_counts(make_service, load):
    load(ended(0.5), ended(1.5))
    assert Client(make_service(processing_delay_hours=1)).sync() == [("ended 1.5", False)]
    assert Client(make_service(processing_delay_hours=0)).sync() == [("ended 0.5", False), ("ended 1.5", False)]


@pytest.mark.parametrize("change", [{"trail_path": []}, {"tracking_id": "k"}, {"tracking_id": None}], ids=str)
def test_a_change_of_the_trail_or_the_tracking_id_is_a_change(client, load, change):
    trip = ended(5, tracking_id="before")
    load(trip)
    client.sync()
    load({**trip, **change})
    (changed,) = client.get_page()["changes"]
    assert (changed["trip_id"], changed["tracking_id"]) == ("ended 5", change.get("tracking_id", "before"))


def test_a_file_that_is_loaded_again_changes_nothing(client, load):
    trips = [ended(5), ended(6), ended(1)]
    load(*trips, drivers=[make_driver("d1")])
    client.sync()
    load(*trips, drivers=[make_driver("d1", alias="A")])
    assert client.sync() == []


def test_a_deletion_comes_with_the_driver(client, load, delete):
    load(ended(5), ended(6, tracking_id="k"))
    client.sync()
    delete("ended 6", "nothing")
    change = {"trip_id": "ended 6", "driver_id": "d1", "tracking_id": None, "deleted": True, "trip": None}
    assert client.get_page()["changes"] == [change]
    assert client.sync() == []


def test_a_new_client_gets_only_deletions_after_its_first_request(service, load, delete):
    load(*(ended(5 + n) for n in range(4)))
    delete("ended 5")
    load(hide("ended 6"))
    client = Client(service, 1)
    client.get_page()
    delete("ended 7")
    assert client.sync() == [("ended 8", False), ("ended 7", True)]


def hide(trip_id):
    """Return a trip that ended an hour ago."""
    return ended(1, trip_id=trip_id)


def test_a_trip_that_a_correction_hides_is_deleted_until_it_is_visible_again(client, load, clock):
    load(ended(5))
    client.sync()
    load(hide("ended 5"))
    assert client.sync() == [("ended 5", True)]
    clock.shift(3 * HOUR_MS / 1000)
    assert client.sync() == [("ended 5", False)]


def test_a_trip_that_is_corrected_often_before_it_is_visible_does_not_come(client, load):
    client.sync()
    for minutes in range(60, 40, -1):
        load(ended(minutes / 60, trip_id="t1"))
        assert client.sync() == []


def test_a_page_ends_after_many_changes_that_are_not_visible(client, load, monkeypatch):
    monkeypatch.setattr("app.store.changes.BATCH_SIZE", 2)
    monkeypatch.setattr("app.store.changes.MAX_SCANNED", 6)
    client.sync()
    load(*(ended(n / 10) for n in range(10)), ended(5, trip_id="visible"))
    first = client.get_page()
    assert (first["changes"], first["has_more"]) == ([], True)
    assert client.sync() == [("visible", False)]


def test_a_cursor_is_valid_for_29_days_after_the_client_was_caught_up(client, load, clock):
    client.sync()
    for _ in range(3):
        clock.shift(29 * DAY_SECONDS)
        client.sync()
    load(*(ended(5 + n) for n in range(5)))
    client.get_page()
    clock.shift(29 * DAY_SECONDS)
    client.get_page()
    clock.shift(0.001)
    (reason,) = client.service.errors("/changes", cursor=client.cursor)["cursor"]
    expected = "Must be of a client that was caught up in the last 29 days."
    assert reason == f"{expected} Start without a cursor and with an empty copy."


def test_a_cursor_is_valid_for_29_days_of_a_first_copy(service, load, clock):
    load(ended(5), ended(6), ended(7))
    client = Client(service, 1)
    client.get_page()
    clock.shift(29 * DAY_SECONDS)
    assert client.get_page()["has_more"]
    clock.shift(0.001)
    assert list(service.errors("/changes", cursor=client.cursor)) == ["cursor"]


# Cursors that are refused.


def alter(cursor):
    """Yield the cursor with each character replaced by the next one of Base64, and other alterations."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_A"
    for index, character in enumerate(cursor):
        yield cursor[:index] + alphabet[alphabet.index(character) + 1] + cursor[index + 1 :]
    yield from ("", "=", "x", "\0", "\ud800", "ü", cursor + "=", cursor + "A", cursor[:-1], cursor + "\n", f" {cursor}")


def test_an_altered_cursor_is_a_validation_error(client, load):
    load(ended(5))
    client.sync()
    for cursor in alter(client.cursor):
        path = f"/changes?cursor={cursor}" if cursor == "" else "/changes"
        query = {"cursor": cursor.encode("utf-8", "surrogatepass")} if cursor else {}
        assert list(client.service.errors(path, **query)) == ["cursor"], cursor


@pytest.mark.parametrize(
    "content",
    [
        "[" * 4000,
        "{}",
        "NaN",
        "",
        f"[{'9' * 5000}]",
        '["\\ud800",1,1,1,"",1,"",1]',
        '["s",-1,0,0,"",0,"",0]',
        '["s","1",1]',
    ],
)
def test_a_cursor_with_the_right_checksum_and_other_content_is_a_validation_error(service, content):
    checksum = hashlib.blake2b(b"f1\n" + content.encode(), digest_size=8).digest()
    cursor = base64.urlsafe_b64encode(checksum + content.encode()).rstrip(b"=").decode()
    assert list(service.errors("/changes", cursor=cursor)) == ["cursor"]


@pytest.mark.parametrize("signature", [None, "", "made up"])
def test_no_cursor_that_a_client_makes_up_reads_deletions_from_before_its_first_request(
    client, load, delete, signature
):
    load(ended(5), ended(6))
    delete("ended 5")
    client.sync()
    own = CursorParam().deserialize(client.cursor, data={SCOPE: "f1"})
    made_up = own._replace(signature=own.signature if signature is None else signature, caught_up_change=0, change=0)
    response = client.service.get("/changes", cursor=encode_cursor("f1", made_up))
    assert "ended 5" not in response.text
    assert response.status_code == (400 if made_up.signature else 200)


@pytest.mark.parametrize("trips", [[], [ended(5)]])
def test_the_cursor_of_another_fleet_is_a_validation_error(service, load, trips):
    load(*trips)
    load(*trips, fleet="f2")
    cursor = service.get("/changes", fleet="f2").json["cursor"]
    for _ in range(2):
        assert service.get("/changes", fleet="f2", cursor=cursor).status_code == 200
        assert list(service.errors("/changes", cursor=cursor)) == ["cursor"]


def test_an_invalid_cursor_is_named_together_with_all_other_wrong_parameters(service):
    errors = service.errors("/changes", cursor="x", limit=1001, page=2)
    assert errors.keys() == {"cursor", "limit", "page"}
    expected = "Must be a cursor that this service returned for this fleet."
    assert errors["cursor"] == [f"{expected} Start without a cursor and with an empty copy."]


def test_a_cursor_from_before_the_data_were_loaded_from_scratch_is_a_validation_error(client, load):
    load(ended(5))
    client.sync()
    for name in ("fleets", "fleet_drivers", "trip_changes", "trip_details", "trips"):
        client.service.db[name].delete_many({})
    load(ended(5), ended(6))
    assert list(client.service.errors("/changes", cursor=client.cursor)) == ["cursor"]


def test_cursors_are_refused_after_the_operator_gave_the_feed_another_key(client, load):
    load(ended(5))
    client.sync()
    client.service.db.fleets.update_one({"_id": "f1"}, {"$set": {"feed_key": "another"}})
    assert list(client.service.errors("/changes", cursor=client.cursor)) == ["cursor"]
    again = Client(client.service)
    assert again.sync() == [("ended 5", False)]
    load(ended(6))
    assert again.sync() == [("ended 6", False)]


@pytest.mark.parametrize("headers", [{"X-Fields": "cursor{"}, {"If-None-Match": "*"}], ids=str)
def test_masks_and_conditional_requests_do_not_apply(service, load, headers):
    load(ended(5))
    response = service.get("/changes", headers=headers)
    assert (response.status_code, response.data) == (200, service.get("/changes").data)
    assert "ETag" not in response.headers


def test_deletions_are_kept_30_days(mongod):
    index = mongod.trip_changes.index_information()["tombstone"]
    assert (index["key"], index["expireAfterSeconds"]) == ([("deleted_at", 1)], 30 * 86_400)


def test_the_default_limit_is_100(service, load):
    load(*(ended(5 + n) for n in range(101)))
    page = service.get("/changes").json
    assert (len(page["changes"]), page["has_more"]) == (100, True)


def test_a_trip_that_was_corrected_before_it_was_ever_visible_does_not_come(client, load, clock):
    load(hide("t1"))
    load(hide("t1") | {"trip_end_time": NOW_MS + 4 * HOUR_MS})
    clock.shift(4 * HOUR_MS / 1000)
    assert client.sync() == []


def test_a_trip_that_a_writer_hides_whose_clock_is_slow_is_deleted(client, load, clock):
    load(ended(5))
    client.sync()
    clock.shift(-24 * 3600)
    load(hide("ended 5"))
    clock.shift(24 * 3600)
    assert client.sync() == [("ended 5", True)]


def test_trips_that_are_hidden_and_corrected_while_a_client_reads_other_changes_are_deleted(client, load):
    trip_ids = [f"t{n}" for n in range(8)]
    load(*(ended(5, trip_id=trip_id) for trip_id in trip_ids))
    client.sync()
    load(*map(hide, trip_ids))
    client.get_page()
    load(*(ended(0.5, trip_id=trip_id) for trip_id in trip_ids[3:7]))
    client.sync()
    assert client.copy == {}


def test_a_trip_that_is_hidden_deleted_and_loaded_again_is_deleted(client, load, delete):
    load(ended(5))
    client.sync()
    load(hide("ended 5"))
    delete("ended 5")
    load(hide("ended 5"))
    assert client.sync() == [("ended 5", True)]


def test_a_feed_whose_count_document_was_lost_goes_on_with_higher_numbers(client, load):
    for _ in range(3):
        load(ended(5, distance_miles=_), ended(6))
    client.service.db.fleets.delete_many({})
    load(ended(7))
    assert sorted(client.sync()) == [("ended 5", False), ("ended 6", False), ("ended 7", False)]
    load(ended(8))
    assert client.sync() == [("ended 8", False)]


def test_a_cursor_may_be_used_again(client, load):
    load(*(ended(5 + n) for n in range(5)))
    client.get_page()
    once = client.get_page()
    client.lose()
    assert client.get_page() == once


def test_the_time_of_a_tombstone_is_mongodb_s(mongod, clock):
    load_documents(mongod, ended(5))
    delete_trips(Store.of(mongod), "f1", ["ended 5"])
    tombstone = mongod.trip_changes.find_one()
    assert tombstone["deleted_at"] == mongod.fleets.find_one()["written_at"]
    assert abs(tombstone["deleted_at"] - mongod.command("hello")["localTime"]).total_seconds() < 60
