"""The explorer: the page at `/`, on which people look at their fleet in a browser. Its scripts call the API."""

import functools
import html
from importlib.resources import files
from urllib.parse import urlsplit

import orjson
from flask import Blueprint, Response, abort, request

from app.config import Config
from app.endpoint import public
from app.services import get_services
from app.views.static_files import build_policy, read_files, static_response
from schemas.score import BEHAVIOURS, MIN_DISTANCE_MILES
from schemas.summary import FOCUS_FLAGS, GRADES

bp = Blueprint("explorer", __name__)

OWN_FILES = files("app") / "explorer"
TEMPLATE = (OWN_FILES / "index.html").read_text()
LEAFLET = files("js_lib_leaflet") / "static" / "js_lib_leaflet"
FILES = {
    **read_files(OWN_FILES, *sorted(file.name for file in OWN_FILES.iterdir() if not file.name.endswith(".html"))),
    **read_files(LEAFLET, "leaflet.js", "leaflet.css"),
}


@bp.get("/")
@public
def get_page() -> Response:
    """Return the page, or 404 to a client that does not accept HTML, as for any path outside the API."""
    accepted = request.accept_mimetypes
    if accepted and not accepted.quality("text/html"):
        abort(404)
    config = get_services().config
    response = static_response("text/html", _build_page(config), _build_policy(config.map_tiles_url))
    response.vary.add("Accept")
    return response


@bp.get(f"/explorer/<any({', '.join(repr(name) for name in FILES)}):name>")
@public
def get_file(name: str) -> Response:
    """Return a file of the page."""
    return static_response(*FILES[name])


@functools.lru_cache
def _build_page(config: Config) -> bytes:
    """Return the page with what its scripts have to know of the service: the settings and the table of the score."""
    settings = {
        "map_tiles_url": config.map_tiles_url,
        "map_tiles_attribution": config.map_tiles_attribution,
        "processing_delay_hours": config.processing_delay_hours,
        "behaviours": [{**behaviour._asdict(), "focus_flag": FOCUS_FLAGS[behaviour.name]} for behaviour in BEHAVIOURS],
        "grades": GRADES,
        "min_distance_miles": MIN_DISTANCE_MILES,
    }
    return TEMPLATE.replace("{settings}", html.escape(orjson.dumps(settings).decode())).encode()


@functools.lru_cache
def _build_policy(map_tiles_url: str) -> str:
    """Return the Content-Security-Policy. Map tiles come from their own host.

    Leaflet replaces the image of a tile that is no longer needed by an empty one, which is a data URL.
    """
    tiles = urlsplit(map_tiles_url)
    images = f"'self' data: {tiles.scheme}://{tiles.netloc}" if map_tiles_url else "'self'"
    return build_policy({"script-src": "'self'", "style-src": "'self'", "img-src": images, "connect-src": "'self'"})
