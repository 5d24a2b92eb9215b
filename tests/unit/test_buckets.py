"""Which trips a driver has, counted without reading them."""

import pytest
from app.store.buckets import Buckets, Counts, bucket_span, utc_date

from tests.factories import epoch_ms

DATES = {"2026-03-10": (3, 1), "2026-03-12": (2,), "2026-03-13": (4,)}
ROWS = [
    (bucket_span(date, number), row)
    for date, counts in DATES.items()
    for number, count in enumerate(counts)
    for row in range(count)
]


def version(n):
    """Return the version that is eight times this byte."""
    return int.from_bytes(bytes([n] * 8))


@pytest.fixture
def buckets():
    """Ten trips on three dates; the first date has two buckets."""
    made = Buckets()
    for date, counts in reversed(DATES.items()):
        made.replace(date, {n: (count, epoch_ms(f"{date}T12:0{n}"), version(n)) for n, count in enumerate(counts)})
    return made


def rows(buckets, skip, limit):
    """Return the rows of a page: those that lie where the buckets say."""
    if skip >= buckets.count:
        return []
    place = buckets.place(skip, limit)
    within = [row for row in ROWS if place.first <= row[0] <= place.last]
    return within[place.skip : place.skip + limit]


@pytest.mark.parametrize("skip", range(12))
@pytest.mark.parametrize("limit", [1, 2, 3, 5, 10, 100])
def test_a_page_lies_where_counting_leads_to(buckets, skip, limit):
    assert rows(buckets, skip, limit) == ROWS[skip : skip + limit]


def test_what_is_stored_is_what_comes_back(buckets):
    again = Buckets(buckets.stored())
    assert (again.place(0, 100), again.count, again.version) == (buckets.place(0, 100), 10, buckets.version)


@pytest.mark.parametrize(
    ("date", "count"), [("2026-03-09", 10), ("2026-03-11", 6), ("2026-03-13", 4), ("2026-03-14", 0)]
)
def test_a_date_begins_with_its_own_trips(buckets, date, count):
    assert buckets.since(date).count == count
    assert rows(buckets.since(date), 0, 100) == ROWS[10 - count :]


def test_a_date_is_replaced_alone(buckets):
    buckets.replace("2026-03-10", {0: (1, 0, version(7))})
    place = buckets.place(0, 9)
    assert (buckets.count, place.first, place.last) == (7, "2026-03-10", "2026-03-13")
    assert place.versions == bytes([7] * 8 + [0] * 16)
    buckets.replace("2026-03-12", {})
    assert (buckets.count, buckets.place(0, 9).versions) == (5, bytes([7] * 8 + [0] * 8))


def test_only_buckets_with_a_trip_that_ends_later_are_unsettled(buckets):
    assert buckets.unsettled(epoch_ms("2026-03-13T12:00")) == []
    assert buckets.unsettled(epoch_ms("2026-03-10T12:00")) == ["2026-03-10#000001", "2026-03-12", "2026-03-13"]
    assert Buckets().unsettled(0) == []


def test_pages_go_by_what_is_visible(buckets):
    buckets.count_only({"2026-03-10": 1, "2026-03-12": 0})
    assert buckets.count == 6
    assert buckets.place(1, 3)[:2] == ("2026-03-10#000001", "2026-03-13")
    assert (buckets.place(2, 1)[:2], buckets.place(2, 1).skip) == (("2026-03-13", "2026-03-13"), 0)


@pytest.mark.parametrize("skip", range(10))
def test_skipping_begins_at_a_midnight_within_reach(buckets, skip):
    midnight, rest = buckets.seek(skip)
    assert rows(buckets.since(utc_date(midnight)), rest, 1) == ROWS[skip : skip + 1]
    assert rest < 4


@pytest.mark.parametrize(
    ("skip", "begins", "rest"),
    [(0, "10T00", 0), (4, "10T00", 4), (5, "10T09", 0), (6, "10T17", 0), (8, "10T17", 2), (9, "12T08", 0)],
)
def test_where_trips_are_counted_by_hours_skipping_begins_at_one(skip, begins, rest):
    counts = Counts()
    counts.replace("2026-03-12", {8: (2, 0)})
    counts.replace("2026-03-10", {17: (3, 0), 0: (5, 0), 9: (1, 0)})
    assert counts.seek(skip) == (epoch_ms(f"2026-03-{begins}:00"), rest)


def test_the_version_changes_with_any_bucket_and_with_the_count(buckets):
    versions = {buckets.version}
    buckets.replace("2026-03-13", {0: (4, epoch_ms("2026-03-13T12:00"), version(9))})
    versions.add(buckets.version)
    buckets.count_only({"2026-03-13": 3})
    assert len(versions | {buckets.version}) == 3


@pytest.mark.parametrize("date", ["0001-01-01", "1969-12-31", "1970-01-01", "9999-12-31"])
def test_any_date_of_the_calendar_has_its_buckets(date):
    made = Buckets()
    made.replace(date, {0: (1, epoch_ms(f"{date}T23:59"), version(0))})
    assert Buckets(made.stored()).place(0, 1).first == utc_date(epoch_ms(f"{date}T23:59")) == date
