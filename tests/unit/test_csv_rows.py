"""CSV for spreadsheets: the cells of a report, none of which runs, and text that comes back as it was."""

import csv
import io
import re
import sys

import pytest

from schemas.csv_rows import render_rows
from schemas.report import HEADER, row
from tests.factories import make_driver, make_summary

HOSTILE = ("=1+1", "+A1", "-1+A1", "--A1", "+1-555", "+(1;2)", "-1\n", "+１", "@SUM(A1)", "\tx", "\rx", "\nx", " =1")
HOSTILE += ("\ufeff=1", "\u200b\xa0=1", '"=1', "＝1", "＋A1")
# A spreadsheet that splits at semicolons or tabs reads these as cells of their own, whatever the quotes.
SPLIT = ("a;=1+2", "a\t=1+2", "a\n=1+2", "a; +1", "a;\u200b@A1", 'a;"=1+2"', 'a";-17', ";;=1", "a;＝1")
HARMLESS = ("+15551234567", "-17", "+1 (555) 1234567", "+49.30.1234", "-", "+", "5+A1", "x=1", "a; b-c", "a;5=5", "'=1")
# They need quotes, or look as if they did.
ODD = ('say "hi", Bob', "a,b;c", "zwei\r\nZeilen", "Zoë \u202e\U0001f697", " x ", "'quoted")


def read(cells, delimiter=","):
    """Return the cells of rows of one cell each, as a program reads them that splits at a delimiter."""
    text = render_rows([cell] for cell in cells).decode()
    return [cell for line in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) for cell in line]


@pytest.mark.parametrize(("cells", "mark"), [(HOSTILE, "'"), (HARMLESS + ODD, "")], ids=["hostile", "harmless"])
def test_text_that_a_spreadsheet_would_run_is_defused_and_all_other_comes_back(cells, mark):
    assert read(cells) == [f"{mark}{cell}" for cell in cells]


@pytest.mark.parametrize("separator", [";", "\t"])
def test_no_part_of_text_is_a_formula_where_a_spreadsheet_splits_it(separator):
    lines = re.split(rf"[\r\n{separator}]", render_rows([cell] for cell in SPLIT + HOSTILE).decode())
    parts = [part.lstrip(' "\xa0\u200b\ufeff') for part in [*read(SPLIT + HOSTILE, separator), *lines]]
    assert [part for part in parts if part.startswith(("=", "+", "-", "@", "＝", "＋"))] == []


def test_all_text_is_quoted_and_nothing_else():
    assert render_rows([["Ann", None, 1, 0.1, True, "a;b\t"]]) == b'"Ann",,1,0.1,true,"a;b\t"\r\n'


def make_row(summary):
    """Return the row of a report, by the names of its columns."""
    return dict(zip(HEADER, row(make_driver("d1"), [], summary), strict=True))


@pytest.mark.parametrize(
    ("miles", "brakes", "rate"),
    # The largest of all numbers, where a rate would be larger.
    [(40.0, 7, 17.5), (0, 0, 0.0), (5e-324, 9, sys.float_info.max)],
)
def test_rates_are_events_of_a_hundred_miles(miles, brakes, rate):
    assert make_row(make_summary(miles=miles, hard_brake_count=brakes))["hard_brake_per_100_miles"] == rate


def test_amounts_have_the_decimals_that_mean_something_and_hours_stand_beside_seconds():
    cells = make_row({**make_summary(miles=16.06000001, phone_use_time_seconds=0.1 + 0.2), "duration_seconds": 5400})
    names = ("distance_miles", "duration_seconds", "duration_hours", "phone_use_time_seconds", "phone_use_time_hours")
    assert [cells[name] for name in names] == [16.06, 5400, 1.5, 0.3, 0.0]
    assert [HEADER[HEADER.index(name) + 1] for name in names[1::2]] == list(names[2::2])
