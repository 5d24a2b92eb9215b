"""What every endpoint does before its own work, and declares: its parameters and the shape that it answers with."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from flask import Response, g, request
from marshmallow import Schema

from app.responses import MASK_HEADER, Revalidation
from schemas.derive import fields_of
from schemas.mask import masked
from schemas.query import Query

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

        @functools.wraps(view)
        def run(**path: str) -> Response:
            asked = self.query.parse(request.query_string, **path)
            if not self.masks:
                plain: Response = view(asked)
                return plain
            mask = request.headers.get(MASK_HEADER, "")
            fields, revalidation = masked(whole, mask), Revalidation(request, g.key.fleet, mask)
            return revalidation.respond(view(asked, fields, revalidation.seen))

        run.operation = self  # type: ignore[attr-defined]
        return run
