"""What figures, frames and sessions show of results, taken apart into texts and numbers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from keyhole import Flips, play, ranker
from keyhole.offline.evaluation import evaluate
from tests.outputs.leaves import Output


@contextmanager
def kept_figures() -> Iterator[list[Any]]:
    """Keep the figures that are saved, once each; none is drawn, which takes most of the time."""
    figures: list[Any] = []

    def keep(figure: Any, buffer: Any, **_: Any) -> None:
        if figure not in figures:
            figures.append(figure)
        buffer.write(b"a figure")

    with patch("matplotlib.figure.Figure.savefig", keep):
        yield figures


def shown_by(figure: Any) -> dict[str, Any]:
    """Return the texts and points of a figure; ticks are where Matplotlib puts them."""
    return {
        "texts": [text.get_text() for text in figure.texts],
        "legends": [entry.get_text() for each in figure.legends for entry in each.get_texts()],
        "panels": [_panel(axes) for axes in figure.axes],
    }


def _panel(axes: Any) -> dict[str, Any]:
    legend = axes.get_legend()
    return {
        "title": axes.get_title(),
        "labels": [axes.get_xlabel(), axes.get_ylabel()],
        "legend": [] if legend is None else [entry.get_text() for entry in legend.get_texts()],
        "texts": [text.get_text() for text in axes.texts],
        "x": [x for line in axes.lines for x in np.asarray(line.get_xdata(), float).tolist()],
        "y": [y for line in axes.lines for y in np.asarray(line.get_ydata(), float).tolist()],
        "spread": [
            float(y)
            for shape in axes.collections
            for path in shape.get_paths()
            for y in path.vertices[:, 1]
        ],
    }


def of_sessions(log: Any) -> Iterator[Output]:
    """Yield what Python shows: a frame, a figure, and results as a session prints them."""
    world = Flips(4, n_relevant=2, flip=0.3)
    trace = play(
        ranker("epsilon-greedy", n_items=4, k=2), world, rounds=45, runs=3, seed=6,
        measure="SumLoss", n_points=7,
    )  # fmt: skip
    frame = trace.to_frame().to_dict("records")
    yield Output("Trace.to_frame", frame)
    yield Output("Trace", _described(trace))
    yield Output("Trace.plot", _panel(trace.plot()))
    judged = evaluate(log, "uniform", "logged", confidence=0.9, seed=2)
    yield Output("Evaluation", _described(judged))
    yield Output("Evaluation.plot", _panel(judged.plot()))
    yield Output("Judged", _described(judged.policy))
    yield Output("Line", _described(judged.policy.lines["importance-weighted"]))


def _described(thing: Any) -> dict[str, str]:
    """Return what a session shows of a thing, row by row."""
    told = thing._described()
    return {"title": told.title, **dict(told.rows)}
