"""The charts of a report page, drawn by matplotlib as what stands within an `svg` element.

Their text stays text, in the page's font, and large enough for the width of a phone. Their colours are custom
properties of the page's style sheet, which follow light and dark. Nothing in them has an id or refers to one, so that
any number of them stands on one page. They show numbers and words of this project alone: matplotlib would take a `$` in
a name for the beginning of a formula.
"""

import io
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Lengths are in the units of the SVG: pixels on a phone.
WIDTH, TEXT_SIZE = 420, 13
COLUMNS_HEIGHT = 180
NAME_HEIGHT, BAR_HEIGHT, GAP = 20, 18, 12
POINTS_PER_INCH = 72
# matplotlib knows colours by number alone: what it draws for each custom property of the page.
COLOURS = {"ink": "#000001", "line": "#000002", "bar": "#000003", "before": "#000004"}
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "font.size": TEXT_SIZE,
    "text.color": COLOURS["ink"],
    "xtick.labelcolor": COLOURS["ink"],
    "axes.edgecolor": COLOURS["line"],
}


class Chart(NamedTuple):
    """What stands within an `svg` element of this size."""

    drawing: str
    height: int
    width: int = WIDTH


def columns(shares: Sequence[float], figures: Sequence[str], names: Sequence[str]) -> Chart:
    """Return columns, each with its figure above it; `shares` are of the full height, 0 to 1.

    The names stand below their columns; of one name more than there are columns, at the columns' edges.
    """
    with matplotlib.style.context(STYLE, after_reset=True):
        figure, axes = _axes(COLUMNS_HEIGHT, top=22, bottom=26, left=14, right=14)
        axes.spines["bottom"].set_visible(True)
        axes.set(xlim=(0, len(shares)), ylim=(0, 1))
        places = [place + 0.5 for place in range(len(shares))]
        drawn = axes.bar(places, shares, width=0.7, color=COLOURS["bar"], clip_on=False)
        axes.bar_label(drawn, labels=figures, padding=3)
        axes.set_xticks(places if len(names) == len(shares) else range(len(names)), labels=names)
        return Chart(_svg(figure), COLUMNS_HEIGHT)


def bars(shares: Sequence[Sequence[float]], figures: Sequence[Sequence[str]], names: Sequence[str]) -> Chart:
    """Return groups of bars, one below the other, each with its name above and its bars' figures at their ends.

    `shares` are of the full width, 0 to 1: one series, or two, of which the second is the one to compare with.
    """
    group = NAME_HEIGHT + BAR_HEIGHT * len(shares) + GAP
    height = group * len(names)
    with matplotlib.style.context(STYLE, after_reset=True):
        figure, axes = _axes(height, right=80)
        axes.set(xlim=(0, 1), ylim=(height, 0))
        for number, name in enumerate(names):
            axes.text(0, group * number + NAME_HEIGHT - 5, name)
        for series, colour in enumerate(("bar", "before")[: len(shares)]):
            middle = NAME_HEIGHT + BAR_HEIGHT * (series + 0.5)
            places = [group * number + middle for number in range(len(names))]
            drawn = axes.barh(places, shares[series], height=BAR_HEIGHT - 4, color=COLOURS[colour], clip_on=False)
            axes.bar_label(drawn, labels=figures[series], padding=5)
        return Chart(_svg(figure), height)


def _axes(height: int, *, top: int = 0, bottom: int = 0, left: int = 0, right: int = 0) -> tuple[Figure, Axes]:
    """Return a figure without lines and ticks, with these margins."""
    figure = Figure(figsize=(WIDTH / POINTS_PER_INCH, height / POINTS_PER_INCH), frameon=False)
    across, up = WIDTH - left - right, height - top - bottom
    axes = figure.add_axes((left / WIDTH, bottom / height, across / WIDTH, up / height), frameon=True)
    axes.patch.set_visible(False)
    axes.spines[:].set_visible(False)
    axes.tick_params(bottom=False, left=False, labelleft=False)
    return figure, axes


def _svg(figure: Figure) -> str:
    written = io.StringIO()
    figure.savefig(written, format="svg")
    text = written.getvalue()
    # Left out: the head, whose style sheet would hold for the whole page, and the date in its metadata.
    drawing = re.sub(r' id="[^"]*"', "", text[text.index('<g id="figure_1">') : text.rindex("</svg>")])
    for name, colour in COLOURS.items():
        drawing = drawing.replace(colour, f"var(--{name})")
    return drawing
