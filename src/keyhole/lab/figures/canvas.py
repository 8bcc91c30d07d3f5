"""Empty figures, and finished ones on disk."""

import atexit
import io
import logging
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from keyhole.files import write_atomically


def new_figure(folder: Path, width: float, height: float) -> Any:
    """Return an empty figure of some inches, which needs no screen and will be in a folder."""
    _import_matplotlib(folder)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


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


def save_both(figure: Any, folder: Path, name: str) -> None:
    """Write a figure as PNG and SVG, to the same bytes whenever it is drawn."""
    from matplotlib import rc_context

    for ending, metadata in (("png", None), ("svg", {"Date": None})):
        buffer = io.BytesIO()
        with rc_context({"svg.hashsalt": "keyhole"}):  # names in it are random without a salt
            figure.savefig(buffer, format=ending, dpi=160, metadata=metadata)
        write_atomically(folder / f"{name}.{ending}", buffer.getvalue())
