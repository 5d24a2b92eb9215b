"""The floor: a WSGI function in the service's gunicorn that makes the queries of the service and sends a prepared body.

It leaves the documents undecoded. The file PREPARED has for each request, by its path, X-Fields and
If-None-Match, the queries and the body.
"""

import os
import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient

prepared = pickle.loads(Path(os.environ["PREPARED"]).read_bytes())
client = MongoClient[RawBSONDocument](os.environ["MONGODB_URI"], document_class=RawBSONDocument)
store = client[os.environ["MONGODB_DATABASE"]]


def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Respond to a request."""
    etag = environ.get("HTTP_IF_NONE_MATCH")
    queries, body = prepared[environ["RAW_URI"], environ.get("HTTP_X_FIELDS"), etag]
    for query in queries:
        # All documents are in the first reply.
        list(store.cursor_command(query))
    if not queries:
        store.command("ping")
    if etag:
        start_response("304 Not Modified", [])
    else:
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return (body,)
