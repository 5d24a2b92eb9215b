"""The floor: a bare WSGI callable, under the gunicorn of the service, that asks MongoDB once and sends a ready body.

It asks for the documents that an answer is about, or for the text that the service keeps of them, or for nothing. The
file that ANSWERS names says what to ask, and to send, for each request.
"""

import os
import pickle
from collections.abc import Callable, Iterable
from typing import Any

from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient

from app.config import API, Config
from bench.rows import Query

HEALTH = f"{API}/healthz"
# What tells one request from another: its target, its mask, and what it holds already.
RequestKey = tuple[str, str | None, str | None]


def application(what: str) -> Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]:
    """Return the WSGI application, which asks for "documents", "text" or "nothing"."""
    with open(os.environ["ANSWERS"], "rb") as file:
        ready: dict[RequestKey, tuple[Query, Query, bytes]] = pickle.load(file)
    answers = {key: (text if what == "text" else query, body) for key, (query, text, body) in ready.items()}
    store = None
    if what != "nothing":
        config = Config.from_environment()
        client = MongoClient[RawBSONDocument](config.mongodb_uri, document_class=RawBSONDocument)
        store = client[config.mongodb_database]

    def floor(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        get = environ.get
        query, body = answers[environ["RAW_URI"], get("HTTP_X_FIELDS"), get("HTTP_IF_NONE_MATCH")]
        if store is not None:
            if query.collection is None:
                store.command("ping")
            else:
                found = store[query.collection].find(query.filter, query.projection, sort=query.sort, limit=query.limit)
                # All in one reply of the store's.
                found.batch_size(query.limit + 1)
                list(found)
        if body:
            head = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
            start_response("200 OK", head)
        else:
            start_response("304 Not Modified", [])
        return (body,)

    return floor
