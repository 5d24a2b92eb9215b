"""The command line, `driver-analytics`."""

import signal
import sys

import click
from pymongo.errors import BulkWriteError, PyMongoError

from app.config import ConfigError
from scripts.admin.backup import backup, restore
from scripts.admin.keys import keys
from scripts.admin.print_openapi import openapi
from scripts.admin.rollups import rollups
from scripts.demo.commands import demo
from scripts.ingest.importer import import_
from scripts.reports.commands import reports
from scripts.server.serve import serve


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="driver-analytics-api")
def cli() -> None:
    """Serve and feed the Driver Analytics API.

    Settings come from the environment (see the README). Without MONGODB_URI every command uses an embedded MongoDB,
    whose data lie under DATA_DIR.
    """


for command in (serve, demo, import_, keys, rollups, reports, backup, restore, openapi):
    cli.add_command(command)


def main() -> None:
    """Run the command line; whatever goes wrong ends in one line and a status other than 0."""
    # Ended by a signal, a command still stops the MongoDB that it embeds.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        raise SystemExit(cli(standalone_mode=False))
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        raise SystemExit(error.exit_code) from None
    except click.UsageError as error:
        hint = f" See '{error.ctx.command_path} --help'." if error.ctx else ""
        click.echo(f"Error: {error.format_message()}{hint}", err=True)
        raise SystemExit(error.exit_code) from None
    except click.ClickException as error:
        raise SystemExit(f"Error: {error.format_message()}") from None
    except (click.Abort, KeyboardInterrupt):
        raise SystemExit("Aborted.") from None
    except ConfigError as error:
        raise SystemExit(f"Error: {error}") from None
    except PyMongoError as error:
        raise SystemExit(f"Error: MongoDB: {_in_short(error)}") from None
    except OSError as error:
        raise SystemExit(
            f"Error: {error.filename}: {error.strerror}" if error.filename else f"Error: {error}"
        ) from None
    finally:
        # All is done but to exit, which no further Ctrl-C shall litter with a traceback.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _in_short(error: PyMongoError) -> str:
    faults = error.details["writeErrors"] if isinstance(error, BulkWriteError) else None
    text = faults[0]["errmsg"] if faults else str(error)
    # A driver's message goes on with the whole topology, the whole command or the document.
    for more in (", Timeout:", " { ", ", full error:", "\n"):
        text = text.partition(more)[0]
    return text
