"""What a line of a figure takes of the curves beside it: their measure, top and highest grade."""

import inspect
import itertools
from typing import Any

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput, UnknownName
from keyhole.experiment.description import Experiment
from keyhole.lab.bound_lines import LINES, _game_of, options_of_line
from keyhole.lab.kinds.ads import AdSpec
from keyhole.lab.kinds.experiments import ListsSpec
from keyhole.lab.kinds.horizons import HorizonsSpec
from keyhole.lab.kinds.sides import SidesSpec

pytestmark = pytest.mark.interpreted

NAMES = ("measure", "top", "max_grade")


def game(**fields):
    return Experiment(**{"items": 4, "measure": "SumLoss", **fields})


SPECS = {
    "a game": (game(), ("SumLoss", 1, 1.0)),
    "its top": (game(top=3), ("SumLoss", 3, 1.0)),
    "its ranker's grades": (game(ranker_options={"max_grade": 0.5}), ("SumLoss", 1, 0.5)),
    "a hopeless game": (
        game(world="hopeless", world_options={"pair": "no such"}), ("SumLoss", 1, 1.0),
    ),
    "files that are not there": (game(world="data:nowhere/none.csv"), ("SumLoss", 1, None)),
    "lists": (ListsSpec(Experiment(world="graded")), (None, None, None)),
    "a game of lists": (Experiment(world="graded"), (None, None, None)),
    "advertisements": (AdSpec(), (None, None, None)),
    "sides": (
        SidesSpec.of({"items": 3, "measure": "NDCG", "top": 2}, "here"), ("NDCG", 2, 1.0),
    ),
    "horizons": (
        HorizonsSpec.of(
            {"items": 4, "measure": "AP", "top": 2, "points": [9, 30], "ranker_options":
             {"max_grade": 2}}, "here",
        ),
        ("AP", 2, 2.0),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["top-k-bound", "safety-bound"])
@pytest.mark.parametrize("name", SPECS)
def test_a_line_takes_what_the_curve_beside_it_has(kind, name):
    spec, told = SPECS[name]
    found = options_of_line(kind, "a", {"items": 4}, [spec])
    expected = {key: value for key, value in zip(NAMES, told, strict=True) if value is not None}
    assert found == {"items": 4, **expected}
    assert all(type(found[key]) is type(expected[key]) for key in expected)


@pytest.mark.parametrize("highest", [0.5, 1.0, 2.0])
def test_the_highest_grade_is_that_of_the_world_and_at_least_one(highest, tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(f"a,b,c\n0,{highest},0\n{highest},0,0\n")
    spec = Experiment(world=str(path))
    assert options_of_line("top-k-bound", "a", {}, [spec])["max_grade"] == max(highest, 1.0)


def test_a_line_takes_only_what_it_has_and_what_it_was_not_given():
    beside = [game(top=2)]
    for kind, line in LINES.items():
        taken = sorted({*NAMES} & {*inspect.signature(line).parameters})
        assert list(options_of_line(kind, "a", {}, beside)) == taken
    given = {"measure": "DCG", "top": 7, "max_grade": 5.0}
    assert options_of_line("safety-bound", "a", given, beside) == given
    assert given == {"measure": "DCG", "top": 7, "max_grade": 5.0}


def test_curves_that_differ_leave_a_line_its_own_settings_but_not_its_measure():
    several = [game(top=2), game(top=2), game(top=3, ranker_options={"max_grade": 2.0})]
    assert options_of_line("safety-bound", "a", {}, several) == {"measure": "SumLoss"}
    same = {"measure": "SumLoss", "top": 2, "max_grade": 1.0}
    assert options_of_line("safety-bound", "a", {}, several[:2]) == same
    lists = ListsSpec(Experiment(world="graded"))
    assert options_of_line("safety-bound", "a", {}, [lists, several[0]]) == same
    for two in itertools.permutations([game(), game(measure="DCG")]):
        with pytest.raises(InvalidInput, match=r"'a' must name its measure.*DCG and SumLoss"):
            options_of_line("safety-bound", "a", {}, two)
        assert options_of_line("safety-bound", "a", {"measure": "AP"}, two)["measure"] == "AP"
    with pytest.raises(UnknownName, match="kind of line 'a' must be one of"):
        options_of_line("safe-bound", "a", {}, [])


X = np.array([100, 4000])
USUAL: dict[str, Any] = {
    "top-k-bound": {"items": 4},
    "safety-bound": {"items": 4},
    "semi-bandit-bound": {"items": 4, "counted": 2},
    "iw-onlinerank-bound": {"items": 4},
    "hopeless-constant": {"items": 3, "pair": "table-b1"},
    "risk-bound": {"vary": "features", "bound": "least mean loss", "surrogate": "listnet"},
}
SAID: dict[str, Any] = {
    "top-k-bound": {"top": 1, "measure": "DCG", "max_grade": 1.0},
    "safety-bound": {"top": 1, "measure": "DCG", "max_grade": 1.0},
    "semi-bandit-bound": {"top": 1},
    "iw-onlinerank-bound": {"top": 1, "measure": "DCG"},
    "hopeless-constant": {"top": 1, "measure": "NDCG"},
    "risk-bound": {"items": 5, "queries": 100},
}


@pytest.mark.parametrize("kind", USUAL)
def test_a_line_that_is_told_nothing_takes_one_position_of_dcg(kind):
    least, said = USUAL[kind], SAID[kind]
    usual = LINES[kind](X, **least).tolist()
    assert usual == LINES[kind](X, **least, **said).tolist()
    for name, value in said.items() if kind != "hopeless-constant" else ():
        other = {int: 3, float: 3.0, str: "SumLoss"}[type(value)]
        assert LINES[kind](X, **least, **{**said, name: other}).tolist() != usual, name


def test_what_a_pair_forces_is_of_the_measure_and_of_what_is_seen():
    line = LINES["hopeless-constant"]
    assert line(X, items=4, pair="swap", measure="AUC").tolist() == pytest.approx([1 / 32] * 2)
    with pytest.raises(InvalidInput, match="must look alike from the top 3"):
        line(X, items=4, pair="swap", top=3)


def test_a_line_beside_horizons_is_of_the_game_of_the_last():
    fields = {"items": 4, "world": "near-ties", "points": [9, 30, 80], "gap": 3.0, "shrinks": 0.5}
    spec = HorizonsSpec.of(fields, "here")
    assert _game_of(spec) == spec.at(80) != spec.at(9)
