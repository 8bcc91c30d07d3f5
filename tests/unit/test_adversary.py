"""What the adversary plays, against a ranker that does as it is told."""

import math
from typing import Any

import numpy as np
import pytest

from bench.theory.adversary import Defeat, defeat as play
from keyhole.base.errors import InvalidInput
from keyhole.contracts.lists import Impression


def defeat(ranker: Any, *given: Any, **told: Any) -> Defeat:
    """Let anything that ranks take part."""
    return play(ranker, *given, **told)


class Told:
    """A ranker of lists with five features that puts a given document first, round by round."""

    n_features = 5

    def __init__(self, first=(0, 1, 1, 0, 1)):
        self._first = first
        self.seen: list[tuple[np.ndarray, list[float]]] = []

    def fresh(self):
        return self

    def rank(self, query, *, round):
        first = self._first[round]
        return Impression(round, query, np.array([first, 1 - first]), False, math.nan)

    def update(self, impression, feedback):
        self.seen.append((impression.query.features, feedback.values.tolist()))


def test_the_last_is_made_relevant_in_every_round():
    ranker = Told()
    outcome = defeat(ranker, 3, row_norm=2.0, measure="AP")
    assert outcome.losses.tolist() == [0.5, 0.5, 0.5]
    assert outcome.loss == 1.5
    for t, (features, values) in enumerate(ranker.seen):
        assert values == [0.0, 1.0]
        assert features[0].tolist() == [2.0 if i == t else 0.0 for i in range(5)]
        assert np.array_equal(features[1], -features[0])
    assert outcome.separator == pytest.approx(np.array([-1, 1, 1, 0, 0]) / math.sqrt(3))
    assert outcome.margin == pytest.approx(4 / math.sqrt(3))


def test_how_many_rounds_there_are():
    assert len(defeat(Told()).losses) == 5
    assert len(defeat(Told(), 1).losses) == 1
    assert len(defeat(Told(), row_norm=1.0, margin=0.5).losses) == 4
    assert len(defeat(Told(), 5, row_norm=1.0, margin=0.5).losses) == 5
    assert len(defeat(Told(), margin=1.0).losses) == 1
    assert len(defeat(Told(), 4, margin=1.0).losses) == 4  # 4 R^2 / gamma^2
    with pytest.raises(InvalidInput, match=r"must be at most 4, .* got 5"):
        defeat(Told(), 5, margin=1.0)
    with pytest.raises(InvalidInput, match=r"must be at most 5, .* got 6"):
        defeat(Told(), 6)
    with pytest.raises(InvalidInput, match="`rounds_limit` must be an integer of at least 1"):
        defeat(Told(), 0)
    with pytest.raises(InvalidInput, match="`row_norm` must be a number above 0"):
        defeat(Told(), row_norm=0.0)


def test_the_measure_is_ndcg_unless_told():
    assert defeat(Told()).losses == pytest.approx([1 - 1 / math.log2(3)] * 5)
    ranker = Told()
    ranker.n_features = 0
    with pytest.raises(InvalidInput, match="`n_features` of the ranker must be an integer"):
        defeat(ranker)
