from scripts.server.gunicorn_conf import *  # noqa: D100, F403 -- `gunicorn wsgi:app` reads this file in this folder
