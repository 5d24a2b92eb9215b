"""What every endpoint does before its own work, and declares: its parameters and the shape that it answers with."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from flask import Response, request
from marshmallow import Schema

from schemas.derive import Fields, fields_of
from schemas.mask import masked
from schemas.query import Query

MASK_HEADER = "X-Fields"

View = Callable[[dict[str, Any], Fields], Response]


@dataclasses.dataclass(frozen=True)
class Operation:
    """An endpoint as a client sees it; the OpenAPI document is made from these."""

    query: Query
    answer: Schema
    masked: bool


def operation(
    query: Query, answer: Schema, *, masked_by_client: bool = True
) -> Callable[[View], Callable[..., Response]]:
    """Give a view its validated parameters and the fields that the client asks for.

    Parameters come first, so a broken mask is told of when they are right. The view's `operation` says what it takes.
    """
    whole = fields_of(answer)

    def declare(view: View) -> Callable[..., Response]:
        @functools.wraps(view)
        def run(**path: str) -> Response:
            asked = query.parse(request.query_string, **path)
            mask = request.headers.get(MASK_HEADER, "") if masked_by_client else ""
            return view(asked, masked(whole, mask))

        run.operation = Operation(query, answer, masked_by_client)  # type: ignore[attr-defined]
        return run

    return declare
