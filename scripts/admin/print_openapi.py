"""`driver-analytics openapi`: print the OpenAPI document, from which clients are generated."""

import click

from app import openapi_document
from app.config import Config


@click.command()
def openapi() -> None:
    """Print the OpenAPI document.

    It is byte for byte the document that the service returns with the same settings.
    """
    click.echo(openapi_document(Config.from_environment().public_base_url), nl=False)  # noqa: TID251
