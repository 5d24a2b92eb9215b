"""Random numbers that are the same in every process and on every day."""

import random


def make_rng(*seed: object) -> random.Random:
    """Return a generator for the seed. A text seed does not depend on PYTHONHASHSEED.

    Example: `make_rng("day", 3, 17)` always gives the same numbers for driver 3 and slot 17.
    """
    return random.Random("/".join(map(str, seed)))  # noqa: S311 - generated data, not a secret
