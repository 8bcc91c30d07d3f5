"""Excess risks of a study, computed again: what no scores avoid, what is drawn, what is told."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from keyhole.lab.kinds.risks import (
    RiskSpec,
    best_of,
    build_risk,
    draw_lists,
    learn_once,
    play_risk,
    setting_at,
)

pytestmark = pytest.mark.interpreted

FEW: dict[str, Any] = {
    "vary": "items",
    "points": (2, 3),
    "queries": 4,
    "features": 2,
    "test_queries": 6,
}


def entropy_of(grades):
    """Return the entropy of ListNet's target of one list, in nats."""
    total = math.fsum(math.exp(grade) for grade in grades)
    chances = [math.exp(grade) / total for grade in grades]
    return -math.fsum(chance * math.log(chance) for chance in chances)


@pytest.mark.parametrize("grades", ["binary", "real"])
def test_no_scores_avoid_the_entropy_of_the_targets(grades):
    built = build_risk(RiskSpec(**FEW, grades=grades, surrogate="listnet", seed=3))
    setting = setting_at(built.spec, 3)
    _, drawn, starts = draw_lists(built.spec, setting, 6, [3, 1])
    lists = [drawn[first:end].tolist() for first, end in pairwise(starts)]
    best = best_of(built, setting)
    assert best.unavoidable == pytest.approx(math.fsum(map(entropy_of, lists)) / 6, rel=1e-9)
    assert best.value >= best.unavoidable


def test_other_losses_have_nothing_that_is_unavoidable():
    built = build_risk(RiskSpec(**FEW, surrogate="squared"))
    assert best_of(built, setting_at(built.spec, 2)).unavoidable == 0.0


def test_true_weights_have_the_strength_and_are_of_the_informative_features():
    for given, strength in (({}, 5.0), ({"strength": 0.5}, 0.5)):
        spec = RiskSpec(**{**FEW, "features": 4, **given}, informative=3)
        setting = setting_at(spec, 3)
        assert np.linalg.norm(setting.truth) == pytest.approx(strength)
        assert (setting.truth[3:] == 0.0).all()
        assert (setting.truth[:3] != 0.0).all()


def test_every_run_at_every_point_is_told_once_and_is_an_excess():
    built = build_risk(RiskSpec(**FEW, surrogate="listnet", runs=2))
    told: list[int] = []
    curve = play_risk("a", built, told.append)
    assert told == [1] * 4
    assert sum(told) == built.spec.work
    assert curve.x.tolist() == [2, 3]
    for column, point in enumerate(curve.x):
        setting = setting_at(built.spec, point)
        best = best_of(built, setting)
        for run in range(2):
            assert curve.values[run, column] == learn_once(built, setting, best, run)
    assert np.all(curve.values > -1e-5)
