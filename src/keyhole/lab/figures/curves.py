"""Figures of curves; they never simulate."""

from keyhole.figures.canvas import check_figures
from keyhole.figures.panels import Panel
from keyhole.figures.sheets import save_figure

__all__ = ["Panel", "check_figures", "save_figure"]
