"""Reproduce studies: play their curves, judge, draw and write them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import keyhole
from keyhole.base.files import check_folder, plain, write_atomically
from keyhole.experiment.inputs import DataMissing
from keyhole.lab.bound_lines import LINES, options_of_line
from keyhole.lab.claims import Verdict, judge
from keyhole.lab.figures.canvas import check_figures, save_both
from keyhole.lab.figures.studies import make_study_figure
from keyhole.lab.kinds import Report
from keyhole.lab.result_store import ResultStore
from keyhole.lab.results import Curve, curves_csv
from keyhole.lab.study import CurveSpec, LineSpec, Study

Progress = Callable[[str, int], None]
"""Called with the label of a curve and the amount of work just done."""
_NO_DATA = "no data: "


@dataclass(frozen=True)
class Reproduction:
    """What came of reproducing a study."""

    study: Study
    curves: dict[str, Curve]
    missing: dict[str, str]
    verdicts: tuple[Verdict, ...]
    n_resumed: int

    @property
    def holds(self) -> bool:
        """Whether no claim failed."""
        return all(verdict.holds is not False for verdict in self.verdicts)

    @property
    def without_data(self) -> tuple[Verdict, ...]:
        """What could not be judged, as a data set is not on this machine."""
        return tuple(each for each in self.verdicts if each.evidence.startswith(_NO_DATA))


def reproduce(study: Study, folder: Path, progress: Progress | None = None) -> Reproduction:
    """Play the curves of a study that are not finished yet, then draw and judge them all.

    Finished curves are kept in ``folder``/cells, so an interrupted reproduction goes on
    where it was.
    """
    check_figures()
    check_folder(folder)
    for line in study.lines:  # what cannot be drawn is refused before anything is played
        _options(line, study.in_panel(line.panel))
    store = ResultStore(folder / "cells")
    curves: dict[str, Curve] = {}
    missing = dict(study.left_out)
    n_resumed = 0
    for curve in study.curves:
        try:
            built = study.kind.build(curve.spec)
        except DataMissing as error:
            missing[curve.label] = f"{_NO_DATA}{error}"
            continue
        key = {"study": study.key, "label": curve.label, "played": built.key}
        finished = store.load(key, partial(Curve.of_dict, curve.label))
        if finished is None:
            finished = study.kind.play(curve.label, built, _reporter(curve, progress))
            store.save(key, finished.as_dict())
        else:
            n_resumed += 1
            if progress is not None:
                progress(curve.label, curve.spec.work)
        curves[curve.label] = finished
    lines = _lines(study, curves)
    verdicts = tuple(judge(claim, curves, lines, missing) for claim in study.claims)
    result = Reproduction(study, curves, missing, verdicts, n_resumed)
    _write(result, lines, folder)
    return result


def _reporter(curve: CurveSpec, progress: Progress | None) -> Report:
    return None if progress is None else lambda work: progress(curve.label, work)


def _lines(study: Study, curves: dict[str, Curve]) -> dict[str, Curve]:
    lines = {}
    for spec in study.lines:
        beside = [each for each in study.in_panel(spec.panel) if each.label in curves]
        if beside:
            played = [curves[each.label] for each in beside]
            x = max(played, key=lambda curve: int(curve.x[-1])).x
            values = LINES[spec.kind](x, **_options(spec, beside))
            lines[spec.label] = Curve(spec.label, x, values[np.newaxis])
    return lines


def _options(line: LineSpec, beside: list[CurveSpec]) -> dict[str, Any]:
    specs = [curve.spec for curve in beside]
    return options_of_line(line.kind, line.label, line.options, specs)


def _write(result: Reproduction, lines: dict[str, Curve], folder: Path) -> None:
    study = result.study
    axes = study.kind.axes(study.curves[0].spec.measure)
    write_atomically(folder / "curves.csv", curves_csv(list(result.curves.values()), axes))
    write_atomically(folder / "verdicts.json", _record(result))
    if result.curves:  # without any data set there is nothing to draw
        save_both(make_study_figure(folder, study, result.curves, lines), folder, study.key)


def _record(result: Reproduction) -> bytes:
    record = {
        "key": result.study.key,
        "paper": result.study.paper,
        "version": keyhole.__version__,
        "holds": result.holds,
        "verdicts": [
            {"claim": v.claim, "holds": v.holds, "evidence": v.evidence} for v in result.verdicts
        ],
        "missing": result.missing,
        "curves": {curve.label: curve.spec.as_dict() for curve in result.study.curves},
    }
    return (json.dumps(plain(record), indent=2) + "\n").encode()
