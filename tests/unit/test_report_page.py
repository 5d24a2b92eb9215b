"""The page of a weekly report: its content for any fleet, and that it is harmless."""

import collections
import dataclasses
import functools
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import scripts
from schemas.trip import EventSummary
from scripts.reports.figures import Row
from scripts.reports.page import (
    EVENTS,
    compare_in_words,
    format_change,
    format_number,
    get_display_name,
    make_page,
    rate,
)
from tests.factories import make_driver, make_figures, make_summary

VOID = {"meta", "link"}
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style></title><b>",
    "{{ 7 * 7 }} {% raw %}",
    "\u202eevil",
    "W" * 128,
    "👩‍👩‍👧‍👦",
    "Z" + "\u0301" * 60,
    "$\\frac{1}{0}$",
    "&lt;&#0;",
)


class Reader(HTMLParser):
    """A page, read: its elements in order and its text; an element that is not closed in its place is an error."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.elements, self.text, self._open = [], [], []
        self.feed(page.decode())
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open[-1:] != ["style"]:
            self.text.append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]

    @property
    def words(self):
        return " ".join("".join(self.text).split())


def drove(driver_id="d1", score=92.5, coach=(), **fields):
    return Row(make_driver(driver_id, **fields), make_summary(score, coach=coach))


STAYED = Row(make_driver("d9", first_name="Noor"), None)
FLEETS = {
    "some drove": make_figures(drove("d1"), drove("d2", 31.0, ["is_phone_use"]), STAYED),
    "no drivers": make_figures(),
    "nobody drove": make_figures(STAYED),
    "nobody drove in the week before": make_figures(drove(), before=None),
    "no miles": make_figures(drove(), total=make_summary(100.0, 0, hard_brake_count=3), days=[None] * 7),
    "one driver": make_figures(drove()),
    "hostile names": make_figures(*[drove(text[:128], alias=text) for text in HOSTILE], fleet="</style><b>"),
    "huge numbers": make_figures(
        Row(make_driver(), make_summary(0.0, 1.7e308, hard_brake_count=2**63 - 1)),
        total=make_summary(0.0, 5e-324, hard_brake_count=2**63 - 1),
        days=[make_summary(0.0, 1.7e308)] * 7,
    ),
}


@functools.cache
def page_of(fleet):
    """Return the page of one of the fleets."""
    return make_page(FLEETS[fleet])


@pytest.fixture(scope="module", params=FLEETS)
def page(request):
    return Reader(page_of(request.param))


def test_a_page_has_one_heading_a_language_and_a_title(page):
    assert [tag for tag, _ in page.elements].count("h1") == 1
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("title")) == 1


def test_a_page_requests_nothing_and_runs_nothing(page):
    names = {attribute for _, attrs in page.elements for attribute in attrs}
    assert not {tag for tag, _ in page.elements} & {"script", "img", "iframe", "object", "a", "form", "use", "image"}
    assert not {attribute for attribute in names if attribute.startswith(("on", "src"))}
    assert [attrs["href"] for _, attrs in page.elements if "href" in attrs] == ["data:,"]


@pytest.mark.parametrize("fleet", FLEETS)
def test_a_page_names_no_address(fleet):
    text = page_of(fleet).decode()
    assert not re.search(r"://|url\(|@import|@font-face", text)


def test_ids_are_unique_and_every_reference_has_its_target(page):
    ids = collections.Counter(attrs["id"] for _, attrs in page.elements if "id" in attrs)
    assert set(ids.values()) <= {1}
    assert {attrs["aria-labelledby"] for _, attrs in page.elements if "aria-labelledby" in attrs} <= set(ids)


def test_every_chart_has_a_text_alternative(page):
    charts = page.all("svg")
    assert all(chart["role"] == "img" and len(chart["aria-label"]) > 50 for chart in charts)


def test_every_table_has_a_caption_and_every_heading_a_scope(page):
    tags = [tag for tag, _ in page.elements]
    assert tags.count("caption") == tags.count("table")
    assert all("scope" in attrs for attrs in page.all("th"))


@pytest.mark.parametrize("fleet", ["some drove", "hostile names"])
def test_the_same_figures_give_the_same_bytes(fleet):
    assert page_of(fleet) == make_page(dataclasses.replace(FLEETS[fleet]))


def test_a_page_names_the_fleet_and_its_week():
    words = Reader(page_of("some drove")).words
    for text in (
        "Weekly driving report acme",
        "Monday 9 November 2026 to Sunday 15 November 2026",
        "Report for Monday 16 November 2026. Distances in miles.",
        "2 of 3 drivers drove 2,346 miles on 12 trips. The fleet’s score is 71.3, good: 1.2 up on the week before.",
    ):
        assert text in words


def test_the_text_alternatives_of_charts_contain_their_figures():
    labels = [chart["aria-label"] for chart in Reader(page_of("some drove")).all("svg")]
    assert labels[0].startswith("Drivers by score: 0 to 10 0; 10 to 20 0; 20 to 30 0; 30 to 40 1;")
    assert labels[1].startswith("Score of the fleet by day: Mon 9 Nov nobody drove; Tue 10 Nov 65.0;")
    assert labels[2].endswith("Sun 15 Nov 600.")
    assert "this week: Phone use 3.0; Speeding 0.0; Hard braking 1.7;" in labels[3]
    assert "the week before: Phone use 4.0; Speeding 0.0; Hard braking 1.5;" in labels[3]


def test_a_chart_has_its_text_as_text_and_the_pages_colours():
    text = page_of("some drove").decode()
    charts = "".join(re.findall("<svg.*?</svg>", text, re.DOTALL))
    assert ">Tue 10</text>" in charts
    assert "var(--bar)" in charts
    assert not re.search("#[0-9a-f]{6}|<style|<defs", charts)


def test_hostile_names_are_text_and_nothing_else():
    fleets = [make_figures(*[drove(alias=name) for name in names]) for names in (HOSTILE, ["Ada"] * len(HOSTILE))]
    hostile, plain = (Reader(make_page(fleet)) for fleet in fleets)
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in plain.elements]
    assert [text for text in HOSTILE if " ".join(text.split()) not in hostile.words] == []


@pytest.mark.parametrize(
    ("fields", "called"),
    [
        ({"alias": "Van 1", "first_name": "Ada", "last_name": "Byron"}, "Van 1"),
        ({"first_name": "Ada", "last_name": "Byron"}, "Ada Byron"),
        ({"first_name": "Ada"}, "Ada"),
        ({"alias": " ", "last_name": "Byron"}, "Byron"),
        ({"alias": "", "first_name": "\x00"}, "d1"),
        ({}, "d1"),
    ],
)
def test_the_expected_drivers_are_shown(fields, called):
    assert get_display_name(make_driver("d1", **fields)) == called


def test_the_driver_id_stands_beside_a_name():
    assert "Noor d9" in Reader(make_page(FLEETS["nobody drove"])).words


@pytest.mark.parametrize(
    ("fleet", "text"),
    [
        ("no drivers", "This fleet has no drivers."),
        ("nobody drove", "Nobody drove in these seven days."),
        ("nobody drove in the week before", "Nobody drove in the week before."),
        ("one driver", "1 of 1 driver drove"),
        ("some drove", "nobody drove"),
    ],
)
def test_a_page_without_data_says_so(fleet, text):
    assert text in Reader(make_page(FLEETS[fleet])).words


def test_of_more_than_500_drivers_the_page_says_how_many_are_left_out_and_stays_small():
    rows = [drove(f"driver-{number:04}", number % 100, ["is_phone_use", "is_hard_brake"]) for number in range(500)]
    page = make_page(make_figures(*rows, drivers=12_345))
    assert "The first 500 of 12,345 drivers by driver id; the CSV file of this report has 11,845 more" in (
        Reader(page).words
    )
    assert len(page) < 600_000


def test_every_behaviour_has_a_name():
    assert set(EVENTS) == {field for field in EventSummary().fields if field.endswith("_count")}


@pytest.mark.parametrize(
    ("count", "base", "expected"), [(3, 200, 1.5), (3, 0, 0.0), (2**63, 5e-324, sys.float_info.max)]
)
def test_a_rate_is_finite(count, base, expected):
    assert rate(count, base) == expected


@pytest.mark.parametrize(
    ("value", "places", "text"), [(1234.56, 1, "1,234.6"), (0, 0, "0"), (2e9, 1, "2.00e+09"), (1.7e308, 0, "1.70e+308")]
)
def test_a_number_stays_short(value, places, text):
    assert format_number(value, places) == text


@pytest.mark.parametrize(
    ("value", "before", "difference", "words"),
    [(71.3, 70.1, "+1.2", "1.2 up on"), (3.0, 4.04, "−1.0", "1.0 down on"), (3.04, 3.0, "0.0", "the same as")],
)
def test_a_change_is_that_of_the_figures_shown(value, before, difference, words):
    assert (format_change(value, before), compare_in_words(value, before)) == (difference, words)


def test_commands_that_draw_nothing_do_not_load_matplotlib():
    code = "import sys, scripts.cli, scripts.reports.page; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def schemes():
    """Return the page's colours by their names: of the light page and of the dark one."""
    style = (Path(scripts.__file__).parent / "reports" / "page.css").read_text()
    return [
        dict(re.findall(r"--(\w+): (#[0-9a-f]+);", block)) for block in re.findall(r"--paper: .*?\}", style, re.DOTALL)
    ]


def contrast(one, other):
    """Return the contrast of two colours, 1 to 21, as WCAG 2 has it."""

    def luminance(colour):
        digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
        parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", schemes(), ids=["light", "dark"])
def test_text_and_charts_stand_out_from_the_page(colours):
    assert min(contrast(colours[text], colours["paper"]) for text in ("ink", "quiet", "bar")) >= 4.5
    assert min(contrast(colours[shape], colours["paper"]) for shape in ("before", "warm")) >= 3
