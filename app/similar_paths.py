"""The paths that a client probably meant when it requested one that does not exist."""

import difflib
import itertools
import re
from collections.abc import Iterable, Sequence

from werkzeug.routing import Rule

from app.config import API

# From which ratio of difflib on a segment counts as misspelt: `drivers` has 0.92 to `driver`.
MIN_SIMILARITY = 0.8
# What each segment that one of two paths has more takes from their similarity.
MISSING = 0.2
# A variable of a rule, with its converter, and the arguments that some have.
VARIABLE = re.compile(r"<(?:\w+(?:\((?P<choices>[^)]*)\))?:)?(?P<name>\w+)>")


def find_similar_paths(path: str, rules: Iterable[Rule]) -> list[str]:
    """Return the paths of the API that are most similar to an unknown one, in the order of the rules; [] for none.

    A variable is its name in braces, and matches any segment; one that has a few values is each of these. A path is
    similar if a segment that it names is equal to that of the client, whatever its case, or nearly so.
    """
    sent = [segment.lower() for segment in path.removeprefix(API).split("/") if segment]
    similarities = {
        known: _get_similarity(sent, known.split("/")[1:])
        for rule in rules
        if rule.rule.startswith(f"{API}/")
        for known in _expand(rule.rule.removeprefix(API))
    }
    highest = max(similarities.values())
    return [API + known for known, similarity in similarities.items() if highest > 0 and similarity == highest]


def _expand(rule: str) -> list[str]:
    """Return the paths of a rule: more than one if one of its variables has a few values."""
    return ["/".join(path) for path in itertools.product(*map(_find_values, rule.split("/")))]


def _find_values(segment: str) -> list[str]:
    variable = VARIABLE.fullmatch(segment)
    if variable is None:
        return [segment]
    choices, name = variable.groups()
    return [choice.strip(" '") for choice in choices.split(",")] if choices else [f"{{{name}}}"]


def _get_similarity(sent: Sequence[str], known: Sequence[str]) -> float:
    """Return how similar the segments are: 1 for each that is equal. 0 unless one that is no variable is similar."""
    named = sum(_get_ratio(*pair) for pair in zip(sent, known, strict=False) if not pair[1].startswith("{"))
    variables = sum(name.startswith("{") for name in known[: len(sent)])
    return named + variables - MISSING * abs(len(sent) - len(known)) if named else 0.0


def _get_ratio(sent: str, known: str) -> float:
    matcher = difflib.SequenceMatcher(None, sent, known)
    # The first of these takes no time, however long a segment is.
    is_similar = matcher.real_quick_ratio() >= MIN_SIMILARITY and matcher.ratio() >= MIN_SIMILARITY
    return matcher.ratio() if is_similar else 0.0
