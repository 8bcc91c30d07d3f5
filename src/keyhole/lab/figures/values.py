"""The figure of an evaluation: values with their lower bounds. It estimates nothing."""

import math
from pathlib import Path
from typing import Any

from keyhole.lab.figures.canvas import new_figure, save_both
from keyhole.lab.figures.curves import COLOURS
from keyhole.offline.bounds import BOUNDS
from keyhole.offline.gate import Evaluation, Line

_MARKS = "|x^odv+*p"
"""Marks of the bounds, in their order."""


def save_values(folder: Path, name: str, evaluation: Evaluation) -> None:
    """Draw both policies and their difference, each estimate with its bounds, as PNG and SVG."""
    figure = new_figure(folder, 12.4, 4.4)
    compared = f"{evaluation.policy.name} against {evaluation.baseline.name}"
    figure.suptitle(f"{compared}: {evaluation.verdict}", fontsize=12)
    figure.supxlabel(
        f"squares: estimates; lines: down to the {evaluation.decided_by} bound, which decides; "
        f"one-sided {evaluation.confidence:.0%} bounds, {evaluation.n_rows:,} rows; bounds far "
        f"below the others are out of view",
        fontsize=8,
        color="0.4",
    )
    values, difference = figure.subplots(1, 2)
    for offset, colour, judged in (
        (-0.16, COLOURS[0], evaluation.policy),
        (0.16, COLOURS[1], evaluation.baseline),
    ):
        _draw(values, judged.lines, offset, colour, judged.name, evaluation.decided_by)
    values.set_title("reward per row", fontsize=10)
    _draw(difference, evaluation.difference, 0.0, COLOURS[2], "", evaluation.decided_by)
    difference.axvline(0.0, color="0.3", linewidth=1.0, linestyle="--")
    difference.set_title(f"{evaluation.policy.name} minus {evaluation.baseline.name}", fontsize=10)
    marks = [
        difference.plot(
            [], [], mark, color="0.3", linestyle="", markersize=6, fillstyle="none", label=bound
        )[0]
        for bound, mark in zip(BOUNDS, _MARKS, strict=False)
    ]
    who = values.get_legend_handles_labels()[0]
    figure.legend(handles=[*who, *marks], loc="outside right center", frameon=False, fontsize=9)
    _limit(values, [*evaluation.policy.lines.values(), *evaluation.baseline.lines.values()])
    _limit(difference, list(evaluation.difference.values()), also=0.0)
    save_both(figure, folder, name)


def _limit(axes: Any, lines: list[Line], also: float | None = None) -> None:
    """Show all estimates and bounds but Bernstein's, which can be far below all others."""
    shown = [line.estimate.value for line in lines] + ([] if also is None else [also])
    for line in lines:
        shown += [
            bound.value
            for name, bound in line.bounds.items()
            if bound.value is not None and name != "empirical-bernstein"
        ]
    shown = [value for value in shown if math.isfinite(value)]
    margin = 0.06 * (max(shown) - min(shown)) or 1.0
    axes.set_xlim(min(shown) - margin, max(shown) + margin)


def _draw(
    axes: Any, lines: dict[str, Line], offset: float, colour: str, label: str, decided_by: str
) -> None:
    for row, line in enumerate(lines.values()):
        height, value = row + offset, line.estimate.value
        shown = label if row == 0 else None
        axes.plot(value, height, "s", color=colour, markersize=6, label=shown)
        bound = line.bounds[decided_by].value
        if bound is not None:
            axes.plot([bound, value], [height, height], color=colour, linewidth=2.4, alpha=0.8)
        for each, mark in zip(BOUNDS, _MARKS, strict=False):
            found = line.bounds[each].value
            if found is not None:
                axes.plot(found, height, mark, color=colour, markersize=7, fillstyle="none")
    axes.set_yticks(range(len(lines)), list(lines))
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.grid(color="0.9", linewidth=0.6, axis="x")
    axes.spines[["top", "right"]].set_visible(False)
