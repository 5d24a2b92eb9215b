"""Responses: JSON and other media types, and the choice between them and between encodings."""

import functools
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote_from_bytes, unquote_plus

import orjson
from flask import Response, request
from werkzeug.datastructures import Accept
from werkzeug.http import parse_accept_header
from werkzeug.sansio.utils import get_host

from app.services import get_services
from schemas.cursor import START

JSON, HTML = "application/json", "text/html"
# The Content-Security-Policy of a page that a report link leads to: it has no scripts and loads nothing.
LINKED_PAGE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
# The content encodings in order of preference.
ENCODINGS = ("zstd", "gzip")
# A smaller response fits into one packet with its headers, so compressing it gains nothing.
MIN_ENCODED_BYTES = 1_000
MAX_CACHED_HOSTS = 100
# Characters of a query that stay unencoded in a link. Commas and semicolons separate links and their parameters.
QUERY_CHARACTERS = "!$&'()*+/:=?@%"
# Each link to a page repeats the query. Proxies refuse a response with more than 8 to 16 kB of headers.
MAX_LINK_BYTES = 4_000


def json_response(content: Any, status: HTTPStatus = HTTPStatus.OK, mimetype: str = JSON) -> Response:
    """Return a JSON response. `content` has exactly the fields of the response, in their order."""
    return Response(orjson.dumps(content), status, mimetype=mimetype)


def stream_json(content: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield an object as JSON. Its last field is an array, whose elements come in lists that are not empty."""
    *others, (name, lists) = content.items()
    yield orjson.dumps(dict(others)).removesuffix(b"}") + f',"{name}":['.encode()
    for index, elements in enumerate(lists):
        yield b"," * (index > 0) + orjson.dumps(elements)[1:-1]
    yield b"]}"


def get_base_url() -> str:
    """Return the URL of the service: PUBLIC_BASE_URL, or the scheme and host of the request.

    It is empty if the request has no valid Host and PUBLIC_BASE_URL is not set.
    """
    base_url, environ = get_services().config.public_base_url, request.environ
    return base_url or _get_host_url(environ["wsgi.url_scheme"], environ.get("HTTP_HOST", ""))


# Every response has a link, and the hosts of a service are few.
@functools.lru_cache(MAX_CACHED_HOSTS)
def _get_host_url(scheme: str, host_header: str) -> str:
    host = get_host(scheme, host_header)
    return f"{scheme}://{host}" if host else ""


def format_link(path: str, relation: str) -> str:
    """Return a value of the header Link (RFC 8288): an absolute URL, and its relation to the response."""
    return f'<{get_base_url()}{path}>; rel="{relation}"'


def format_page_links(page: int, page_count: int) -> str:
    """Return the header Link of a page: the next, the previous and the first page of the same list, those that exist.

    After a page past the end, the previous page is the last one. Links that are too long together are left out.
    """
    url = _begin_link("page")
    next_link = f'{url}{page + 1}>; rel="next"' if page < page_count else ""
    prev_link = f'{url}{min(page - 1, page_count)}>; rel="prev"' if page > 1 else ""
    return _join_links(next_link, prev_link, f'{url}1>; rel="first"')


def format_next_link(cursor: str) -> str:
    """Return the header Link of a page that a cursor follows: the next page of the same list, unless it is too long."""
    return _join_links(f'{_begin_link("cursor")}{cursor}>; rel="next"')


def format_list_links(next_cursor: str | None) -> str:
    """Return the header Link of a page of a list by cursor: the next page, if there is one, and the first.

    Links that are too long together are left out.
    """
    url = _begin_link("cursor")
    next_link = f'{url}{next_cursor}>; rel="next"' if next_cursor else ""
    return _join_links(next_link, f'{url}{START}>; rel="first"')


def _join_links(next_link: str, *others: str) -> str:
    """Return links, of which those that do not exist are empty; the next one alone, or none, if they are too long."""
    links = ", ".join(filter(None, (next_link, *others)))
    if len(links) <= MAX_LINK_BYTES:
        return links
    return next_link if len(next_link) <= MAX_LINK_BYTES else ""


def _begin_link(name: str) -> str:
    """Return the link to another page of the list, up to the value of a parameter. The query has been validated."""
    environ = request.environ
    query = quote_from_bytes(environ["QUERY_STRING"].encode("latin-1"), QUERY_CHARACTERS)
    if query:
        parts = [part for part in query.split("&") if part and unquote_plus(part.partition("=")[0]) != name]
        query = "".join(f"{part}&" for part in parts)
    return f"<{get_base_url()}{environ['PATH_INFO']}?{query}{name}="


def empty_response(status: HTTPStatus, headers: Mapping[str, str]) -> Response:
    """Return a response that has no content, and so no type of content."""
    response = Response(status=status, headers=headers)
    del response.headers["Content-Type"]
    return response


@functools.lru_cache
def choose_encoding(accept_encoding: str) -> tuple[str | None, int]:
    """Return the encoding for an Accept-Encoding header, or None, and the minimum bytes of a response to encode."""
    accepted = parse_accept_header(accept_encoding, Accept)
    refuses_identity = accepted.find("identity") >= 0 and not accepted.quality("identity")
    encoding = accepted.best_match((*ENCODINGS, "identity"))
    return encoding if encoding in ENCODINGS else None, 0 if refuses_identity else MIN_ENCODED_BYTES


def prefers(media_type: str, *alternatives: str, wins_ties: bool = True) -> bool:
    """Return whether the request prefers a media type to alternatives, which are in order of specificity.

    Accept has to name the media type, with a higher quality than that of the first alternative that Accept names, or
    with the same one if it `wins_ties`.
    """
    if media_type not in request.environ.get("HTTP_ACCEPT", "").lower():
        return False
    qualities: dict[str, float] = {}
    for value, quality in request.accept_mimetypes:
        name = value.partition(";")[0].strip().lower()
        qualities[name] = max(qualities.get(name, 0.0), quality)
    limit = next((qualities[name] for name in alternatives if name in qualities), 0.0)
    quality = qualities.get(media_type, 0.0)
    return quality > limit or (wins_ties and quality == limit > 0)
