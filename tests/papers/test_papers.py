"""Papers are there, resumed, and judged by claims that can hold and fail."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from keyhole.lab.claims import CLAIMS, judge
from keyhole.lab.kinds import KINDS
from keyhole.lab.results import Curve
from keyhole.lab.run import reproduce
from keyhole.lab.study import find_study, list_studies, papers_folder


def test_every_paper_is_there():
    for key, study in list_studies().items():
        assert (papers_folder() / key / "README.md").read_text().startswith(f"# {key}")
        assert {claim["kind"] for claim in study.claims} <= set(CLAIMS)


def test_missing_data_is_skipped_with_a_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("KEYHOLE_DATA", str(tmp_path / "nothing"))
    study = find_study("ailon-thm3.1", quick=True)
    whole = [curve for curve in study.curves if curve.panel in ("skewed", "real")]
    claims = [claim for claim in study.claims if claim["text"].startswith(("skewed", "real"))]
    study = replace(study, curves=tuple(whole), claims=tuple(claims))
    result = reproduce(study, tmp_path / "out")
    assert result.holds
    names = ("Plackett-Luce", "QuickSort", "random")
    assert set(result.missing) == {f"travellers, {name}" for name in names}
    assert sum(verdict.holds is True for verdict in result.verdicts) == 4
    skipped = [verdict for verdict in result.verdicts if verdict.holds is None]
    assert len(skipped) == 4
    assert all("no data" in verdict.evidence for verdict in skipped)


def test_an_interrupted_reproduction_goes_on_where_it_was(tmp_path):
    study = find_study("thesis-fig3.2")
    real = KINDS["game"]
    played: list[int] = []

    def interrupted(label, game, report):
        if len(played) == 2:
            raise KeyboardInterrupt
        played.append(game.experiment.top)
        return real.play(label, game, report)

    study = replace(study, kind=replace(real, play=interrupted))
    with pytest.raises(KeyboardInterrupt):
        reproduce(study, tmp_path)
    assert not (tmp_path / "curves.csv").exists()
    resumed = []

    def noted(label, game, report):
        resumed.append(game.experiment.top)
        return real.play(label, game, report)

    study = replace(study, kind=replace(real, play=noted))
    result = reproduce(study, tmp_path)
    assert played == [1, 5]
    assert resumed == [10]
    assert result.n_resumed == 2
    fresh = reproduce(study, tmp_path / "fresh")
    for label, curve in result.curves.items():
        assert np.array_equal(curve.values, fresh.curves[label].values)


def _curve(label, *totals):
    rounds = np.array([10, 100])
    return Curve(label, rounds, np.array(totals, dtype=float) / rounds)


CURVES = {
    "low": _curve("low", [1, 2], [1, 2.2]),
    "high": _curve("high", [3, 90], [3, 91]),
}
LINES = {"line": _curve("line", [5, 50])}
SMALL = {"world": "hopeless", "items": 3, "top": 1}


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        ({"kind": "order", "curves": ["low", "high"], "at": 100}, True),
        ({"kind": "order", "curves": ["high", "low"], "at": 100}, False),
        ({"kind": "below", "curves": ["low", "high"], "from": 10}, True),
        ({"kind": "below", "curves": ["high", "low"], "from": 10}, False),
        ({"kind": "band", "curve": "low", "at": 100, "low": 0.02, "high": 0.022}, True),
        ({"kind": "band", "curve": "low", "at": 100, "low": 0.0, "high": 0.01}, False),
        ({"kind": "order", "curves": ["low", "high"], "by": 0.8}, True),
        ({"kind": "order", "curves": ["low", "high"], "by": 0.9}, False),
        ({"kind": "order", "curves": ["high", "low"], "by": -1.0}, True),
        ({"kind": "settles", "curve": "low", "from": 10, "growth": 1.2}, True),
        ({"kind": "settles", "curve": "high", "from": 10, "growth": 1.2}, False),
        ({"kind": "falls", "curve": "low", "from": 10, "factor": 0.5}, True),
        ({"kind": "falls", "curve": "high", "from": 10, "factor": 0.5}, False),
        ({"kind": "fraction", "curves": ["low", "high"], "factor": 0.1}, True),
        ({"kind": "fraction", "curves": ["low", "high"], "factor": 0.02}, False),
        ({"kind": "mostly", "curves": ["low", "high"], "share": 1.0}, True),
        ({"kind": "mostly", "curves": ["high", "low"], "share": 0.5}, False),
        ({"kind": "slope", "curve": "low", "high": 0.5}, True),
        ({"kind": "slope", "curve": "high", "high": 0.5}, False),
        ({"kind": "slope", "curves": ["low"], "high": 0.5}, True),
        ({"kind": "slope", "curves": ["low", "high"], "high": 0.5}, False),
        ({"kind": "over-line", "curves": ["high"], "line": "line", "from": 100}, True),
        ({"kind": "over-line", "curves": ["high"], "line": "line", "from": 10}, False),
        ({"kind": "over-line", "curves": ["high", "low"], "line": "line", "from": 100}, False),
        ({"kind": "refused", "rankers": ["ftpl", "hedge"], "game": SMALL}, True),
        ({"kind": "refused", "rankers": ["ftpl", "random"], "game": SMALL}, False),
        ({"kind": "under-line", "curve": "low", "line": "line"}, True),
        ({"kind": "under-line", "curve": "high", "line": "line"}, False),
        ({"kind": "on-line", "curve": "low", "line": "line", "errors": 3.0}, False),
        ({"kind": "on-line", "curve": "high", "line": "line", "errors": 1000.0}, True),
    ],
)
def test_every_kind_of_claim_can_hold_and_fail(claim, holds):
    assert judge({"text": "claim", **claim}, CURVES, LINES, {}).holds is holds


def test_a_failed_claim_makes_the_command_fail(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from keyhole.cli.app import app

    folder = tmp_path / "papers" / "wrong"
    folder.mkdir(parents=True)
    source = papers_folder() / "thesis-fig3.2"
    (folder / "study.toml").write_text((source / "study.toml").read_text())
    claim = ["[[claim]]", 'text="x"', 'kind="order"', 'curves = ["k = 1", "k = 10"]', "at = 9999"]
    (folder / "expected.toml").write_text("\n".join(claim))
    monkeypatch.setattr("keyhole.lab.study.papers_folder", lambda: tmp_path / "papers")
    out = tmp_path / "out"
    result = CliRunner().invoke(app, ["reproduce", "wrong", "--out", str(out)])
    assert result.exit_code == 1
    assert "FAIL" in result.stdout
    assert Path(out / "verdicts.json").exists()
