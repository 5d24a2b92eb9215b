"""The OpenAPI document, and the page on which to read and try it."""

from importlib.resources import files

from flask import Blueprint, Response, current_app, request
from werkzeug.http import generate_etag

from app.content_encoding import matching_tag
from schemas.query import NoQuery

bp = Blueprint("docs", __name__)

# Only what this service serves may run or be asked; Swagger UI sets styles as it runs.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
OWN = files("app") / "docs"
SWAGGER_UI = files("flask_swagger_ui") / "dist"
PAGE = (OWN / "index.html").read_bytes()
# What the page is made of: media type and content.
FILES = {
    "docs.js": ("text/javascript", (OWN / "docs.js").read_bytes()),
    "docs.css": ("text/css", (OWN / "docs.css").read_bytes()),
    # The stylesheet of the page at `/`.
    "home.css": ("text/css", (OWN / "home.css").read_bytes()),
    "swagger-ui-bundle.js": ("text/javascript", (SWAGGER_UI / "swagger-ui-bundle.js").read_bytes()),
    "swagger-ui.css": ("text/css", (SWAGGER_UI / "swagger-ui.css").read_bytes()),
    "favicon-32x32.png": ("image/png", (SWAGGER_UI / "favicon-32x32.png").read_bytes()),
}


@bp.get("/openapi.json")
def get_document() -> Response:
    """Return the OpenAPI document."""
    return static_response("application/json", current_app.extensions["openapi"])


@bp.get("/docs")
def get_page() -> Response:
    """Return the page."""
    response = static_response("text/html", PAGE)
    response.headers["Content-Security-Policy"] = POLICY
    return response


@bp.get(f"/docs/<any({', '.join(repr(name) for name in FILES)}):name>")
def get_file(name: str) -> Response:
    """Return a file that the page is made of."""
    return static_response(*FILES[name])


def static_response(mimetype: str, content: bytes) -> Response:
    """Return content that is the same for everyone, with an ETag; 304 if the client has it. Raises ValidationError.

    The request takes no parameters.
    """
    NoQuery().parse(request.query_string, current_app.extensions["config"].unknown_parameters)
    response = Response(content, mimetype=mimetype)
    tag = generate_etag(content)
    response.set_etag(matching_tag(tag) or tag)
    response.make_conditional(request)
    # Anyone may keep it, and asks each time whether it still holds: that costs an empty 304.
    response.headers["Cache-Control"] = "public, no-cache"
    return response
