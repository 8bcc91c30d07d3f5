"""The studies of excess risk, and what they are made of."""

import numpy as np
import pytest

from keyhole.base.errors import KeyholeError
from keyhole.bounds import generalisation as bounds
from keyhole.lab.bound_lines import risk_bound
from keyhole.lab.claims import judge
from keyhole.lab.kinds.risks import (
    RiskSpec,
    best_of,
    build_risk,
    draw_lists,
    learn_once,
    play_risk,
    reader,
    setting_at,
)
from keyhole.lab.results import Curve
from keyhole.lab.run import reproduce
from keyhole.lab.study import find_study


def test_a_study_of_risks_is_resumed(tmp_path):
    study = find_study("sparse-features", quick=True)
    assert reproduce(study, tmp_path).n_resumed == 0
    assert reproduce(study, tmp_path).n_resumed == len(study.curves)
    head = (tmp_path / "curves.csv").read_text().splitlines()[0]
    assert head == "curve,features,excess_risk,standard_error,runs"


def test_draws_are_those_of_the_seed_and_documents_keep_their_norm():
    spec = RiskSpec(points=(3,), features=4, strength=2.0)
    setting = setting_at(spec, 3)
    first, second, other = (draw_lists(spec, setting, 5, [0, k]) for k in (2, 2, 3))
    assert np.array_equal(first[0], second[0])
    assert not np.array_equal(first[0], other[0])
    assert np.linalg.norm(first[0], axis=1) == pytest.approx(1.0)
    assert np.linalg.norm(setting.truth) == pytest.approx(2.0)
    cube = RiskSpec(points=(3,), features=9, informative=2, documents="cube", grades="real")
    X, y, starts = draw_lists(cube, setting_at(cube, 3), 50, [0, 1])
    assert np.abs(X).max() <= 1.0
    assert (setting_at(cube, 3).truth[2:] == 0.0).all()
    assert y.min() > 0.0  # nothing was cut off
    assert starts.tolist() == list(range(0, 151, 3))


def test_a_curve_is_made_of_its_runs():
    spec = RiskSpec(points=(2, 4), queries=10, features=3, runs=2, test_queries=50)
    built = build_risk(spec)
    curve = play_risk("x", built)
    setting = setting_at(spec, 4)
    best = best_of(built, setting)
    assert curve.values[1, 1] == learn_once(built, setting, best, 1)
    assert (curve.values >= 0.0).all()
    assert curve.x.tolist() == [2, 4]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"points": [3, 2]}, "points must be rising integers"),
        ({"points": [2], "learner": "ern"}, "Did you mean 'erm'"),
        ({"points": [2], "learner": "online", "ball": "l1"}, "must be l2, got l1"),
        ({"points": [2], "vary": "items"}, "A field of here must be one of"),
    ],
)
def test_bad_descriptions_are_one_sentence(fields, sentence):
    with pytest.raises(KeyholeError, match=sentence):
        build_risk(reader("items")(fields, "here"))


def test_the_line_is_the_bound():
    x = np.array([10, 1000])
    got = risk_bound(x, vary="queries", bound="descent, averaged", surrogate="listnet", radius=3.0)
    assert got.tolist() == [bounds.descent_bound(2.0, 3.0, 1.0, n) for n in (10, 1000)]
    got = risk_bound(x, vary="items", bound="descent, averaged", surrogate="ranksvm", radius=3.0)
    assert got[1] / got[0] == pytest.approx((1000 / 10) ** 2)
    soft = {"vary": "items", "bound": "range", "surrogate": "smooth_dcg"}
    assert risk_bound(x, **soft, surrogate_options={"eps": 1.0}).tolist() == [1.0, 1.0]


X = np.array([1, 10, 100])
CURVES = {"falls": Curve("falls", X, np.array([[1, 0.1, 0.01], [1.2, 0.1, 0.011]]))}
LINES = {
    "one": Curve("one", X, np.ones((1, 3))),
    "root": Curve("root", X, 2 * np.sqrt(X)[np.newaxis]),
}


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        ({"kind": "power", "curve": "falls", "high": -0.9}, True),
        ({"kind": "power", "curve": "falls", "low": -0.9}, False),
        ({"kind": "power", "line": "root", "low": 0.49, "high": 0.51}, True),
        ({"kind": "power", "line": "one", "low": 0.1}, False),
        ({"kind": "beneath", "curve": "falls", "line": "root"}, True),
        ({"kind": "beneath", "curve": "falls", "line": "one"}, False),
        ({"kind": "lines", "lines": ["one", "root"]}, True),
        ({"kind": "lines", "lines": ["root", "one"]}, False),
    ],
)
def test_every_kind_of_claim_can_hold_and_fail(claim, holds):
    assert judge({"text": "claim", **claim}, CURVES, LINES, {}).holds is holds
