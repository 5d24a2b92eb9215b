"""The OpenAPI document, generated from the routes, the declarations of the endpoints, and the schemas.

The examples in the document have dates, so it is generated once a day. The view that serves it is in `app.views.docs`.
"""

import datetime
import re
from http import HTTPStatus
from importlib.resources import files
from typing import Any, cast

import orjson
from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from flask import Flask
from werkzeug.routing import Rule

from app.endpoint import Credential
from app.openapi.converter import SchemaConverter
from app.openapi.operations import describe_operation, get_operation_id
from app.openapi.responses import (
    ERROR_STATUSES,
    describe_error_response,
    describe_not_modified,
    get_response_name,
)
from schemas.header import EVERY_RESPONSE, RATE_LIMIT, RequestHeaders, ResponseHeaders
from schemas.score import BEHAVIOURS, Behaviour

# The version of the interface, not of the service.
VERSION = "1.0"
KEY_SCHEME = "APIKEY"
TAGS = {
    "external": "The data of a fleet, or of one driver of it. These endpoints need an API key.",
    "health": "Health checks for load balancers. They need no key.",
}
DESCRIPTION = (files("app") / "docs" / "description.md").read_text("utf-8")
KEY_DESCRIPTION = (
    "The value is the whole text `APIKEY da_…`: the word `APIKEY`, a space, and an API key of the fleet, or of one "
    "driver of it. A key of one driver opens the data of this driver alone, and gets 403 Forbidden from endpoints "
    "about the whole fleet: its sums, reports, rankings and changes."
)
OPERATOR_AND_LICENSE = {
    "contact": {"name": "The operator of this service"},
    "license": {"name": "MIT", "identifier": "MIT"},
}


def build_document(app: Flask, base_url: str, today: datetime.date) -> bytes:
    """Return the document (JSON) of the routes of `app`.

    `base_url` is where clients reach the service, or empty. The examples of parameters are valid on the day `today`.
    """
    plugin = MarshmallowPlugin()
    plugin.Converter = SchemaConverter
    spec = APISpec(
        "Driver Analytics API",
        VERSION,
        "3.1.0",
        plugins=[plugin],
        info={"description": DESCRIPTION + "".join(map(_format_behaviour, BEHAVIOURS)), **OPERATOR_AND_LICENSE},
        servers=[{"url": base_url or "/", "description": "This service."}],
        tags=[{"name": name, "description": description} for name, description in TAGS.items()],
        security=[{KEY_SCHEME: []}],
    )
    converter = cast(SchemaConverter, plugin.converter)
    converter.today = today
    _add_components(spec, converter, base_url)
    routes: list[tuple[Rule, Any]] = [(rule, app.view_functions[rule.endpoint]) for rule in app.url_map.iter_rules()]
    # The documentation pages have no `Endpoint`.
    routes = [(rule, view) for rule, view in routes if hasattr(view, "endpoint")]
    linked = {get_operation_id(view): view.endpoint for _, view in routes}
    for rule, view in routes:
        path = re.sub(r"<[^>]*?(\w+)>", r"{\1}", rule.rule)
        spec.path(path, operations={"get": describe_operation(rule, view, converter, base_url, linked)})
    document = spec.to_dict()
    # The version of OpenAPI comes first, for readers.
    document = {"openapi": document["openapi"], **document}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _format_behaviour(behaviour: Behaviour) -> str:
    factor = "" if behaviour.factor == 1 else f"{behaviour.factor:g} × "
    rate = f"{factor}{behaviour.numerator} ÷ {behaviour.denominator}"
    return f"| {behaviour.name} | {rate} | {behaviour.cap:g} | {behaviour.weight} |\n"


def _add_components(spec: APISpec, converter: SchemaConverter, base_url: str) -> None:
    """Add the components that operations share: the authentication, headers and error responses."""
    scheme = {"type": "apiKey", "in": "header", "name": "Authorization", "description": KEY_DESCRIPTION}
    spec.components.security_scheme(KEY_SCHEME, scheme)
    for header in converter.schema2parameters(ResponseHeaders(), location="header"):
        spec.components.header(header["name"], {key: header[key] for key in ("description", "required", "schema")})
    for header in converter.describe_parameters(RequestHeaders(), "header"):
        spec.components.parameter(header["name"], "header", header)
    for status in (*ERROR_STATUSES[Credential.KEY], HTTPStatus.FORBIDDEN):
        spec.components.response(get_response_name(status), describe_error_response(status, base_url))
    spec.components.response(
        get_response_name(HTTPStatus.NOT_MODIFIED), describe_not_modified(*EVERY_RESPONSE, "ETag", *RATE_LIMIT)
    )
