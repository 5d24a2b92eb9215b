"""The responses that operations share: errors and 304."""

from http import HTTPStatus
from itertools import groupby
from typing import Any

from app import errors
from app.endpoint import Credential
from app.responses import JSON
from schemas import mask
from schemas.error import ErrorBody, Problem
from schemas.fields import EXAMPLE_REQUEST_ID
from schemas.header import EVERY_RESPONSE, RATE_LIMIT

# The classes of the errors by status.
ERROR_TYPES = {
    status: list(error_types)
    for status, error_types in groupby(errors.find_error_types(), lambda error_type: error_type.status)
}
PUBLIC_ENDPOINT_ERRORS = [
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.METHOD_NOT_ALLOWED,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
]
# The statuses of the errors of an endpoint.
ERROR_STATUSES = {
    Credential.KEY: [status for status in ERROR_TYPES if status is not HTTPStatus.FORBIDDEN],
    Credential.FLEET_KEY: list(ERROR_TYPES),
    Credential.REPORT_LINK: sorted([*PUBLIC_ENDPOINT_ERRORS, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND]),
    Credential.NONE: PUBLIC_ENDPOINT_ERRORS,
}
# The headers of an error beside those of other responses to requests that are counted, and of all responses.
ERROR_HEADERS = {
    HTTPStatus.UNAUTHORIZED: "WWW-Authenticate",
    HTTPStatus.METHOD_NOT_ALLOWED: "Allow",
    HTTPStatus.TOO_MANY_REQUESTS: "Retry-After",
    HTTPStatus.SERVICE_UNAVAILABLE: "Retry-After",
}
NOT_COUNTED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.METHOD_NOT_ALLOWED)
# One example of each error of a request with a key.
EXAMPLES: tuple[errors.BaseExtApiException, ...] = (
    errors.make_validation_error({"page": ["Must be from 1 to 1000000000."]}),
    errors.MaskError(str(mask.MaskError())),
    errors.ParseError(str(mask.ParseError("Missing closing bracket"))),
    errors.Unauthorized(),
    errors.Forbidden(errors.FLEET_KEY_REQUIRED),
    errors.NotFound("Not in this fleet: demo-99"),
    errors.MethodNotAllowed("Use one of GET, HEAD, OPTIONS: this API is read-only."),
    errors.RateLimitExceeded("The fleet's limit of 5000 requests per minute is exceeded. Try again in 17 seconds."),
    errors.InternalError(),
    errors.StoreUnavailable(),
)
# Examples of requests without a key, where they differ.
PUBLIC_EXAMPLES = (errors.Forbidden(),)


def describe_error_response(status: HTTPStatus, base_url: str, *, is_counted: bool = True) -> dict[str, Any]:
    """Return the Response Object of the errors with a status: the cause and the remedy of each, and examples.

    `is_counted` says whether the requests are counted: then the responses have the headers of the rate limit.
    """
    # No public endpoint takes a field mask.
    left_out = () if is_counted else (errors.MaskError, errors.ParseError)
    error_types = [error_type for error_type in ERROR_TYPES[status] if error_type not in left_out]
    examples = [error for error in EXAMPLES + (() if is_counted else PUBLIC_EXAMPLES) if type(error) in error_types]
    bodies = {type(error).__name__: {"value": errors.build_body(error, EXAMPLE_REQUEST_ID)} for error in examples}
    problems = {
        type(error).__name__: {"value": errors.build_problem(error, EXAMPLE_REQUEST_ID, base_url)} for error in examples
    }
    headers = [*EVERY_RESPONSE, *(RATE_LIMIT if is_counted and status not in NOT_COUNTED else ())]
    headers += [ERROR_HEADERS[status]] if status in ERROR_HEADERS else []
    return {
        "description": "\n\n".join(map(_describe_error, error_types)),
        "headers": reference_headers(*headers),
        "content": {
            JSON: {"schema": ErrorBody, "examples": bodies},
            errors.PROBLEM_JSON: {"schema": Problem, "examples": problems},
        },
    }


def _describe_error(error_type: type[errors.BaseExtApiException]) -> str:
    return f"{error_type.__name__}: {' '.join(error_type.describe())}"


def describe_not_modified(*headers: str) -> dict[str, Any]:
    """Return the Response Object of a 304 with these headers."""
    return {"description": "The stored response of the client is current.", "headers": reference_headers(*headers)}


def reference_headers(*names: str) -> dict[str, Any]:
    """Return references to headers in the components of the document."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def get_response_name(status: HTTPStatus) -> str:
    """Return the name of the response with a status in the components of the document."""
    return status.phrase.title().replace(" ", "")
