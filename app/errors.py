"""The errors of the API: their statuses, causes and remedies, and the body that they share."""

import html
import inspect
from collections.abc import Mapping
from http import HTTPStatus
from importlib.resources import files
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import marshmallow
from flask import Flask, Response, current_app, g, request
from pymongo.errors import ConfigurationError, ConnectionFailure, ExecutionTimeout, OperationFailure, PyMongoError
from werkzeug.exceptions import HTTPException
from werkzeug.exceptions import MethodNotAllowed as WerkzeugMethodNotAllowed
from werkzeug.exceptions import NotFound as WerkzeugNotFound

from app.circuit_breaker import CircuitOpen
from app.config import API
from app.database import get_refusal
from app.responses import HTML, JSON, LINKED_PAGE_POLICY, empty_response, get_base_url, json_response, prefers
from app.services import get_services
from app.similar_paths import find_similar_paths
from app.store import InvalidDocument, OtherFormat, StoreLags, UnknownRecord
from schemas import mask

PROBLEM_JSON = "application/problem+json"
# The page with one section for each error, whose anchor is the name of the error.
ERRORS_PATH = f"{API}/docs/errors"
# For a browser whose report link is not valid. The address of the service takes the place of `{service}`.
REFUSED_LINK_PAGE = (files("app") / "docs" / "refused_link.html").read_text("utf-8")
# MongoDB's error codes during a failover: CursorNotFound, ReadConcernMajorityNotAvailableYet, KeyNotFound (for the
# cluster time, until there is a primary), FailedToSatisfyReadPreference, ExceededTimeLimit, SnapshotUnavailable (of a
# member that has just started); and HostUnreachable, HostNotFound, NetworkTimeout and SocketException between members.
FAILOVER_CODES = {43, 134, 211, 133, 262, 246, 6, 7, 89, 9001}
UNKNOWN_PATH = (
    "There is no such path{hint} Check for doubled or trailing slashes, for upper case, and for slashes in "
    "identifiers, which have to be %2F. /llms.txt lists all paths."
)
FLEET_KEY_REQUIRED = (
    "This key opens one driver, and this endpoint is about the whole fleet: it takes a key of the fleet."
)


class BaseExtApiException(Exception):
    """An error response: `message` says what to change, `errors` has the reasons for each invalid parameter.

    The specification that this API implements gives the class its name. The docstring of a subclass states the cause of
    the error, then what a client can do about it. Both are in the OpenAPI document and on the page of errors.
    """

    status = HTTPStatus.INTERNAL_SERVER_ERROR
    # Unless the error is made with others.
    message = ""
    headers: Mapping[str, str] = MappingProxyType({})

    def __init__(
        self,
        message: str = "",
        *,
        errors: Mapping[str, list[str]] | None = None,
        headers: Mapping[str, str] | None = None,
        page: str = "",
    ) -> None:
        """`page` is for browsers, in place of the body: HTML with `{service}` for the address of the service."""
        super().__init__(message)
        self.message, self.headers = message or self.message, headers or self.headers
        self.errors, self.page = errors, page

    @classmethod
    def describe(cls) -> tuple[str, str]:
        """Return the cause of the error, and its remedy: the paragraphs of the docstring."""
        cause, remedy = (inspect.getdoc(cls) or "").split("\n\n")
        return cause, remedy.replace("\n", " ")


class ValidationError(BaseExtApiException):
    """A parameter is missing, unknown, repeated or invalid.

    Read `errors`, which has the reasons for each parameter, and correct the request.
    """

    status = HTTPStatus.BAD_REQUEST


class MaskError(BaseExtApiException):
    """The field mask in `X-Fields` selects fields of a value that has no fields.

    Remove the braces after the name of a plain value. The schemas of the OpenAPI document show which fields are
    objects.
    """

    status = HTTPStatus.BAD_REQUEST


class ParseError(BaseExtApiException):
    """The field mask in `X-Fields` has a bracket or a comma in the wrong place.

    Correct the mask. An example of a valid mask is `count,trips{trip_id,event_summary{hard_brake_count}}`.
    """

    status = HTTPStatus.BAD_REQUEST


class Unauthorized(BaseExtApiException):
    """The API key is missing, malformed, unknown, expired or revoked. The response does not say which.

    Send the header `Authorization: APIKEY <key>`. If the service refuses your key, request a new one from its
    operator.
    """

    status = HTTPStatus.UNAUTHORIZED
    message = "A valid key is required: send the header 'Authorization: APIKEY <key>'."
    headers = MappingProxyType({"WWW-Authenticate": 'APIKEY realm="fleet"'})


class Forbidden(BaseExtApiException):
    """The report link is not valid, or the API key is of one driver and the endpoint is about the whole fleet.

    A report link expires, and becomes invalid with the key that requested it: request `/api/v1/report` again to get
    new links. For an endpoint about the whole fleet, use a key of the fleet.
    """

    status = HTTPStatus.FORBIDDEN
    message = "This report link is not valid or has expired. Request the report again to get a new link."


class NotFound(BaseExtApiException):
    """The path does not exist, or the fleet has no such driver, group or report.

    Check the path, for which the message names similar ones: it is in lower case, has no doubled or trailing slash, and
    identifiers in it are percent-encoded, slashes included. Check that the identifier belongs to the fleet of your key,
    or to its driver. If the message is `Report not ready yet`, try again after the seconds in the header
    `Retry-After`.
    """

    status = HTTPStatus.NOT_FOUND


class MethodNotAllowed(BaseExtApiException):
    """The path does not support the method of the request: the API is read-only.

    Use a method that the header `Allow` lists.
    """

    status = HTTPStatus.METHOD_NOT_ALLOWED


class RateLimitExceeded(BaseExtApiException):
    """The fleet, the driver of the key, the key, or a client address without a valid key exceeded its limit.

    Wait for the number of seconds in the header `Retry-After`. The header `RateLimit` of every counted response
    shows how many requests are left.
    """

    status = HTTPStatus.TOO_MANY_REQUESTS


class InternalError(BaseExtApiException):
    """The service has a defect, or a stored document is invalid.

    Report the `request_id` to the operator of the service, who finds the reason in the log.
    """

    message = "The service failed to process the request. Report the request_id to its operator."


class StoreUnavailable(BaseExtApiException):
    """The database does not respond in time, or an upgrade of the service is not complete.

    Wait for the number of seconds in the header `Retry-After` and try again. If the error persists for minutes,
    tell the operator of the service.
    """

    status = HTTPStatus.SERVICE_UNAVAILABLE
    message = "The database does not respond. Try again in a few seconds."
    # In seconds. A failover takes a few of them.
    headers = MappingProxyType({"Retry-After": "2"})


def make_validation_error(errors: Mapping[str, list[str]]) -> ValidationError:
    """Return the error for invalid parameters, with the reasons for each. Its message has the first of each."""
    # An unknown parameter may have any name. Percent-encoding removes line breaks and markup from the message.
    reasons = " ".join(f"{quote(name)}: {first}" for name, (first, *_) in errors.items())
    return ValidationError(f"Invalid parameters: {reasons}", errors=errors)


def find_error_types() -> list[type[BaseExtApiException]]:
    """Return the class of every error, in order of status."""
    return sorted(BaseExtApiException.__subclasses__(), key=lambda error_type: error_type.status)


def build_body(error: BaseExtApiException, request_id: str) -> dict[str, Any]:
    """Return the plain body of an error (schema ErrorBody)."""
    body = {"message": error.message, "error": type(error).__name__, "request_id": request_id}
    return body if error.errors is None else {**body, "errors": error.errors}


def build_problem(error: BaseExtApiException, request_id: str, base_url: str) -> dict[str, Any]:
    """Return the body of an error as RFC 9457 defines it (schema Problem).

    Its `type` is a page of the service at `base_url`.
    """
    return {
        "type": f"{base_url}{ERRORS_PATH}#{type(error).__name__}",
        "title": error.status.phrase,
        "status": int(error.status),
        "detail": error.message,
        **build_body(error, request_id),
    }


def make_response(error: BaseExtApiException) -> Response:
    """Return the response to the current request for an error."""
    # Accept has to name the media type of problems or pages. Most clients send `*/*`, for which they expect plain JSON.
    if error.page and prefers(HTML, PROBLEM_JSON, JSON):
        page = error.page.replace("{service}", html.escape(get_base_url()))
        response = Response(page, error.status, {"Content-Security-Policy": LINKED_PAGE_POLICY}, mimetype=HTML)
    elif prefers(PROBLEM_JSON, JSON):
        problem = build_problem(error, g.request_id, get_base_url())
        response = json_response(problem, error.status, PROBLEM_JSON)
    else:
        response = json_response(build_body(error, g.request_id), error.status)
    response.headers.update(error.headers)
    response.vary.add("Accept")
    return response


def register(app: Flask) -> None:
    """Register the error handlers of `app`, so that every error has the same body."""
    app.register_error_handler(WerkzeugMethodNotAllowed, _handle_method_not_allowed)
    app.register_error_handler(Exception, lambda error: make_response(_make_error(error)))


def _handle_method_not_allowed(error: WerkzeugMethodNotAllowed) -> Response:
    allow = ", ".join(sorted({*(error.valid_methods or ()), "OPTIONS"}))
    if request.method == "OPTIONS":
        return empty_response(HTTPStatus.NO_CONTENT, {"Allow": allow})
    return make_response(MethodNotAllowed(f"Use one of {allow}: this API is read-only.", headers={"Allow": allow}))


def _make_error(exception: Exception) -> BaseExtApiException:
    """Return the error for an exception, and log what the operator has to know."""
    match exception:
        case BaseExtApiException():
            return exception
        case marshmallow.ValidationError():
            return make_validation_error(exception.messages_dict)
        case mask.ParseError():
            return ParseError(str(exception))
        case mask.MaskError():
            return MaskError(str(exception))
        case UnknownRecord():
            return NotFound(str(exception))
        case WerkzeugNotFound():
            similar = " or ".join(find_similar_paths(request.path, current_app.url_map.iter_rules()))
            return NotFound(UNKNOWN_PATH.format(hint=f"; did you mean {similar}?" if similar else "."))
        case HTTPException(code=int(code)) if code < HTTPStatus.INTERNAL_SERVER_ERROR:
            return ValidationError(f"The service cannot process the request: {exception.name}.", errors={})
        case CircuitOpen() | StoreLags():
            return StoreUnavailable()
        case PyMongoError() if _is_unavailable(exception):
            return StoreUnavailable()
        case OtherFormat():
            get_services().log.error("read models of another format", reason=str(exception))
            return StoreUnavailable("The data of this fleet has to be built again. Try again in a few minutes.")
        case InvalidDocument():
            get_services().log.error("invalid document", document=str(exception))
        case _:
            get_services().log.error("unhandled exception", exc_info=exception)
    return InternalError()


def _is_unavailable(error: PyMongoError) -> bool:
    """Return whether an error means that the database cannot serve requests now, and log it then."""
    if refusal := get_refusal(error):
        # Without MongoDB's message, which has the command, with identifiers in it.
        get_services().log.error(refusal)
        return True
    is_failover = isinstance(error, OperationFailure) and error.code in FAILOVER_CODES
    # A member that has just started has no sessions yet, which PyMongo takes for a ConfigurationError.
    is_failover |= isinstance(error, ConfigurationError)
    if is_failover or error.timeout or isinstance(error, ConnectionFailure | ExecutionTimeout):
        get_services().log.warning("the database does not respond", error=f"{type(error).__name__}: {error}")
        return True
    return False
