"""The WSGI entry point."""

from app import create_app
from scripts.server.checks import check_gunicorn

check_gunicorn()
app = create_app()
