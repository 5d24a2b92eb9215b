"""schemas/driver.py: the words of a search."""

import pytest

from schemas.driver import split_words


@pytest.mark.parametrize(
    ("search", "words"),
    [("ann ANN Anna", ["anna"]), ("a b a c", ["a", "b", "c"]), ("Zoë zoe", ["zoe"]), ("\u0301", [])],
)
def test_a_word_counts_once_and_not_within_another(search, words):
    assert split_words(search) == words
