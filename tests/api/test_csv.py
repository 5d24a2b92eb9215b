"""Lists as CSV, for a spreadsheet."""

import csv
import io

import pytest

from schemas.report import ReportWindow
from scripts.reports.build import build_report
from tests.factories import make_driver, make_event_summary, make_speeding, make_trip
from tests.store_contents import load

CSV = {"Accept": "text/csv"}
GEO_JSON, GPX = "application/geo+json", "application/gpx+xml"
PATHS = [
    "/drivers?limit=2",
    "/driver/d1/trips?start_date=2026-03-01",
    "/driver-aggregate/daily?start_date=2026-03-10&driver_id=d1&driver_id=d2",
    "/driver-aggregate/weekly?start_date=2026-03-09&driver_id=d1&driver_id=d2",
    "/driver-aggregate/monthly?start_date=2026-03-01&driver_id=d1",
    "/driver-aggregate/window?start_date=2026-03-09",
    "/ranking?period=week&start_date=2026-03-09",
    "/fleet-aggregate?start_date=2026-03-01&interval=day",
    "/reports",
    "/trips?start_date=2026-03-01&limit=1",
    "/trips?start_date=2026-03-01&form=detail",
    "/events?start_date=2026-03-01",
]


@pytest.fixture(scope="module")
def loaded(shared_service):
    """The service with lists that are not empty, and text that a spreadsheet would compute."""
    trips = [
        make_trip(
            f"2026-03-{day}T08:00",
            "d1",
            tracking_id="k",
            insurance_period=2,
            distance_miles=1 / 3,
            events=[make_speeding(1_773_129_600_000)],
        )
        for day in (10, 11)
    ]
    broken = make_trip(
        "2026-03-12T08:00", "d3", duration_seconds=0, event_summary=make_event_summary(hard_brake_count=7)
    )
    drivers = [make_driver("d1", alias="=1+1"), make_driver("d2", last_name='O"Neil, x; y\n-z')]
    load(shared_service.db, *trips, broken, drivers=drivers)
    build_report(shared_service.store, "f1", ReportWindow("2026-03-16"))
    return shared_service


def flatten(element, *above):
    """Yield the cells of an element of JSON by column, without lists of objects."""
    for name, value in element.items():
        if isinstance(value, dict):
            yield from flatten(value, *above, name)
        elif not isinstance(value, list):
            yield ".".join((*above, name)), value
        elif value and not isinstance(value[0], dict):
            yield ".".join((*above, name)), "; ".join(value)


def write(value):
    texts = {None: "", True: "true", False: "false"}
    return (
        value if isinstance(value, str) else texts[value] if value is None or isinstance(value, bool) else repr(value)
    )


def read(response):
    assert response.headers["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(response.data.decode("utf-8-sig"), newline="")))


def undo(cell):
    """Return a text without the marks that keep a spreadsheet from computing it."""
    return cell.replace("'", "")


@pytest.mark.parametrize("path", PATHS)
def test_a_row_has_the_values_of_an_element_and_a_column_is_a_field(loaded, path):
    page = loaded.get(path).json
    (elements,) = [value for value in page.values() if isinstance(value, list)]
    rows = read(loaded.get(path, headers=CSV))
    assert len(rows) == len(elements) > 0
    for row, element in zip(rows, elements, strict=True):
        cells = {name: write(value) for name, value in flatten(element)}
        assert {name: undo(cell) for name, cell in row.items() if cell} == {
            name: cell for name, cell in cells.items() if cell
        }
        assert row.keys() >= cells.keys()


REPRESENTATIONS = [(path, "text/csv") for path in PATHS]
REPRESENTATIONS += [(f"/{name}?start_date=2026-03-01", GEO_JSON) for name in ("trips", "events")]
REPRESENTATIONS += [("/trip/tracking_id/k", GEO_JSON), ("/trip/tracking_id/k", GPX)]


@pytest.mark.parametrize(("path", "kind"), REPRESENTATIONS)
def test_another_representation_has_the_same_links_and_an_etag_of_its_own(loaded, path, kind):
    as_json, other = loaded.get(path), loaded.get(path, headers={"Accept": kind})
    assert as_json.headers.get("Link") == other.headers.get("Link")
    assert as_json.headers["Vary"] == other.headers["Vary"] == "Accept, X-Fields, Accept-Encoding"
    own, of_json = other.headers["ETag"], as_json.headers["ETag"]
    sent = [loaded.get(path, headers={"Accept": kind, "If-None-Match": tag}) for tag in (own, of_json)]
    assert [(response.status_code, response.headers["ETag"]) for response in sent] == [(304, own), (200, own)]


@pytest.mark.parametrize("accept", ["*/*", "text/csv, application/json", "text/csv;q=0.5, */*;q=0.5", "text/*"])
def test_json_wins_at_equal_quality(loaded, accept):
    assert loaded.get("/drivers", headers={"Accept": accept}).json["count"] == 3


def test_text_that_a_spreadsheet_would_compute_is_defused(loaded):
    first, second, _ = read(loaded.get("/drivers", headers=CSV))
    assert first["alias"] == "'=1+1"
    assert second["last_name"] == "O\"Neil, x; y\n'-z"


def test_an_empty_page_has_the_columns(service):
    response = service.get("/drivers", headers=CSV)
    assert response.data.startswith(b'\xef\xbb\xbf"driver_id",')
    assert response.data.count(b"\r\n") == 1


@pytest.mark.parametrize(
    ("path", "kind"), [("/drivers", "text/csv"), ("/trip/trip_id/t", GEO_JSON), ("/trip/trip_id/t", GPX)]
)
def test_an_error_is_json(service, path, kind):
    response = service.get(f"{path}?page=0", headers={"Accept": kind})
    assert (response.status_code, list(response.json["errors"])) == (400, ["page"])
