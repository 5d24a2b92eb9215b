"""The entry point of `driver-analytics`. It imports nothing but `signal` before it is safe from Ctrl-C."""

import signal


def main() -> None:
    """Load the command line and run it."""
    # Loading takes half a second. A Ctrl-C in that time ends the process at once, and not with a traceback: there is
    # nothing to clean up yet. A shell may have started the process so that it ignores the signal.
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from scripts import cli

    signal.signal(signal.SIGINT, handler)
    cli.main()
