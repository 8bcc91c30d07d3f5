"""Empty figures, their frames, and finished ones on disk."""

import atexit
import importlib.util
import io
import logging
import os
import shutil
import tempfile
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keyhole.base.errors import LibraryMissing
from keyhole.base.files import write_atomically

_TITLE, _LEGEND, _CAPTION = 12.0, 9.0, 8.0
"""Sizes of letters, in points."""
_LETTER = 0.56
"""Width of a letter, as a share of its size: a little more than that of the usual font."""
_LINE = 1.35
"""Height of a line, as a share of the size of its letters."""
_PAD = 0.08
HANDLE_LENGTH = 3.6
"""Of the sample of a line in a legend, in letters: dashes must show beside the mark."""
_HANDLE = 0.75
"""Inches of the sample of a line in a legend, with the space around it."""
POINTS_PER_INCH = 72.0


def check_figures() -> None:
    """Raise before anything is played or written where figures cannot be drawn."""
    if importlib.util.find_spec("matplotlib") is None:
        raise LibraryMissing("Figures need matplotlib", "figures")


def new_figure(folder: Path, width: float, height: float) -> Any:
    """Return an empty figure of some inches, which needs no screen and will be in a folder."""
    _import_matplotlib(folder)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def new_axes(width: float, height: float) -> Any:
    """Return empty axes that belong to pyplot, so that notebooks and ``show`` show them."""
    check_figures()
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def _import_matplotlib(folder: Path) -> None:
    """Import matplotlib, which must have a folder of its own that it can write to.

    Where there is not even a temporary one, it gets one within the folder of the figure.
    """
    try:
        tempfile.gettempdir()
    except OSError:
        own = tempfile.mkdtemp(dir=folder, prefix=".matplotlib-")
        atexit.register(shutil.rmtree, own, ignore_errors=True)
        os.environ["MPLCONFIGDIR"] = own
    log = logging.getLogger("matplotlib")
    before = log.level
    log.setLevel(logging.ERROR)  # where its folder is not is no news to those who want a figure
    try:
        import matplotlib  # noqa: F401
    finally:
        log.setLevel(before)


class LegendEntry(NamedTuple):
    """One row of a legend."""

    handle: Any
    label: str


def wrapped(text: str, inches: float, size: float) -> str:
    """Return a text in lines that fit a width at a size of letters in points."""
    n_letters = max(12, int(inches * POINTS_PER_INCH / (size * _LETTER)))
    return "\n".join(textwrap.fill(line, n_letters) for line in text.splitlines())


def frame(figure: Any, title: str, caption: str = "", legend: Sequence[LegendEntry] = ()) -> None:
    """Put a title above what a figure shows, and below it a legend and then a caption.

    The figure grows by what they need; what it shows keeps its size.
    """
    width, height = figure.get_size_inches()
    top, above = wrapped(title, width - 2 * _PAD, _TITLE), 0.0
    if top:
        above = _height(top, _TITLE) + _PAD
    bottom = wrapped(caption, width - 2 * _PAD, _CAPTION)
    below = _height(bottom, _CAPTION) + _PAD if bottom else 0.0
    n_columns = n_legend_columns([entry.label for entry in legend], width)
    n_rows = -(-len(legend) // n_columns)
    of_legend = (n_rows * _LEGEND * 1.5) / POINTS_PER_INCH + _PAD if legend else 0.0
    whole = height + above + below + of_legend
    figure.set_size_inches(width, whole)
    held = (0.0, (below + of_legend) / whole, 1.0, height / whole)
    figure.get_layout_engine().set(rect=held)
    if top:
        figure.text(
            0.5, 1.0 - _PAD / whole, top, ha="center", va="top", fontsize=_TITLE, gid="title"
        )
    if bottom:
        figure.text(
            0.5, _PAD / whole, bottom, ha="center", va="bottom", fontsize=_CAPTION, color="0.35"
        )
    if legend:
        figure.legend(
            [entry.handle for entry in legend],
            [entry.label for entry in legend],
            loc="lower center",
            bbox_to_anchor=(0.5, below / whole),
            ncols=n_columns,
            frameon=False,
            fontsize=_LEGEND,
            borderaxespad=0.2,
            handlelength=HANDLE_LENGTH,
        )


def n_legend_columns(labels: Sequence[str], inches: float) -> int:
    """Return how many columns of a legend fit a width: as many as make its rows even."""
    longest = max((len(label) for label in labels), default=0)
    column = longest * _LEGEND * _LETTER / POINTS_PER_INCH + _HANDLE
    fit = max(1, int(inches / column))
    n_rows = -(-len(labels) // fit)
    return -(-len(labels) // max(1, n_rows)) or 1


def _height(text: str, size: float) -> float:
    return (text.count("\n") + 1) * size * _LINE / POINTS_PER_INCH


def save_both(figure: Any, folder: Path, name: str) -> None:
    """Write a figure as PNG and SVG, to the same bytes whenever it is drawn."""
    from matplotlib import rc_context

    for ending, metadata in (("png", None), ("svg", {"Date": None})):
        buffer = io.BytesIO()
        with rc_context({"svg.hashsalt": "keyhole"}):  # names in it are random without a salt
            figure.savefig(buffer, format=ending, dpi=160, metadata=metadata)
        write_atomically(folder / f"{name}.{ending}", buffer.getvalue())
