"""Figures of curves. They never simulate."""

import importlib.util
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keyhole.errors import LibraryMissing
from keyhole.lab.figures.canvas import new_figure, save_both
from keyhole.lab.figures.groups import draw_groups
from keyhole.lab.results import Axes, Curve

# Okabe & Ito: told apart by readers with any colour vision, and in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_ERRORS = 2.0
_MOST_IN_PLOT = 6
_STYLES = ("--", ":", "-.", (0, (1, 3)), (0, (6, 3)))
_LETTERS_PER_INCH = 15
"""Of the notes below a figure."""
_MOST_IN_A_ROW = 3
_MOST_INSIDE = 3


@dataclass(frozen=True)
class Panel:
    """One set of axes: curves, and bounds or closed forms as broken lines."""

    title: str
    curves: Sequence[Curve]
    lines: Sequence[Curve] = ()
    first_x: int = 1
    log_x: bool = False
    log_y: bool = False
    groups: Sequence[str] = ()
    """What the points of the curves are measured on, where they are not joined by lines."""
    measure: str = ""
    """What is measured here, where it is not the same in all panels."""


def check_figures() -> None:
    """Raise before anything is played or written where figures cannot be drawn."""
    if importlib.util.find_spec("matplotlib") is None:
        raise LibraryMissing("Figures need matplotlib", "figures")


def save_figure(
    folder: Path,
    name: str,
    title: str,
    panels: Sequence[Panel],
    axes: Axes,
    measure: str,
    notes: Sequence[str] = (),
) -> None:
    """Draw curves, with bands of two standard errors, as PNG and SVG; ``notes`` stand below."""
    n_columns = len(panels) if len(panels) <= _MOST_IN_A_ROW else 2
    n_rows = math.ceil(len(panels) / n_columns)
    beside = _legend_beside(panels)
    width = 5.6 * n_columns + (1.6 if beside else 0.4)
    figure = new_figure(folder, width, 3.9 * n_rows + 0.3)
    figure.suptitle(title, fontsize=12)
    below = [axes.better] if axes.better else []
    if any(len(curve.values) > 1 for panel in panels for curve in panel.curves):
        drawn = "bars" if any(panel.groups for panel in panels) else "bands"
        below.append(f"{drawn}: two standard errors over the runs")
    wrapped = [textwrap.fill(note, int(_LETTERS_PER_INCH * width)) for note in notes]
    text = "\n".join(["; ".join(below), *wrapped]).strip()
    figure.supxlabel(text, fontsize=8, color="0.4")
    entries: dict[str, Any] = {}
    for index, panel in enumerate(panels):
        plot = figure.add_subplot(n_rows, n_columns, index + 1)
        _draw(plot, panel, axes, panel.measure or measure)
        entries |= dict(zip(*plot.get_legend_handles_labels()[::-1], strict=True))
        if not beside:
            many = len(panel.curves) + len(panel.lines) > _MOST_IN_PLOT  # there is no room for them
            place: dict[str, Any] = {
                "loc": "upper center",
                "bbox_to_anchor": (0.5, -0.15),
                "ncols": 2,
            }
            plot.legend(frameon=False, fontsize=9, **(place if many else {}))
    if beside:
        handles, labels = list(entries.values()), list(entries)
        figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=9)
    save_both(figure, folder, name)


def _legend_beside(panels: Sequence[Panel]) -> bool:
    """Return whether one legend serves all panels, beside them: there it hides nothing."""
    curves = {tuple(curve.label for curve in panel.curves) for panel in panels}
    lines = {tuple(line.label for line in panel.lines) for panel in panels if panel.lines}
    if len(curves) > 1 or len(lines) > 1:
        return False
    n_names = sum(len(names) for group in (curves, lines) for names in group)
    return len(panels) > 1 or n_names > _MOST_INSIDE


def _draw(plot: Any, panel: Panel, axes: Axes, measure: str) -> None:
    colours = _cycle(len(panel.curves))
    if panel.groups:
        draw_groups(plot, panel.groups, panel.curves, colours)
    for colour, curve in [] if panel.groups else zip(colours, panel.curves, strict=True):
        shown = curve.x >= panel.first_x
        mean, error = curve.mean
        x, mean, error = curve.x[shown], mean[shown], error[shown]
        plot.plot(x, mean, color=colour, linewidth=1.6, label=curve.label)
        if not np.isnan(error).all():
            low, high = mean - _ERRORS * error, mean + _ERRORS * error
            plot.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
    for style, line in zip(_STYLES, panel.lines, strict=False):
        shown = line.x >= panel.first_x
        heights = line.values[0, shown]
        plot.plot(line.x[shown], heights, ls=style, color="0.3", lw=1.3, label=line.label)
    plot.set_xlabel(axes.x)
    plot.set_ylabel(f"{axes.y} ({measure})")
    if panel.title:
        plot.set_title(panel.title, fontsize=10)
    if panel.log_x:
        plot.set_xscale("log")
    if not panel.groups:
        plot.margins(x=0.0)
    if panel.log_y:
        plot.set_yscale("log")
    elif axes.from_zero:
        plot.set_ylim(bottom=min(0.0, *(curve.mean[0].min() for curve in panel.curves)))
    plot.grid(color="0.9", linewidth=0.6)
    plot.spines[["top", "right"]].set_visible(False)


def _cycle(n_colours: int) -> list[str]:
    return [COLOURS[index % len(COLOURS)] for index in range(n_colours)]
