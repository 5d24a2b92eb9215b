"""The page at `/`, for people who open the address of the service in a browser."""

from flask import Blueprint, Response, abort, request

from app.views.docs import OWN_FILES, static_response

bp = Blueprint("home", __name__)

PAGE = (OWN_FILES / "home.html").read_bytes()
# The page has no scripts, and only this service's stylesheet and icon load.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "style-src 'self'",
        "img-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)


@bp.get("/")
def get_home() -> Response:
    """Return the page, or 404 to a client that does not accept HTML, as for any path outside the API."""
    accepted = request.accept_mimetypes
    if accepted and not accepted.quality("text/html"):
        abort(404)
    response = static_response("text/html", PAGE)
    response.headers["Content-Security-Policy"] = POLICY
    response.vary.add("Accept")
    return response
