"""Points of many groups on one scale: each as a share of what one of the curves has there."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keyhole.base.errors import check_choice
from keyhole.contracts.rows import Look
from keyhole.lab.figures.canvas import LegendEntry, frame, new_figure
from keyhole.lab.figures.panels import ERRORS, Axes, Panel, dress, looks_in
from keyhole.lab.figures.styles import readable

_ROW = 0.27
"""Inches of a group."""
_EVEN = 0.5
"""Shares up to this, above and below 0, have an even scale; those beyond a logarithmic one."""
_TICKS = (-4, -2, -1, -0.5, -0.25, 0, 0.25, 0.5, 1, 2, 4)


def make_shares(folder: Path, title: str, panels: Sequence[Panel], unit: str, axes: Axes) -> Any:
    """Return a figure with a row per group: the values of all curves are shares of those of one.

    Panels stand below each other with one scale. Values of the unit must be positive; they are the
    line at 1. Bars are two standard errors over the runs, the unit's left out.
    """
    n_groups = [len(panel.groups) for panel in panels]
    figure = new_figure(folder, 9.6, 1.0 + _ROW * sum(n_groups) + 0.35 * len(panels))
    plots = figure.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=n_groups)
    check_choice(unit, "relative_to", [curve.label for panel in panels for curve in panel.curves])
    looks = looks_in(panels)
    for plot, panel in zip(plots[:, 0], panels, strict=True):
        _draw(plot, panel, unit, looks)
    last = plots[-1, 0]
    last.set_xscale("symlog", linthresh=_EVEN, linscale=1.6)
    last.margins(x=0.04)
    low, high = last.get_xlim()
    shown = [tick for tick in _TICKS if low <= tick <= high]
    last.set_xticks(shown, [f"{tick:g}" for tick in shown])
    last.minorticks_off()
    last.set_xlabel(f"{axes.y}, as a share of that of {unit}")
    found: dict[str, Any] = {}
    for plot in plots[:, 0]:
        found |= dict(zip(*plot.get_legend_handles_labels()[::-1], strict=True))
    caption = (
        f"{axes.better}; bars: two standard errors over the runs; all on the same users; at the "
        f"right: {axes.y} of {unit}; the scale is logarithmic beyond {_EVEN:g}"
    )
    frame(figure, title, caption, [LegendEntry(handle, label) for label, handle in found.items()])
    return figure


def _draw(plot: Any, panel: Panel, unit: str, looks: Mapping[str, Look]) -> None:
    whole = next(curve.mean[0] for curve in panel.curves if curve.label == unit)
    plot.axvline(0.0, color="0.3", linewidth=1.0)
    plot.axvline(1.0, color="0.3", linewidth=1.0, linestyle="--", label=unit)
    for curve in panel.curves:
        if curve.label != unit:
            look, (mean, error) = looks[curve.label], curve.mean
            plot.errorbar(
                mean / whole, curve.x, xerr=ERRORS * np.nan_to_num(error) / whole, fmt=look.mark,
                markersize=5.5, capsize=2.5, linewidth=1.2, color=look.colour,
                label=readable(curve.label),
            )  # fmt: skip
    for row, value in enumerate(whole):
        plot.annotate(
            f"{value:.3g}", (1.01, row), xycoords=("axes fraction", "data"), va="center",
            fontsize=7.5, color="0.4",
        )  # fmt: skip
    plot.set_yticks(range(len(panel.groups)), panel.groups, fontsize=9)
    plot.set_ylim(len(panel.groups) - 0.5, -0.5)
    if panel.title:
        plot.set_title(panel.title, fontsize=10, loc="left")
    dress(plot)
