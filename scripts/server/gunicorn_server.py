"""gunicorn as `serve` runs it: with the settings of `gunicorn_conf`, and an application in each worker."""

import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from flask import Flask
from gunicorn.app.base import BaseApplication
from pymongo import MongoClient

from app import create_app
from app.store import Document
from scripts.command_line.output import echo
from scripts.server import gunicorn_conf


class Server(BaseApplication):  # type: ignore[misc]
    """gunicorn, which prints the lines of `greeting` once it listens.

    `client` is the client of a store in memory. With it there is only one worker, which gets a copy of the store.
    """

    def __init__(self, greeting: Sequence[str], client: MongoClient[Document] | None = None) -> None:
        self._greeting, self._client = greeting, client
        super().__init__()

    def load_config(self) -> None:
        """Read the settings of `gunicorn_conf`."""
        for name in vars(gunicorn_conf).keys() & self.cfg.settings.keys():
            self.cfg.set(name, getattr(gunicorn_conf, name))
        if self._client is not None:
            self.cfg.set("workers", 1)
        # `serve` has checked the settings before it loaded the demonstration fleet.
        self.cfg.set("on_starting", gunicorn_conf.configure_log)
        self.cfg.set("when_ready", self._stop_on_hangup)
        self.cfg.set("post_worker_init", self._greet)

    def load(self) -> Flask:
        """Return the application. gunicorn calls this in each worker, after the fork."""
        return create_app(client=self._client)

    def _stop_on_hangup(self, arbiter: Any) -> None:
        # A terminal sends SIGHUP when it is closed: stop. A service manager, without a terminal, sends it to reload.
        if sys.stderr.isatty():
            signal.signal(signal.SIGHUP, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
        gunicorn_conf.when_ready(arbiter)

    def _greet(self, worker: Any) -> None:
        # By now the worker ends when it is signalled. Right after the fork, it would lose the signal.
        if worker.age == 1:
            for line in self._greeting:
                echo(line)
        gunicorn_conf.post_worker_init(worker)
