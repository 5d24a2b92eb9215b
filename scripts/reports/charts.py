"""The charts of a report page, drawn by matplotlib as the content of an `svg` element.

Their text is SVG text in the page's font, large enough to read on a phone. Their colours are custom properties of the
page's style sheet, with values for light and dark. They have no ids, so that a page can have several charts. Do not
pass them names of drivers or fleets: matplotlib reads a `$` as the beginning of a formula.
"""

import io
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Lengths are in units of the SVG, which are about one CSS pixel on a phone.
WIDTH, TEXT_SIZE = 420, 13
COLUMNS_HEIGHT = 180
NAME_HEIGHT, BAR_HEIGHT, GAP = 20, 18, 12
POINTS_PER_INCH = 72
# The placeholder colour that matplotlib draws for each custom property of the page.
COLOURS = {"ink": "#000001", "line": "#000002", "bar": "#000003", "before": "#000004"}
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "font.size": TEXT_SIZE,
    "text.color": COLOURS["ink"],
    "xtick.labelcolor": COLOURS["ink"],
    "axes.edgecolor": COLOURS["line"],
}


class Chart(NamedTuple):
    """The content of an `svg` element, and its size."""

    drawing: str
    height: int
    width: int = WIDTH


def columns(shares: Sequence[float], labels: Sequence[str], names: Sequence[str]) -> Chart:
    """Return a column chart. `shares` are the heights, 0 to 1, and `labels` are above the columns.

    The names are below the columns. With one more name than columns, they are at the edges of the columns.
    """
    with matplotlib.style.context(STYLE, after_reset=True):
        figure, axes = _axes(COLUMNS_HEIGHT, top=22, bottom=26, left=14, right=14)
        axes.spines["bottom"].set_visible(True)
        axes.set(xlim=(0, len(shares)), ylim=(0, 1))
        centers = [index + 0.5 for index in range(len(shares))]
        drawn = axes.bar(centers, shares, width=0.7, color=COLOURS["bar"], clip_on=False)
        axes.bar_label(drawn, labels=labels, padding=3)
        axes.set_xticks(centers if len(names) == len(shares) else range(len(names)), labels=names)
        return Chart(_svg(figure), COLUMNS_HEIGHT)


def bars(shares: Sequence[Sequence[float]], labels: Sequence[Sequence[str]], names: Sequence[str]) -> Chart:
    """Return a bar chart of groups, one below the other, each with its name above it and labels at the end of its bars.

    `shares` are the lengths, 0 to 1, of one series of bars, or of two: this week and the week before.
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
            centers = [group * number + middle for number in range(len(names))]
            drawn = axes.barh(centers, shares[series], height=BAR_HEIGHT - 4, color=COLOURS[colour], clip_on=False)
            axes.bar_label(drawn, labels=labels[series], padding=5)
        return Chart(_svg(figure), height)


def _axes(height: int, *, top: int = 0, bottom: int = 0, left: int = 0, right: int = 0) -> tuple[Figure, Axes]:
    """Return a figure without lines and ticks. Margins are in units of the SVG."""
    figure = Figure(figsize=(WIDTH / POINTS_PER_INCH, height / POINTS_PER_INCH), frameon=False)
    inner_width, inner_height = WIDTH - left - right, height - top - bottom
    axes = figure.add_axes((left / WIDTH, bottom / height, inner_width / WIDTH, inner_height / height), frameon=True)
    axes.patch.set_visible(False)
    axes.spines[:].set_visible(False)
    axes.tick_params(bottom=False, left=False, labelleft=False)
    return figure, axes


def _svg(figure: Figure) -> str:
    output = io.StringIO()
    figure.savefig(output, format="svg")
    text = output.getvalue()
    # Omit the head: its style sheet would apply to the whole page, and its metadata has the current date.
    drawing = re.sub(r' id="[^"]*"', "", text[text.index('<g id="figure_1">') : text.rindex("</svg>")])
    for name, colour in COLOURS.items():
        drawing = drawing.replace(colour, f"var(--{name})")
    return drawing
