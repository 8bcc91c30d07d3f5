"""Figures of one or more panels, on disk."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keyhole.lab.figures.canvas import (
    HANDLE_LENGTH,
    LegendEntry,
    frame,
    n_legend_columns,
    new_figure,
    save_both,
    wrapped,
)
from keyhole.lab.figures.panels import (
    Axes,
    Panel,
    dashes_of,
    draw_panel,
    errors_are_bars,
    in_words,
    looks_in,
    set_heights,
)

_MOST_IN_A_ROW = 3
_MOST_GROUPS = 4
"""Groups of a panel that is one of three in a row."""
_MOST_INSIDE = 4
"""Names of a legend that stands inside the only panel."""
_SIZES = {1: (6.4, 3.9), 2: (4.9, 3.7), 3: (4.1, 3.4)}
"""Inches of a panel, by the number of panels in a row."""
_PANEL_TITLE = 10.0


def save_figure(
    folder: Path,
    name: str,
    title: str,
    panels: Sequence[Panel],
    axes: Axes,
    measure: str,
    notes: Sequence[str] = (),
) -> None:
    """Draw curves with two standard errors as PNG and SVG; ``notes`` stand below.

    Panels of one measure share their y axis, and a label looks the same in all of them.
    """
    save_both(make_figure(folder, title, panels, axes, measure, notes), folder, name)


def make_figure(
    folder: Path,
    title: str,
    panels: Sequence[Panel],
    axes: Axes,
    measure: str,
    notes: Sequence[str] = (),
) -> Any:
    """Return the figure that :func:`save_figure` writes."""
    n_columns = _n_columns(panels)
    n_rows = math.ceil(len(panels) / n_columns)
    width, height = _SIZES[n_columns]
    figure = new_figure(folder, width * n_columns, height * n_rows)
    looks, dashes, bars = looks_in(panels), dashes_of(panels), errors_are_bars(panels)
    plots = []
    for index, panel in enumerate(panels):
        plot = figure.add_subplot(n_rows, n_columns, index + 1)
        draw_panel(plot, panel, axes, panel.measure or measure, looks, dashes, bars=bars)
        if panel.title:
            plot.set_title(wrapped(panel.title, width - 0.8, _PANEL_TITLE), fontsize=_PANEL_TITLE)
        plots.append(plot)
    _share_heights(plots, panels, measure, n_columns)
    legend = _legend(plots)
    caption = "\n".join([in_words(panels, axes), *notes]).strip()
    if len(legend) == 1 and legend[0].label in title + plots[0].get_ylabel():
        legend = []
    elif len(panels) == 1 and len(legend) <= _MOST_INSIDE and not panels[0].groups:
        plots[0].legend(frameon=False, fontsize=9, handlelength=HANDLE_LENGTH)
        legend = []
    elif len(panels) < n_rows * n_columns:
        _fill_last_row(figure, n_rows, n_columns, len(panels), legend)
        legend = []
    frame(figure, title, caption, legend)
    return figure


def _fill_last_row(
    figure: Any, n_rows: int, n_columns: int, n_panels: int, legend: Sequence[LegendEntry]
) -> None:
    """Put the legend where the last row has room for further panels."""
    n_free = n_rows * n_columns - n_panels
    room = figure.add_subplot(n_rows, n_columns, (n_panels + 1, n_rows * n_columns))
    room.axis("off")
    labels = [entry.label for entry in legend]
    n_fit = n_legend_columns(labels, n_free * _SIZES[n_columns][0])
    room.legend(
        [entry.handle for entry in legend], labels, loc="center", ncols=n_fit, frameon=False,
        fontsize=9, handlelength=HANDLE_LENGTH,
    )  # fmt: skip


def _n_columns(panels: Sequence[Panel]) -> int:
    """Return how many panels stand in a row: four are two and two, and names need room."""
    many_names = any(len(panel.groups) > _MOST_GROUPS for panel in panels)
    most = 2 if many_names or len(panels) == 4 else _MOST_IN_A_ROW
    return min(len(panels), most)


def _share_heights(
    plots: Sequence[Any], panels: Sequence[Panel], measure: str, n_columns: int
) -> None:
    """Give panels that are compared one y axis, named once in a row."""
    kinds = [(panel.measure or measure, panel.log_y, panel.scale) for panel in panels]
    for kind in dict.fromkeys(kinds):
        alike = [plot for plot, own in zip(plots, kinds, strict=True) if own == kind]
        ranges = [plot.get_ylim() for plot in alike]
        for plot in alike:
            set_heights(plot, min(low for low, _ in ranges), max(high for _, high in ranges))
    for index in range(1, len(plots)):
        if index % n_columns and kinds[index] == kinds[index - 1]:
            plots[index].set_ylabel("")


def _legend(plots: Sequence[Any]) -> list[LegendEntry]:
    """Return one entry for every name in any panel: curves first, then bounds."""
    found: dict[str, Any] = {}
    for plot in plots:
        for handle, label in zip(*plot.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    entries = [LegendEntry(handle, label) for label, handle in found.items()]
    return sorted(entries, key=lambda entry: _is_bound(entry.handle))


def _is_bound(handle: Any) -> bool:
    return hasattr(handle, "get_marker") and handle.get_marker() in ("None", None)
