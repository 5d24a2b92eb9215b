"""The drivers on standard input of a command that changes something for all of them, or nothing."""

import sys

import click
from marshmallow import ValidationError

from schemas.fields import Identifier

# No line is longer, but a file that is not text may have no end of a line.
MAX_LINE_BYTES = 100_000


def read_driver_ids(outcome: str, hint: str = "") -> list[str]:
    """Return the identifiers on the lines of standard input that are not empty, each once, in order.

    Raises click.ClickException if one is invalid, or if there is none. `outcome` then says what did not happen, and
    `hint` what to do without any.
    """
    if sys.stdin is None:
        raise click.ClickException(f"Standard input is closed: {outcome}.")
    driver_ids, number, field = dict[str, None](), 0, Identifier()
    while line := sys.stdin.buffer.readline(MAX_LINE_BYTES):
        number += 1
        try:
            if text := line.removesuffix(b"\n").decode():
                driver_ids[field.deserialize(text)] = None
        except (UnicodeDecodeError, ValidationError) as error:
            reason = " ".join(error.messages) if isinstance(error, ValidationError) else "Must be UTF-8."
            if line.endswith(b"\r\n"):
                # As programs on Windows write a line.
                reason += " It ends with CR LF; a line must end with LF alone."
            raise click.ClickException(f"Line {number} of standard input: {reason} {outcome.capitalize()}.") from None
    if not driver_ids:
        raise click.ClickException(f"Standard input has no driver_id: {outcome}.{hint}")
    return list(driver_ids)
