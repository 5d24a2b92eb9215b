"""The command line, `driver-analytics`."""

import re
import signal
import sys

import click
from pymongo.errors import BulkWriteError, PyMongoError, ServerSelectionTimeoutError

from app.config import ConfigError
from app.database import get_refusal
from scripts.admin.backup import backup, restore
from scripts.admin.keys import keys
from scripts.admin.print_openapi import openapi
from scripts.admin.rollups import rollups
from scripts.demo.load import demo
from scripts.ingest.erase import erase
from scripts.ingest.export import export
from scripts.ingest.fleets import fleets
from scripts.ingest.follow import follow
from scripts.ingest.importer import import_
from scripts.ingest.mirror import mirror
from scripts.ingest.prune import prune
from scripts.mcp_server.command import mcp
from scripts.output import echo, escape
from scripts.reports.commands import reports
from scripts.server.serve import serve

# pymongo appends them to the address and the reason of each server.
CONFIGURED_TIMEOUTS = re.compile(r" \(configured timeouts: [^)]*\)")
# Documents within a message. They may have personal data, and may be long.
BRACES = re.compile(r" ?\{[^{}]*\}")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="driver-analytics-api")
def cli() -> None:
    """Run the Driver Analytics API, import its data and manage it.

    Settings are environment variables; docs/configuration.md lists them. Without MONGODB_URI, a command that needs a
    database starts an embedded MongoDB, with its data in DATA_DIR.
    """


COMMANDS = (
    serve,
    demo,
    import_,
    follow,
    mirror,
    export,
    erase,
    prune,
    fleets,
    keys,
    rollups,
    reports,
    backup,
    restore,
    mcp,
    openapi,
)
for command in COMMANDS:
    cli.add_command(command)


def main() -> None:
    """Run the command line. An error ends it with one line on standard error and an exit status other than 0."""
    # sys.exit lets a command stop the embedded MongoDB before it ends.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        raise SystemExit(cli(standalone_mode=False))
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        raise SystemExit(error.exit_code) from None
    except click.UsageError as error:
        hint = f" See '{error.ctx.command_path} --help'." if error.ctx else ""
        echo(f"Error: {error.format_message()}{hint}", err=True)
        raise SystemExit(error.exit_code) from None
    except click.ClickException as error:
        raise _end(error.format_message()) from None
    except (click.Abort, KeyboardInterrupt):
        raise SystemExit("Aborted.") from None
    except ConfigError as error:
        raise _end(str(error)) from None
    except PyMongoError as error:
        raise _end(_describe(error)) from None
    except OSError as error:
        raise _end(f"{error.filename}: {error.strerror}" if error.filename else str(error)) from None
    finally:
        # A second Ctrl-C during the exit would print a traceback.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end(message: str) -> SystemExit:
    return SystemExit(escape(f"Error: {message}"))


def _describe(error: PyMongoError) -> str:
    """Return what happened, in a line, with the setting to correct if it is known."""
    if refusal := get_refusal(error):
        return f"{refusal}."
    reason = _shorten(error)
    if isinstance(error, ServerSelectionTimeoutError):
        return f"No MongoDB responds: {CONFIGURED_TIMEOUTS.sub('', reason)}. Start it, or correct MONGODB_URI."
    return f"MongoDB: {reason}"


def _shorten(error: PyMongoError) -> str:
    """Return the message without the topology, command or document that pymongo appends to it."""
    write_errors = error.details["writeErrors"] if isinstance(error, BulkWriteError) else None
    text = write_errors[0]["errmsg"] if write_errors else str(error)
    for suffix in (", Timeout:", ", full error:", "\n"):
        text = text.partition(suffix)[0]
    while (shortened := BRACES.sub("", text)) != text:
        text = shortened
    return text
