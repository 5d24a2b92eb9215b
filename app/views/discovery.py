"""What programs find the service by: the API catalog and `/llms.txt`."""

import functools
import re
from importlib.resources import files

import orjson
from flask import Blueprint, Response

from app.config import API
from app.endpoint import public
from app.responses import JSON, format_link, get_base_url
from app.services import get_request_today, get_services
from app.views.docs import GUIDES
from app.views.static_files import static_response

bp = Blueprint("discovery", __name__)

CATALOG_PATH = "/.well-known/api-catalog"
# The profile of RFC 9727.
LINKSET_JSON = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
# The row of a document in the index: its name, whom it is for, and its content.
INDEX_ROW = re.compile(r"^\| \[([\w-]+\.md)\]\(\1\) \| (.+?) \| (.+?) \|$", re.MULTILINE)
INDEX = "README.md"
MAX_CACHED_BASE_URLS = 10
LLMS_TEMPLATE = (files("app") / "docs" / "llms.txt").read_text("utf-8")


@bp.get(CATALOG_PATH)
@public
def get_catalog() -> Response:
    """Return the API catalog (RFC 9727): a link set (RFC 9264) with the descriptions of the API and its status."""
    base_url = get_base_url()
    links = {
        "service-desc": [{"href": f"{base_url}{API}/openapi.json", "type": JSON}],
        "service-doc": [
            {"href": f"{base_url}{API}/docs", "type": "text/html"},
            {"href": f"{base_url}/llms.txt", "type": "text/plain"},
        ],
        "status": [{"href": f"{base_url}{API}/healthz", "type": JSON}],
    }
    response = static_response(LINKSET_JSON, orjson.dumps({"linkset": [{"anchor": f"{base_url}{API}", **links}]}))
    response.headers["Link"] = format_link(CATALOG_PATH, "api-catalog")
    return response


@bp.get("/llms.txt")
@public
def get_llms_txt() -> Response:
    """Return an overview for language models, as llmstxt.org describes it: the endpoints and the documents."""
    document = get_services().get_openapi_document(get_request_today())
    return static_response("text/plain", build_llms_txt(document, get_base_url()))


@functools.lru_cache(MAX_CACHED_BASE_URLS)
def build_llms_txt(openapi_document: bytes, base_url: str) -> bytes:
    """Return the overview: an endpoint for each path of the OpenAPI document, and each document of the index."""
    operations = {path: item["get"] for path, item in orjson.loads(openapi_document)["paths"].items()}
    endpoints = [
        f"- `GET {path}`: {operation['summary']}{' (public)' if operation.get('security') == [] else ''}"
        for path, operation in operations.items()
    ]
    guides = [
        f"- [{name}]({base_url}{API}/docs/{name}): {content} (for {readers})"
        for name, readers, content in INDEX_ROW.findall(GUIDES[INDEX])
    ]
    sections = {"endpoints": "\n".join(endpoints), "guides": "\n".join(guides)}
    return LLMS_TEMPLATE.format(base_url=base_url, api=API, catalog=CATALOG_PATH, **sections).encode()
