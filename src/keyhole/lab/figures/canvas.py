"""Empty figures, and finished ones on disk."""

import io
from pathlib import Path
from typing import Any

from keyhole.files import write_atomically


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure of some inches, which needs no screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_both(figure: Any, folder: Path, name: str) -> None:
    """Write a figure as PNG and SVG."""
    for ending in ("png", "svg"):
        buffer = io.BytesIO()
        figure.savefig(buffer, format=ending, dpi=160)
        write_atomically(folder / f"{name}.{ending}", buffer.getvalue())
