"""`driver-analytics demo`: load a fleet to try the service with."""

import click

from scripts.demo.fleet import FLEET
from scripts.demo.load import load_demo
from scripts.mongodb.connection import open_store
from scripts.output import echo


@click.command()
def demo() -> None:
    """Generate and load the demonstration fleet.

    It has 20 drivers with about 1,200 trips in the 8 weeks up to today. If you load it again on another day, it moves
    to the 8 weeks up to that day.
    """
    with open_store() as store:
        load_demo(store)
    echo(f"Loaded the fleet '{FLEET}'. Issue a key for it: driver-analytics keys issue --fleet {FLEET}")
