"""What every endpoint does before its own work, and declares: its parameters and the shape that it answers with."""

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any

from flask import Request, Response, g, request
from marshmallow import Schema

from app.responses import MASK_HEADER, Revalidation
from schemas.derive import fields_of
from schemas.mask import masked
from schemas.query import Query

SECONDS_PER_DAY = 86_400
# As WSGI names it.
MASK_VARIABLE = f"HTTP_{MASK_HEADER.upper().replace('-', '_')}"
# Of each endpoint. A query has up to 8 kB.
MAX_KNOWN_QUERIES = 500

View = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class Operation:
    """An endpoint as a client sees it; the OpenAPI document is made from these.

    `masks` tells whether it takes a field mask, `unavailable` its own shape of a 503.
    """

    query: Query
    answer: Schema
    masks: bool = True
    unavailable: Schema | None = None

    def __call__(self, view: View) -> Callable[..., Response]:
        """Give a view its validated parameters and, where it takes a mask, the fields that the client asks for.

        Parameters come first, so a broken mask is told of when they are right. A view that takes a mask also gets
        what tells which versions of the answer the client holds, and returns what it found.
        """
        whole = fields_of(type(self.answer))

        # What is right on a day stays so until it ends, and clients ask the same again.
        @functools.lru_cache(MAX_KNOWN_QUERIES)
        def parsed(query_string: bytes, day: int, *path: tuple[str, str]) -> dict[str, Any]:
            return self.query.parse(query_string, **dict(path))

        @functools.wraps(view)
        def run(**path: str) -> Response:
            sent: Request = request._get_current_object()  # type: ignore[attr-defined]
            asked = parsed(sent.query_string, int(time.time() // SECONDS_PER_DAY), *path.items())
            if not self.masks:
                plain: Response = view(asked)
                return plain
            mask = sent.environ.get(MASK_VARIABLE, "")
            fields, revalidation = masked(whole, mask), Revalidation(sent, g.key.fleet, mask)
            return revalidation.respond(view(asked, fields, revalidation.seen))

        run.operation = self  # type: ignore[attr-defined]
        return run
