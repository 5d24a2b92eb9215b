"""Reports: links to a fleet's, and the files behind them."""

import itertools
import re
from typing import Any

from flask import Blueprint, Response, current_app, g, request
from werkzeug.exceptions import BadRequest
from werkzeug.http import dump_options_header

from app.content_encoding import get_matching_etag
from app.database import get_store
from app.endpoint import Endpoint
from app.errors import NotFound
from app.report_links import ReportLink, ReportLinkSigner
from app.responses import CACHE_CONTROL_REVALIDATE, not_modified
from app.store.reports import FILES, get_report, read_file
from schemas.params import LinkParams, ReportParams
from schemas.report import HEADER, ReportLinks

bp = Blueprint("report", __name__)

# Of each file the media type, how a browser is to take it, and what its name ends with.
MEDIA = {"csv": ("text/csv", "attachment", "csv"), "page": ("text/html", "inline", "html")}
# The page has no script, and asks for nothing.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
COLUMNS = f"The columns of the CSV are {', '.join(f'`{name}`' for name in HEADER)}."
UNSAFE_IN_NAMES = re.compile(r"[^\w.-]+", re.ASCII)


@bp.get("/report")
@Endpoint(ReportParams(), ReportLinks(), supports_conditional=False)
def get_report_links(params: dict[str, Any]) -> dict[str, Any]:
    """Get links to the fleet's report of a date.

    A report belongs to a date, and covers the seven full UTC days before it. Any `report_time` of that date leads to
    it. Until the report is built the response is NotFound. The links need no key, and are good for 15 minutes;
    operators may set another time.
    """
    if get_report(get_store(), g.api_key.fleet, params["report_date"]) is None:
        raise NotFound("Report not ready yet")
    signer: ReportLinkSigner = current_app.extensions["report_link_signer"]
    base = current_app.extensions["config"].public_base_url or _address()
    expires_at = signer.get_expiry_ms()

    csv, page = (
        signer.build_url(base, g.api_key.fleet, params["report_date"], file, g.api_key.key_id, expires_at)
        for file in FILES
    )
    return {"report_link": csv, "report_page": page, "expires_at": expires_at}


def _address() -> str:
    """Return where the client reached the service. Raises BadRequest where its Host is none."""
    if not request.host:
        raise BadRequest
    return request.host_url.rstrip("/")


@bp.get("/report/<rest:link>")
@Endpoint(
    LinkParams(),
    accepts_mask=False,
    representations=dict.fromkeys(media for media, _, _ in MEDIA.values()),
    description=COLUMNS,
)
def get_report_file(params: dict[str, Any]) -> Response:
    """Get a file of a report, by its link.

    The link is all that it takes. It leads to a page to read, or to CSV (RFC 4180, UTF-8): a header, then a row for
    each driver, by `driver_id`. Flags are `true` or `false`. For a driver who did not drive, the cells after the
    driver's own are empty.

    Text that a spreadsheet would run as a formula gets a `'` before it: text that begins with `=`, `@`, a tab, CR or
    LF, or with `+` or `-` unless only digits, spaces, dots, round brackets and hyphens follow. So `+15551234567` and
    `-17` are unchanged.
    """
    link: ReportLink = g.report_link
    report = get_report(get_store(), link.fleet, link.report_date)
    if report is None:
        raise NotFound("There is no such report any more.")
    file, (media, disposition, ending) = report[link.file], MEDIA[link.file]
    held = get_matching_etag(file["digest"])
    headers = {"ETag": f'"{held or file["digest"]}"', "Cache-Control": CACHE_CONTROL_REVALIDATE}
    if held:
        return not_modified(headers)
    # With the first part in hand a store that fails is told of as such; later it can but break off.
    parts = read_file(get_store(), file)
    name = UNSAFE_IN_NAMES.sub("-", f"{link.fleet}-report-{link.report_date}").lstrip("-.")
    headers |= {
        "Content-Length": str(file["bytes"]),
        "Content-Disposition": dump_options_header(disposition, {"filename": f"{name}.{ending}"}),
        "Content-Security-Policy": POLICY,
        "Referrer-Policy": "no-referrer",
    }
    return Response(itertools.chain([next(parts)], parts), headers=headers, mimetype=media)
