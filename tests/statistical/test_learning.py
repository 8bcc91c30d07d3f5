"""Rankers of a fixed list learn: claims that no ranker passes that does not.

The bounds of theory are loose (a random ranker keeps most of them), so regret is held against what
random rankings lose, which is known in closed form, and against the rate at which it should grow.
Every claim is run on rankers that do not learn too, and must fail for them.
"""

# ruff: noqa: T201 (tests print the bounds they hold results against)

import math
from typing import Any

import numpy as np
import pytest

from keyhole import (
    Choices,
    Flips,
    Forecaster,
    Full,
    Hedge,
    OnlineRank,
    Recorded,
    RTopK,
    Switching,
    Top,
    play,
)
from keyhole.bounds import choices
from keyhole.checks.non_learners import check_only_learners_pass, non_learners
from keyhole.measures import measure as named_measure

ERRORS = 4.0
"""Standard errors that are added to a mean before it is judged."""


def highest_regret(trace) -> float:
    """Return mean regret at the end, with its errors added."""
    regret = trace.regret[:, -1]
    return float(regret.mean() + ERRORS * regret.std(ddof=1) / math.sqrt(len(regret)))


def random_regret(world: Flips, measure: str, rounds: int) -> float:
    """Return the least that random rankings can be expected to lose: hindsight only adds to it.

    Relevance is independent of the round, and gains are those of an item, so that the mean
    relevance is enough. PairwiseLoss is SumLoss up to what no ranking changes (M2).
    """
    mean = np.abs(world.truth - world.flip)
    weights = named_measure(measure.replace("Pairwise", "Sum")).weights(world.n_items)
    return rounds * abs(float(np.sort(mean)[::-1] @ weights - weights.mean() * mean.sum()))


SIZES = [(3, 1, 300), (3, 2, 5000), (6, 2, 5000), (10, 1, 5000), (10, 10, 5000), (20, 3, 20_000)]


@pytest.mark.parametrize("measure", ["SumLoss", "PairwiseLoss", "DCG", "Precision@2"])
def test_b6_rtopk_loses_less_than_half_of_what_random_rankings_lose(measure):
    """At the theory's own settings, where B6 itself is many times what chance loses."""
    for m, k, rounds in SIZES:
        world = Flips(m, n_relevant=m // 2)
        chance = random_regret(world, measure, rounds)

        def learns(ranker, world=world, k=k, rounds=rounds, chance=chance):
            trace = play(ranker, world, reveal=Top(k), measure=measure, rounds=rounds, runs=4,
                         same_users=True)  # fmt: skip
            share = highest_regret(trace) / chance
            print(f"{measure}, m={ranker.n_items}, k={k}: {share:.3f} of chance, at most 0.5")
            assert share <= 0.5

        ranker = RTopK(m, k=k, horizon=rounds, measure=measure)
        check_only_learners_pass(learns, ranker, non_learners(ranker))


# ------------------------------------------------------------------ rates

HORIZONS = np.array([1000, 4000, 16_000, 64_000])


def growth(trace_at) -> tuple[float, float]:
    """Return the log-log slope of regret over horizons, each tuned for, and its standard error.

    A slope is a weighted sum of logarithms, each with the relative error of its mean.
    """
    means, errors = [], []
    for rounds in HORIZONS.tolist():
        regret = trace_at(rounds).regret[:, -1]
        means.append(regret.mean())
        errors.append(regret.std(ddof=1) / math.sqrt(len(regret)) / regret.mean())
    assert min(means) > 0.0
    centred = np.log(HORIZONS) - np.log(HORIZONS).mean()
    weights = centred / (centred @ centred)
    return float(weights @ np.log(means)), float(np.sqrt((weights * errors) ** 2 @ np.ones(4)))


def check_growth(name: str, trace_at, at_most: float) -> None:
    slope, error = growth(trace_at)
    print(f"{name}: slope {slope:.3f}, at most {at_most:.3f} + {ERRORS * error:.3f}")
    assert ERRORS * error < 0.2  # linear regret is further away than that
    assert slope <= at_most + ERRORS * error


@pytest.mark.parametrize("k", [1, 2])
def test_a4_regret_grows_like_two_thirds_on_switching_sequences(k):
    """Five phases whatever the horizon, so that what random rankings lose is linear in it."""
    m = 6

    def grows_slowly(make):
        def trace_at(rounds):
            world = Switching(m, n_relevant=2, period=rounds // 5)
            return play(make(rounds), world, reveal=Top(k), measure="SumLoss", rounds=rounds,
                        runs=20, seed=3)  # fmt: skip

        check_growth(f"RTop-{k}F", trace_at, 2 / 3)

    def learner(rounds):
        return RTopK(m, k=k, horizon=rounds, measure="SumLoss")

    others = {
        kind: lambda rounds, kind=kind: non_learners(learner(rounds))[kind]
        for kind in non_learners(learner(1000))
    }
    check_only_learners_pass(grows_slowly, learner, others)


@pytest.mark.parametrize(("m", "measure"), [(3, "DCG"), (3, "SumLoss"), (4, "DCG")])
def test_a9_forecaster_keeps_its_bound_and_its_rate(m, measure):
    """3 (k* N)^(2/3) (ln N)^(1/3) T^(2/3), k* N the largest coefficient times the sets (scale)."""

    def keeps(make):
        def trace_at(rounds):
            ranker = make(rounds)
            trace = play(ranker, Flips(m, n_relevant=1), reveal=Top(1), measure=measure,
                         rounds=rounds, runs=10, same_users=True)  # fmt: skip
            scale = learner(rounds).scale
            log_n = math.log(math.factorial(m))
            bound = 3.0 * scale ** (2 / 3) * log_n ** (1 / 3) * rounds ** (2 / 3)
            print(f"regret {highest_regret(trace):.0f}, bound {bound:.0f}")
            assert highest_regret(trace) <= bound
            return trace

        # The tuned exploration alone costs exactly T^(2/3); the rest is below it.
        check_growth(f"{measure}, m={m}", trace_at, 2 / 3)

    def learner(rounds):
        return Forecaster(m, horizon=rounds, measure=measure)

    others = {
        kind: lambda rounds, kind=kind: non_learners(learner(rounds))[kind]
        for kind in non_learners(learner(1000))
    }
    check_only_learners_pass(keeps, learner, others)


# ------------------------------------------------------------------ full information


@pytest.mark.parametrize("m", [4, 5])
def test_a13_weights_over_all_rankings_keep_their_bound(m):
    """sqrt(T ln(m!) / 2) times the range, which is at most 1 for AP: a tenth of what chance loses.

    The bound is on what is expected for fixed users, so all runs meet the same.
    """
    rounds = 2000
    bound = math.sqrt(rounds * math.log(math.factorial(m)) / 2.0)

    def keeps(ranker):
        trace = play(ranker, Flips(m, n_relevant=m // 2), reveal=Full(), measure="AP",
                     rounds=rounds, runs=6, same_users=True)  # fmt: skip
        assert trace.exact == "exhaustive"
        print(f"m={m}: regret {highest_regret(trace):.1f}, bound {bound:.1f}")
        assert highest_regret(trace) <= bound

    ranker = Hedge(m, horizon=rounds, measure="AP")
    check_only_learners_pass(keeps, ranker, non_learners(ranker))


@pytest.mark.parametrize("sampler", ["plackett-luce", "quicksort", "reverse-plackett-luce"])
def test_b9_online_rank_keeps_its_bound_where_choices_can_be_learnt(sampler):
    """On uniform choices every ranker has the same regret; on skewed ones B9 is far below chance.

    The bound for k choices is that of M = k (n - k), at most Corollary 3.2's n sqrt(T n k log 2).
    """
    for m, rounds, chosen in ((5, 5000, 1), (12, 3000, 2)):
        bound = choices.choice_bound(m, rounds, choices.spread(m, chosen))
        assert bound <= m * math.sqrt(rounds * m * chosen * math.log(2.0))  # R29
        world = Choices(m, n_chosen=chosen, skew=1.0)

        def keeps(ranker, world=world, rounds=rounds, bound=bound):
            trace = play(ranker, world, reveal=Full(), measure="InversionLoss", rounds=rounds,
                         runs=10, same_users=True)  # fmt: skip
            print(f"{sampler}: regret {highest_regret(trace):.0f}, bound {bound:.0f}")
            assert highest_regret(trace) <= bound

        ranker = OnlineRank(m, sampler=sampler, horizon=rounds, measure="InversionLoss",
                            n_chosen=chosen)  # fmt: skip
        check_only_learners_pass(keeps, ranker, non_learners(ranker))


def opposing_the_leader(rounds: int, m: int):
    """Relevant is the item that one who follows the leader would show last."""
    totals, rows = np.zeros(m), np.zeros((rounds, m))
    for row in rows:
        row[np.argsort(-totals, kind="stable")[-1]] = 1.0
        totals += row
    return rows


def test_noise_protects_from_an_adversary_that_opposes_the_leader():
    """Nothing can be learnt there, so chance does well: the one to beat follows the leader.

    With the adversary's ties that one finds the relevant item last in every round, a fixed ranking
    in the middle on average: (m - 1) / 2 positions higher. With its own ties it loses half of it.
    """
    m, rounds = 5, 5000
    world = Recorded(opposing_the_leader(rounds, m))
    linear = rounds * (m - 1) / 2.0

    def withstands(ranker):
        judged = "InversionLoss" if isinstance(ranker, OnlineRank) else "SumLoss"
        trace = play(ranker, world, reveal=Full() if judged != "SumLoss" else Top(m),
                     measure=judged, rounds=rounds, runs=10)  # fmt: skip
        print(f"{type(ranker).__name__}: regret {highest_regret(trace):.0f} of {linear:.0f}")
        assert highest_regret(trace) <= 0.1 * linear

    game: dict[str, Any] = {"horizon": rounds, "measure": "InversionLoss", "n_chosen": 1}
    leader = OnlineRank(m, rate=1e6, **game)
    check_only_learners_pass(withstands, OnlineRank(m, **game), {"the leader": leader})
    game = {"horizon": rounds, "measure": "SumLoss", "k": m, "n_blocks": rounds}
    reckless = RTopK(m, rate=1e6, **game)
    check_only_learners_pass(withstands, RTopK(m, **game), {"the leader": reckless})
