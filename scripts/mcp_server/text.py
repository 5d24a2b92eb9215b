"""Text for agents: JSON and names without what a reader cannot see."""

import json
import re
from typing import Any

# Names are free text. What is longer is cut.
MAX_NAME_LENGTH = 60
# Unicode's Default_Ignorable_Code_Point that str.isprintable accepts, such as fillers and variation selectors, and the
# Braille pattern without dots.
INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def to_json(data: Any) -> str:
    """Return compact JSON in which invisible characters are escaped, so that nothing is hidden from a reader."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return "".join(
        character if character.isprintable() and not INVISIBLE.match(character) else json.dumps(character)[1:-1]
        for character in text
    )


def clean_name(text: str | None) -> str:
    """Return a name on one line, without invisible characters, and cut if it is long."""
    # A variation selector follows the character that it changes, so no space takes its place.
    visible = INVISIBLE.sub("", text or "")
    name = " ".join("".join(character if character.isprintable() else " " for character in visible).split())
    return name if len(name) <= MAX_NAME_LENGTH else f"{name[: MAX_NAME_LENGTH - 1]}…"
