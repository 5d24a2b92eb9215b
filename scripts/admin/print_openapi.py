"""`driver-analytics openapi`: print the OpenAPI document, from which clients are generated."""

import click

from app import openapi_document
from schemas.periods import UTC, get_today
from scripts.mongodb.connection import read_config


@click.command()
def openapi() -> None:
    """Print the OpenAPI document.

    It is byte for byte the document that the service returns with the same settings on the same day (UTC).
    """
    click.echo(openapi_document(read_config().public_base_url, get_today(UTC)), nl=False)  # noqa: TID251
