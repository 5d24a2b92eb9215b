"""The OpenAPI document, the page that displays it, the page of the errors, and the documents of the project."""

import html
import re
from importlib.resources import files

from flask import Blueprint, Response

from app.endpoint import public
from app.errors import BaseExtApiException, NotFound, find_error_types
from app.services import get_request_today, get_services
from app.views.static_files import build_policy, read_files, static_response

bp = Blueprint("docs", __name__)

# The page may load and call only this service. Swagger UI sets inline styles.
PAGE_POLICY = build_policy(
    {"script-src": "'self'", "style-src": "'self' 'unsafe-inline'", "img-src": "'self' data:", "connect-src": "'self'"}
)
OWN_FILES = files("app") / "docs"
PAGE = (OWN_FILES / "index.html").read_bytes()
ERRORS_TEMPLATE = (OWN_FILES / "errors.html").read_text("utf-8")
FILES = {
    **read_files(OWN_FILES, "docs.js", "docs.css"),
    **read_files(files("flask_swagger_ui") / "dist", "swagger-ui-bundle.js", "swagger-ui.css", "favicon-32x32.png"),
}
# The page has no scripts and loads nothing.
ERRORS_PAGE_POLICY = build_policy({"style-src": "'unsafe-inline'"})
MARKDOWN = "text/markdown"
# A link from a document to a file of the project that the service does not have.
OUTER_LINK = re.compile(r"\[([^\]]*)\]\((?:\.\.|decisions)/[^)]*\)")


def _render_error(error_type: type[BaseExtApiException]) -> str:
    name, status = error_type.__name__, error_type.status
    cause, remedy = map(_render_text, error_type.describe())
    return (
        f'<section id="{name}">\n<h2>{name}</h2>\n<p>Status {status.value} {status.phrase}.</p>\n'
        f"<p><strong>Cause:</strong> {cause}</p>\n<p><strong>Remedy:</strong> {remedy}</p>\n</section>"
    )


def _render_text(text: str) -> str:
    """Return text as HTML, with text between backticks as code."""
    return re.sub("`(.*?)`", r"<code>\1</code>", html.escape(text))


ERRORS_PAGE = ERRORS_TEMPLATE.replace("{sections}", "\n".join(map(_render_error, find_error_types()))).encode()
# The documents by name. `app/guides` is the folder docs of the project.
GUIDES = {
    file.name: OUTER_LINK.sub(r"\1", file.read_text("utf-8"))
    for file in (files("app") / "guides").iterdir()
    if file.name.endswith(".md")
}


@bp.get("/openapi.json")
@public
def get_document() -> Response:
    """Return the OpenAPI document."""
    return static_response("application/json", get_services().get_openapi_document(get_request_today()))


@bp.get("/docs")
@public
def get_page() -> Response:
    """Return the page that displays the OpenAPI document."""
    return static_response("text/html", PAGE, PAGE_POLICY)


@bp.get("/docs/errors")
@public
def get_errors_page() -> Response:
    """Return the page that describes the errors. The `type` of a problem (RFC 9457) is a section of this page."""
    return static_response("text/html", ERRORS_PAGE, ERRORS_PAGE_POLICY)


@bp.get(f"/docs/<any({', '.join(repr(name) for name in FILES)}):name>")
@public
def get_file(name: str) -> Response:
    """Return a file of the page."""
    return static_response(*FILES[name])


@bp.get("/docs/<path:guide>")
@public
def get_guide(guide: str) -> Response:
    """Return a document of the project as Markdown. Raises NotFound, because an unknown path would require a key."""
    if guide not in GUIDES:
        raise NotFound("There is no such document. /llms.txt lists all documents.")
    return static_response(MARKDOWN, GUIDES[guide].encode())
