"""The OpenAPI document, and the page on which to read and try it."""

from importlib.resources import files
from pathlib import Path

from flask import Blueprint, Response, current_app, request, send_file

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
PAGE = Path(__file__).parent.parent / "page"
SWAGGER_UI = Path(str(files("flask_swagger_ui"))) / "dist"
FILES = {
    "docs.js": PAGE,
    "docs.css": PAGE,
    "swagger-ui-bundle.js": SWAGGER_UI,
    "swagger-ui.css": SWAGGER_UI,
    "favicon-32x32.png": SWAGGER_UI,
}


@bp.get("/openapi.json")
def get_document() -> Response:
    """Return the OpenAPI document."""
    NoQuery().parse(request.query_string)
    response = Response(current_app.extensions["openapi"], mimetype="application/json")
    response.add_etag()
    response.make_conditional(request)
    return _revalidated(response)


@bp.get("/docs")
def get_page() -> Response:
    """Return the page."""
    NoQuery().parse(request.query_string)
    response = _revalidated(send_file(PAGE / "index.html"))
    response.headers["Content-Security-Policy"] = POLICY
    return response


@bp.get(f"/docs/<any({', '.join(repr(name) for name in FILES)}):name>")
def get_file(name: str) -> Response:
    """Return a file that the page is made of."""
    NoQuery().parse(request.query_string)
    return _revalidated(send_file(FILES[name] / name))


def _revalidated(response: Response) -> Response:
    # Anyone may keep it, and asks each time whether it still holds: that costs an empty 304.
    response.headers["Cache-Control"] = "public, no-cache"
    return response
