"""Rankers that do not learn: what claims about learning are tried on."""

import numpy as np
import pytest

from keyhole import RTopK
from keyhole.base.errors import UnknownName
from keyhole.checks.non_learners import KINDS, NonLearner, check_only_learners_pass, non_learners
from keyhole.contracts.lists import Feedback

pytestmark = pytest.mark.interpreted

LEARNER = RTopK(4, horizon=200, k=1, n_blocks=10, rate=1e6)
RELEVANCE = np.array([0.0, 0.0, 1.0, 0.0])


def shown_after(ranker, rounds: int = 200):
    """Return what a ranker shows, having been told the relevance of what it showed first."""
    ranker, shown = ranker.fresh(), []
    for t in range(rounds):
        impression = ranker.rank(round=t)
        values = np.full(4, np.nan)
        values[0] = RELEVANCE[impression.ranking[0]]
        told = values.copy()
        ranker.update(impression, Feedback(told))
        assert np.array_equal(values, told, equal_nan=True)  # what was seen is left as it was
        shown.append(impression.ranking)
    return np.array(shown), ranker.state_dict()


def test_kinds_do_what_they_say():
    found = {name: shown_after(ranker) for name, ranker in non_learners(LEARNER).items()}
    learnt, _ = shown_after(LEARNER)
    assert set(found) == set(KINDS)
    assert (learnt[100:, 0] == 2).mean() > 0.5  # rounds that explore have any item on top
    assert (found["contrary"][0][100:, -1] == 2).mean() > 0.5
    assert (found["fixed"][0] == np.arange(4)).all()
    assert not found["idle"][1]["scores"].any()
    for name in ("random", "fixed"):  # there is nothing that they could keep
        assert found[name][1]["unused"].size == 0
        assert "scores" not in found[name][1]
    # Each item leads a quarter of 200 rounds: Hoeffding at 1e-6 gives 38 more or less.
    assert np.abs(np.bincount(found["random"][0][:, 0], minlength=4) - 50).max() <= 38
    first, again = (NonLearner(LEARNER.fresh(run=run), "random") for run in (0, 1))
    assert not np.array_equal(shown_after(first)[0], shown_after(again)[0])
    assert np.array_equal(shown_after(first)[0], found["random"][0])


def test_unknown_kinds_are_refused():
    with pytest.raises(UnknownName, match="contrary"):
        NonLearner(LEARNER, "contrery")


def test_claims_that_anybody_passes_are_refused():
    def anybody(ranker):
        assert ranker.n_items == 4

    with pytest.raises(AssertionError, match="but 'random' passes"):
        check_only_learners_pass(anybody, LEARNER, non_learners(LEARNER))

    def nobody(ranker):
        raise AssertionError("a claim that does not hold")

    with pytest.raises(AssertionError, match="a claim that does not hold"):
        check_only_learners_pass(nobody, LEARNER, non_learners(LEARNER))


def test_relevance_is_binary_unless_told_otherwise():
    learner = RTopK(4, horizon=100)
    assert NonLearner(learner, "contrary").params.max_grade == 1.0
    assert all(r.params.max_grade == 1.0 for r in non_learners(learner).values())
    assert all(r.params.max_grade == 3.0 for r in non_learners(learner, max_grade=3).values())
