"""Running the service: `serve`, gunicorn, and the metrics of all workers.

What a request does is in `app`.
"""
