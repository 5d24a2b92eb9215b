"""What every endpoint does before its own work, and declares: its parameters and the shape that it answers with."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from flask import Response, request
from marshmallow import Schema

from schemas.derive import Fields, fields_of
from schemas.header import MaskHeaders, header_names
from schemas.mask import masked
from schemas.query import Query

(MASK_HEADER,) = header_names(MaskHeaders())

View = Callable[[dict[str, Any], Fields], Response]


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
        """Give a view its validated parameters and the fields that the client asks for.

        Parameters come first, so a broken mask is told of when they are right.
        """
        whole = fields_of(type(self.answer))

        @functools.wraps(view)
        def run(**path: str) -> Response:
            asked = self.query.parse(request.query_string, **path)
            mask = request.headers.get(MASK_HEADER, "") if self.masks else ""
            response = view(asked, masked(whole, mask))
            if self.masks:
                response.vary.add(MASK_HEADER)
            return response

        run.operation = self  # type: ignore[attr-defined]
        return run
