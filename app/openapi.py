"""The OpenAPI document, made from the routes, what they declare, and the schemas."""

import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, cast

import orjson
from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from flask import Flask
from marshmallow import Schema
from werkzeug.routing import Rule

from app import errors
from app.endpoint import Endpoint
from app.middleware.auth import PUBLIC_ENDPOINTS, REPORT_FILE_ENDPOINT
from app.store.score import BEHAVIOURS, Behaviour
from schemas import mask
from schemas.error import ErrorBody, ErrorName, Problem
from schemas.fields import EXAMPLE_REQUEST_ID, MAX_INT, MIN_INT, OneOfNested
from schemas.header import (
    AllowHeaders,
    ChallengeHeaders,
    ConditionalRequestHeaders,
    ETagHeaders,
    FileHeaders,
    MaskHeaders,
    RateLimitHeaders,
    ResponseHeaders,
    RetryAfterHeaders,
    header_names,
)
from schemas.introspection import always_present, example

# Contract §1: the version of the interface, not of the service.
VERSION = "1.0"
JSON = "application/json"
KEY_SCHEME = "APIKEY"
TAGS = {
    "external": "What a fleet's key gives access to.",
    "health": "For load balancers; needs no key.",
}
ABOUT = """\
Driving data of a fleet: who drove, where, how far, how safely. The API only reads.

Dates are `YYYY-MM-DD`, times epoch milliseconds, both in UTC. Distances are in miles, speeds in miles per hour,
durations in seconds, headings in degrees from North. Percent-encode identifiers, slashes included.

A key opens one fleet; send it as `Authorization: APIKEY <key>`. Every call with it counts against the fleet's limit, of
which the `RateLimit` headers tell. Pages go on until `next_page` is null. `X-Fields` prunes an answer. An answer has an
`ETag`: send it as `If-None-Match` to be told, by an empty 304, that the answer still holds.

Input is strict: unknown parameters, one given twice, and other spellings of numbers and dates are a ValidationError.
The operator can make the service ignore unknown parameters. Identifiers have 1 to 128 bytes of UTF-8, and no control
characters. Errors are `application/json`, or `application/problem+json` (RFC 9457) for a request that accepts that.

A score (`fm_score`) is 100 less what each behaviour costs: its weight × its rate ÷ its cap, the whole weight from the
cap on; it is rounded half up to one decimal. A rate with nothing to divide by is 0. A behaviour is one to coach from
half of its cap on.

| behaviour | rate | cap | weight |
|---|---|---|---|
"""
# What errors of a status carry beside what every answer does.
HEADERS: dict[HTTPStatus, tuple[Schema, ...]] = {
    HTTPStatus.BAD_REQUEST: (RateLimitHeaders(),),
    HTTPStatus.UNAUTHORIZED: (ChallengeHeaders(),),
    HTTPStatus.FORBIDDEN: (),
    HTTPStatus.NOT_FOUND: (RateLimitHeaders(),),
    HTTPStatus.METHOD_NOT_ALLOWED: (AllowHeaders(),),
    HTTPStatus.TOO_MANY_REQUESTS: (RateLimitHeaders(), RetryAfterHeaders()),
    HTTPStatus.INTERNAL_SERVER_ERROR: (RateLimitHeaders(),),
    HTTPStatus.SERVICE_UNAVAILABLE: (RateLimitHeaders(), RetryAfterHeaders()),
}
# Errors of an endpoint that takes a key, of one that takes a link, and of one that takes neither and has no records.
KEY_NEEDED = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
LINK_NEEDED = (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)
NO_KEY_NEEDED = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.METHOD_NOT_ALLOWED,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
EXAMPLES: tuple[errors.BaseExtApiException, ...] = (
    errors.ValidationError(
        "Invalid parameters: page.",
        errors={"page": ["Must be a whole number from 1 to 1000000000, in digits without sign or leading zero."]},
    ),
    errors.MaskError(str(mask.MaskError())),
    errors.ParseError(str(mask.ParseError("Missing closing bracket"))),
    errors.Unauthorized(),
    errors.Forbidden(),
    errors.NotFound("Not in this fleet: demo-99"),
    errors.MethodNotAllowed("Use one of GET, HEAD, OPTIONS; this API only reads."),
    errors.RateLimitExceeded("Over the fleet's limit of 5000 per 1 minute; see Retry-After."),
    errors.InternalError(),
    errors.StoreUnavailable(),
)


def document(app: Flask, base_url: str) -> bytes:
    """Return the document (JSON) of the routes of `app`, for clients that reach it at `base_url`, if that is known."""
    plugin = MarshmallowPlugin()
    plugin.Converter = _Converter
    spec = APISpec(
        "Driver Analytics API",
        VERSION,
        "3.1.0",
        plugins=[plugin],
        info={
            "description": ABOUT + "".join(map(_score_row, BEHAVIOURS)),
            "contact": {"name": "The operator of this service"},
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        servers=[{"url": base_url or "/", "description": "This service."}],
        tags=[{"name": name, "description": text} for name, text in TAGS.items()],
        security=[{KEY_SCHEME: []}],
    )
    description = "`APIKEY <key>`, with a key of the fleet."
    scheme = {"type": "apiKey", "in": "header", "name": "Authorization", "description": description}
    spec.components.security_scheme(KEY_SCHEME, scheme)
    converter = cast(OpenAPIConverter, plugin.converter)
    for shape in (
        ResponseHeaders,
        ETagHeaders,
        FileHeaders,
        RateLimitHeaders,
        ChallengeHeaders,
        AllowHeaders,
        RetryAfterHeaders,
    ):
        for found in converter.schema2parameters(shape(), location="header"):
            spec.components.header(found["name"], {name: found[name] for name in ("description", "required", "schema")})
    for asking in (MaskHeaders, ConditionalRequestHeaders):
        for found in converter.schema2parameters(asking(), location="header"):
            spec.components.parameter(found["name"], "header", found)
    kinds = _kinds()
    for status in KEY_NEEDED:
        spec.components.response(_response_name(status), _error_response(status, kinds[status]))
    spec.components.response(
        _response_name(HTTPStatus.NOT_MODIFIED),
        _not_modified(ResponseHeaders(), ETagHeaders(), RateLimitHeaders()),
    )
    for rule, operation in _endpoints(app):
        path = re.sub(r"<[^>]*?(\w+)>", r"{\1}", rule.rule)
        spec.path(path, operations={"get": _described(app, rule, operation, converter)})
    found = spec.to_dict()
    return orjson.dumps({"openapi": found["openapi"], **found}, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _score_row(row: Behaviour) -> str:
    factor = "" if row.factor == 1 else f"{row.factor:g} × "
    return f"| {row.flag} | {factor}{row.numerator} ÷ {row.denominator} | {row.cap:g} | {row.weight} |\n"


class _Converter(OpenAPIConverter):
    """Adds what our fields and schemas say of themselves."""

    def init_attribute_functions(self) -> None:
        super().init_attribute_functions()
        self.attribute_functions.append(self.field2rules)

    def field2rules(self, field: Any, ret: Any) -> dict[str, Any]:
        if isinstance(field, ErrorName) and "enum" not in ret:
            return {"enum": [kind.__name__ for kinds in _kinds().values() for kind in kinds]}
        if isinstance(field, OneOfNested):
            shapes = [self.resolve_nested_schema(schema) for schema in field.schemas]
            return {"oneOf": [*shapes, {"type": "null"}] if field.allow_none else shapes}
        return {**getattr(field, "json_schema_keywords", {}), **getattr(field, "openapi_keywords", {})}

    def field2default(self, field: Any, **kwargs: Any) -> dict[str, Any]:
        # What an import may leave out is null in an answer, never absent.
        return {} if field.load_default is None else super().field2default(field, **kwargs)

    def field2range(self, field: Any, ret: Any) -> dict[str, Any]:
        # The bounds of 64 bits are said by the format: JavaScript cannot write them.
        found = super().field2range(field, ret)
        return {name: value for name, value in found.items() if value not in (MIN_INT, MAX_INT)}

    def fields2jsonschema(self, fields: Any, *, partial: Any = None) -> dict[str, Any]:
        found = super().fields2jsonschema(fields, partial=partial)
        required = [field.data_key or name for name, field in fields.items() if always_present(field)]
        return {**found, "required": required} if required else found

    def schema2jsonschema(self, schema: Any) -> dict[str, Any]:
        return {"description": inspect.getdoc(type(schema)), **super().schema2jsonschema(schema)}


def _endpoints(app: Flask) -> Iterator[tuple[Rule, Endpoint]]:
    """Yield every route whose view is declared with `Endpoint`; the pages about the API are not."""
    for rule in app.url_map.iter_rules():
        endpoint = getattr(app.view_functions[rule.endpoint], "endpoint", None)
        if endpoint is not None:
            yield rule, endpoint


def _described(app: Flask, rule: Rule, operation: Endpoint, converter: OpenAPIConverter) -> dict[str, Any]:
    view = app.view_functions[rule.endpoint]
    summary, _, more = (inspect.getdoc(view) or "").partition("\n")
    first, *words = view.__name__.split("_")
    public = rule.endpoint in PUBLIC_ENDPOINTS
    parameters = converter.schema2parameters(operation.params, location="query")
    in_path = [{**found, "in": "path"} for found in parameters if found["name"] in rule.arguments]
    in_query = [found for found in parameters if found["name"] not in rule.arguments]
    shapes: list[Schema] = [MaskHeaders()] if operation.accepts_mask else []
    shapes += (
        [ConditionalRequestHeaders()]
        if rule.endpoint == REPORT_FILE_ENDPOINT or (operation.accepts_mask and operation.supports_conditional)
        else []
    )
    in_headers = header_names(*shapes)
    in_query.sort(key=lambda found: not found["required"])
    described: dict[str, Any] = {
        "tags": ["health" if rule.endpoint.startswith("health.") else "external"],
        "operationId": first + "".join(map(str.capitalize, words)),
        "summary": summary.removesuffix("."),
        "description": f"{more}\n\n{operation.description}".strip(),
        "parameters": [*in_path, *in_query, *in_headers],
        "responses": {str(int(status)): response for status, response in _responses(rule, operation).items()},
    }
    return {**described, "security": []} if public else described


def _responses(rule: Rule, operation: Endpoint) -> dict[HTTPStatus, Any]:
    linked, public = rule.endpoint == REPORT_FILE_ENDPOINT, rule.endpoint in PUBLIC_ENDPOINTS
    tagged = linked or (operation.supports_conditional and not public)
    carried: list[Schema] = [ResponseHeaders(), *([ETagHeaders()] if tagged else [])]
    carried += [] if public else [RateLimitHeaders()]
    carried += [FileHeaders()] if linked else []
    found: dict[HTTPStatus, Any] = {
        HTTPStatus.OK: {
            "description": inspect.getdoc(type(operation.response)) if operation.response else "The file.",
            "headers": _headers(*carried),
            "content": _content(operation),
        }
    }
    if not public:
        unchanged = [HTTPStatus.NOT_MODIFIED] if tagged else []
        return found | {status: _response_name(status) for status in (*unchanged, *KEY_NEEDED)}
    if linked:
        found[HTTPStatus.NOT_MODIFIED] = _not_modified(ResponseHeaders(), ETagHeaders())
    asks_store = operation.reads_store or operation.unavailable_response
    unneeded = set() if asks_store else {HTTPStatus.SERVICE_UNAVAILABLE}
    for status in sorted({*NO_KEY_NEEDED, *(LINK_NEEDED if linked else ())} - unneeded):
        kinds = [kind for kind in _kinds()[status] if operation.accepts_mask or not issubclass(kind, errors.MaskError)]
        found[status] = _error_response(status, kinds, counted=False)
    if operation.unavailable_response:
        found[HTTPStatus.SERVICE_UNAVAILABLE] = {
            "description": inspect.getdoc(type(operation.unavailable_response)),
            "headers": _headers(ResponseHeaders(), RetryAfterHeaders()),
            "content": {
                JSON: {"schema": operation.unavailable_response, "example": example(operation.unavailable_response)}
            },
        }
    return found


def _content(operation: Endpoint) -> dict[str, Any]:
    """Return what an answer holds, by media type."""
    found: dict[str, Any] = {}
    if operation.response:
        found[JSON] = {"schema": operation.response, "example": example(operation.response)}
    for kind, representation in operation.representations.items():
        if representation:
            found[kind] = {"schema": representation.schema, "example": representation.convert(found[JSON]["example"])}
        else:
            found[kind] = {"schema": {"type": "string"}}
    return found


def _not_modified(*carried: Schema) -> dict[str, Any]:
    return {"description": "The client holds the answer.", "headers": _headers(*carried)}


def _error_response(
    status: HTTPStatus, kinds: list[type[errors.BaseExtApiException]], *, counted: bool = True
) -> dict[str, Any]:
    shown = [error for error in EXAMPLES if type(error) in kinds]
    plain = {type(error).__name__: {"value": errors.build_body(error, EXAMPLE_REQUEST_ID)} for error in shown}
    problems = {type(error).__name__: {"value": errors.build_problem(error, EXAMPLE_REQUEST_ID)} for error in shown}
    carried = [shape for shape in HEADERS[status] if counted or not isinstance(shape, RateLimitHeaders)]
    return {
        "description": " ".join(f"{kind.__name__}: {inspect.getdoc(kind)}" for kind in kinds),
        "headers": _headers(ResponseHeaders(), *carried),
        "content": {
            JSON: {"schema": ErrorBody, "examples": plain},
            errors.PROBLEM_JSON: {"schema": Problem, "examples": problems},
        },
    }


def _headers(*shapes: Schema) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in header_names(*shapes)}


def _kinds() -> dict[HTTPStatus, list[type[errors.BaseExtApiException]]]:
    """Return every kind of error, by status."""
    found = defaultdict(list)
    waiting = [errors.BaseExtApiException]
    while waiting:
        below = waiting.pop(0).__subclasses__()
        waiting = below + waiting
        for kind in below:
            found[kind.status].append(kind)
    return dict(sorted(found.items()))


def _response_name(status: HTTPStatus) -> str:
    return status.phrase.title().replace(" ", "")
