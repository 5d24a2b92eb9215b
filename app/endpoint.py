"""The declaration of an endpoint, which is the decorator of its view: parse the parameters, read, respond."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from flask import Response, current_app, request
from marshmallow import Schema

from app.conditional import find_not_modified, make_etag
from app.errors import FLEET_KEY_REQUIRED, Forbidden
from app.rendering import Convert, make_body, select
from app.responses import JSON, format_list_links, format_page_links, json_response, prefers
from app.services import get_request_today, get_scope, get_services
from app.store import Result
from schemas.csv_rows import CSV, make_csv_writer
from schemas.error import ErrorBody
from schemas.header import MASK
from schemas.mask import fields_of, select_fields
from schemas.query import Params

# The name of the header X-Fields in the WSGI environment.
MASK_ENVIRON_KEY = "HTTP_X_FIELDS"
# The cache size of each endpoint. A query string has at most 8 kB.
MAX_CACHED_QUERIES = 500
# The parameter of a list by cursor.
CURSOR = "cursor"

# The media ranges that include JSON, most specific first.
JSON_MEDIA_RANGES = (JSON, "application/*", "*/*")
# The 503 of an endpoint that has none of its own.
UNAVAILABLE = ErrorBody()

View = Callable[..., Any]


class Credential(Enum):
    """What a request needs to be let in. A key of one driver gets a 403 where a fleet's key is needed."""

    KEY = "a key of a fleet or of one driver of it"
    FLEET_KEY = "a key of a fleet"
    REPORT_LINK = "a link to a report, which is part of the path"
    NONE = "nothing: the endpoint is public"


class Caching(StrEnum):
    """What a cache may do with a response: its header Cache-Control."""

    # Store it, and ask with its ETag before each use.
    REVALIDATE = "private, no-cache"
    # Do not store it. The response has no ETag. Errors are not stored either, whatever the endpoint.
    NEVER = "no-store"


class Representation(NamedTuple):
    """An alternative representation of a response: its conversion from the JSON value, and its schema if it is JSON.

    The conversion yields the body in parts, and reads the elements of lists one after the other.

    The OpenAPI document has no content of one that is not JSON: a client that is generated from it would have to tell
    objects from text in each response.
    """

    convert: Convert
    schema: Schema | None = None
    # Parameters that the conversion needs to have other values than those of the request.
    params: Mapping[str, Any] = MappingProxyType({})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Endpoint:
    """All that is special about an endpoint, and the decorator of its view. The OpenAPI document is made from it.

    The view gets the parameters by name and returns the Response, or for a ResultEndpoint a Result. The view of an
    Endpoint enters the circuit breaker of the store itself.

    - `params`: the schema of the parameters in path and query.
    - `response`: the schema of the JSON response. None if the endpoint serves only files.
    - `files`: the media types of the files that it serves.
    - `unavailable_response`: the schema of the 503 while the database does not respond. None if there is no such 503.
    - `links`: the identifiers in a response. Each gives values, as OpenAPI writes them, to parameters; the document
      links to every operation that has these parameters, and with a cursor to the next page of the same list.
    - `description`: text that the OpenAPI document appends to the docstring of the view.
    """

    params: Params
    response: Schema | None = None
    files: Sequence[str] = ()
    credential: Credential = Credential.KEY
    caching: Caching = Caching.REVALIDATE
    tag: str = "external"
    unavailable_response: Schema | None = UNAVAILABLE
    links: Sequence[Mapping[str, str]] = ()
    description: str = ""

    def __call__(self, view: View) -> Callable[..., Response]:
        """Return a Flask view that validates the parameters and responds with what `view` returns."""
        # Clients repeat requests.
        parse = functools.lru_cache(MAX_CACHED_QUERIES)(self._parse)

        @functools.wraps(view)
        def respond(**path: str) -> Response:
            # Before the parameters: their errors would not tell whether the client can use the endpoint at all.
            if self.credential is Credential.FLEET_KEY and get_scope().driver_id is not None:
                raise Forbidden(FLEET_KEY_REQUIRED)
            # Requests share their parameters, but a cursor is valid in one scope alone.
            scope = get_scope().identity if CURSOR in self.params.fields else ""
            unknown_parameters = get_services().config.unknown_parameters
            params = parse(request.query_string, get_request_today(), unknown_parameters, scope, **path)
            return self._respond(view, params)

        respond.endpoint, respond.credential = self, self.credential  # type: ignore[attr-defined]
        return respond

    def _parse(self, *args: Any, **path: str) -> Mapping[str, Any]:
        """Return the parameters. Requests share their values, so that none is a list. Raises ValidationError."""
        params = self.params.parse(*args, **path)
        return {name: tuple(value) if isinstance(value, list) else value for name, value in params.items()}

    def _respond(self, view: View, params: Mapping[str, Any]) -> Response:
        response: Response = view(**params)
        return response


@dataclasses.dataclass(frozen=True, kw_only=True)
class ResultEndpoint(Endpoint):
    """An endpoint whose view returns a Result, of which X-Fields selects fields.

    The view runs within the circuit breaker of the store. The parameters are validated before the mask, so an invalid
    mask is reported only if they are valid. `representations` are the other media types of the response. `has_csv` says
    that CSV is one of them. With `reads_fields`, the view also gets the `fields` selected, to leave out what costs
    much.
    """

    response: Schema
    representations: Mapping[str, Representation] = dataclasses.field(default_factory=dict)
    has_csv: bool = False
    reads_fields: bool = False

    def _respond(self, view: View, params: Mapping[str, Any]) -> Response:
        media_type, representation = self._choose_representation()
        convert = representation.convert if representation else None
        # X-Fields applies only to JSON.
        mask = "" if convert else request.environ.get(MASK_ENVIRON_KEY, "")
        fields = select_fields(fields_of(type(self.response)), mask)
        arguments = {**params, **(representation.params if representation else {})}
        if self.reads_fields:
            arguments["fields"] = fields
        with get_services().store_breaker.guard():
            result: Result = view(**arguments)
        if self.caching is not Caching.REVALIDATE:
            return json_response(select(result.content, fields))
        # The default of end_date changes at midnight, and the response with it.
        etag = make_etag(f"{params.get('end_date')} {result.version}", media_type, mask)
        headers = self._make_headers(etag, params, result)
        if unchanged := find_not_modified(etag, headers):
            return unchanged
        body = make_body(result.content, fields, media_type, convert)
        return Response(body, headers=headers, mimetype=media_type)

    @functools.cached_property
    def _representations(self) -> Mapping[str, Representation]:
        csv = {CSV: Representation(make_csv_writer(self.response))} if self.has_csv else {}
        return {**self.representations, **csv}

    def _choose_representation(self) -> tuple[str, Representation | None]:
        """Return the media type that the client prefers, and the alternative representation of this type, if any."""
        chosen, other = JSON, None
        for media_type, representation in self._representations.items():
            if prefers(media_type, *JSON_MEDIA_RANGES, wins_ties=False) and not (other and prefers(chosen, media_type)):
                chosen, other = media_type, representation
        return chosen, other

    def _make_headers(self, etag: str, params: Mapping[str, Any], result: Result) -> dict[str, str]:
        """Return the headers of a response and of a 304: a cache updates those of its stored response from a 304."""
        vary = f"Accept, {MASK}" if self._representations else MASK
        headers = {"ETag": f'"{etag}"', "Cache-Control": self.caching, "Vary": vary}
        links = ""
        if "page" in params:
            links = format_page_links(params["page"], result.page_count)
        elif CURSOR in self.params.fields:
            links = format_list_links(result.next_cursor)
        return {**headers, "Link": links} if links else headers


def public(view: View) -> View:
    """Declare a view public that serves a page or file, and has no other declaration."""
    view.credential = Credential.NONE  # type: ignore[attr-defined]
    return view


def get_credential() -> Credential:
    """Return what the current request needs to be let in. An unknown path needs a key."""
    view = current_app.view_functions.get(request.endpoint or "")
    return getattr(view, "credential", Credential.KEY)
