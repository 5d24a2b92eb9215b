"""What a search for drivers compares: the text of a driver, and the words of the search."""

import unicodedata
from collections.abc import Mapping

# The fields of a Driver that a search reads.
SEARCHED_FIELDS = ("first_name", "last_name", "alias", "email", "driver_id")
# What separates words, and the fields in the text of a driver. So no word can match across two fields.
SPACE = " "
# Plain letters for those with a stroke and the like, which NFKD keeps, and a plain apostrophe and hyphen.
LETTERS = {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ŧ": "t", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
APOSTROPHES = dict.fromkeys("\u2018\u2019\u201b\u02bb\u02bc", "'")
HYPHENS = dict.fromkeys("\u2010\u2012\u2013\u2014\u2015\u2212", "-")
PLAIN = str.maketrans(LETTERS | APOSTROPHES | HYPHENS)


def make_search_text(driver: Mapping[str, str | None]) -> str:
    """Return the text in which the words of a search are looked for: the normalized fields of a Driver."""
    return _normalize(SPACE.join(filter(None, map(driver.get, SEARCHED_FIELDS))))


def split_words(search: str) -> list[str]:
    """Return the normalized words of a search, but for those within another one, which are found wherever that is.

    There are none if it has only spaces and accents.
    """
    words = dict.fromkeys(filter(None, _normalize(search).split(SPACE)))
    return [word for word in words if not any(word in other for other in words if other != word)]


def _normalize(text: str) -> str:
    """Return a text in plain lower-case letters: NFKD, without characters of category M, casefolded, then PLAIN.

    NFKD also makes a space of every other space that has a compatibility decomposition, and U+2010 of U+2011.
    """
    decomposed = unicodedata.normalize("NFKD", text)
    without_marks = "".join(one for one in decomposed if not unicodedata.category(one).startswith("M"))
    return without_marks.casefold().translate(PLAIN)
