"""Running the service: the command `serve`, gunicorn, and the metrics of all workers.

The handling of requests is in `app`.
"""
