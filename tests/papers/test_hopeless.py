"""The study of hopeless pairs: its constants, its claims, and who plays."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from keyhole import Hopeless
from keyhole.base.errors import InvalidInput, UnknownName
from keyhole.lab.bound_lines import LINES
from keyhole.lab.claims import judge
from keyhole.lab.kinds.sides import SidesSpec, build_sides, hopeless_constant, play_sides
from keyhole.lab.results import Curve
from keyhole.lab.study import find_study
from keyhole.measures import measure
from keyhole.monitoring.games import Game
from keyhole.monitoring.hopeless import best_witness
from keyhole.monitoring.verify import check_certificate
from keyhole.rankers import RANKERS
from keyhole.rankers.fixed.base import FixedListRanker
from keyhole.rankers.fixed.subroutines import SUBROUTINES
from keyhole.surrogates import SURROGATES

KEY = "hopeless-ndcg"
PAIRS = [("table-b1", 3, 1, 0.014197), ("worst-three", 3, 1, 0.044085), ("swap", 4, 2, 0.008646)]


@pytest.mark.parametrize(("pair", "items", "top", "constant"), PAIRS)
def test_constants_are_those_of_the_pairs(pair, items, top, constant):
    found = hopeless_constant("NDCG", pair=pair, items=items, top=top)
    assert float(found) == pytest.approx(constant, abs=5e-7)
    best = best_witness(Game.of("NDCG", items, top))
    assert best is not None
    assert found <= best.constant
    rankings = list(itertools.permutations(range(items)))
    regrets = []
    for side in (0, 1):  # the same by the kernels alone, in floats
        world = Hopeless(items, pair=pair, side=side)
        judge_all = measure("NDCG")
        scores = [
            world.probabilities @ [judge_all(outcome, ranking) for outcome in world.outcomes]
            for ranking in rankings
        ]
        regrets.append(max(scores) - np.array(scores))
    means = (regrets[0] + regrets[1]) / 2.0
    assert means.min() == pytest.approx(float(found), abs=1e-12)
    assert (np.ptp(means) < 1e-4) == (pair != "table-b1")  # no ranking is better than another


@pytest.mark.parametrize(("pair", "items", "top", "constant"), PAIRS)
def test_a_pair_is_a_certificate(pair, items, top, constant):
    found = hopeless_constant("NDCG", pair=pair, items=items, top=top)
    sides = [Hopeless(items, pair=pair, side=side) for side in (0, 1)]
    p, q = ([str(Fraction(repr(float(x)))) for x in side.probabilities] for side in sides)
    outcomes = sides[0].outcomes.astype(int).tolist()
    game = {"measure": "NDCG", "n_items": items, "k": top, "grades": 2}
    proof = {"outcomes": outcomes, "p": p, "q": q, "constant": str(found), "is_exact": False}
    certificate = {"format": "keyhole certificate 1", "class": "hopeless", "game": game}
    assert check_certificate({**certificate, "proofs": {"hopeless": proof}}) == "hopeless"


def test_a_pair_that_proves_nothing_is_refused():
    with pytest.raises(InvalidInput, match="must force regret of NDCG, got 'parity'"):
        hopeless_constant("NDCG", pair="parity", items=3, top=1)
    with pytest.raises(InvalidInput, match="must look alike from the top 2, got 'worst-three'"):
        hopeless_constant("NDCG", pair="worst-three", items=3, top=2)
    with pytest.raises(InvalidInput, match="must force regret of DCG, got 'swap'"):
        hopeless_constant("DCG", pair="swap", items=4, top=2)


@pytest.mark.parametrize(("items", "constant"), [(3, 0.00277), (4, 0.000495), (5, 0.000097)])
def test_lists_of_even_and_odd_weight_shift_the_target_of_calibrated_surrogates(items, constant):
    """The best scores for the two sides differ; a scorer in between loses a quarter of it."""
    sides = [Hopeless(items, pair="parity", side=side) for side in (0, 1)]
    surrogate = SURROGATES["ndcg_squared"]()
    # Its gradient at 0 is minus twice its target, G(r)/Z.
    targets = [
        sum(
            -chance * np.array(surrogate.gradient([0.0] * items, outcome.tolist())) / 2.0
            for chance, outcome in zip(side.probabilities, side.outcomes, strict=True)
        )
        for side in sides
    ]
    assert float(((targets[0] - targets[1]) ** 2).sum()) / 4.0 == pytest.approx(
        constant, abs=5e-6 if items == 3 else 5e-7
    )
    for hidden in range(items):
        laws = []
        for side in sides:
            seen = np.delete(side.outcomes, hidden, axis=1)
            names, index = np.unique(seen, axis=0, return_inverse=True)
            laws.append(np.bincount(index.ravel(), side.probabilities, len(names)))
        assert np.allclose(laws[0], laws[1], atol=1e-15)


def test_every_ranker_plays_or_is_refused():
    study = find_study(KEY)
    refused = {
        ranker
        for claim in study.claims
        if claim["kind"] == "refused"
        for ranker in claim["rankers"]
    }
    games = [curve.spec.game for curve in study.curves]  # type: ignore[attr-defined]
    rows = {name for name, cls in RANKERS.items() if issubclass(cls, FixedListRanker)}
    of_precision_alone = {"semibandit", "neighbourhood"}  # which refuse to be told of NDCG
    assert {game.ranker for game in games} | refused | of_precision_alone == rows
    inside = {g.ranker_options["subroutine"] for g in games if g.ranker == "rtopk"}
    assert inside == set(SUBROUTINES)
    judged = {label for c in study.claims if c["kind"] == "over-line" for label in c["curves"]}
    assert judged == {curve.label for curve in study.curves if curve.spec.measure == "NDCG"}


def test_a_ranker_that_knew_its_side_would_make_the_claim_fail():
    spec = SidesSpec.of({"ranker": "random", "pair": "worst-three", "measure": "NDCG"}, "here")
    x = np.array([1000, 10_000])
    line = Curve("line", x, LINES["hopeless-constant"](x, pair="worst-three", items=3)[None])
    cheating = Curve("cheating", x, np.full((10, 2), 0.04) + 1e-4 * np.arange(10)[:, None])
    claim = {"text": "", "kind": "over-line", "curves": ["cheating"], "line": "line", "from": 1000}
    assert judge(claim, {"cheating": cheating}, {"line": line}, {}).holds is False
    assert spec.work == 2 * spec.game.rounds
    with pytest.raises(InvalidInput, match="the best one tells the sides apart"):
        build_sides(SidesSpec.of({"ranker": "fixed", "pair": "worst-three"}, "here"))
    with pytest.raises(UnknownName, match="A field of here must be one of"):
        SidesSpec.of({"world": "flips"}, "here")


def test_a_curve_is_the_mean_over_both_sides():
    """A ranking that is best on one side and known to lose on the other."""
    fields = {
        "ranker": "fixed",
        "pair": "worst-three",
        "measure": "NDCG",
        "rounds": 20_000,
        "runs": 8,
    }
    ranking = {"ranker_options": {"ranking": [0, 1, 2]}}
    curve = play_sides("x", build_sides(SidesSpec.of({**fields, **ranking}, "here")), None)
    expected = hopeless_constant("NDCG", pair="worst-three", items=3, top=1)
    found = curve.at()
    assert abs(found.mean - float(expected)) < 5 * found.error + 1e-4  # 5 errors, hindsight
