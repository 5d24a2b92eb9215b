"""The operations of the document: the description of an endpoint, its parameters and its responses."""

import inspect
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import orjson
from werkzeug.routing import Rule

from app.endpoint import CURSOR, UNAVAILABLE, Caching, Credential, Endpoint, ResultEndpoint
from app.openapi.converter import SchemaConverter
from app.openapi.responses import (
    ERROR_STATUSES,
    describe_error_response,
    describe_not_modified,
    get_response_name,
    reference_headers,
)
from app.responses import HTML, JSON
from schemas.fields import example
from schemas.header import CONDITION, EVERY_RESPONSE, MASK, RATE_LIMIT

WITHOUT_KEY = {Credential.NONE, Credential.REPORT_LINK}
CSV_NOTE = (
    "Send `Accept: text/csv` to get the page as CSV for a spreadsheet: a row for each element of its list, without "
    "lists of objects. `X-Fields` does not apply to it."
)
FLEET_KEY_NOTE = "This is about the whole fleet: with a key of one driver, the response is a Forbidden."


def describe_operation(
    rule: Rule, view: Any, converter: SchemaConverter, base_url: str, linked: Mapping[str, Endpoint]
) -> dict[str, Any]:
    """Return the Operation Object of a route. The docstring of the view is its summary and description.

    `linked` has the endpoints that the response may link to, by operationId.
    """
    endpoint: Endpoint = view.endpoint
    summary, _, description = (inspect.getdoc(view) or "").partition("\n")
    fleet_note = FLEET_KEY_NOTE if endpoint.credential is Credential.FLEET_KEY else ""
    csv_note = CSV_NOTE if isinstance(endpoint, ResultEndpoint) and endpoint.has_csv else ""
    notes = (description.strip(), csv_note, endpoint.description, fleet_note)
    responses = _describe_responses(endpoint, base_url)
    if endpoint.links:
        responses[HTTPStatus.OK]["links"] = _describe_links(endpoint, linked)
    operation: dict[str, Any] = {
        "tags": [endpoint.tag],
        "operationId": get_operation_id(view),
        "summary": summary.removesuffix("."),
        "description": "\n\n".join(filter(None, notes)),
        "parameters": _describe_parameters(rule, endpoint, converter),
        "responses": {str(int(status)): response for status, response in responses.items()},
    }
    return {**operation, "security": []} if endpoint.credential in WITHOUT_KEY else operation


def get_operation_id(view: Callable[..., Any]) -> str:
    """Return the operationId of a view: its name, as JavaScript writes names."""
    first, *words = view.__name__.split("_")
    return first + "".join(map(str.capitalize, words))


def _describe_links(endpoint: Endpoint, linked: Mapping[str, Endpoint]) -> dict[str, Any]:
    """Return a Link Object for each endpoint that has the parameters of one of the links."""
    # A cursor goes with the operation that returned it, and with all parameters of the request.
    same = {name: f"$request.query.{name}" for name in endpoint.params.fields}
    return {
        name: {"operationId": name, "parameters": {**same, **values} if CURSOR in values else dict(values)}
        for values in endpoint.links
        for name, other in linked.items()
        if values.keys() <= other.params.fields.keys() and (CURSOR not in values or other is endpoint)
    }


def _describe_parameters(rule: Rule, endpoint: Endpoint, converter: SchemaConverter) -> list[Any]:
    """Return the parameters: those in the path, then those in the query, required ones first, then the headers."""
    parameters = converter.describe_parameters(endpoint.params, "query")
    in_path = [{**parameter, "in": "path"} for parameter in parameters if parameter["name"] in rule.arguments]
    in_query = [parameter for parameter in parameters if parameter["name"] not in rule.arguments]
    in_query.sort(key=lambda parameter: not parameter["required"])
    headers = [MASK] if isinstance(endpoint, ResultEndpoint) else []
    headers += [CONDITION] if endpoint.caching is Caching.REVALIDATE else []
    return [*in_path, *in_query, *headers]


def _describe_responses(endpoint: Endpoint, base_url: str) -> dict[HTTPStatus, Any]:
    """Return the responses of a route by status."""
    is_public, has_etag = endpoint.credential in WITHOUT_KEY, endpoint.caching is Caching.REVALIDATE
    headers = [*EVERY_RESPONSE, *(["ETag"] if has_etag else [])]
    headers += [] if is_public else RATE_LIMIT
    headers += ["Content-Disposition"] if endpoint.files else []
    ok = {
        "description": inspect.getdoc(type(endpoint.response)) if endpoint.response else "The file.",
        "headers": reference_headers(*headers),
        "content": _describe_content(endpoint),
    }
    if is_public:
        return {HTTPStatus.OK: ok, **_describe_public_errors(endpoint, base_url)}
    others = [*([HTTPStatus.NOT_MODIFIED] if has_etag else []), *ERROR_STATUSES[endpoint.credential]]
    return {HTTPStatus.OK: ok, **{status: get_response_name(status) for status in others}}


def _describe_public_errors(endpoint: Endpoint, base_url: str) -> dict[HTTPStatus, Any]:
    """Return the responses other than 200 of a route that needs no key, by status."""
    responses: dict[HTTPStatus, Any] = {}
    if endpoint.caching is Caching.REVALIDATE:
        responses[HTTPStatus.NOT_MODIFIED] = describe_not_modified(*EVERY_RESPONSE, "ETag")
    for status in ERROR_STATUSES[endpoint.credential]:
        responses[status] = describe_error_response(status, base_url, is_counted=False)
    if endpoint.credential is Credential.REPORT_LINK:
        # To a browser, a page that says how to get a new link.
        responses[HTTPStatus.FORBIDDEN]["content"][HTML] = {"schema": {"type": "string"}}
    unavailable = endpoint.unavailable_response
    if unavailable is None:
        del responses[HTTPStatus.SERVICE_UNAVAILABLE]
    elif unavailable is not UNAVAILABLE:
        responses[HTTPStatus.SERVICE_UNAVAILABLE] = {
            "description": inspect.getdoc(type(unavailable)),
            "headers": reference_headers(*EVERY_RESPONSE, "Retry-After"),
            "content": {JSON: {"schema": unavailable, "example": example(unavailable)}},
        }
    return responses


def _describe_content(endpoint: Endpoint) -> dict[str, Any]:
    """Return the content of a 200 by media type."""
    content: dict[str, Any] = {}
    if endpoint.response:
        content[JSON] = {"schema": endpoint.response, "example": example(endpoint.response)}
    if isinstance(endpoint, ResultEndpoint):
        for media_type, representation in endpoint.representations.items():
            if representation.schema:
                converted = orjson.loads(b"".join(representation.convert(content[JSON]["example"])))
                content[media_type] = {"schema": representation.schema, "example": converted}
    return content | {media_type: {"schema": {"type": "string"}} for media_type in endpoint.files}
