"""`driver-analytics openapi`: the document that clients are made from."""

import click

from app import openapi_document
from app.config import Config


@click.command()
def openapi() -> None:
    """Print the OpenAPI document, byte for byte as the service serves it with the same settings."""
    click.echo(openapi_document(Config.from_environment().public_base_url), nl=False)
