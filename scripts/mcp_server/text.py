"""Text for agents: data of the fleet in quotes, numbers and times."""

import datetime
import json
import unicodedata

# Names are free text. What is longer is cut.
MAX_NAME_LENGTH = 60
# Unicode's Default_Ignorable_Code_Point that str.isprintable accepts, such as fillers and variation selectors, and the
# Braille pattern without dots.
INVISIBLE = frozenset(
    map(
        chr,
        (
            0x034F,
            *range(0x115F, 0x1161),
            *range(0x17B4, 0x17B6),
            *range(0x180B, 0x1810),
            0x2800,
            0x3164,
            *range(0xFE00, 0xFE10),
            0xFFA0,
            *range(0xE0100, 0xE01F0),
        ),
    )
)


def is_visible(character: str) -> bool:
    """Return whether a reader can see a character, or it is a space."""
    return character.isprintable() and character not in INVISIBLE


def quote_data(text: str) -> str:
    """Return text of the fleet in double quotes, as JSON. It cannot end the quotes, and has no invisible characters."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(character if is_visible(character) else json.dumps(character)[1:-1] for character in quoted)


def clean_name(text: str | None) -> str | None:
    """Return a name on one line, without invisible characters, and cut if it is long. None if nothing is left."""
    # A variation selector follows the character that it changes, so no space takes its place.
    visible = "".join(character for character in text or "" if character not in INVISIBLE)
    name = " ".join("".join(character if character.isprintable() else " " for character in visible).split())
    return (name if len(name) <= MAX_NAME_LENGTH else f"{name[: MAX_NAME_LENGTH - 1]}…") or None


def fold(text: str) -> str:
    """Return the text as a search compares it: without case and accents."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in decomposed if not unicodedata.combining(character))


def format_time(epoch_ms: int) -> str:
    """Return a time in UTC, such as 2026-03-16T08:05:00Z."""
    seconds = datetime.timedelta(seconds=epoch_ms // 1000)
    return f"{datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + seconds:%Y-%m-%dT%H:%M:%SZ}"


def format_count(count: int, noun: str) -> str:
    """Return a count with its noun, such as `1 trip` or `2 trips`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def format_change(change: float | None) -> str:
    """Return a change of a score or of points with its sign, or nothing if it is unknown."""
    return "" if change is None else f" ({change:+.1f})"
