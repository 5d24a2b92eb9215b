"""Files that are the same for every client: pages, and their scripts and stylesheets. They need no key."""

import functools
from collections.abc import Mapping
from importlib.resources.abc import Traversable

from flask import Response, request
from werkzeug.http import generate_etag

from app.conditional import find_not_modified
from app.config import API
from app.services import get_request_today, get_services
from schemas.params import NoParams

MEDIA_TYPES = {"js": "text/javascript", "css": "text/css", "png": "image/png", "svg": "image/svg+xml"}
# What a page may load and do, unless it says otherwise: nothing.
NOTHING = {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'"}

_make_etag = functools.lru_cache(generate_etag)

# The media type and the content of a file.
StaticFile = tuple[str, bytes]


def read_files(folder: Traversable, *names: str) -> dict[str, StaticFile]:
    """Return these files of a folder, by name."""
    return {name: (MEDIA_TYPES[name.rpartition(".")[2]], (folder / name).read_bytes()) for name in names}


def build_policy(sources: Mapping[str, str]) -> str:
    """Return a Content-Security-Policy that allows only these sources, by directive."""
    return "; ".join(f"{directive} {values}" for directive, values in {**NOTHING, **sources}.items())


def static_response(mimetype: str, content: bytes, policy: str = "") -> Response:
    """Return content that is the same for everyone, with an ETag; 304 if the client has it. Raises ValidationError.

    Below the API the request has no parameters. Elsewhere they have no effect: a link to a page may carry the name of
    a campaign, and a file a version. `policy` is the Content-Security-Policy of a page.
    """
    if request.path.startswith(f"{API}/"):
        NoParams().parse(request.query_string, get_request_today(), get_services().config.unknown_parameters)
    etag = _make_etag(content)
    # Any cache may store the response, and revalidates it before each use, which costs an empty 304.
    headers = {"ETag": f'"{etag}"', "Cache-Control": "public, no-cache"}
    if policy:
        headers["Content-Security-Policy"] = policy
    return find_not_modified(etag, headers) or Response(content, headers=headers, mimetype=mimetype)
