"""The Driver, the groups of a fleet that a driver is in, such as a depot, and what a search for drivers compares."""

import itertools
import unicodedata
from collections.abc import Mapping
from typing import Any, ClassVar

from marshmallow import ValidationError
from marshmallow.validate import Length

from schemas.fields import Date, Identifier, List, Text
from schemas.source import SourceSchema

# The most groups of a driver.
MAX_GROUPS = 10
MAX_NAME_CHARACTERS = 500
# The fields of a Driver that a search reads.
SEARCHED_FIELDS = ("first_name", "last_name", "alias", "email", "driver_id")
# What separates words, and the fields in the text of a driver. So no word can match across two fields.
SPACE = " "
# Plain letters for those with a stroke and the like, which NFKD keeps, and a plain apostrophe and hyphen.
LETTERS = {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ŧ": "t", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
APOSTROPHES = dict.fromkeys("\u2018\u2019\u201b\u02bb\u02bc", "'")
HYPHENS = dict.fromkeys("\u2010\u2012\u2013\u2014\u2015\u2212", "-")
PLAIN = str.maketrans(LETTERS | APOSTROPHES | HYPHENS)


class NameText(Text):
    """A text of at most 500 characters, such as a name: lists of drivers have all of it for 100 drivers at a time."""

    json_schema_keywords: ClassVar[dict[str, Any]] = {"maxLength": MAX_NAME_CHARACTERS}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        if len(text) > MAX_NAME_CHARACTERS:
            raise ValidationError(f"Must have at most {MAX_NAME_CHARACTERS} characters; it has {len(text)}.")
        return text


class GroupNames(List):
    """The names of the groups that a driver is in, each once. They are loaded in code point order."""

    def __init__(self, **kwargs: Any) -> None:
        error = f"Must have at most {MAX_GROUPS} groups."
        super().__init__(Identifier(), validate=Length(max=MAX_GROUPS, error=error), **kwargs)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> list[Any]:
        # Before the names are loaded: there may be millions.
        if isinstance(value, list):
            self._validate(value)
        loaded: list[Any] = super()._deserialize(value, attr, data, **kwargs)
        names = sorted(loaded)
        for name, following in itertools.pairwise(names):
            if name == following:
                raise ValidationError(f"Has {name!r} twice.")
        return names


class Driver(SourceSchema):
    """A driver of the fleet. A name, address or date that the fleet has not provided is null."""

    driver_id = Identifier("Identifier of the driver, unique within the fleet.", example="demo-01")
    first_name = NameText("First name.", example="Amina", load_default=None, allow_none=True)
    last_name = NameText("Last name.", example="Yusuf", load_default=None, allow_none=True)
    email = NameText("E-mail address.", example="amina.yusuf@example.com", load_default=None, allow_none=True)
    alias = NameText("Name that the fleet uses for the driver.", example="Amina Y.", load_default=None, allow_none=True)
    first_travel_date = Date("Date of the first trip.", example="2026-03-09", load_default=None, allow_none=True)
    last_travel_date = Date("Date of the latest trip.", example="2026-03-09", load_default=None, allow_none=True)


class ImportedDriver(Driver):
    """A line of a drivers file: a driver, and perhaps the groups, which replace those that the driver was in."""

    groups = GroupNames(required=False)


def make_search_text(driver: Mapping[str, str | None]) -> str:
    """Return the text in which the words of a search are looked for: the normalized fields of a Driver."""
    return _normalize(SPACE.join(filter(None, map(driver.get, SEARCHED_FIELDS))))


def split_words(search: str) -> list[str]:
    """Return the normalized words of a search, without those that another one contains.

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
