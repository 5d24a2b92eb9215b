"""What every endpoint does before its own work, and declares: its parameters and the shape that it answers with."""

import dataclasses
import functools
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from flask import Response, current_app, g, request
from marshmallow import Schema

from app.database import guard_store
from app.responses import JSON, MASK_HEADER, ConditionalResponder, json_response, prefers
from schemas.introspection import fields_of
from schemas.mask import make_pruner, select_fields
from schemas.params import Params, UnknownParameters

SECONDS_PER_DAY = 86_400
# As WSGI names it.
MASK_ENVIRON_KEY = f"HTTP_{MASK_HEADER.upper().replace('-', '_')}"
# Of each endpoint. A query has up to 8 kB.
MAX_CACHED_QUERIES = 500

# What takes JSON, from the narrowest on.
JSON_MEDIA_RANGES = (JSON, "application/*", "*/*")

View = Callable[..., Any]


class Representation(NamedTuple):
    """Another representation of an answer: its shape, and what makes it of the answer."""

    schema: Schema
    convert: Callable[[Any], Any]


@dataclasses.dataclass(frozen=True)
class Endpoint:
    """An endpoint as a client sees it; the OpenAPI document is made from these.

    `masks` tells whether it takes a field mask, `kept` whether a client may keep the answer, `needs_store` whether the
    store has to answer, `unavailable` its own shape of a 503. `others` are the media types that it answers with beside
    JSON, or where it has no `answer` instead: None is a file, which the view returns by itself. `details` are what the
    document says of it after the view's docstring.
    """

    params: Params
    response: Schema | None = None
    accepts_mask: bool = True
    supports_conditional: bool = True
    reads_store: bool = True
    unavailable_response: Schema | None = None
    representations: Mapping[str, Representation | None] = dataclasses.field(default_factory=dict)
    description: str = ""

    def __call__(self, view: View) -> Callable[..., Response]:
        """Give a view its validated parameters and, where it takes a mask, the fields that the client asks for.

        Parameters come first, so a broken mask is an error only when they are right. A view whose response may be kept
        gets what to read, and returns a Result; its version alone decides whether the client has it already. Another
        view returns the whole response. Other representations are made of the whole response.
        """
        whole = fields_of(type(self.response)) if self.response else {}
        representations = [
            (kind, representation) for kind, representation in self.representations.items() if representation
        ]
        varies = f"Accept, {MASK_HEADER}" if representations else MASK_HEADER

        def read(*parameters: Any) -> Any:
            if not self.reads_store:
                return view(*parameters)
            with guard_store():
                return view(*parameters)

        # What is right on a day stays so until it ends, and clients ask the same again.
        @functools.lru_cache(MAX_CACHED_QUERIES)
        def parsed(
            query_string: bytes, unknown_parameters: UnknownParameters, day: int, *path: tuple[str, str]
        ) -> dict[str, Any]:
            return self.params.parse(query_string, unknown_parameters, **dict(path))

        @functools.wraps(view)
        def run(**path: str) -> Response:
            policy = current_app.extensions["config"].unknown_parameters
            asked = parsed(request.query_string, policy, int(time.time() // SECONDS_PER_DAY), *path.items())
            if not self.accepts_mask:
                plain: Response = read(asked)
                return plain
            find = functools.partial(read, asked)
            for kind, representation in representations:
                if prefers(request, kind, *JSON_MEDIA_RANGES):
                    conditional = ConditionalResponder(request, g.api_key.fleet, "", varies=varies, media_type=kind)
                    return conditional.respond(find, whole, representation.convert)
            mask = request.environ.get(MASK_ENVIRON_KEY, "")
            fields = select_fields(whole, mask)
            if not self.supports_conditional:
                return json_response(make_pruner(fields, whole)(read(asked)))
            return ConditionalResponder(request, g.api_key.fleet, mask, varies=varies).respond(find, fields)

        run.endpoint = self  # type: ignore[attr-defined]
        return run
