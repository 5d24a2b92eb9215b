"""GET /drivers?search=, against a reference that works from the contract's words alone."""

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts.lifecycle.erase import erase_driver
from tests.factories import make_driver, make_trip
from tests.store_contents import load as load_documents

FIELDS = ("first_name", "last_name", "alias", "email", "driver_id")
EXAMPLES = [30, pytest.param(300, marks=pytest.mark.large)]
# Letters whose comparison is not that of their bytes, and characters that mean something in a pattern.
LETTERS = "aAbßẞsSiIİıéÉe\u0301ñΣσςΌοşКкйЙ中文한하กำम\u093f\ufb01ﬀ½Ⅳ①ｂＢ\u00a8\u00b4👩\u200d🚒👍🏽"
LETTERS += "łŁøǾđĐðħŧıæÆœþ'\u2018\u2019\u02bc-\u2010\u2011\u2013\u2014"
LETTERS += ".*+?()[]{}^$|\\/-_@,'\"&=;%#\u00a0\u2003 "
CONTROL = "Cc"
NAMES = st.none() | st.text(LETTERS, max_size=8) | st.text(max_size=6)
SEARCHED = st.text(LETTERS, min_size=1, max_size=3) | st.text(min_size=1, max_size=6)


def fold(text):
    """Return the text after NFKD, without characters of category M, casefolded, with plain characters."""
    plain = "".join(one for one in unicodedata.normalize("NFKD", text) if unicodedata.category(one)[0] != "M")
    plain = plain.casefold()
    for pair in ("łl", "øo", "đd", "ðd", "ħh", "ŧt", "ıi", ("æ", "ae"), ("œ", "oe"), ("þ", "th")):
        plain = plain.replace(*pair)
    return re.sub("[\u2010\u2012-\u2015\u2212]", "-", re.sub("[\u2018\u2019\u201b\u02bb\u02bc]", "'", plain))


def matches(driver, search):
    """Return whether each word of a search is within one of the fields."""
    words = [word for word in fold(search).split(" ") if word]
    return all(any(word in fold(driver[name] or "") for name in FIELDS) for word in words)


def find(service, **query):
    response = service.get("/drivers", **query)
    assert response.status_code == 200, response.text
    return [driver["driver_id"] for driver in response.json["drivers"]]


DRIVERS = [
    make_driver("d-1", first_name="Zoë", last_name="Dvořák", alias="Van 12", email="Zoe.D@Example.com"),
    make_driver("d-2", first_name="Jürgen", last_name="Strauß", alias="Ⅳ-ﬁne"),
    make_driver("d-3", first_name="İpek", last_name="Işık", alias="ΟΔΥΣΣΕΎΣ"),
    make_driver("d-4", first_name="张伟", last_name="김철수", alias="👩‍🚒 a.*b(c)[d]$"),
    make_driver("d-5", first_name="Ann Mary", alias="हिन्दी", email="50%_off\\n@x.org"),
    make_driver("d/6"),
    make_driver("s-1", first_name="Łukasz", last_name="O’Example", alias="Smørrebrød Æþel"),
    make_driver("s-2", first_name="Đorđe", last_name="O'Example", alias="Nord\u2011Süd Œuvre"),
]
# For each list of drivers, the searches that find them.
FOUND = {
    ("d-1",): ["zoe", "ZOË", "Zoe\u0308", "dvorak zoe", "van 12", "12 zoe", "zoe.d@example", "\u00a0 d- \u3000 1 "],
    ("d-2",): ["strauss", "STRAUẞ", "iv-fine", "ｊｕｒｇｅｎ"],
    ("d-3",): ["ipek", "IŞIK", "isik", "IŞıK", "οδυσσευς", "ΟΔΥΣΣΕΥΣ"],
    ("d-4",): ["伟", "김", "🚒", ".*", "(c)[d]$"],
    ("d-5",): ["हन्द", "%_off\\n", "%", "d-5"],
    ("d/6",): ["/"],
    ("s-1",): ["lukasz", "ŁUKASZ", "smorrebrod aethel"],
    ("s-2",): ["dorde oeuvre", "nord-sud", "nord\u2013sud"],
    ("s-1", "s-2"): ["O'Example", "o\u2019example", "o\u02bcexample"],
    ("d-1", "d-5", "s-2"): ["n m"],
    ("d-1", "d-4", "d-5"): ["."],
    ("d-1", "d-2", "d-3", "d-4", "d-5", "d/6", "s-1", "s-2"): ["d"],
    # A word is within one field, and each word in any.
    (): ["annmary", "strauss zoe", "zoe strauss", "zoedvorak", "^d", "d-.", "null", "none", ".."],
}


@pytest.fixture(scope="module")
def loaded(shared_service):
    """The service with those drivers."""
    load_documents(shared_service.db, drivers=DRIVERS)
    return shared_service


@pytest.mark.parametrize(("expected", "search"), [(ids, search) for ids, of in FOUND.items() for search in of])
def test_a_search_finds_the_drivers_who_contain_all_its_words(loaded, expected, search):
    assert [driver["driver_id"] for driver in DRIVERS if matches(driver, search)] == list(expected)
    assert find(loaded, search=search) == list(expected)


@pytest.mark.parametrize("examples", EXAMPLES)
def test_any_search_finds_whom_the_reference_finds(service, load, examples):
    @settings(max_examples=examples, deadline=None)
    @given(st.lists(st.tuples(NAMES, NAMES, NAMES, NAMES), min_size=5, max_size=5), SEARCHED)
    def check(names, search):
        drivers = [
            make_driver(f"d{n}", **dict(zip(FIELDS, of_driver, strict=False))) for n, of_driver in enumerate(names)
        ]
        load(drivers=drivers)
        if CONTROL in map(unicodedata.category, search) or not fold(search).strip(" "):
            assert list(service.errors("/drivers", search=search)) == ["search"]
        else:
            expected = [driver["driver_id"] for driver in drivers if matches(driver, search)]
            assert find(service, search=search) == expected

    check()


@pytest.mark.parametrize("search", ["", " ", "\u3000 \u00a0", "\u0301", "\u00a8", "a\0", "\x85", "é" * 65, "x" * 129])
def test_a_search_out_of_bounds_or_without_a_word_is_refused(loaded, search):
    assert list(loaded.errors("/drivers", search=search)) == ["search"]


def test_a_search_is_given_once_in_utf_8_and_may_be_long(service, load):
    load(drivers=[make_driver("é" * 64)])
    assert find(service, search="É" * 64) == ["é" * 64]
    assert find(service, search="e " * 64) == ["é" * 64]
    assert list(service.errors("/drivers?search=a&search=a&limit=0")) == ["limit", "search"]
    assert list(service.errors("/drivers?search=%ff")) == ["search"]


@pytest.fixture
def several_blocks(load):
    """Drivers on three blocks of the list, of whom every third has an alias."""
    load(drivers=[make_driver(f"d{n:03}", alias="Größe" if n % 3 == 0 else None) for n in range(250)])
    return [f"d{n:03}" for n in range(0, 250, 3)]


@pytest.mark.parametrize("limit", [1, 40, 84, 100])
def test_pages_of_a_search_are_slices_of_all_matches(service, several_blocks, limit):
    pages = [service.get("/drivers", search="GROSSE", limit=limit, page=page).json for page in (1, 2, 3)]
    expected = [several_blocks[first : first + limit] for first in (0, limit, 2 * limit)]
    assert [[driver["driver_id"] for driver in page["drivers"]] for page in pages] == expected
    last = -(-84 // limit)
    assert [page["next_page"] for page in pages] == [page + 1 if page < last else None for page in (1, 2, 3)]
    assert {(page["count"], page["limit"]) for page in pages} == {(84, limit)}


def test_who_is_changed_renamed_or_erased_is_found_by_what_is_stored_now(service, load, store):
    load(make_trip(driver_id="new"), drivers=[make_driver("old", first_name="Ann", alias="Ann")])
    load(drivers=[make_driver("other", first_name="Ann")], fleet="f2")
    assert (find(service, search="ann"), find(service, search="NEW")) == (["old"], ["new"])
    load(drivers=[make_driver("old", first_name="Bob"), make_driver("new", last_name="Ann")])
    assert (find(service, search="ann"), find(service, search="bob")) == (["new"], ["old"])
    list(erase_driver(store, "f1", "new"))
    assert (find(service, search="ann"), find(service, search="new")) == ([], [])


def test_a_search_may_be_masked(service, several_blocks):
    assert service.get("/drivers?search=gros", headers={"X-Fields": "count,limit"}).text == '{"count":84,"limit":50}'
    masked = service.get("/drivers?search=d003", headers={"X-Fields": "drivers{alias,driver_id}"})
    assert masked.json == {"drivers": [{"alias": "Größe", "driver_id": "d003"}]}


def test_an_etag_of_a_search_changes_when_other_drivers_match(service, load):
    load(drivers=[make_driver("a", alias="x"), make_driver("b"), make_driver("c", alias="x")])
    etag = service.get("/drivers?search=x&limit=1").headers["ETag"]
    for alias in ("x", None):
        load(drivers=[make_driver("b", alias=alias)])
        response = service.get("/drivers?search=x&limit=1", headers={"If-None-Match": etag})
        assert (response.status_code, response.json["count"]) == (200, 3 if alias else 2)
        etag = response.headers["ETag"]
