"""A report's file, opened in LibreOffice."""

import os
import shutil
import subprocess
from xml.etree import ElementTree

import pytest

from app.store.reports import read_file
from app.store.score import compute_points_lost
from schemas.report import HEADER, row
from scripts.reports.build import build_report
from scripts.reports.figures import FigureCollector
from tests.factories import make_driver, make_event_summary, make_trip

pytestmark = pytest.mark.clients

DATE = "2026-03-16"
TABLE, OFFICE, TEXT = (f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}" for name in ("table", "office", "text"))
# What the cell of a name shows, where it is not the name.
SHOWN = {
    "=1+1": "'=1+1",
    "+A1": "'+A1",
    "-1+A1": "'-1+A1",
    "@SUM(A1)": "'@SUM(A1)",
    '=HYPERLINK("http://127.0.0.1")': '\'=HYPERLINK("http://127.0.0.1")',
    "+15551234567": 15551234567.0,
    "-17": -17.0,
}
NAMES = [*SHOWN, "+1 (555) 123-4567", "+1-1", "+", "-", "Zoë \U0001f697", 'say "hi", Bob; x', "a\nb"]
SECONDS = 120
# Separated by commas, quoted with quotes, in UTF-8, from the first line on (LibreOffice, CSV filter parameters).
UTF_8 = "Text - txt - csv (StarCalc):44,34,76,1"


@pytest.fixture
def soffice():
    """LibreOffice's command."""
    result = shutil.which("soffice")
    if result is None and os.environ.get("CI"):
        pytest.fail("There is no soffice: apt-get install libreoffice-calc-nogui")
    return result or pytest.skip("There is no soffice: apt-get install libreoffice-calc-nogui")


@pytest.fixture
def opened(soffice, tmp_path):
    """Open a CSV file, and return its cells as they are shown: text, or numbers."""

    def opened(content):
        (tmp_path / "report.csv").write_bytes(content)
        words = [soffice, "--headless", f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}"]
        words += [
            f"--infilter={UTF_8}",
            "--convert-to",
            "fods",
            "--outdir",
            str(tmp_path),
            str(tmp_path / "report.csv"),
        ]
        completed = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=True)
        # That is of its installation.
        assert [line for line in completed.stderr.splitlines() if "javaldx" not in line] == []
        (table,) = ElementTree.parse(tmp_path / "report.fods").iter(f"{TABLE}table")
        assert not [cell for cell in table.iter() if f"{TABLE}formula" in cell.attrib]
        return [shown for line in table.iter(f"{TABLE}table-row") if any(shown := cells(line))]

    return opened


def cells(line):
    """Return the cells of a row, without those after the last column."""
    result = []
    for cell in line.iter(f"{TABLE}table-cell"):
        text = "\n".join("".join(part.itertext()) for part in cell.iter(f"{TEXT}p"))
        value = float(cell.get(f"{OFFICE}value")) if cell.get(f"{OFFICE}value-type") == "float" else text
        result += [value] * min(int(cell.get(f"{TABLE}number-columns-repeated", 1)), len(HEADER))
    return result[: len(HEADER)]


def expected(value):
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return pytest.approx(value, rel=1e-14)
    return SHOWN.get(value, value or "")


def test_it_shows_every_cell_and_runs_none(store, load, opened):
    events = make_event_summary(phone_use_count=3, hard_brake_count=7, overspeeding_time_seconds=0.1)
    load(
        *(
            make_trip(f"2026-03-{day}T08:00", f"d{day % 4}", distance_miles=day / 7, event_summary=events)
            for day in range(10, 16)
        ),
        drivers=[make_driver(f"d{n}", alias=name, last_name=name) for n, name in enumerate(NAMES)],
    )
    report = build_report(store, "f1", DATE)
    result = opened(b"".join(read_file(store, report["csv"])))
    with store.snapshot() as session:
        drivers = [one for rows in FigureCollector(store, session, "f1", DATE).rows() for one in rows]
    expected_rows = [row(driver, week, compute_points_lost(week) if week else {}) for driver, week in drivers]
    assert result[0] == list(HEADER)
    dates = [number for number, name in enumerate(HEADER) if name.endswith("_date")]
    for shown, values in zip(result[1:], expected_rows, strict=True):
        for number, value in enumerate(values):
            if number not in dates:
                assert shown[number] == expected(value), HEADER[number]
