"""Curves of single points that are measured on several things, drawn side by side."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from keyhole.lab.results import Curve
from keyhole.lab.study import CurveSpec, Study

_WIDTH = 0.7
_LONGEST = 16
"""Letters of a line of a group's name."""


def grouped(
    specs: Sequence[CurveSpec], curves: dict[str, Curve]
) -> tuple[tuple[str, ...], list[Curve]]:
    """Return the groups in their order, and one curve per name with a point for each group.

    A point that was not played is NaN.
    """
    played = [spec for spec in specs if spec.label in curves]
    groups = tuple(dict.fromkeys(spec.group for spec in played))
    joined = []
    for name in dict.fromkeys(spec.name for spec in played):
        own = {spec.group: curves[spec.label].values[:, 0] for spec in played if spec.name == name}
        n_runs = max(len(values) for values in own.values())
        table = np.full((n_runs, len(groups)), np.nan)
        for column, group in enumerate(groups):
            if group in own:
                table[: len(own[group]), column] = own[group]
        joined.append(Curve(name, np.arange(len(groups)), table))
    return groups, joined


def draw_groups(
    plot: Any, groups: Sequence[str], curves: Sequence[Curve], colours: Sequence[str]
) -> None:
    """Draw a point with two standard errors for each curve, side by side in each group."""
    step = _WIDTH / max(1, len(curves))
    for number, (curve, colour) in enumerate(zip(curves, colours, strict=True)):
        shift = step * (number - (len(curves) - 1) / 2)
        counts = np.sum(~np.isnan(curve.values), axis=0)
        known = counts > 0
        mean = np.nanmean(curve.values[:, known], axis=0)
        spread = np.nanstd(curve.values[:, known], axis=0, ddof=1) if counts.max() > 1 else 0 * mean
        error = 2.0 * spread / np.sqrt(counts[known])
        plot.errorbar(
            curve.x[known] + shift, mean, yerr=error, fmt="o", markersize=5, capsize=3,
            color=colour, label=curve.label,
        )  # fmt: skip
    # A long name goes on below its hyphens and words: else it would run into its neighbours.
    names = [textwrap.fill(group, _LONGEST, break_on_hyphens=False) for group in groups]
    plot.set_xticks(range(len(groups)), [name.replace("-", "-\n") for name in names])
    plot.set_xlim(-0.5, len(groups) - 0.5)


def table_of(study: Study, curves: dict[str, Curve], panel: str) -> list[list[str]]:
    """Return a panel's means and standard errors as rows of text, the first being the heads."""
    groups, joined = grouped(study.in_panel(panel), curves)
    rows = [["", *(curve.label for curve in joined)]]
    for column, group in enumerate(groups):
        cells = []
        for curve in joined:
            values = curve.values[:, column]
            values = values[~np.isnan(values)]
            error = f" ± {values.std(ddof=1) / len(values) ** 0.5:.2g}" if len(values) > 1 else ""
            cells.append(f"{values.mean():.4g}{error}" if len(values) else "")
        rows.append([group, *cells])
    return rows
