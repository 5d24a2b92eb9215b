"""Error kinds, each with its status, and the one body they are told in."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import marshmallow
from flask import Flask, Response, g, request
from pymongo.errors import ConnectionFailure, ExecutionTimeout, OperationFailure, PyMongoError
from werkzeug.exceptions import HTTPException
from werkzeug.exceptions import MethodNotAllowed as UnknownMethod
from werkzeug.exceptions import NotFound as UnknownPath

from app.circuit_breaker import CircuitOpen
from app.config import API
from app.logs import get_log
from app.responses import JSON, json_response, prefers
from app.store import InvalidDocument, UnknownDrivers
from schemas import mask
from schemas.error import ErrorBody, Problem
from schemas.params import FILTER_PARAMS, repeat_hint

PROBLEM_JSON = "application/problem+json"
PLAIN_BODY, PROBLEM_BODY = ErrorBody(), Problem()
# Seconds after which to ask again when the store does not answer: a failover takes a few.
STORE_RETRY_AFTER = 2
# What MongoDB answers where a failover is under way: CursorNotFound, ReadConcernMajorityNotAvailableYet, KeyNotFound
# (of the cluster's time, until there is a primary), FailedToSatisfyReadPreference, ExceededTimeLimit, and that one
# member cannot reach another.
FAILOVER_CODES = {43, 134, 211, 133, 262, 6, 7, 89, 9001}
# Hints follow a message and say what was probably meant. They never repeat what was sent, which may hold anything.
REPEAT_HINT = repeat_hint("driver_id")
SLASH_HINT = "Percent-encode identifiers: a slash within one is %2F."
TRIP_HINT = f"Trips are at {' and '.join(f'{API}/trip/{name}/{{{name}}}' for name in FILTER_PARAMS)}."
# Paths that would lead to an endpoint if a slash within their identifier were encoded.
UNENCODED_SLASH = re.compile(rf"{API}/(driver/.+/trips|trip/({'|'.join(FILTER_PARAMS)})/.+)")


class BaseExtApiException(Exception):
    """An error that a client is told of: `message` names the fix, `errors` the reasons for each parameter."""

    status = HTTPStatus.INTERNAL_SERVER_ERROR

    def __init__(
        self, message: str, *, errors: Mapping[str, list[str]] | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.message, self.errors, self.headers = message, errors, headers or {}


class ValidationError(BaseExtApiException):
    """A rule on parameters is broken."""

    status = HTTPStatus.BAD_REQUEST


class MaskError(BaseExtApiException):
    """A field mask that does not fit the answer."""

    status = HTTPStatus.BAD_REQUEST


class ParseError(MaskError):
    """A field mask that cannot be read."""


class Unauthorized(BaseExtApiException):
    """No valid key; which of the ways to be invalid it was is never said."""

    status = HTTPStatus.UNAUTHORIZED

    def __init__(self) -> None:
        super().__init__(
            "A valid key is required: send the header 'Authorization: APIKEY <key>'.",
            headers={"WWW-Authenticate": 'APIKEY realm="fleet"'},
        )


class Forbidden(BaseExtApiException):
    """A report link that was altered, has expired, or whose key was revoked."""

    status = HTTPStatus.FORBIDDEN

    def __init__(self) -> None:
        super().__init__("This link is not, or no longer, good; ask for the report again.")


class NotFound(BaseExtApiException):
    """No such path or record."""

    status = HTTPStatus.NOT_FOUND


class MethodNotAllowed(BaseExtApiException):
    """A method other than GET, HEAD and OPTIONS."""

    status = HTTPStatus.METHOD_NOT_ALLOWED


class RateLimitExceeded(BaseExtApiException):
    """Too many calls of the fleet in a period, or of an address without a valid key."""

    status = HTTPStatus.TOO_MANY_REQUESTS


class StoreUnavailable(BaseExtApiException):
    """The database does not answer in time."""

    status = HTTPStatus.SERVICE_UNAVAILABLE

    def __init__(self) -> None:
        super().__init__(
            "The store does not answer; try again shortly.", headers={"Retry-After": str(STORE_RETRY_AFTER)}
        )


class InternalError(BaseExtApiException):
    """A defect."""

    def __init__(self) -> None:
        super().__init__("Something went wrong on our side; name the request_id when you report it.")


def build_body(error: BaseExtApiException, request_id: str) -> dict[str, Any]:
    """Return the plain body of an error."""
    plain: dict[str, Any] = {"message": error.message, "error": type(error).__name__, "request_id": request_id}
    if error.errors is not None:
        plain["errors"] = error.errors
    dumped: dict[str, Any] = PLAIN_BODY.dump(plain)
    return dumped


def build_problem(error: BaseExtApiException, request_id: str) -> dict[str, Any]:
    """Return the body of an error as RFC 9457 has it."""
    status = error.status
    own = {"type": "about:blank", "title": status.phrase, "status": int(status), "detail": error.message}
    dumped: dict[str, Any] = PROBLEM_BODY.dump({**own, **build_body(error, request_id)})
    return dumped


def make_response(error: BaseExtApiException) -> Response:
    """Return the response to the current request that tells of an error."""
    # Asked for by name: the `*/*` of most clients means plain JSON.
    if prefers(request, PROBLEM_JSON, JSON):
        response = json_response(build_problem(error, g.request_id), error.status, PROBLEM_JSON)
    else:
        response = json_response(build_body(error, g.request_id), error.status)
    response.headers.update(error.headers)
    response.vary.add("Accept")
    return response


def register(app: Flask) -> None:
    """Answer every error of `app` with the one body; one handler a family."""
    app.register_error_handler(BaseExtApiException, make_response)

    @app.errorhandler(marshmallow.ValidationError)
    def invalid(error: marshmallow.ValidationError) -> Response:
        errors = error.messages_dict
        # An unknown parameter may have any name: in a message it stands as in a URL, without line breaks and markup.
        return make_response(ValidationError(f"Invalid parameters: {', '.join(map(quote, errors))}.", errors=errors))

    @app.errorhandler(mask.MaskError)
    def unusable_mask(error: mask.MaskError) -> Response:
        kind = ParseError if isinstance(error, mask.ParseError) else MaskError
        return make_response(kind(str(error)))

    @app.errorhandler(UnknownDrivers)
    def unknown_drivers(error: UnknownDrivers) -> Response:
        message = f"Not in this fleet: {', '.join(error.driver_ids)}"
        # A path takes one driver, a query several.
        if not request.view_args and any("," in driver_id for driver_id in error.driver_ids):
            message = f"{message}. {REPEAT_HINT}"
        return make_response(NotFound(message))

    @app.errorhandler(InvalidDocument)
    def invalid_document(error: InvalidDocument) -> Response:
        get_log().error("invalid document", document=str(error))
        return make_response(InternalError())

    @app.errorhandler(UnknownMethod)
    def unknown_method(error: UnknownMethod) -> Response:
        allow = ", ".join(sorted({*(error.valid_methods or ()), "OPTIONS"}))
        if request.method == "OPTIONS":
            return Response(status=HTTPStatus.NO_CONTENT, headers={"Allow": allow}, mimetype="application/json")
        return make_response(MethodNotAllowed(f"Use one of {allow}; this API only reads.", headers={"Allow": allow}))

    @app.errorhandler(UnknownPath)
    def unknown_path(error: UnknownPath) -> Response:
        message = "No such path; doubled or trailing slashes and other cases are other paths."
        if UNENCODED_SLASH.fullmatch(request.path):
            message = f"{message} {SLASH_HINT}"
        elif request.path.startswith(f"{API}/trip/"):
            message = f"{message} {TRIP_HINT}"
        return make_response(NotFound(message))

    @app.errorhandler(HTTPException)
    def refused(error: HTTPException) -> Response:
        if error.code is None or error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return make_response(InternalError())
        return make_response(ValidationError(f"Not a request that can be served: {error.name}.", errors={}))

    @app.errorhandler(CircuitOpen)
    def store_probed(error: CircuitOpen) -> Response:
        return make_response(StoreUnavailable())

    @app.errorhandler(PyMongoError)
    def store_failed(error: PyMongoError) -> Response:
        failing_over = isinstance(error, OperationFailure) and error.code in FAILOVER_CODES
        if failing_over or error.timeout or isinstance(error, ConnectionFailure | ExecutionTimeout):
            get_log().warning("the store does not answer", error=f"{type(error).__name__}: {error}")
            return make_response(StoreUnavailable())
        return defect(error)

    @app.errorhandler(Exception)
    def defect(error: Exception) -> Response:
        get_log().error("defect", exc_info=error)
        return make_response(InternalError())
