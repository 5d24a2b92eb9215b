"""The name that a misspelt one stands for, to ask "did you mean ...?"."""

import difflib
from collections.abc import Iterable

# From which ratio of difflib on a name counts as misspelt: `limit[]` has 0.83 to `limit`, `limt` has 0.89.
MIN_SIMILARITY = 0.8


def get_near_name(name: str, names: Iterable[str]) -> str | None:
    """Return the one of `names` that is most similar to `name`, whatever their case, or None."""
    by_lower_case = {known.lower(): known for known in names}
    nearest = difflib.get_close_matches(name.lower(), by_lower_case, 1, MIN_SIMILARITY)
    return by_lower_case[nearest[0]] if nearest else None
