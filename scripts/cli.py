"""The command line, `driver-analytics`. It loads only the command that runs."""

import importlib
import os
import signal
import sys

import click

from scripts.command_line.output import echo, escape

# Where each command is.
COMMANDS = {
    "serve": "scripts.server.serve:serve",
    "demo": "scripts.demo.load:demo",
    "import": "scripts.ingest.importer:import_",
    "follow": "scripts.ingest.follow:follow",
    "mirror": "scripts.ingest.mirror:mirror",
    "export": "scripts.lifecycle.export:export",
    "erase": "scripts.lifecycle.erase:erase",
    "prune": "scripts.lifecycle.prune:prune",
    "fleets": "scripts.lifecycle.fleets:fleets",
    "groups": "scripts.lifecycle.groups:groups",
    "keys": "scripts.admin.keys:keys",
    "rollups": "scripts.admin.rollups:rollups",
    "reports": "scripts.reports.commands:reports",
    "backup": "scripts.admin.backup:backup",
    "restore": "scripts.admin.backup:restore",
    "mcp": "scripts.mcp_server.command:mcp",
    "openapi": "scripts.admin.print_openapi:openapi",
}


# The extras of setup.cfg have the names of the commands that need them.
EXTRAS = ("export", "mcp", "mirror")


class LazyGroup(click.Group):
    """The commands, each of which is loaded when it is used: a tool for agents starts without the service."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the alphabet."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with a name."""
        module, _, name = COMMANDS.get(cmd_name, "").partition(":")
        return getattr(importlib.import_module(module), name) if module else None


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="driver-analytics-api")
def cli() -> None:
    """Run the Driver Analytics API, import its data and manage it.

    Settings are environment variables; docs/configuration.md lists them. Without MONGODB_URI, a command that needs a
    database starts an embedded MongoDB, with its data in DATA_DIR.
    """


def main() -> None:
    """Run the command line. An error ends it with one line on standard error and an exit status other than 0."""
    # sys.exit lets a command stop the embedded MongoDB before it ends.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        status = cli(standalone_mode=False)
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
    except ModuleNotFoundError as error:
        if sys.argv[1] not in EXTRAS:
            raise
        raise _end(
            f"The extra {sys.argv[1]} is not installed ({error}). Install it from a clone of the project, "
            f"pip install '/path/to/clone[{sys.argv[1]}]', or run 'make setup' there."
        ) from None
    except OSError as error:
        raise _end(f"{error.filename}: {error.strerror}" if error.filename else str(error)) from None
    except Exception as error:
        # Loaded only now: a command may run without a database.
        from scripts.mongodb.failures import describe_failure

        if message := describe_failure(error):
            raise _end(message) from None
        raise
    else:
        raise SystemExit(status)
    finally:
        _prevent_traceback()


def _prevent_traceback() -> None:
    """Ignore a second Ctrl-C during the exit, and discard what standard output does not take.

    For both, Python would print a traceback at its end, and for the latter change the status.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end(message: str) -> SystemExit:
    return SystemExit(escape(f"Error: {message}"))
