"""Curves of single points that are measured on several things, as figures and tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from keyhole.base.errors import FloatArray
from keyhole.lab.results import Curve
from keyhole.lab.study import CurveSpec, Study


@dataclass(frozen=True)
class GroupCurve(Curve):
    """Values by run and group; those that were not played are NaN."""

    @property
    def mean(self) -> tuple[FloatArray, FloatArray]:
        counts = np.sum(~np.isnan(self.values), axis=0)
        mean, error = np.full((2, len(counts)), np.nan)
        known, several = counts > 0, counts > 1
        mean[known] = np.nanmean(self.values[:, known], axis=0)
        spread = np.nanstd(self.values[:, several], axis=0, ddof=1)
        error[several] = spread / np.sqrt(counts[several])
        return mean, error


def grouped(
    specs: Sequence[CurveSpec], curves: Mapping[str, Curve]
) -> tuple[tuple[str, ...], list[Curve]]:
    """Return the groups in their order, and one curve per name with a point for each group.

    A point that was not played is NaN.
    """
    played = [spec for spec in specs if spec.label in curves]
    groups = tuple(dict.fromkeys(spec.group for spec in played))
    joined: list[Curve] = []
    for name in dict.fromkeys(spec.name for spec in played):
        own = {spec.group: curves[spec.label].values[:, 0] for spec in played if spec.name == name}
        n_runs = max(len(values) for values in own.values())
        table = np.full((n_runs, len(groups)), np.nan)
        for column, group in enumerate(groups):
            if group in own:
                table[: len(own[group]), column] = own[group]
        ranker = next(spec.spec.ranker for spec in played if spec.name == name)
        joined.append(GroupCurve(name, np.arange(len(groups)), table, ranker))
    return groups, joined


def table_of(study: Study, curves: dict[str, Curve], panel: str) -> list[list[str]]:
    """Return a panel's means and standard errors as rows of text, the first being the heads."""
    groups, joined = grouped(study.in_panel(panel), curves)
    rows = [["", *(curve.label for curve in joined)]]
    for column, group in enumerate(groups):
        cells = []
        for curve in joined:
            values = curve.values[:, column]
            values = values[~np.isnan(values)]
            error = f" ± {values.std(ddof=1) / len(values) ** 0.5:.2g}" if len(values) > 1 else ""
            cells.append(f"{values.mean():.4g}{error}" if len(values) else "")
        rows.append([group, *cells])
    return rows
