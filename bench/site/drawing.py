"""Figures on disk, to the same bytes whenever they are drawn."""

import io
from pathlib import Path
from typing import Any

from matplotlib import rc_context

from keyhole.base.files import write_atomically


def save_svg(figure: Any, path: Path) -> int:
    """Write a figure as SVG and return how many bytes it has."""
    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": "keyhole"}):  # names in it are random without a salt
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    write_atomically(path, buffer.getvalue())
    return len(buffer.getvalue())
