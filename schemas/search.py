"""What a search for drivers compares: the text of a driver, and the words of the search."""

import unicodedata
from collections.abc import Mapping

# The fields of a Driver that a search reads.
SEARCHED_FIELDS = ("first_name", "last_name", "alias", "email", "driver_id")
# What separates words, and the fields in the text of a driver. So no word can match across two fields.
SPACE = " "


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
    """Return a text without case and accents: NFKD, without characters of category M, casefolded, in this order.

    NFKD also makes a space of every other space that has a compatibility decomposition.
    """
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(one for one in decomposed if not unicodedata.category(one).startswith("M")).casefold()
