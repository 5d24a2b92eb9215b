"""The page of a report: its content for any fleet, and that it is harmless."""

import collections
import functools
import re
from html.parser import HTMLParser

import pytest

from schemas.report import MILES, UNITS
from schemas.summary import GRADES
from scripts.reports.content import Group, Row
from scripts.reports.page import compare_in_words, format_change, format_number, list_names, make_page
from tests.factories import MONTHLY, make_driver, make_figures, make_summary

VOID = {"meta", "link"}
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style></title><b>",
    "{{ 7 * 7 }} {% raw %}",
    "\u202eevil",
    "$\\frac{1}{0}$",
    "&lt;&#0;",
)


class Reader(HTMLParser):
    """A page, read: its elements in order and its text; an element that is not closed in its place is an error."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.elements, self.text, self._open = [], "", []
        self.feed(page.decode())
        self.close()
        assert self._open == []
        self.words = " ".join(self.text.split())

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open[-1:] != ["style"]:
            self.text += data

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


def drove(driver_id="d1", score=92.5, coach=(), **fields):
    return Row(make_driver(driver_id, **fields), make_summary(score, coach=coach))


DOUBTFUL = Row(make_driver("d2"), make_summary(21.0), is_doubtful=True)
GROUPS = {"North": Group(3, 2, make_summary(81.2, 1000.0), make_summary(79.9)), "Idle": Group(4), "\u200b": Group(1)}
GROUPS["New"] = Group(1, 1, make_summary(66.0, 5.0))
STAYED = Row(make_driver("d9", first_name="Noor"), None)
FLEETS = {
    "some drove": make_figures(drove("d1"), drove("d2", 31.0, ["is_phone_use"]), STAYED),
    "kilometres": make_figures(drove("d1")),
    "month": make_figures(drove("d1"), STAYED, drove=2, window=MONTHLY),
    "implausible trips": make_figures(drove("d1"), DOUBTFUL, implausible_trips=(2, 1)),
    "left out": make_figures(STAYED, implausible_trips=(1, 0), implausible_policy="left_out"),
    "groups": make_figures(drove(), groups=GROUPS),
    "insurance periods": make_figures(drove(), insurance_periods={"2": make_summary(81.2), "none": make_summary(99.9)}),
    "no drivers": make_figures(),
    "nobody drove": make_figures(STAYED),
    "nobody drove in the week before": make_figures(drove(), before=None),
    "more than the page has": make_figures(drove("d1"), STAYED, drivers=12_345),
    "some drove less": make_figures(drove(), drove=3),
    "nobody drove far": make_figures(drove(), drove=1, grades=dict.fromkeys(GRADES, 0), best=[], worst=[]),
    "no miles": make_figures(drove(), total=make_summary(100.0, 0, hard_brake_count=3), parts=[None] * 7),
    "hostile names": make_figures(
        *[drove(text[:128], alias=text) for text in HOSTILE],
        fleet="</style><b>",
        groups=dict.fromkeys(HOSTILE, Group(1)),
    ),
    "huge numbers": make_figures(
        Row(make_driver(), make_summary(0.0, 1.7e308, hard_brake_count=2**63 - 1)),
        total=make_summary(0.0, 5e-324, hard_brake_count=2**63 - 1),
        parts=[make_summary(0.0, 1.7e308)] * 7,
    ),
}


@functools.cache
def page_of(fleet):
    """Return the page of one of the fleets."""
    return make_page(FLEETS[fleet], UNITS["km" if fleet == "kilometres" else MILES])


@pytest.mark.parametrize("fleet", FLEETS)
def test_a_page_requests_nothing_and_runs_nothing(fleet):
    page = Reader(page_of(fleet))
    names = {attribute for _, attrs in page.elements for attribute in attrs}
    assert not {tag for tag, _ in page.elements} & {"script", "img", "iframe", "object", "form", "use", "image"}
    assert not {attribute for attribute in names if attribute.startswith(("on", "src"))}
    assert [attrs["href"] for attrs in page.all("link")] == ["data:,"]
    assert all(attrs["href"].startswith("../../../#/driver/") for attrs in page.all("a"))
    assert not re.search(r"://|url\(|@import|@font-face", page_of(fleet).decode())


@pytest.mark.parametrize("fleet", FLEETS)
def test_a_page_can_be_read_by_a_screen_reader(fleet):
    page = Reader(page_of(fleet))
    assert (len(page.all("h1")), len(page.all("title")), page.all("html")) == (1, 1, [{"lang": "en"}])
    ids = collections.Counter(attrs["id"] for _, attrs in page.elements if "id" in attrs)
    assert set(ids.values()) <= {1}
    assert {attrs["aria-labelledby"] for _, attrs in page.elements if "aria-labelledby" in attrs} <= set(ids)
    assert all(chart["role"] == "img" and chart["aria-label"] for chart in page.all("svg"))
    assert len(page.all("caption")) == len(page.all("table"))
    assert all("scope" in attrs for attrs in page.all("th"))


@pytest.mark.parametrize(
    ("fleet", "text"),
    [
        ("some drove", "Weekly driving report acme"),
        ("some drove", "Monday 9 November 2026 to Sunday 15 November 2026"),
        ("some drove", "Report for Monday 16 November 2026. Distances in miles."),
        ("some drove", "2 of 3 drivers drove 2,346 miles on 12 trips."),
        ("some drove", "The fleet’s score is 71.3, good: 1.2 up on the week before."),
        ("some drove", "Noor d9"),
        ("month", "Monthly driving report acme"),
        ("month", "Sunday 1 November 2026 to Monday 30 November 2026"),
        ("month", "1.2 up on the month before."),
        ("month", "1 driver drove less than 40 miles, too little to judge."),
        ("month", "Of a week that is also in another month, only the days in this month count."),
        ("month", "Sun 1 Novnobody drove Mon 2 – Sun 8 Nov65.0"),
        ("implausible trips", "Figures include 2 implausible trips, whose data look wrong. The operator"),
        ("implausible trips", "Figures of the week before include 1 implausible trip, whose data look wrong."),
        ("implausible trips", "d221.0data look wrong"),
        ("left out", "Figures leave out 1 implausible trip, whose data look wrong. Nobody drove in this week."),
        ("kilometres", "Report for Monday 16 November 2026. Distances in km."),
        ("kilometres", "1 of 1 driver drove 3,775 km on 12 trips."),
        ("kilometres", "Events per 100 km2.9"),
        ("kilometres", "12.4 per 100 km6.2 per 100 km"),
        ("groups", "North2 of 31,000.081.279.9+1.3"),
        ("groups", "New1 of 15.066.0nonenone"),
        ("groups", "Idle0 of 4nobody drove"),
        ("groups", 'Group "\\u200b"'),
        ("insurance periods", "Period 2"),
        ("insurance periods", "Without a period"),
        ("no drivers", "This fleet has no drivers."),
        ("nobody drove", "Nobody drove in this week."),
        ("nobody drove in the week before", "Nobody drove in the week before."),
        ("nobody drove in the week before", "1 of 1 driver drove"),
        ("some drove less", "2 drivers drove less than 10 miles, too little to judge."),
        ("nobody drove far", "1 driver drove less than 10 miles, too little to judge."),
        ("more than the page has", "The first 2 of 12,345 drivers by driver id"),
        ("more than the page has", "the CSV file of this report has 12,343 more"),
    ],
)
def test_a_page_says_in_words(fleet, text):
    assert text in Reader(page_of(fleet)).words


def test_the_text_alternatives_of_charts_contain_their_figures():
    labels = [chart["aria-label"] for chart in Reader(page_of("some drove")).all("svg")]
    assert labels[0].startswith("Drivers by score: 0 to 10 0; 10 to 20 0; 20 to 30 0; 30 to 40 1;")
    assert labels[1].startswith("Score of the fleet by day: Mon 9 Nov nobody drove; Tue 10 Nov 65.0;")
    assert labels[2].endswith("Sun 15 Nov 600.")
    assert "this week: Phone use 3.0; Overspeeding 0.0; Hard braking 1.7;" in labels[3]
    assert "the week before: Phone use 4.0; Overspeeding 0.0; Hard braking 1.5;" in labels[3]


def test_the_bars_of_charts_are_as_long_as_their_figures():
    bars = [(bar["width"], bar["height"]) for bar in Reader(page_of("some drove")).all("rect")]
    scores, days, distances, events = bars[:10], bars[10:17], bars[17:24], bars[24:]
    assert [float(height) for _, height in scores] == [0, 0, 0, 132, 0, 0, 0, 0, 0, 132]
    assert [float(height) for _, height in days] == [0, 85.8, 92.4, 99, 105.6, 112.2, 118.8]
    assert [float(height) for _, height in distances] == [0, 22, 44, 66, 88, 110, 132]
    assert [float(width) for width, _ in events] == [253.7, 0, 145, 0, 340, 0, 127.5, 0]


def test_hostile_names_are_text_and_nothing_else():
    plain = [f"Ada{number}" for number in range(len(HOSTILE))]
    fleets = [
        make_figures(*[drove(alias=name) for name in names], groups=dict.fromkeys(names, Group(1)))
        for names in (HOSTILE, plain)
    ]
    hostile, plain = (Reader(make_page(fleet, UNITS[MILES])) for fleet in fleets)
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in plain.elements]
    assert [text for text in HOSTILE if hostile.words.count(" ".join(text.split())) != 3] == []


@pytest.mark.parametrize(
    ("driver_id", "alias", "first_name", "last_name", "names"),
    [
        ("d1", "Van 1", "Ada", "By", ["Ada By", "Van 1", "d1"]),
        ("d1", " ", None, "By", ["By", "d1"]),
        ("d1", "d1", "\x00", "\u200b\u2800", ["d1"]),
        ("\u00ad", None, None, None, ['Driver "\\u00ad"']),
    ],
)
def test_a_driver_is_called_as_in_the_explorer_by_name_or_alias_or_id(driver_id, alias, first_name, last_name, names):
    assert list_names(make_driver(driver_id, alias=alias, first_name=first_name, last_name=last_name)) == names


@pytest.mark.parametrize(
    ("value", "text"), [(1234.56, "1,234.6"), (0, "0.0"), (2e9, "2.00e+09"), (1.7e308, "1.70e+308")]
)
def test_a_number_stays_short(value, text):
    assert format_number(value, 1) == text


@pytest.mark.parametrize(
    ("value", "before", "difference", "words"),
    [(71.3, 70.1, "+1.2", "1.2 up on"), (3.0, 4.04, "−1.0", "1.0 down on"), (3.04, 2.96, "0.0", "the same as")],
)
def test_a_change_is_that_of_the_figures_shown(value, before, difference, words):
    assert (format_change(value, before), compare_in_words(value, before)) == (difference, words)


def test_the_page_names_the_time_zone_of_its_days_and_when_it_was_built_there():
    text = Reader(make_page(make_figures(drove(), time_zone="America/Denver"), UNITS[MILES])).text
    assert text.count("America/Denver") == 2
    assert "Built on Sunday 15 November 2026 at 23:00" in text
    assert "UTC" not in text
