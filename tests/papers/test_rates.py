"""Games of rising horizons: what is played at each, and how their rates are judged."""

from typing import Any

import numpy as np
import pytest

from keyhole.base.errors import KeyholeError
from keyhole.bounds import iw_onlinerank, precision
from keyhole.lab.bound_lines import LINES
from keyhole.lab.claims import judge
from keyhole.lab.kinds.horizons import HorizonsSpec, build_horizons, play_horizons
from keyhole.lab.results import Curve
from keyhole.lab.study import find_study
from keyhole.worlds.near_ties import NearTies

FIELDS = {
    "ranker": "rtopk",
    "world": "near-ties",
    "items": 5,
    "runs": 2,
    "points": [100, 1000],
    "gap": 2.0,
    "shrinks": 1 / 3,
    "world_options": {"n_leaders": 1},
}


def test_gaps_shrink_with_the_horizon_and_are_at_most_1():
    spec = HorizonsSpec.of(FIELDS, "here")
    assert spec.work == 2 * 1100
    assert spec.at(1000).rounds == 1000
    assert spec.at(1000).world_options == {"n_leaders": 1, "gap": pytest.approx(0.2)}
    assert spec.at(1).world_options["gap"] == 1.0
    assert (spec.game.rounds, spec.game.points) == (1000, 2)  # the first round, and the last
    small = HorizonsSpec.of({**FIELDS, "gap": 0.05, "points": [1, 2]}, "here")
    assert small.at(1).world_options["gap"] == 0.05
    without = HorizonsSpec.of({**FIELDS, "gap": None}, "here")
    assert without.at(1000).world_options == {"n_leaders": 1}


def test_each_point_is_a_game_of_its_own(monkeypatch):
    """Whose ranker is told its horizon, or not."""
    from keyhole.lab.kinds import horizons

    played = []

    class Trace:
        rounds = np.array([1, 4])
        regret = np.array([[2.0, 8.0], [3.0, 16.0]])

    def remember(game, report):
        played.append((game.ranker.settings["horizon"], game.world.params.chances[-2:].tolist()))
        return Trace

    monkeypatch.setattr(horizons, "play_game", remember)
    for knows, expected in ((True, [100, 1000]), (False, [None, None])):
        played.clear()
        built = build_horizons(HorizonsSpec.of({**FIELDS, "knows_horizon": knows}, "here"))
        curve = play_horizons("both", built, None)
        assert [horizon for horizon, _ in played] == expected
        assert played[1][1] == pytest.approx([0.6, 1.0])
        assert curve.x.tolist() == [100, 1000]
        assert curve.values.tolist() == [[2.0, 2.0], [4.0, 4.0]]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"points": []}, "rising horizons"),
        ({"points": [5, 5]}, "rising horizons"),
        ({"points": [0, 5]}, "points of here"),
        ({"gap": -1.0}, "gap of here"),
        ({"rounds": 10}, "A field of here"),
    ],
)
def test_bad_descriptions_are_refused(change, word):
    with pytest.raises(KeyholeError, match=word):
        HorizonsSpec.of({**FIELDS, **change}, "here")


def grown(power, factor=1.0):
    """Return a curve of 30 runs whose totals grow as a power of x."""
    x = np.array([1_000, 4_000, 16_000])
    noise = np.random.default_rng(0).normal(1.0, 0.02, (30, 3))
    return Curve(f"{power}", x, factor * noise * x ** (power - 1.0))


def test_rates_are_judged_with_their_whole_interval():
    curves = {f"{power}": grown(power) for power in (0.5, 0.56, 0.7)}
    claim = {"text": "a", "kind": "rate", "curve": "0.5", "claimed": "1/2", "high": 0.56}
    assert judge(claim, curves, {}, {}).holds
    assert judge({**claim, "low": 0.44}, curves, {}, {}).holds
    assert not judge({**claim, "low": 0.503}, curves, {}, {}).holds
    assert not judge({**claim, "curve": "0.56"}, curves, {}, {}).holds  # its interval is wider
    assert judge({**claim, "curve": "0.56", "high": 0.57}, curves, {}, {}).holds
    both = {**claim, "curves": ["0.5", "0.7"]}
    del both["curve"]
    found = judge(both, curves, {}, {})
    assert not found.holds
    assert "claimed 1/2, at most 0.56" in found.evidence
    assert found.evidence.startswith("slope 0.5 0.5")
    assert judge({**both, "high": 0.75}, curves, {}, {}).holds


def test_bounds_are_lines():
    rounds = np.array([100, 400])
    line = LINES["semi-bandit-bound"](rounds, items=10, counted=3, top=2)
    assert line[1] == pytest.approx(precision.semi_bandit_bound(10, 3, 2, 400) / 400)
    line = LINES["iw-onlinerank-bound"](rounds, items=5, top=2, measure="SumLoss")
    given = iw_onlinerank.constants(iw_onlinerank.falling_weights("SumLoss", 5), 2)
    schedule = iw_onlinerank.best_schedule(given, 400)
    assert line[1] == pytest.approx(iw_onlinerank.regret_bound(given, schedule, 400) / 400)


def test_the_study_has_a_claim_for_every_curve():
    study: Any = find_study("rates")
    rated = [
        label
        for claim in study.claims
        if claim["kind"] == "rate"
        for label in [*claim.get("curves", []), *([claim["curve"]] if "curve" in claim else [])]
    ]
    assert sorted(rated) == sorted(curve.label for curve in study.curves)
    for curve in study.curves:
        assert curve.spec.game.runs >= 20
        study.kind.build(curve.spec)


def test_near_ties_are_as_likely_as_they_say():
    world = NearTies(5, n_leaders=1, n_better=1, gap=0.4)
    assert world.params.chances.tolist() == pytest.approx([0.3, 0.3, 0.3, 0.7, 1.0])
    assert NearTies(6, n_leaders=1).params.chances.tolist() == pytest.approx(
        [0.45, 0.45, 0.55, 0.55, 0.55, 1.0]
    )
    drawn = np.array([world.relevance(t) for t in range(2_000)])
    spread = np.sqrt(world.params.chances * (1 - world.params.chances) / 2_000)
    assert (np.abs(drawn.mean(axis=0) - world.params.chances) <= 4.5 * spread).all()
    for wrong in ({"n_leaders": 6}, {"n_better": 6}, {"gap": 1.5}, {"chances": [0.5]}):
        with pytest.raises(KeyholeError):
            NearTies(5, **wrong)
    with pytest.raises(KeyholeError, match="probabilities"):
        NearTies(2, chances=[0.5, 1.5])
