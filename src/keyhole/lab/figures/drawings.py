"""What results show of themselves: a trace its curves, an evaluation its estimates."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from keyhole.base.errors import FloatArray
from keyhole.game.trace import Trace, mean_and_error
from keyhole.lab.figures.estimates import Estimated, Estimates
from keyhole.lab.figures.panels import REGRET, Axes, Points, score_axes
from keyhole.lab.figures.styles import ranker_name
from keyhole.offline.bounds import BOUNDS
from keyhole.offline.report import Evaluation, Line


class CurveDrawing(NamedTuple):
    """A curve by what it may show, the best first: those compared show what all of them can."""

    curves: Mapping[Axes, Points]
    measure: str = ""


class EstimatesDrawing(NamedTuple):
    """Estimates with lower bounds, the one that decides, and what a caption says of them."""

    estimates: Estimates
    bounds: Sequence[str]
    caption: str


Drawing = CurveDrawing | EstimatesDrawing


def of_trace(trace: Trace, label: str | None) -> CurveDrawing:
    """Return the curves of a trace."""
    spec: dict[str, Any] = json.loads(str(trace.states[0]["spec"]))
    shown = ranker_name(spec["name"], spec.get("k")) if label is None else label

    def points(values: FloatArray) -> Points:
        return Points(shown, trace.rounds, mean_and_error(values / trace.rounds), spec["name"])

    curves = {score_axes(trace.is_loss): points(trace.scores)}
    if not np.isnan(trace.regret).any():
        curves = {REGRET: points(trace.regret), **curves}
    return CurveDrawing(curves, trace.measure)


def of_evaluation(evaluation: Evaluation, label: str | None) -> EstimatesDrawing:
    """Return the difference of both policies, with its lower bounds."""
    names, difference = evaluation.compared[2]
    caption = (
        f"above 0: better than the baseline; lines go down to the {evaluation.decided_by} bound, "
        f"which decides\nmarks: one-sided {evaluation.confidence:.0%} lower bounds"
    )
    shown = names if label is None else label
    estimates = estimates_of(shown, difference, evaluation.decided_by)
    return EstimatesDrawing(estimates, tuple(BOUNDS), caption)


def estimates_of(label: str, lines: Mapping[str, Line], decided_by: str) -> Estimates:
    """Return estimates with their bounds as they are drawn, down to the bound that decides."""
    rows = {}
    for name, line in lines.items():
        bounds = {key: bound.value for key, bound in line.bounds.items()}
        known = {key: value for key, value in bounds.items() if value is not None}
        rows[name] = Estimated(line.estimate.value, bounds[decided_by], known)
    return Estimates(label, rows)
