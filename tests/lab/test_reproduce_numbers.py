"""A study reproduced: its files, verdicts and exit code from its games played by hand."""

import csv
import json
from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput
from keyhole.bounds import keystone
from keyhole.experiment.description import Experiment
from keyhole.lab.figures import studies
from keyhole.lab.figures.panels import REGRET
from keyhole.lab.results import Curve, summary
from keyhole.lab.run import _lines, reproduce
from keyhole.lab.study import read_study
from tests.lab.running import run, said

pytestmark = pytest.mark.interpreted

STUDY = """
kind = "game"
title = "A study"
paper = "None"
about = "nothing"
[game]
ranker = "random"
items = 4
measure = "SumLoss"
runs = 3
seed = 5
points = 6
[quick]
rounds = 12
[[panel]]
name = "one"
[[panel]]
name = "two"
from = 3
log_x = true
[[curve]]
label = "short"
panel = "one"
rounds = 20
[[curve]]
label = "long"
panel = "one"
ranker = "epsilon-greedy"
rounds = 30
[[curve]]
label = "other"
panel = "two"
rounds = 25
[[line]]
label = "bound"
panel = "one"
kind = "top-k-bound"
items = 4
top = 2
measure = "SumLoss"
"""
WRONG = """[[claim]]
text = "does not"
kind = "order"
curves = ["short", "short"]
"""
CLAIMS = """
[[claim]]
text = "holds"
kind = "under-line"
curve = "long"
line = "bound"
[[claim]]
text = "does not"
kind = "order"
curves = ["short", "short"]
[[claim]]
text = "is not judged"
kind = "order"
curves = ["short", "long"]
skip = "there is no time"
[[claim]]
text = "changes"
kind = "band"
curve = "other"
high = 9.0
quick = { high = -9.0 }
"""


@pytest.fixture(scope="module")
def papers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("papers")
    for name, claims in (("wrong", CLAIMS), ("right", CLAIMS.replace(WRONG, ""))):
        (folder / name).mkdir()
        (folder / name / "study.toml").write_text(STUDY)
        (folder / name / "expected.toml").write_text(claims)
    return folder


def played(rounds, ranker="random"):
    """Return the average regret of a curve of the study, by run and point."""
    spec = Experiment(
        ranker=ranker, items=4, measure="SumLoss", runs=3, seed=5, points=6, rounds=rounds
    )
    trace = spec.play()
    return trace.rounds.tolist(), (trace.scores - trace.best) / trace.rounds


CURVES = {"short": (20, "random"), "long": (30, "epsilon-greedy"), "other": (25, "random")}


def test_files_have_the_curves_and_the_verdicts(papers, tmp_path, monkeypatch):
    monkeypatch.setattr("keyhole.lab.run.save_both", lambda *_: None)  # which takes longest
    result = reproduce(read_study(papers / "wrong"), tmp_path)
    assert [verdict.holds for verdict in result.verdicts] == [True, False, None, True]
    assert result.holds is False
    assert reproduce(read_study(papers / "right"), tmp_path / "right").holds is True
    with (tmp_path / "curves.csv").open() as file:
        rows = [
            (row["curve"], int(row["round"]), float(row["average_regret"]))
            for row in csv.DictReader(file)
        ]
    expected: list[Any] = []
    for label, given in CURVES.items():
        x, values = played(*given)
        assert np.array_equal(result.curves[label].values, values)
        means = [fmean(column) for column in values.T.tolist()]
        expected += [(label, at, pytest.approx(y)) for at, y in zip(x, means, strict=True)]
    assert rows == expected
    record = json.loads((tmp_path / "verdicts.json").read_text())
    assert record["holds"] is False
    assert [(each["claim"], each["holds"]) for each in record["verdicts"]] == [
        ("holds", True), ("does not", False), ("is not judged", None), ("changes", True)
    ]  # fmt: skip
    assert [each["evidence"] for each in record["verdicts"]] == [
        verdict.evidence for verdict in result.verdicts
    ]
    assert result.n_resumed == 0
    again = reproduce(read_study(papers / "wrong"), tmp_path)
    assert again.n_resumed == 3
    for label in CURVES:
        assert np.array_equal(again.curves[label].values, result.curves[label].values)


def test_lines_are_drawn_at_the_points_of_the_longest_curve_of_their_panel(papers):
    study = read_study(papers / "wrong")
    curves = {
        label: Curve(label, np.array([1, rounds]), np.ones((2, 2)))
        for label, (rounds, _) in CURVES.items()
    }
    line = _lines(study, curves)["bound"]
    assert line.x.tolist() == [1, 30]
    scale = 3.0 * (16.0 * 16.0 * 16.0 * 4.0 * 2.0) ** (1 / 3)  # D, R and A of SumLoss, two cells
    assert line.values[0].tolist() == pytest.approx([scale, scale * 30 ** (-1 / 3)])
    assert _lines(study, {"other": curves["other"]}) == {}


def bound_of(folder, line, *games):
    """Return the line of a study whose curves are such games, at one round and at a thousand."""
    folder.mkdir()
    curves = "".join(
        f'[[curve]]\nlabel = "{number}"\n{game}\n' for number, game in enumerate(games)
    )
    (folder / "study.toml").write_text(
        'kind = "game"\ntitle = "Lines"\npaper = "None"\nabout = "nothing"\n'
        f'{curves}[[line]]\nlabel = "bound"\nitems = 4\n{line}\n'
    )
    (folder / "expected.toml").write_text("claim = []\n")
    study = read_study(folder)
    found = {each.label: Curve(each.label, np.array([1, 1000]), np.ones((2, 2)))
             for each in study.curves}  # fmt: skip
    return _lines(study, found)["bound"].values[0].tolist()


SUM_LOSS = 'items = 4\nmeasure = "SumLoss"'


@pytest.mark.parametrize(
    ("line", "games", "expected"),
    [
        # R R D A: R and D are 16 for SumLoss and 4 for DCG, A is 4; R and A times the top gain.
        ("", [f"{SUM_LOSS}\ntop = 2"], (16**3 * 4, 2)),
        ("", [SUM_LOSS, f"{SUM_LOSS}\ntop = 1"], (16**3 * 4, 4)),  # one where nothing is said
        ("", [SUM_LOSS, f"{SUM_LOSS}\ntop = 2"], (16**3 * 4, 4)),  # they differ: one item
        ("top = 4", [f"{SUM_LOSS}\ntop = 2"], (16**3 * 4, 1)),
        ('measure = "DCG"', [SUM_LOSS], (4**4, 4)),
        ("", ["items = 4"], (4**4, 4)),
        ("", ["items = 4\nranker_options = { max_grade = 2.0 }"], (4**4 * 3**3, 4)),
        ("max_grade = 1.0", ["items = 4\nranker_options = { max_grade = 2.0 }"], (4**4, 4)),
    ],
)
def test_a_line_takes_what_the_curves_beside_it_agree_on(tmp_path, line, games, expected):
    product, n_cells = expected
    found = bound_of(tmp_path / "lines", f'kind = "top-k-bound"\n{line}', *games)
    scale = 3.0 * (product * n_cells) ** (1 / 3)
    assert found == pytest.approx([scale, scale / 10.0])


def test_the_bound_of_keystone_takes_the_grades_of_the_file_that_is_played(tmp_path):
    (tmp_path / "people.csv").write_text("a,b,c,d\n3,0,1,2\n0,1,0,3\n")
    game = f'world = "{tmp_path}/people.csv"\ntop = 2\nmeasure = "SumLoss"\nworld_options = '
    found = bound_of(tmp_path / "lines", 'kind = "safety-bound"', game + "{ grades = 4 }")
    constants = keystone.constants("SumLoss", 4, 2, 3.0)
    assert found == [keystone.safety_bound(constants, t) / t for t in (1.0, 1000.0)]


def test_a_line_beside_curves_of_two_measures_must_say_which_is_its_own(tmp_path):
    games = (SUM_LOSS, "items = 4")
    with pytest.raises(InvalidInput, match=r"'bound' must name its measure.* DCG and SumLoss"):
        bound_of(tmp_path / "two", 'kind = "top-k-bound"', *games)
    played: list[Any] = []
    with pytest.raises(InvalidInput, match="must name its measure"):
        reproduce(read_study(tmp_path / "two"), tmp_path / "out", lambda *done: played.append(done))
    assert played == []  # it is refused before that takes an hour
    named = bound_of(tmp_path / "one", 'kind = "top-k-bound"\nmeasure = "DCG"', *games)
    assert named == pytest.approx([3.0 * (4**4 * 4) ** (1 / 3) * t for t in (1.0, 0.1)])


def test_panels_are_drawn_as_the_study_says(papers, tmp_path):
    study = read_study(papers / "wrong")
    curves = {label: Curve(label, *played(*given)) for label, given in CURVES.items()}
    curves = {label: replace(each, x=np.array(each.x)) for label, each in curves.items()}
    lines = _lines(study, curves)
    first, second = (studies._panel(study, panel, curves, lines) for panel in study.panels)
    assert [each.label for each in first.curves] == ["short", "long"]
    assert [each.ranker for each in first.curves] == ["random", "epsilon-greedy"]
    assert [each.label for each in first.lines] == ["bound"]
    assert (first.first_x, first.log_x, first.measure) == (1, False, "SumLoss")
    assert ([each.label for each in second.curves], second.lines) == (["other"], [])
    assert (second.first_x, second.log_x, second.log_y) == (3, True, False)
    del curves["long"]
    figure = studies.make_study_figure(tmp_path, study, curves, lines)
    assert [len(plot.get_lines()) for plot in figure.axes] == [2, 1]
    assert REGRET.y in figure.axes[0].get_ylabel()


def test_the_command_ends_as_its_claims_do(papers, tmp_path, monkeypatch):
    monkeypatch.setattr("keyhole.lab.study.papers_folder", lambda: papers)
    monkeypatch.setattr("keyhole.lab.run.save_both", lambda *_: None)
    text = said(run("reproduce", "wrong", "--out", tmp_path / "wrong", code=1))
    assert "A study (None)" in text
    assert "FAIL does not: at 20, rising: short " in text
    assert "SKIP is not judged: there is no time" in text
    assert "curves were resumed" not in text
    text = said(run("reproduce", "wrong", "--out", tmp_path / "wrong", code=1))
    assert "3 of 3 curves were resumed." in text
    text = said(run("reproduce", "right", "--out", tmp_path / "right"))
    assert "PASS holds: total regret" in text
    assert "FAIL" not in text
    text = said(run("reproduce", "wrong", "--out", tmp_path / "quick", "--quick", code=1))
    assert "FAIL changes: " in text


def test_the_summary_of_a_game_has_the_numbers_of_its_runs():
    spec = Experiment(
        ranker="epsilon-greedy", items=4, measure="SumLoss", runs=3, seed=5, points=6, rounds=40
    )
    game = spec.build()
    trace = game.play()
    record = summary(game, trace)
    regret = (trace.scores - trace.best)[:, -1] / 40
    assert record["average_regret"] == pytest.approx(fmean(regret.tolist()))
    assert record["average_regret_error"] == pytest.approx(regret.std(ddof=1) / np.sqrt(3))
    scores = trace.scores[:, -1] / 40
    assert record["average_score"] == pytest.approx(fmean(scores.tolist()))
    assert record["average_score_error"] == pytest.approx(scores.std(ddof=1) / np.sqrt(3))
    assert record["best_fixed_score"] == pytest.approx(trace.best[:, -1].mean() / 40)
    assert record["rounds_per_second"] == pytest.approx(3 * 40 / record["seconds"])
    curve = ((trace.scores - trace.best) / trace.rounds).mean(axis=0)
    assert record["curve"] == [
        [x, pytest.approx(y)] for x, y in zip(trace.rounds.tolist(), curve.tolist(), strict=True)
    ]
    assert record["is_loss"] is True
    assert record["learnt_ranking"] == list(trace.learnt().best())
