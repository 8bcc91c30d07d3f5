"""What keystone's theorem promises, measured: a spoilt half is survived, and no crowd is too bad.

`python -m bench.sabotage` and `python -m bench.adversary` measure the same for longer and on more
crowds.
"""

# ruff: noqa: T201 (tests print the bounds they hold results against)

import math

import numpy as np
import pytest

from bench.theory.leader import Leader
from bench.theory.phases import Phases
from bench.theory.sabotage import Sabotaged
from bench.theory.search import regret_per_round, worst_crowd
from keyhole import play
from keyhole.base.errors import InvalidInput
from keyhole.bounds import ftpl
from keyhole.checks.non_learners import check_only_learners_pass
from keyhole.rankers.fixed.keystone import Keystone

CHANCES = np.linspace(0.9, 0.1, 5)


def spoilt(*, safe):
    return Sabotaged(Keystone(5), means=1.0 - CHANCES, safe=safe)


def survives(ranker):
    """Regret grows by less than T^.72 although the worst list is shown and believed in."""
    trace = play(ranker, Phases(CHANCES), rounds=30_000, runs=16, seed=3, n_points=60)
    begin = int(np.searchsorted(trace.rounds, 1000))
    per_run = trace.regret[:, [begin, -1]]
    slopes = np.log(per_run[:, 1] / per_run[:, 0]) / math.log(30_000 / trace.rounds[begin])
    limit = 0.72 - 3.0 * slopes.std(ddof=1) / math.sqrt(len(slopes))
    print(f"slope {slopes.mean():.3f}, at most {limit:.3f}")
    assert slopes.mean() < limit
    assert per_run[:, 0].min() > 0.0


def test_a_spoilt_half_is_survived_by_the_other():
    check_only_learners_pass(survives, spoilt(safe=True), {"no safe half": spoilt(safe=False)})


def test_a_search_finds_out_who_never_looks_twice():
    """The crowd that it finds is worse than RTop-kF's bound allows, but not for a keystone."""
    rounds = 10_000
    bound = ftpl.top_k_bound(ftpl.constants("DCG", 2, tight=True), 2, rounds) / rounds
    found = worst_crowd(Leader(2), rounds, tries=150, runs=1)
    again = regret_per_round(Leader(2), found.world(), rounds, runs=8, seed=9)
    print(f"regret {again:.3f}, bound {bound:.3f}")
    assert again > bound
    assert worst_crowd(Leader(2), rounds, tries=1, runs=1).regret < bound
    safe = Sabotaged(Keystone(2), means=[0.4, 0.6])
    assert regret_per_round(safe, found.world(), rounds, runs=8, seed=9) < 0.5 * bound


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Sabotaged(Keystone(2), means=[0.1, 1.1]), "`means` of Sabotaged must be 2 num"),
        (lambda: Sabotaged(Keystone(2), means=[0.1]), "`means` of Sabotaged must be 2 numbers"),
        (lambda: Phases([[0.5, 1.5]]), "`chances` of Phases must be a table of numbers from 0 to"),
        (lambda: Phases([[0.5, 0.5]], lengths=[1, 2]), "`lengths` of Phases must be 1, one per"),
        (lambda: Phases([[0.5, 0.5]], lengths=[0]), "`lengths` of Phases must be an integer of"),
    ],
)
def test_what_cannot_be_played_is_refused(make, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        make()


def test_phases_follow_each_other_in_a_cycle():
    crowd = Phases([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]], lengths=[3, 2])
    rows = np.array([crowd.relevance(t, run=run) for run in range(40) for t in range(10)])
    by_round = rows.reshape(40, 10, 3)
    expected = np.tile([1.0, 1.0, 1.0, 0.0, 0.0], 2)
    assert (by_round[:, :, 0] == expected).all()
    assert (by_round[:, :, 1] == 1.0 - expected).all()
    assert abs(by_round[:, :, 2].mean() - 0.5) < 5 * 0.5 / math.sqrt(400)
    turned = crowd.relabelled(np.array([1, 2, 0]))
    assert turned.relevance(0).tolist()[0] == 0.0
    assert turned.relevance(0).tolist()[2] == 1.0
    assert turned.lengths == (3, 2)
