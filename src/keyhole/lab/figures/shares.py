"""Points of many groups on one scale: each as a share of what one of the curves has there."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keyhole.errors import FloatArray, check_choice
from keyhole.lab.figures.canvas import new_figure, save_both
from keyhole.lab.figures.curves import COLOURS, Panel
from keyhole.lab.results import Axes, Curve

_MARKS = "osD^vP*X"
_ROW = 0.27
"""Inches of a group."""
_EVEN = 0.5
"""Shares up to this, above and below 0, have an even scale; those beyond a logarithmic one."""
_TICKS = (-4, -2, -1, -0.5, -0.25, 0, 0.25, 0.5, 1, 2, 4)


def save_shares(
    folder: Path, name: str, title: str, panels: Sequence[Panel], unit: str, axes: Axes
) -> None:
    """Draw a row per group, in which the values of all curves are shares of those of one.

    Panels stand below each other with one scale. Values of the unit must be positive; they are the
    line at 1. Bars are two standard errors over the runs, the unit's left out.
    """
    n_groups = [len(panel.groups) for panel in panels]
    figure = new_figure(folder, 10.0, 1.6 + _ROW * sum(n_groups) + 0.35 * len(panels))
    figure.suptitle(title, fontsize=12)
    plots = figure.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=n_groups)
    names = list(dict.fromkeys(curve.label for panel in panels for curve in panel.curves))
    check_choice(unit, "relative_to", names)
    looks = {
        label: (COLOURS[place % len(COLOURS)], _MARKS[place % len(_MARKS)])
        for place, label in enumerate(label for label in names if label != unit)
    }
    for plot, panel in zip(plots[:, 0], panels, strict=True):
        _draw(plot, panel, unit, looks)
    last = plots[-1, 0]
    last.set_xscale("symlog", linthresh=_EVEN, linscale=1.6)
    low, high = last.get_xlim()
    shown = [tick for tick in _TICKS if low <= tick <= high]
    last.set_xticks(shown, [f"{tick:g}" for tick in shown])
    last.set_xlabel(
        f"{axes.y}, as a share of that of {unit} (at the right), on the same users; logarithmic "
        f"beyond {_EVEN:g}; bars: two standard errors",
        fontsize=9,
    )
    entries: dict[str, Any] = {}
    for plot in plots[:, 0]:
        entries |= dict(zip(*plot.get_legend_handles_labels()[::-1], strict=True))
    figure.legend(
        list(entries.values()), list(entries), loc="outside lower center", ncols=4, frameon=False,
        fontsize=9,
    )  # fmt: skip
    save_both(figure, folder, name)


def _draw(plot: Any, panel: Panel, unit: str, looks: dict[str, tuple[str, str]]) -> None:
    whole = next(np.nanmean(c.values, axis=0) for c in panel.curves if c.label == unit)
    plot.axvline(0.0, color="0.3", linewidth=1.0)
    plot.axvline(1.0, color="0.3", linewidth=1.0, linestyle="--", label=unit)
    for curve in panel.curves:
        if curve.label != unit:
            colour, mark = looks[curve.label]
            mean, error = _mean_and_error(curve)
            plot.errorbar(
                mean / whole, curve.x, xerr=2.0 * error / whole, fmt=mark, markersize=5.5,
                capsize=2.5, linewidth=1.2, color=colour, label=curve.label,
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
    plot.grid(color="0.9", linewidth=0.6)
    plot.spines[["top", "right"]].set_visible(False)


def _mean_and_error(curve: Curve) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard error over the runs of each group, NaN where nothing was played."""
    counts = np.sum(~np.isnan(curve.values), axis=0)
    known = counts > 0
    mean, error = np.full(len(counts), np.nan), np.full(len(counts), np.nan)
    mean[known] = np.nanmean(curve.values[:, known], axis=0)
    several = counts > 1
    spread = np.nanstd(curve.values[:, several], axis=0, ddof=1)
    error[several] = spread / np.sqrt(counts[several])
    return mean, np.nan_to_num(error)
