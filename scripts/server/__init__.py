"""Running the service: the command `serve`, and gunicorn with its settings and checks.

The handling of requests is in `app`.
"""
