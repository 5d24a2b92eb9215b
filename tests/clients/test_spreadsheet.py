"""A report's file, opened in LibreOffice."""

import csv
import io
import re
import shutil
from xml.etree import ElementTree

import pytest

from app.store.reports import read_file
from schemas.report import ReportWindow
from scripts.reports.build import build_report
from tests.clients.test_clients_page import PAGE
from tests.clients.tools import require, run
from tests.factories import make_driver, make_event_summary, make_trip

pytestmark = pytest.mark.clients

TABLE, OFFICE, TEXT = (f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}" for name in ("table", "office", "text"))
FORMULAS = ("=1+1", "+A1", "-1+A1", "@SUM(A1)", "x;=1+2", "＝1+2", '";=1+2', '=HYPERLINK("http://127.0.0.1")')
HARMLESS = ("+15551234567", "-17", "+1 (555) 1234567", "+", "-", "Zoë \U0001f697", 'say "hi", Bob; x', "a\nb")
HARMLESS += ("Depot North; van 7", "José Martínez Ñ")
# Separated by these characters, quoted with quotes, in UTF-8, from the first line on (LibreOffice, CSV filter
# parameters).
FILTER = "Text - txt - csv (StarCalc):{},34,76,1"
COMMA, SEMICOLON, TAB = "44", "59", "9"
# A profile in German, which has a decimal comma.
GERMAN = """\
<oor:items xmlns:oor="http://openoffice.org/2001/registry"><item oor:path="/org.openoffice.Setup/L10N">
<prop oor:name="ooSetupSystemLocale" oor:op="fuse"><value>de-DE</value></prop></item></oor:items>
"""
NUMBER, DATE = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]\d+)?"), re.compile(r"\d{4}-\d\d-\d\d")


def open_in_libreoffice(content, folder, infilter):
    """Open a CSV file with this filter. Return its cells as they are shown, text or numbers.

    None of them is a formula.
    """
    (folder / "report.csv").write_bytes(content)
    soffice = require(shutil.which("soffice"), "There is no soffice: apt-get install libreoffice-calc-nogui")
    profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
    options = [profile, f"--infilter={infilter}", "--convert-to", "fods", "--outdir", folder]
    converted = run(soffice, "--headless", *options, folder / "report.csv")
    # That is of its installation.
    assert [line for line in converted.stderr.splitlines() if "javaldx" not in line] == []
    (table,) = ElementTree.parse(folder / "report.fods").iter(f"{TABLE}table")
    assert not [cell for cell in table.iter() if f"{TABLE}formula" in cell.attrib]
    return [read_cells(row) for row in table.iter(f"{TABLE}table-row")]


def read_cells(row):
    cells = []
    for cell in row.iter(f"{TABLE}table-cell"):
        text = "\n".join("".join(part.itertext()) for part in cell.iter(f"{TEXT}p"))
        value = float(cell.get(f"{OFFICE}value")) if cell.get(f"{OFFICE}value-type") == "float" else text
        cells += [value] * int(cell.get(f"{TABLE}number-columns-repeated", 1))
    return cells


def expected(text):
    if NUMBER.fullmatch(text):
        return pytest.approx(float(text), rel=1e-14)
    return text.upper() if text in ("true", "false") else text


@pytest.fixture
def content(store, load):
    """A report on drivers with these names."""
    events = make_event_summary(phone_use_count=3, hard_brake_count=7, overspeeding_time_seconds=0.1)
    trips = [
        make_trip(f"2026-03-{day}T08:00", f"d{day % 4}", distance_miles=day / 7, event_summary=events)
        for day in range(10, 16)
    ]
    names = enumerate(FORMULAS + HARMLESS)
    load(*trips, drivers=[make_driver(f"d{number}", alias=name, last_name=name) for number, name in names])
    report = build_report(store, "f1", ReportWindow("2026-03-16"))
    return b"".join(read_file(store, report["csv"]))


@pytest.mark.parametrize("separators", [COMMA, SEMICOLON, TAB, f"{COMMA}/{SEMICOLON}/{TAB}"])
def test_it_runs_no_cell_and_shows_every_cell_where_it_splits_at_commas(content, tmp_path, separators):
    opened = open_in_libreoffice(content, tmp_path, FILTER.format(separators))
    rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""))) if COMMA in separators else []
    for shown, written in zip(opened, rows, strict=False):
        for cell, text in zip(shown, written, strict=False):
            # Dates are shown as the language of the system has them.
            assert cell == expected(text) or DATE.fullmatch(text), text
    assert len(opened) > len(FORMULAS + HARMLESS)


def test_the_filter_of_the_page_shows_numbers_and_text_as_they_are_in_a_language_with_a_decimal_comma(
    content, tmp_path
):
    (settings := tmp_path / "profile" / "user").mkdir(parents=True)
    (settings / "registrymodifications.xcu").write_text(GERMAN)
    content = content.replace(b'"d1"', b'"0012"')
    opened = open_in_libreoffice(content, tmp_path, re.search('--infilter="(.*?)"', PAGE)[1])
    miles = opened[0].index("distance_miles")
    shown = {row[0]: row[miles] for row in opened[1:5]}
    assert shown == {"d0": 1.71, "0012": 1.86, "d10": "", "d11": ""}
