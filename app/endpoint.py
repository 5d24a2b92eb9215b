"""The decorator of every view: it declares the parameters and the response, validates and masks."""

import dataclasses
import functools
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from flask import Response, request
from marshmallow import Schema

from app.responses import JSON, MASK_HEADER, ConditionalResponder, json_response, prefers
from app.services import get_scope, get_services
from schemas.introspection import Fields, fields_of
from schemas.mask import make_pruner, select_fields
from schemas.query import Params, UnknownParameters

SECONDS_PER_DAY = 86_400
# The name of the header in the WSGI environment.
MASK_ENVIRON_KEY = f"HTTP_{MASK_HEADER.upper().replace('-', '_')}"
# The cache size of each endpoint. A query string has at most 8 kB.
MAX_CACHED_QUERIES = 500

# The media ranges that include JSON, most specific first.
JSON_MEDIA_RANGES = (JSON, "application/*", "*/*")

View = Callable[..., Any]


class Representation(NamedTuple):
    """An alternative representation of a response: its schema, and its conversion from the JSON value."""

    schema: Schema
    convert: Callable[[Any], Any]


@dataclasses.dataclass(frozen=True)
class Endpoint:
    """The declaration of an endpoint, from which the OpenAPI document is generated, and the decorator of its view.

    - `params`: the schema of the parameters in path and query.
    - `response`: the schema of the JSON response. None if the endpoint serves only files.
    - `accepts_mask`: whether the header X-Fields selects fields of the response.
    - `supports_conditional`: whether the response has an ETag and conditional requests get a 304.
    - `reads_store`: whether the endpoint fails with a 503 while the database does not respond.
    - `unavailable_response`: the schema of a 503 that differs from other errors.
    - `representations`: other media types of the response. None stands for a file, which the view returns itself.
    - `links`: where a response leads. For each operationId, the values of its parameters, as OpenAPI writes them.
    - `description`: text that the OpenAPI document appends to the docstring of the view.
    """

    params: Params
    response: Schema | None = None
    accepts_mask: bool = True
    supports_conditional: bool = True
    reads_store: bool = True
    unavailable_response: Schema | None = None
    representations: Mapping[str, Representation | None] = dataclasses.field(default_factory=dict)
    links: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    description: str = ""

    def __call__(self, view: View) -> Callable[..., Response]:
        """Return a Flask view that calls `view` with the validated parameters.

        A view that supports conditional requests also gets a Selection, and returns a Result. A view that accepts a
        mask but not conditional requests returns the JSON value. Any other view returns a Response. The parameters are
        validated before the mask, so an invalid mask is reported only if the parameters are valid.
        """

        # Clients repeat requests, and whether parameters are valid changes only at midnight UTC.
        @functools.lru_cache(MAX_CACHED_QUERIES)
        def parse(
            query_string: bytes, unknown_parameters: UnknownParameters, day: int, *path: tuple[str, str]
        ) -> dict[str, Any]:
            return self.params.parse(query_string, unknown_parameters, **dict(path))

        def call_view(*arguments: Any) -> Any:
            if not self.reads_store:
                return view(*arguments)
            with get_services().store_breaker.guard():
                return view(*arguments)

        @functools.wraps(view)
        def run(**path: str) -> Response:
            policy = get_services().config.unknown_parameters
            params = parse(request.query_string, policy, int(time.time() // SECONDS_PER_DAY), *path.items())
            if self.accepts_mask:
                return self._respond(functools.partial(call_view, params), params.get("page"))
            response: Response = call_view(params)
            return response

        run.endpoint = self  # type: ignore[attr-defined]
        return run

    @functools.cached_property
    def _fields(self) -> Fields:
        return fields_of(type(self.response)) if self.response else {}

    @functools.cached_property
    def _conversions(self) -> list[tuple[str, Callable[[Any], Any]]]:
        """The media types of other representations, each with the conversion of the JSON value."""
        return [(media_type, other.convert) for media_type, other in self.representations.items() if other]

    def _respond(self, read: Callable[..., Any], page: int | None) -> Response:
        """Return the response in the media type and with the fields that the client prefers.

        `page` is the number of the page if the response is a list. X-Fields applies only to JSON, not to other
        representations.
        """
        vary = f"Accept, {MASK_HEADER}" if self._conversions else MASK_HEADER
        for media_type, convert in self._conversions:
            if prefers(media_type, *JSON_MEDIA_RANGES):
                responder = ConditionalResponder(get_scope().fleet, "", page=page, vary=vary, media_type=media_type)
                return responder.respond(read, self._fields, convert)
        mask = request.environ.get(MASK_ENVIRON_KEY, "")
        fields = select_fields(self._fields, mask)
        if not self.supports_conditional:
            return json_response(make_pruner(fields, self._fields)(read()))
        return ConditionalResponder(get_scope().fleet, mask, page=page, vary=vary).respond(read, fields)
