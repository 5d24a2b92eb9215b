"""The floor: a plain WSGI function in the service's gunicorn that makes one query and sends a prepared body.

It queries the documents of a response, or their rendered JSON in the read models, or nothing. The file RESPONSES has
the queries and the body for each request.
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
# Request target, X-Fields and If-None-Match.
RequestKey = tuple[str, str | None, str | None]


def application(query_type: str) -> Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]:
    """Return the WSGI application, which queries "documents", "text" or "nothing"."""
    with open(os.environ["RESPONSES"], "rb") as file:
        prepared: dict[RequestKey, tuple[Query, Query, bytes]] = pickle.load(file)
    responses = {
        key: (text_query if query_type == "text" else query, body)
        for key, (query, text_query, body) in prepared.items()
    }
    store = None
    if query_type != "nothing":
        config = Config.from_environment()
        client = MongoClient[RawBSONDocument](config.mongodb_uri, document_class=RawBSONDocument)
        store = client[config.mongodb_database]

    def floor(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        get = environ.get
        query, body = responses[environ["RAW_URI"], get("HTTP_X_FIELDS"), get("HTTP_IF_NONE_MATCH")]
        if store is not None:
            if query.collection is None:
                store.command("ping")
            else:
                collection = store[query.collection]
                cursor = collection.find(query.filter, query.projection, sort=query.sort, limit=query.limit)
                # All documents in one reply of MongoDB.
                cursor.batch_size(query.limit + 1)
                list(cursor)
        if body:
            headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
            start_response("200 OK", headers)
        else:
            start_response("304 Not Modified", [])
        return (body,)

    return floor
