"""The signals that end a command."""

import signal
import sys


def end_on_signals() -> None:
    """Let Ctrl-C and SIGTERM end the process with exit status 0.

    MongoDB aborts a transaction that is in progress. All else that a command was doing can be repeated.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: sys.exit(0))
