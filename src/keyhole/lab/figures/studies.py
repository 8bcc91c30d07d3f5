"""The figure of a study: its panels, as its description wants them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from keyhole.lab.figures.groups import grouped
from keyhole.lab.figures.layout import make_figure
from keyhole.lab.figures.panels import Panel
from keyhole.lab.figures.shares import make_shares
from keyhole.lab.results import Curve
from keyhole.lab.study import PanelSpec, Study


def make_study_figure(
    folder: Path, study: Study, curves: Mapping[str, Curve], lines: Mapping[str, Curve]
) -> Any:
    """Return the figure of those curves of a study that there are, and of its bounds, by label."""
    found = [_panel(study, panel, curves, lines) for panel in study.panels]
    panels = [panel for panel in found if panel.curves]
    measure = study.curves[0].spec.measure
    axes = study.kind.axes(measure)
    if study.relative_to:
        return make_shares(folder, study.title, panels, study.relative_to, axes)
    return make_figure(folder, study.title, panels, axes, measure)


def _panel(
    study: Study, panel: PanelSpec, curves: Mapping[str, Curve], lines: Mapping[str, Curve]
) -> Panel:
    drawn = [curve for curve in study.in_panel(panel.name) if curve.label in curves]
    groups: tuple[str, ...] = ()
    if study.is_grouped:
        groups, shown = grouped(drawn, curves)
    else:
        shown = [replace(curves[c.label], label=c.name, ranker=c.spec.ranker) for c in drawn]
    return Panel(
        panel.title,
        shown,
        [
            replace(lines[line.label], label=line.name)
            for line in study.lines
            if line.panel == panel.name and line.label in lines
        ],
        panel.first_x,
        panel.log_x,
        panel.log_y,
        [study.names.get(group, group) for group in groups],
        drawn[0].spec.measure if drawn else "",
        panel.scale,
    )
