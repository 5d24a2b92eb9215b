"""The decorator of every view of the API: parse the parameters, choose what to read, read, respond."""

import dataclasses
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from flask import Response, request
from marshmallow import Schema

from app.responses import (
    CACHE_CONTROL_REVALIDATE,
    JSON,
    MASK_HEADER,
    format_page_links,
    get_matching_etag,
    json_response,
    make_etag,
    not_modified,
    prefers,
)
from app.services import get_fleet, get_services
from app.store.rendering import Selection
from schemas.error import ErrorBody
from schemas.introspection import Fields, fields_of
from schemas.mask import select_fields
from schemas.query import Params, UnknownParameters

SECONDS_PER_DAY = 86_400
# The name of the header in the WSGI environment.
MASK_ENVIRON_KEY = f"HTTP_{MASK_HEADER.upper().replace('-', '_')}"
# The cache size of each endpoint. A query string has at most 8 kB.
MAX_CACHED_QUERIES = 500

# The media ranges that include JSON, most specific first.
JSON_MEDIA_RANGES = (JSON, "application/*", "*/*")
# The 503 of an endpoint that has none of its own.
UNAVAILABLE = ErrorBody()

View = Callable[..., Any]
Convert = Callable[[Any], Any]


class Representation(NamedTuple):
    """An alternative representation of a response: its schema, and its conversion from the JSON value."""

    schema: Schema
    convert: Convert


@dataclasses.dataclass(frozen=True)
class Endpoint:
    """The declaration of an endpoint, from which the OpenAPI document is generated, and the decorator of its view.

    - `params`: the schema of the parameters in path and query.
    - `response`: the schema of the JSON response. None if the endpoint serves only files.
    - `accepts_mask`: whether the header X-Fields selects fields of the response.
    - `has_etag`: whether the response has an ETag, and conditional requests get a 304.
    - `is_about_fleet`: whether the response is about the whole fleet, so that a key of one driver gets a 403.
    - `unavailable_response`: the schema of the 503 while the database does not respond. None if there is no such 503.
    - `representations`: other media types of the response. None stands for a file, which the view returns itself.
    - `links`: the identifiers in a response. Each gives values, as OpenAPI writes them, to parameters; the document
      links to every operation that has these parameters.
    - `description`: text that the OpenAPI document appends to the docstring of the view.
    """

    params: Params
    response: Schema | None = None
    accepts_mask: bool = True
    has_etag: bool = True
    is_about_fleet: bool = False
    unavailable_response: Schema | None = UNAVAILABLE
    representations: Mapping[str, Representation | None] = dataclasses.field(default_factory=dict)
    links: Sequence[Mapping[str, str]] = ()
    description: str = ""

    def __call__(self, view: View) -> Callable[..., Response]:
        """Return a Flask view that calls `view` with the validated parameters.

        A view that accepts a mask also gets a Selection, and returns a Result, or, without an ETag, the content. It
        runs within the circuit breaker of the store. Any other view returns the Response itself, and enters the circuit
        breaker itself. The parameters are validated before the mask, so an invalid mask is reported only if they are
        valid.
        """
        parse = functools.lru_cache(MAX_CACHED_QUERIES)(self._parse)

        @functools.wraps(view)
        def respond(**path: str) -> Response:
            # Before the parameters: their errors would not tell whether the client can use the endpoint at all.
            fleet = get_fleet() if self.is_about_fleet else ""
            services, environ = get_services(), request.environ
            today = int(time.time() // SECONDS_PER_DAY)
            params = parse(request.query_string, services.config.unknown_parameters, fleet, today, *path.items())
            if not self.accepts_mask:
                # The view makes the response itself.
                response: Response = view(params)
                return response

            media_type, convert = self._choose_representation()
            # X-Fields applies only to JSON.
            mask = "" if convert else environ.get(MASK_ENVIRON_KEY, "")
            fields = select_fields(self._fields, mask)
            with services.store_breaker.guard():
                if not self.has_etag:
                    return json_response(view(params, Selection(fields)))
                if "HTTP_IF_NONE_MATCH" in environ:
                    version, _, page_count = view(params, Selection(fields, include_content=False))
                    if matching_etag := get_matching_etag(make_etag(version, media_type, mask)):
                        return not_modified(self._make_headers(matching_etag, params, page_count))
                version, content, page_count = view(params, Selection(fields))

            body = orjson.dumps(content)
            if convert:
                body = orjson.dumps(convert(orjson.loads(body)))
            headers = self._make_headers(make_etag(version, media_type, mask), params, page_count)
            return Response(body, headers=headers, mimetype=media_type)

        respond.endpoint = self  # type: ignore[attr-defined]
        return respond

    @functools.cached_property
    def _fields(self) -> Fields:
        return fields_of(type(self.response)) if self.response else {}

    @functools.cached_property
    def _conversions(self) -> list[tuple[str, Convert]]:
        """The media types of other representations, each with the conversion of the JSON value."""
        return [(media_type, other.convert) for media_type, other in self.representations.items() if other]

    def _parse(
        self, query_string: bytes, unknown_parameters: UnknownParameters, fleet: str, today: int, *path: tuple[str, str]
    ) -> dict[str, Any]:
        """Return the validated parameters.

        They are cached, because clients repeat requests. `today` is a parameter only for the cache: at midnight UTC,
        other parameters become valid.
        """
        return self.params.parse(query_string, unknown_parameters, fleet, **dict(path))

    def _choose_representation(self) -> tuple[str, Convert | None]:
        """Return the media type that the client prefers, and the conversion of the JSON value to it, if any."""
        for media_type, convert in self._conversions:
            if prefers(media_type, *JSON_MEDIA_RANGES):
                return media_type, convert
        return JSON, None

    def _make_headers(self, etag: str, params: dict[str, Any], page_count: int) -> dict[str, str]:
        """Return the headers of a response and of a 304: a cache updates those of its stored response from a 304."""
        vary = f"Accept, {MASK_HEADER}" if self._conversions else MASK_HEADER
        headers = {"ETag": f'"{etag}"', "Cache-Control": CACHE_CONTROL_REVALIDATE, "Vary": vary}
        if "page" in params:
            headers["Link"] = format_page_links(params["page"], page_count)
        return headers
