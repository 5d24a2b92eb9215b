"""Reports: the links to a report, and the files that they lead to."""

import itertools
import re
from typing import Any

from flask import Blueprint, Response, g
from marshmallow import ValidationError
from werkzeug.http import dump_options_header

from app.conditional import find_not_modified
from app.endpoint import Caching, Credential, Endpoint, ResultEndpoint
from app.errors import NotFound
from app.report_links import ReportLink
from app.responses import HTML, LINKED_PAGE_POLICY, get_base_url
from app.services import get_request_time_zone, get_request_today, get_scope, get_services
from app.store import Result
from app.store.reports import FILES, find_reports, get_report, has_only_later_trips, read_file
from schemas.page import ReportPage
from schemas.params import LinkParams, PageParams, ReportParams
from schemas.report import HEADER, ReportLinks, ReportWindow

bp = Blueprint("report", __name__)

# For each file its media type, its Content-Disposition, and the extension of its name.
MEDIA = {"csv": ("text/csv", "attachment", "csv"), "page": (HTML, "inline", "html")}
COLUMNS = f"The columns of the CSV are {', '.join(f'`{name}`' for name in HEADER)}."
INVALID_HOST = (
    "Must be a host name of letters, digits, hyphens and dots, or an IP address, with a port if there is one. The "
    "operator of the service can set PUBLIC_BASE_URL instead."
)
# Operators build reports on a schedule, often once a week, or by hand.
RETRY_AFTER_SECONDS = 3_600
UNSAFE_IN_NAMES = re.compile(r"[^\w.-]+", re.ASCII)


@bp.get("/report")
@ResultEndpoint(
    params=ReportParams(),
    response=ReportLinks(),
    credential=Credential.FLEET_KEY,
    # The links need no key.
    caching=Caching.NEVER,
)
def get_report_links(window: ReportWindow) -> Result:
    """Get links to the fleet's report of a date.

    A weekly report covers the seven full days before its date. Any `report_time` on that date selects it. A monthly
    report covers a calendar month, and any `report_time` in the next month selects it. Until the report is built, the
    response is a NotFound with the message `Report not ready yet` and the header `Retry-After`. If the week or month is
    not over, or its trips are gone, the message says so. The links need no key and expire after 15 minutes; the
    operator can set another time.
    """
    services, fleet = get_services(), get_scope().fleet
    if get_report(services.store, fleet, window) is None:
        raise _make_not_found(fleet, *window)
    base_url = get_base_url()
    if not base_url:
        raise ValidationError({"Host": [INVALID_HOST]})
    signer = services.report_link_signer
    expires_at = signer.get_expiry_ms()
    csv, page = (signer.build_url(base_url, fleet, *window, file, g.api_key.key_id, expires_at) for file in FILES)
    links = {"report_link": csv, "report_page": page, "expires_at": expires_at}
    return Result("", links)


def _make_not_found(fleet: str, report_date: str, period: str) -> NotFound:
    """Return the error for a report that is not built: it says whether it can still be."""
    if report_date > str(get_request_today()):
        return NotFound(
            f"There is no report of {report_date} yet: it covers the days of the {period} before that date, and is "
            "built once they are over."
        )
    if has_only_later_trips(get_services().store, fleet, report_date, get_request_time_zone()):
        return NotFound(
            f"There is no report of {report_date}: the fleet has no trips that ended before that date. /api/v1/reports "
            "lists those that are built."
        )
    return NotFound("Report not ready yet", headers={"Retry-After": str(RETRY_AFTER_SECONDS)})


@bp.get("/reports")
@ResultEndpoint(params=PageParams(), response=ReportPage(), has_csv=True, credential=Credential.FLEET_KEY)
def list_reports(**params: Any) -> Result:
    """List the reports that are built, newest first."""
    return find_reports(get_services().store, get_scope().fleet, **params)


@bp.get("/report/<path:link>")
@Endpoint(
    params=LinkParams(),
    files=[media_type for media_type, _, _ in MEDIA.values()],
    credential=Credential.REPORT_LINK,
    description=COLUMNS,
)
def get_report_file(link: str) -> Response:
    """Get a file of a report, by its link.

    The link needs no key. It leads to a web page or to a CSV file (RFC 4180, UTF-8 with a byte order mark) with a
    header and one row for each driver, in order of `driver_id`. Amounts are rounded. Booleans are `true` or `false`.
    For a driver who did not drive, the cells after the fields of the driver are empty.

    Text that a spreadsheet would run as a formula has a `'` before it. The guide for client developers,
    `/api/v1/docs/clients.md`, has the rule.
    """
    services, fleet = get_services(), get_scope().fleet
    requested: ReportLink = g.report_link
    window = ReportWindow(requested.report_date, requested.period)
    with services.store_breaker.guard():
        report = get_report(services.store, fleet, window)
        if report is None:
            raise NotFound("The report was deleted.")
        file = report[requested.file]
        headers = {"ETag": f'"{file["digest"]}"', "Cache-Control": Caching.REVALIDATE}
        if unchanged := find_not_modified(file["digest"], headers):
            return unchanged
        # Reading the first part before the response starts turns a failure of the database into a 503. A later failure
        # can only end the connection.
        parts = read_file(services.store, file)
        first_part = next(parts)
    media_type, disposition, extension = MEDIA[requested.file]
    name = UNSAFE_IN_NAMES.sub("-", f"{fleet}-report-{window.name}").lstrip("-.")
    headers |= {
        "Content-Length": str(file["bytes"]),
        "Content-Disposition": dump_options_header(disposition, {"filename": f"{name}.{extension}"}),
        "Content-Security-Policy": LINKED_PAGE_POLICY,
        "Referrer-Policy": "no-referrer",
    }
    return Response(itertools.chain([first_part], parts), headers=headers, mimetype=media_type)
