"""Play descriptions and reproduce studies."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import keyhole
from keyhole.errors import check_choice
from keyhole.game import play
from keyhole.lab.claims import Verdict, judge
from keyhole.lab.figure import Line, Panel, check_figures, save_figure
from keyhole.lab.lines import LINES
from keyhole.lab.results import CellStore, Curve, check_folder, curves_csv, plain, write_atomically
from keyhole.lab.spec import BuiltGame, DataMissing, build
from keyhole.lab.study import CurveSpec, Study
from keyhole.trace import Trace

Progress = Callable[[str, int], None]
"""Called with the label of a curve and the number of rounds just played."""


def play_game(game: BuiltGame, progress: Callable[[int], None] | None = None) -> Trace:
    """Play what a description names."""
    spec = game.spec
    return play(
        game.ranker,
        game.world,
        reveal=game.reveal,
        measure=game.measure,
        rounds=spec.rounds,
        seed=spec.seed,
        runs=spec.runs,
        same_users=spec.same_users,
        comparator=spec.comparator,
        n_points=spec.points,
        progress=progress,
    )


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


def reproduce(study: Study, folder: Path, progress: Progress | None = None) -> Reproduction:
    """Play the curves of a study that are not finished yet, then draw and judge them all.

    Finished curves are kept in ``folder``/cells, so an interrupted reproduction goes on
    where it was.
    """
    check_figures()
    check_folder(folder)
    cells = CellStore(folder / "cells")
    curves: dict[str, Curve] = {}
    missing: dict[str, str] = {}
    n_resumed = 0
    for spec in study.curves:
        key = {"study": study.key, "label": spec.label, "game": spec.game.as_dict()}
        try:
            game = build(spec.game)
        except DataMissing as error:
            missing[spec.label] = f"no data: {error}"
            continue
        finished = cells.load(key, spec.label)
        if finished is None:
            finished = Curve.of(spec.label, play_game(game, _reporter(spec, progress)))
            cells.save(key, finished)
        else:
            n_resumed += 1
            if progress is not None:
                progress(spec.label, spec.game.rounds * spec.game.runs)
        curves[spec.label] = finished
    lines = _lines(study, curves)
    verdicts = tuple(judge(claim, curves, lines, missing) for claim in study.claims)
    result = Reproduction(study, curves, missing, verdicts, n_resumed)
    _write(result, lines, folder)
    return result


def _reporter(spec: CurveSpec, progress: Progress | None) -> Callable[[int], None] | None:
    return None if progress is None else lambda n_rounds: progress(spec.label, n_rounds)


def _lines(study: Study, curves: dict[str, Curve]) -> dict[str, Line]:
    lines = {}
    for spec in study.lines:
        check_choice(spec.kind, f"kind of line {spec.label!r}", LINES)
        beside = [curves[label] for label in study.labels(spec.panel) if label in curves]
        if beside:
            rounds = max(beside, key=lambda curve: int(curve.rounds[-1])).rounds
            lines[spec.label] = Line(spec.label, rounds, LINES[spec.kind](rounds, **spec.options))
    return lines


def _write(result: Reproduction, lines: dict[str, Line], folder: Path) -> None:
    study = result.study
    panels = []
    for panel in study.panels:
        shown = [label for label in study.labels(panel.name) if label in result.curves]
        if shown:
            panels.append(
                Panel(
                    panel.title,
                    [result.curves[label] for label in shown],
                    [lines[s.label] for s in study.lines if s.panel == panel.name],
                    panel.first_round,
                    panel.log_rounds,
                    panel.log_regret,
                )
            )
    measure = study.curves[0].game.measure
    write_atomically(folder / "curves.csv", curves_csv(list(result.curves.values())))
    write_atomically(folder / "verdicts.json", _record(result))
    save_figure(folder, study.key, study.title, panels, measure)


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
        "games": {curve.label: curve.game.as_dict() for curve in result.study.curves},
    }
    return (json.dumps(plain(record), indent=2) + "\n").encode()
