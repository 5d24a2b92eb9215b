"""Text for agents: data and names without what a reader cannot see."""

import json
from typing import Any

from scripts.command_line.output import INVISIBLE, escape

# Names are free text. What is longer is cut.
MAX_NAME_LENGTH = 60


def to_json(data: Any) -> str:
    """Return compact JSON of the data, with the texts of `escape_texts`."""
    return json.dumps(escape_texts(data), ensure_ascii=False, separators=(",", ":"))


def escape_texts(data: Any) -> Any:
    """Return the data with the invisible characters in its texts escaped, so that nothing is hidden from a reader."""
    if isinstance(data, dict):
        return {escape(name): escape_texts(value) for name, value in data.items()}
    if isinstance(data, list):
        return [escape_texts(value) for value in data]
    return escape(data) if isinstance(data, str) else data


def clean_name(text: str | None) -> str:
    """Return a name on one line, without invisible characters, and cut if it is long."""
    # A variation selector follows the character that it changes, so no space takes its place.
    visible = INVISIBLE.sub("", text or "")
    name = " ".join("".join(character if character.isprintable() else " " for character in visible).split())
    return name if len(name) <= MAX_NAME_LENGTH else f"{name[: MAX_NAME_LENGTH - 1]}…"
