"""What a reader gets, with nothing hidden: lines, tables, JSON, questions, progress; and private files and folders."""

import contextlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

import click

T = TypeVar("T")

# Unicode's Default_Ignorable_Code_Point that str.isprintable accepts, such as fillers and variation selectors, and the
# Braille pattern without dots.
INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
# Names are free text. What is longer is cut.
MAX_NAME_LENGTH = 60
# The permissions of a folder with personal data or secrets, which only its owner can read.
OWNER_ONLY = 0o700


def is_visible(text: str) -> bool:
    """Return whether a reader sees every character. Nobody sees, for example, a line break or a mark of direction."""
    return text.isprintable() and not INVISIBLE.search(text)


def escape(text: str) -> str:
    """Return the text on one line, with invisible characters escaped as in JSON: a terminal would obey some of them."""
    if is_visible(text):
        return text
    return "".join(character if is_visible(character) else json.dumps(character)[1:-1] for character in text)


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


def echo(line: str, *, err: bool = False) -> None:
    """Print a line, escaped: it may have text of others, such as an identifier, a file's name or an error."""
    click.echo(escape(line), err=err)  # noqa: TID251


def echo_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print the rows, and above them the names of the columns if a person reads them on a terminal.

    A row is a line, with tabs between the columns. A backslash is doubled, so that no text looks like an escaped one.
    """
    for row in [columns, *rows] if sys.stdout.isatty() else rows:
        click.echo("\t".join(escape(cell.replace("\\", r"\\")) for cell in row))  # noqa: TID251


def confirm(description: str, yes: bool) -> None:
    """Print what is to be removed, and ask on a terminal unless `yes` is given.

    Raises click.ClickException if there is none, and click.Abort for no.
    """
    echo(description)
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.ClickException("Nothing was removed: there is no terminal to ask on. Confirm with --yes.")
    click.confirm("Remove all of it? This cannot be undone.", abort=True)


def make_bar(label: str, length: int | None = None, *, hidden: bool = False, **options: Any) -> Any:
    """Return a progress bar, a context manager, which appears on a terminal only.

    `options` are further arguments of `click.progressbar`.
    """
    return click.progressbar(
        length=length, label=escape(label), file=sys.stderr, hidden=hidden or not sys.stderr.isatty(), **options
    )


def with_progress(label: str, steps: Iterable[T]) -> Iterator[T]:
    """Yield the results of the steps, and show how many are finished. Their total is unknown."""
    with make_bar(label, iterable=steps, show_pos=True, show_percent=False) as bar:
        yield from bar


def sum_with_progress(label: str, length: int, counts: Iterable[int]) -> int:
    """Return the sum of the counts, and show how much of `length` it has reached."""
    total = 0
    with make_bar(label, length) as bar:
        for count in counts:
            total += count
            bar.update(count)
    return total


def create_private(path: Path, mode: str = "x", **options: Any) -> IO[Any]:
    """Create a file that only its owner can read, and open it to write: with the mode `x` as text, with `xb` as bytes.

    Raises FileExistsError if there is a file or a link: a link of another user is never followed. `options` are further
    arguments of `open`.
    """
    return open(path, mode, opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o600), **options)


@contextlib.contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """Create a folder that only its owner can read, and yield its path. When the block ends, it is removed.

    An earlier one, of a command that was killed, is removed first. Raises FileExistsError for anything else with its
    name, such as a link.
    """
    _remove_folder(path)
    path.mkdir(OWNER_ONLY)
    try:
        yield path
    finally:
        _remove_folder(path)


def _remove_folder(path: Path) -> None:
    # shutil.rmtree waits for ever for a pipe.
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
