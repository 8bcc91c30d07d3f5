"""The figure of a comparison: curves, and how much worse than the best each ranker is."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keyhole.contracts.rows import Look
from keyhole.lab.figures.canvas import LegendEntry, frame, new_figure, save_both
from keyhole.lab.figures.panels import (
    Axes,
    Panel,
    draw_panel,
    dress,
    errors_are_bars,
    in_words,
    looks_in,
)
from keyhole.lab.figures.styles import readable
from keyhole.lab.paired import BEST, PairedVerdict
from keyhole.lab.results import Curve

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
    save_both(make_comparison(folder, title, curves, axes, measure, verdict), folder, name)


def make_comparison(
    folder: Path,
    title: str,
    curves: Sequence[Curve],
    axes: Axes,
    measure: str,
    verdict: PairedVerdict,
) -> Any:
    """Return the figure that :func:`save_comparison` writes."""
    panel = Panel("", curves, log_x=True)
    looks = looks_in([panel])
    figure = new_figure(folder, 11.0, max(3.8, 1.2 + 0.36 * len(verdict.gaps)))
    left, right = figure.subplots(1, 2, width_ratios=(1.2, 1.0))
    draw_panel(left, panel, axes, measure, looks, {}, bars=errors_are_bars([panel]))
    _draw_gaps(right, verdict, looks)
    left.set_title("as rounds go by", fontsize=10)
    right.set_title("in the end", fontsize=10)
    beside = "" if len(curves) == len(verdict.gaps) else "; who sees more is not judged"
    caption = (
        f"left: {in_words([panel], axes)}; {verdict.n_runs} runs, on the same users\n"
        f"right: {verdict.confidence:.0%} intervals for all {verdict.n_pairs} pairs at once{beside}"
    )
    legend = [LegendEntry(*each) for each in zip(*left.get_legend_handles_labels(), strict=True)]
    frame(figure, title, caption, legend)
    return figure


def _draw_gaps(plot: Any, verdict: PairedVerdict, looks: Mapping[str, Look]) -> None:
    for row, (name, gap) in enumerate(verdict.gaps.items()):
        look = looks[name]
        if math.isfinite(gap.low):
            plot.plot([gap.low, gap.high], [row, row], color=look.colour, linewidth=2.0)
        plot.plot(gap.mean, row, look.mark, color=look.colour, markersize=6.5)
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
        plot.locator_params(axis="x", nbins=5)
    plot.axvline(0.0, color="0.3", linewidth=1.0, linestyle="--")
    plot.set_yticks(range(len(verdict.gaps)), [readable(name) for name in verdict.gaps], fontsize=9)
    plot.set_ylim(len(verdict.gaps) - 0.5, -0.5)
    plot.set_xlabel(f"worse than {readable(verdict.best)} by")
    dress(plot)
    plot.grid(visible=False, axis="y")
