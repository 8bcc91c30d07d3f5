"""Every setting takes the last value of its range and refuses the next one."""

from typing import Any

import numpy as np
import pytest

from keyhole import FTPL, Forecaster, Hedge, OnlineRank, RTopK, play
from keyhole.base.errors import (
    MAX_ROUND,
    InvalidInput,
    check_integer,
    check_number,
    check_relevance,
    check_round,
    check_seed,
)
from keyhole.game.play import checkpoints_of
from keyhole.offline.bounds import check_confidence
from keyhole.policies.base import Always, EpsilonGreedy, Softmax, Uniform
from keyhole.policies.linear import LinearScorer
from keyhole.policies.online import OnlineRankers
from keyhole.policies.pairs import fit_pairs
from keyhole.rankers.lists.gradient import Descent
from keyhole.rankers.lists.perceptron import SLAMPerceptron
from keyhole.rankers.lists.top_k import ContextualRTopK
from keyhole.reveals.top import Top
from keyhole.worlds.choices import Choices
from keyhole.worlds.flips import Flips
from keyhole.worlds.gaussian import Gaussian
from keyhole.worlds.generated import Graded, Separable
from keyhole.worlds.outcomes import Hopeless
from keyhole.worlds.switching import Switching

TINY = 1e-9
SCORER = LinearScorer([[1.0], [2.0]], [0.0, 0.0])
UPS, DOWNS = np.ones((2, 2)), np.zeros((2, 2))


def contextual(**options: Any) -> ContextualRTopK:
    return ContextualRTopK(2, 3, **options)


def rtopk(**options: Any) -> RTopK:
    return RTopK(3, **{"horizon": 30, **options})


ROWS: list[tuple[Any, str, list[Any], list[Any]]] = [
    # what makes it, which setting, what it takes, what it refuses
    (Flips, "n_items", [1], [0]),
    (Flips, "flip", [0, 1], [-TINY, 1 + TINY]),
    (lambda **o: Flips(4, **o), "n_relevant", [0, 4], [-1, 5]),
    (Gaussian, "n_items", [1], [0]),
    (Gaussian, "sd", [0], [-TINY]),
    (Choices, "n_items", [1], [0]),
    (lambda **o: Choices(4, **o), "n_chosen", [1, 4], [0, 5]),
    (Choices, "skew", [0], [-TINY]),
    (lambda **o: Choices(2, **o), "weights", [[TINY, 1]], [[0, 1], [1, np.inf], [1]]),
    (Switching, "n_items", [1], [0]),
    (Switching, "period", [1], [0]),
    (Switching, "flip", [0, 1], [-TINY, 1 + TINY]),
    (lambda **o: Switching(4, **o), "n_relevant", [0, 4], [-1, 5]),
    (lambda **o: Separable(n_grades=2, **o), "n_items", [2], [1]),
    (Separable, "n_features", [1], [0]),
    (lambda **o: Separable(5, **o), "n_grades", [2, 5], [1, 6]),
    (Separable, "spread", [0], [-TINY]),
    (lambda **o: Separable(2, n_features=1, **o), "grades", [[0, 1000]], [[0, 1001], [0.5, 1]]),
    (Graded, "n_items", [1], [0]),
    (lambda **o: Graded(5, **o), "min_items", [1, 5], [0, 6]),
    (Graded, "n_features", [1], [0]),
    (Graded, "max_grade", [1, 30], [0, 31]),
    (Graded, "noise", [0, 1], [-TINY, 1 + TINY]),
    (Graded, "informative", [0, 1], [-TINY, 1 + TINY]),
    (lambda **o: Graded(n_features=4, **o), "row_norm", [TINY, 2], [0, 2 + TINY]),
    (lambda **o: Hopeless(pair="swap", **o), "n_items", [2, 12], [1, 13]),
    (Hopeless, "n_items", [3], [2, 4]),
    (Hopeless, "side", [0, 1], [-1, 2]),
    (Top, "k", [1], [0]),
    (rtopk, "k", [1, 3], [0, 4]),
    (rtopk, "n_blocks", [1, 10], [0, 11]),
    (rtopk, "rate", [TINY], [0]),
    (rtopk, "eps_scale", [TINY], [0]),
    (rtopk, "max_grade", [TINY], [0]),
    (rtopk, "n_chosen", [1, 3], [0, 4]),
    (lambda **o: FTPL(3, **o), "horizon", [1, MAX_ROUND], [0, MAX_ROUND + 1]),
    (lambda **o: FTPL(3, **o), "rate", [TINY], [0]),
    (lambda **o: FTPL(3, **o), "eps_scale", [TINY], [0]),
    (lambda **o: OnlineRank(3, **o), "n_chosen", [1, 3], [0, 4]),
    (Hedge, "n_items", [1, 7], [0, 8]),
    (lambda **o: Hedge(3, **o), "rate", [TINY], [0]),
    (lambda **o: Forecaster(measure="SumLoss", **o), "n_items", [2, 5], [1, 6]),
    (lambda **o: Forecaster(3, measure="SumLoss", **o), "mix", [TINY, 1], [0, 1 + TINY]),
    (lambda **o: Forecaster(3, measure="SumLoss", **o), "rate", [TINY], [0]),
    (lambda **o: Forecaster(2, measure="SumLoss", **o), "max_grade", [1, 2], [0.5, 256]),
    (contextual, "mix", [TINY, 1], [0, 1 + TINY]),
    (contextual, "mix_power", [0], [-TINY]),
    (contextual, "mismatch_scale", [TINY], [0]),
    (contextual, "rate", [TINY], [0]),
    (contextual, "power", [0], [-TINY]),
    (contextual, "row_norm", [TINY], [0]),
    (contextual, "radius", [TINY], [0]),
    (lambda **o: Descent(n_items=3, **o), "n_features", [1], [0]),
    (lambda **o: SLAMPerceptron(2, 3, **o), "rate", [TINY], [0]),
    (lambda **o: SLAMPerceptron(2, 3, **o), "row_norm", [TINY], [0]),
    (lambda **o: SLAMPerceptron(2, 3, **o), "max_grade", [TINY], [0]),
    (Uniform, "n_actions", [1], [0]),
    (lambda **o: Always(3, **o), "action", [0, 2], [-1, 3]),
    (lambda **o: EpsilonGreedy(SCORER, **o), "epsilon", [0, 1], [-TINY, 1 + TINY]),
    (lambda **o: Softmax(SCORER, **o), "temperature", [TINY], [0]),
    (lambda **o: OnlineRankers(1, 2, **o), "reservoir", [1], [0]),
    (lambda **o: OnlineRankers(1, 2, **o), "row_norm", [TINY], [0]),
    (lambda **o: OnlineRankers(1, 2, **o), "l1", [0], [-TINY]),
    (lambda **o: OnlineRankers(1, 2, **o), "l2", [0], [-TINY]),
    (lambda **o: fit_pairs(UPS, DOWNS, **o), "n_steps", [1], [0]),
    (check_confidence, "confidence", [TINY, 1 - TINY], [0, 1]),
    (lambda **o: check_integer(name="x", at_least=2, at_most=4, **o), "value", [2, 4], [1, 5]),
    (lambda **o: check_number(name="x", at_least=2, at_most=4, **o), "value", [2, 4], [1.9, 4.1]),
    (check_seed, "seed", [0, 2**63 - 1], [-1, 2**63]),
    (check_round, "round", [0, MAX_ROUND - 1], [-1, MAX_ROUND]),
    (check_relevance, "relevance", [[0.0, 3.5]], [[-TINY], [np.inf]]),
]


@pytest.mark.parametrize(
    ("make", "name", "taken", "refused"), ROWS, ids=[f"{i}-{row[1]}" for i, row in enumerate(ROWS)]
)
def test_ranges(make, name, taken, refused):
    for value in taken:
        make(**{name: value})
    for value in refused:
        with pytest.raises(InvalidInput):
            make(**{name: value})


def test_games_of_one_round_and_two_points():
    ranker, world = RTopK(5, horizon=60, k=2), Flips(5, n_relevant=2)
    assert play(ranker, world, rounds=1).rounds.tolist() == [1]
    assert play(ranker, world, rounds=9, n_points=2).rounds.tolist() == [1, 9]
    refused: list[Any] = [{"rounds": 0}, {"rounds": 5, "runs": 0}, {"rounds": 5, "n_points": 1}]
    for options in refused:
        with pytest.raises(InvalidInput):
            play(ranker, world, **options)
    assert checkpoints_of(4, 3).tolist() == [1, 4]
