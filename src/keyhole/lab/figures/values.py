"""The figure of an evaluation: values with their lower bounds. It estimates nothing."""

from pathlib import Path
from typing import Any

from keyhole.lab.figures.canvas import LegendEntry, frame, new_figure, save_both, wrapped
from keyhole.lab.figures.drawings import estimates_of
from keyhole.lab.figures.estimates import draw_estimates
from keyhole.lab.figures.styles import looks_of
from keyhole.offline.bounds import BOUNDS
from keyhole.offline.report import Evaluation

_WIDTH, _HEIGHT = 11.0, 3.9
_PANEL_TITLE = 10.0


def save_values(folder: Path, name: str, evaluation: Evaluation) -> None:
    """Draw both policies and their difference, each estimate with its bounds, as PNG and SVG."""
    save_both(make_values(folder, evaluation), folder, name)


def make_values(folder: Path, evaluation: Evaluation) -> Any:
    """Return the figure that :func:`save_values` writes."""
    figure = new_figure(folder, _WIDTH, _HEIGHT)
    values, difference = figure.subplots(1, 2, sharey=True)
    drawn = [estimates_of(*each, evaluation.decided_by) for each in evaluation.compared]
    looks = looks_of((each.label, "") for each in drawn)
    hidden = draw_estimates(values, drawn[:2], tuple(BOUNDS), looks)
    hidden += draw_estimates(difference, drawn[2:], tuple(BOUNDS), looks, zero=True)
    values.set_xlabel("reward per row")
    difference.set_xlabel("difference of rewards per row (deciding bound above 0: promote)")
    for plot, title in ((values, "both policies"), (difference, drawn[2].label)):
        plot.set_title(wrapped(title, 0.4 * _WIDTH, _PANEL_TITLE), fontsize=_PANEL_TITLE)
    legend = [LegendEntry(*each) for each in zip(*values.get_legend_handles_labels(), strict=True)]
    title = f"{drawn[0].label} against {drawn[1].label}: {evaluation.verdict}"
    frame(figure, title, _caption(evaluation, hidden), legend)
    return figure


def _caption(evaluation: Evaluation, hidden: list[str]) -> str:
    out_of_view = [bound for bound in BOUNDS if bound in hidden]
    return (
        f"filled: estimates; lines: down to the {evaluation.decided_by} bound, which decides; "
        f"hollow: one-sided {evaluation.confidence:.0%} lower bounds, {evaluation.n_rows:,} rows"
        + (f"; far below and out of view: {', '.join(out_of_view)}" if out_of_view else "")
    )
