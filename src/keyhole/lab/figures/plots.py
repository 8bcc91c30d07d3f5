"""Results on axes of Matplotlib, from Python: one of them, or several compared."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from keyhole.base.errors import InvalidInput
from keyhole.lab.figures.canvas import HANDLE_LENGTH, new_axes
from keyhole.lab.figures.drawings import CurveDrawing, Drawing, EstimatesDrawing
from keyhole.lab.figures.estimates import draw_estimates
from keyhole.lab.figures.panels import (
    Panel,
    draw_panel,
    errors_are_bars,
    in_words,
    looks_in,
)

_CURVES_SIZE, _ESTIMATES_SIZE = (6.4, 4.2), (7.6, 3.8)


class Plottable(Protocol):
    """A result that can be plotted: the trace of a game, or the evaluation of a policy."""

    def drawing(self, label: str | None = None) -> Drawing:
        """Return what there is to draw, under a label of its own or a given one."""
        ...


def plot(
    *results: Plottable,
    ax: Any = None,
    labels: Sequence[str] | None = None,
    log_x: bool = False,
    log_y: bool = False,
) -> Any:
    """Draw traces of games, or evaluations of policies, on the same axes to compare them.

    Parameters
    ----------
    results
        Traces, or evaluations.
    ax
        Axes of Matplotlib to draw on. By default new ones of pyplot's, which notebooks show and
        ``pyplot.show()`` shows in a script; without a screen, ``ax.figure.savefig(…)`` keeps them.
    labels
        What a legend calls them; by default the names of the rankers or policies.
    log_x, log_y
        Logarithmic axes, of traces.

    Returns
    -------
    matplotlib.axes.Axes
        The axes, to change as you like.
    """
    if not results:
        raise InvalidInput("plot must be given at least one trace or evaluation, got none.")
    if labels is not None and len(labels) != len(results):
        raise InvalidInput(
            f"`labels` must have one label for each of the {len(results)} results, got "
            f"{len(labels)}."
        )
    for result in results:
        if not hasattr(result, "drawing"):
            raise InvalidInput(
                f"plot must be given traces or evaluations, got a {type(result).__name__}."
            )
    # Numbers stand for given labels until all is drawn: names of rankers would be written out.
    given = {f"given {number}": str(label) for number, label in enumerate(labels or ())}
    drawings: list[Any] = [
        result.drawing(label)
        for label, result in zip(given or [None] * len(results), results, strict=True)
    ]
    if all(isinstance(drawing, CurveDrawing) for drawing in drawings):
        return _draw_curves(drawings, ax, given, log_x=log_x, log_y=log_y)
    if all(isinstance(drawing, EstimatesDrawing) for drawing in drawings):
        return _draw_estimates(drawings, ax, given)
    raise InvalidInput("plot must be given traces or evaluations, got both.")


def _draw_curves(
    drawings: Sequence[CurveDrawing],
    ax: Any,
    given: Mapping[str, str],
    *,
    log_x: bool,
    log_y: bool,
) -> Any:
    axes = next(
        axes for axes in drawings[0].curves if all(axes in each.curves for each in drawings)
    )
    curves = [each.curves[axes] for each in drawings]
    named = zip(_told_apart([curve.label for curve in curves]), curves, strict=True)
    panel = Panel(
        "", [curve._replace(label=label) for label, curve in named], log_x=log_x, log_y=log_y
    )
    measures = {each.measure for each in drawings}
    measure = measures.pop() if len(measures) == 1 else ""
    ax = new_axes(*_CURVES_SIZE) if ax is None else ax
    draw_panel(ax, panel, axes, measure, looks_in([panel]), {}, bars=errors_are_bars([panel]))
    ax.set_xlabel(f"{axes.x}\n{in_words([panel], axes)}", fontsize=9)
    _add_legend(ax, given, fontsize=9, handlelength=HANDLE_LENGTH)
    return ax


def _draw_estimates(drawings: Sequence[EstimatesDrawing], ax: Any, given: Mapping[str, str]) -> Any:
    labels = _told_apart([each.estimates.label for each in drawings])
    drawn = [
        each.estimates._replace(label=label) for label, each in zip(labels, drawings, strict=True)
    ]
    ax = new_axes(*_ESTIMATES_SIZE) if ax is None else ax
    draw_estimates(ax, drawn, drawings[0].bounds, zero=True)
    ax.set_xlabel(f"reward per row\n{drawings[0].caption}", fontsize=9)
    _add_legend(ax, given, fontsize=8.5, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def _add_legend(ax: Any, given: Mapping[str, str], **how: Any) -> None:
    """Add a legend, in which what has a given label is called by it."""
    handles, names = ax.get_legend_handles_labels()
    for handle, name in zip(handles, names, strict=True):
        handle.set_label(given.get(name, name))
    ax.legend(handles, [handle.get_label() for handle in handles], frameon=False, **how)


def _told_apart(labels: Sequence[str]) -> list[str]:
    """Return labels of which no two are the same: those after the first are numbered."""
    seen: dict[str, int] = {}
    told = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        told.append(label if seen[label] == 1 else f"{label}, {seen[label]}")
    return told
