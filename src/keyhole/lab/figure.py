"""Figures of regret curves. They never simulate."""

import importlib.util
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keyhole.errors import FloatArray, IntArray, KeyholeError
from keyhole.lab.results import Curve, write_atomically

# Okabe & Ito: told apart by readers with any colour vision, and in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_ERRORS = 2.0


class FiguresMissing(KeyholeError):
    """The plotting library is not installed."""


@dataclass(frozen=True)
class Line:
    """A bound or closed form, drawn as a dashed line: total regret at some rounds."""

    label: str
    rounds: IntArray
    regret: FloatArray


@dataclass(frozen=True)
class Panel:
    """One set of axes."""

    title: str
    curves: Sequence[Curve]
    lines: Sequence[Line] = ()
    first_round: int = 1
    log_rounds: bool = False
    log_regret: bool = False


def check_figures() -> None:
    """Raise before anything is played or written where figures cannot be drawn."""
    if importlib.util.find_spec("matplotlib") is None:
        raise FiguresMissing("Figures need matplotlib: install it with pip install 'keyhole[all]'.")


def save_figure(folder: Path, name: str, title: str, panels: Sequence[Panel], measure: str) -> None:
    """Draw average regret against rounds, with bands of two standard errors, as PNG and SVG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6 * len(panels) + 0.4, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=12)
    if any(len(curve.regret) > 1 for panel in panels for curve in panel.curves):
        figure.supxlabel("bands: two standard errors over the runs", fontsize=8, color="0.4")
    for index, panel in enumerate(panels):
        axes = figure.add_subplot(1, len(panels), index + 1)
        for colour, curve in zip(_cycle(len(panel.curves)), panel.curves, strict=True):
            shown = curve.rounds >= panel.first_round
            mean, error = curve.average
            rounds, mean, error = curve.rounds[shown], mean[shown], error[shown]
            axes.plot(rounds, mean, color=colour, linewidth=1.6, label=curve.label)
            if not np.isnan(error).all():
                low, high = mean - _ERRORS * error, mean + _ERRORS * error
                axes.fill_between(rounds, low, high, color=colour, alpha=0.2, linewidth=0)
        for style, line in zip(("--", ":", "-."), panel.lines, strict=False):
            shown = line.rounds >= panel.first_round
            rounds = line.rounds[shown]
            height = line.regret[shown] / rounds
            axes.plot(rounds, height, style, color="0.3", linewidth=1.3, label=line.label)
        axes.set_xlabel("round t")
        axes.set_ylabel(f"average regret up to t ({measure})")
        if panel.title:
            axes.set_title(panel.title, fontsize=10)
        if panel.log_rounds:
            axes.set_xscale("log")
        axes.margins(x=0.0)
        if panel.log_regret:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=min(0.0, *(c.average[0].min() for c in panel.curves)))
        axes.grid(color="0.9", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=9)
    for ending in ("png", "svg"):
        buffer = io.BytesIO()
        figure.savefig(buffer, format=ending, dpi=160)
        write_atomically(folder / f"{name}.{ending}", buffer.getvalue())


def _cycle(n_colours: int) -> list[str]:
    return [COLOURS[index % len(COLOURS)] for index in range(n_colours)]
