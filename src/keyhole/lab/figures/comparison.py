"""The figure of a comparison: curves, and how much worse than the best each ranker is."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keyhole.lab.figures.canvas import new_figure, save_both
from keyhole.lab.figures.curves import COLOURS
from keyhole.lab.paired import BEST, PairedVerdict
from keyhole.lab.results import Axes, Curve

_STYLES = ("-", "--", ":", "-.")
_NOT_JUDGED = "0.55"
_DRAWN_FROM = 0.001
"""Share of the rounds before which curves are noise."""
_MOST_ON_ONE_SCALE = 30.0
"""How many times the middle gap the largest may be before small ones cannot be seen."""


def save_comparison(
    folder: Path,
    name: str,
    title: str,
    curves: Sequence[Curve],
    axes: Axes,
    measure: str,
    verdict: PairedVerdict,
) -> None:
    """Draw curves from best to worst beside their gaps to the best, as PNG and SVG."""
    looks = _looks([curve.label for curve in curves], verdict)
    figure = new_figure(folder, 12.4, max(4.2, 1.9 + 0.33 * len(curves)))
    figure.suptitle(title, fontsize=12)
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1.0))
    _draw_curves(left, curves, axes, measure, looks)
    _draw_gaps(right, verdict, looks)
    left.legend(frameon=False, fontsize=8.5)
    beside = "" if len(curves) == len(verdict.gaps) else "; grey: sees more and is not judged"
    figure.supxlabel(
        f"{axes.better + '; ' if axes.better else ''}bands: two standard errors over "
        f"{verdict.n_runs} runs on the same users; bars: {verdict.confidence:.0%} for all "
        f"{verdict.n_pairs} pairs at once{beside}",
        fontsize=8,
        color="0.4",
    )
    save_both(figure, folder, name)


def _looks(labels: Sequence[str], verdict: PairedVerdict) -> dict[str, dict[str, Any]]:
    """Return colour and style of each curve; those that are not judged are grey."""
    judged = [label for label in labels if label in verdict.gaps]
    looks: dict[str, dict[str, Any]] = {}
    for number, label in enumerate(judged):
        style = _STYLES[number // len(COLOURS) % len(_STYLES)]
        looks[label] = {"color": COLOURS[number % len(COLOURS)], "linestyle": style}
    beside = [label for label in labels if label not in verdict.gaps]
    for number, label in enumerate(beside):
        looks[label] = {"color": _NOT_JUDGED, "linestyle": _STYLES[(number + 1) % len(_STYLES)]}
    return looks


def _draw_curves(
    plot: Any, curves: Sequence[Curve], axes: Axes, measure: str, looks: dict[str, dict[str, Any]]
) -> None:
    for curve in curves:
        late = curve.x >= curve.x[-1] * _DRAWN_FROM
        mean, error = (values[late] for values in curve.mean)
        look = looks[curve.label]
        plot.plot(curve.x[late], mean, linewidth=1.6, label=curve.label, **look)
        if len(curve.values) > 1:
            low, high = mean - 2.0 * error, mean + 2.0 * error
            plot.fill_between(curve.x[late], low, high, color=look["color"], alpha=0.18, lw=0)
    plot.set_xscale("log")
    plot.set_xlabel(axes.x)
    plot.set_ylabel(f"{axes.y} ({measure})")
    plot.margins(x=0.0)
    plot.grid(color="0.9", linewidth=0.6)
    plot.spines[["top", "right"]].set_visible(False)


def _draw_gaps(plot: Any, verdict: PairedVerdict, looks: dict[str, dict[str, Any]]) -> None:
    names = list(verdict.gaps)
    for row, (name, gap) in enumerate(verdict.gaps.items()):
        colour = looks[name]["color"]
        if math.isfinite(gap.low):
            plot.plot([gap.low, gap.high], [row, row], color=colour, linewidth=2.0)
        plot.plot(gap.mean, row, "o", color=colour, markersize=6)
        said = BEST if gap.standing == BEST else f"+{gap.mean:.4f}\n{gap.standing}"
        plot.annotate(
            said, (1.01, row), xycoords=("axes fraction", "data"), va="center", fontsize=7.5,
            color="0.25",
        )  # fmt: skip
    sizes = sorted(gap.mean for gap in verdict.gaps.values())
    middle = sizes[len(sizes) // 2]
    if middle > 0.0 and sizes[-1] > _MOST_ON_ONE_SCALE * middle:
        plot.set_xscale("symlog", linthresh=middle)
    else:
        plot.locator_params(axis="x", nbins=6)
    plot.axvline(0.0, color="0.3", linewidth=1.0, linestyle="--")
    plot.set_yticks(range(len(names)), names, fontsize=9)
    plot.set_ylim(len(names) - 0.5, -0.5)
    plot.set_xlabel(f"worse than {verdict.best} by")
    plot.grid(color="0.9", linewidth=0.6, axis="x")
    plot.spines[["top", "right"]].set_visible(False)
