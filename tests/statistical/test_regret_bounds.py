"""B6 and B9 hold on every sequence tried, and uniform choices cost what they must.

The bounds are on expected regret against a fixed sequence, so the mean over runs that meet the
same users is compared with them, at every checkpoint: they grow with the rounds. B6 is so loose
that a random ranker keeps it; that rankers learn is shown in test_learning.py.
"""

# ruff: noqa: T201 (tests print the bounds they hold results against)

import itertools
import math
from functools import cache

import numpy as np
import pytest

from keyhole import Choices, Flips, Full, OnlineRank, Recorded, RTopK, Switching, Top, play
from keyhole.bounds import choices, ftpl
from keyhole.bounds.blocks import n_cells
from keyhole.contracts.worlds import World

SAMPLERS = ("plackett-luce", "quicksort", "reverse-plackett-luce")


def random_sequence(rounds: int, m: int):
    rng = np.random.default_rng(m)
    return rng.integers(0, 2, (rounds, m))


def alternating(rounds: int, m: int):
    """The halves of the list take turns."""
    first = np.arange(m) < (m + 1) // 2
    return np.where(np.arange(rounds)[:, None] % 2 == 0, first, ~first)


def punishing(rounds: int, m: int, n_relevant: int | None = None):
    """Relevant are those whom one who follows the leader would show last."""
    totals, rows = np.zeros(m), np.zeros((rounds, m))
    for row in rows:
        order = np.argsort(-totals, kind="stable")
        row[order[-(n_relevant or m // 2) :]] = 1.0
        totals += row
    return rows


def turning(rounds: int, m: int):
    """One half of the list for the first half of the game, then the other."""
    first = np.arange(m) < m // 2
    return np.where(np.arange(rounds)[:, None] < rounds // 2, first, ~first)


SEQUENCES = {f.__name__: f for f in (random_sequence, alternating, punishing, turning)}


def recorded(name: str, rounds: int, m: int) -> Recorded:
    return Recorded(SEQUENCES[name](rounds, m).astype(np.float64))


def written_down(world: World, rounds: int) -> Recorded:
    """Return what the users of a world like, which a game with `same_users` would show as well.

    Recorded, all worlds share the compiled games of a ranker.
    """
    return Recorded(np.array([world.relevance(t) for t in range(rounds)]))


@cache
def worlds(rounds: int, m: int):
    drawn = {
        "flips": Flips(m, n_relevant=m // 2),
        "switching": Switching(m, n_relevant=m // 2, period=rounds // 7),
        "choices": Choices(m),
    }
    return {
        **{name: written_down(world, rounds) for name, world in drawn.items()},
        **{name: recorded(name, rounds, m) for name in SEQUENCES},
    }


def largest_ratio(trace, bound: float) -> float:
    """Return mean regret over its bound at the worst checkpoint."""
    assert trace.exact == "sorted"
    regret = trace.regret.mean(axis=0)
    assert np.isfinite(regret).all()
    return float(regret.max() / bound)


# Worlds by measure; SumLoss and Precision share their compiled game.
PLAYED = {
    "SumLoss": ("flips", "switching", "choices", *SEQUENCES),
    "Precision@2": ("flips", "switching", "choices", *SEQUENCES),
    "DCG": ("flips", *SEQUENCES),
    "PairwiseLoss": ("switching", *SEQUENCES),
}
SIZES = [(3, 1, 300), (3, 2, 5000), (6, 2, 5000), (10, 1, 5000), (10, 10, 5000), (20, 3, 20_000)]


@pytest.mark.parametrize("measure", PLAYED)
def test_b6_rtopk_with_ftpl(measure):
    worst = 0.0
    for (m, k, rounds), tight in itertools.product(SIZES, (False, True)):
        c = ftpl.constants(measure, m, tight=tight)
        q = n_cells(m, k)
        for name, world in worlds(rounds, m).items():
            if name not in PLAYED[measure]:
                continue
            ranker = RTopK(m, k=k, horizon=rounds, measure=measure, tight=tight)
            bound = ftpl.top_k_bound(c, q, rounds, ranker.n_blocks)
            trace = play(ranker, world, reveal=Top(k), measure=measure, rounds=rounds, runs=4,
                         same_users=True)  # fmt: skip
            ratio = largest_ratio(trace, bound)
            worst = max(worst, ratio)
            assert ratio <= 1.0, (name, m, k, rounds, tight)
    print(f"{measure}: largest regret / bound {worst:.3f}")
    assert worst > 0.0


@pytest.mark.parametrize("n_blocks", [1, 10, 400])
def test_b6_for_any_number_of_blocks(n_blocks):
    m, k, rounds = 10, 4, 5000
    bound = ftpl.top_k_bound(ftpl.constants("DCG", m), n_cells(m, k), rounds, n_blocks)
    for name in SEQUENCES:
        ranker = RTopK(m, k=k, horizon=rounds, measure="DCG", n_blocks=n_blocks)
        trace = play(ranker, recorded(name, rounds, m), reveal=Top(k), measure="DCG",
                     rounds=rounds, runs=4)  # fmt: skip
        assert largest_ratio(trace, bound) <= 1.0, name


def largest_choice_ratio(trace, m: int, spread: float, rate: float) -> float:
    """Return mean regret over the bound for the rounds so far, at the worst checkpoint."""
    bounds = [choices.choice_bound(m, float(t), spread, rate) for t in trace.rounds]
    return max(largest_ratio(trace, bounds[-1]), float((trace.regret.mean(0) / bounds).max()))


def online_rank(sampler: str, m: int, rounds: int, n_chosen: int | None) -> OnlineRank:
    return OnlineRank(
        m, sampler=sampler, horizon=rounds, measure="InversionLoss", n_chosen=n_chosen
    )


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_b9_online_rank_on_binary_values(sampler):
    worst = 0.0
    for m, rounds in ((2, 1000), (4, 5000), (9, 5000), (20, 2000)):
        spread = choices.spread(m)
        assert rounds >= choices.shortest_horizon(m, spread)
        for name, world in worlds(rounds, m).items():
            ranker = online_rank(sampler, m, rounds, None)
            trace = play(ranker, world, reveal=Full(), measure="InversionLoss", rounds=rounds,
                         runs=20, same_users=True)  # fmt: skip
            ratio = largest_choice_ratio(trace, m, spread, ranker.rate)
            worst = max(worst, ratio)
            assert ratio <= 1.0, (name, m, rounds)
    print(f"{sampler}: largest regret / bound {worst:.3f}")
    assert worst > 0.05


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_b9_online_rank_on_choices(sampler):
    worst = 0.0
    for m, rounds, chosen in ((2, 1000, 1), (5, 5000, 1), (5, 5000, 3), (12, 3000, 2)):
        spread = choices.spread(m, chosen)
        assert rounds >= choices.shortest_horizon(m, spread)
        tried = {
            "uniform": Choices(m, n_chosen=chosen),
            "skewed": Choices(m, n_chosen=chosen, skew=1.0),
            "punishing": Recorded(punishing(rounds, m, chosen)),
            "phases": written_down(
                Switching(m, n_relevant=chosen, flip=0.0, period=rounds // 5), rounds
            ),
        }
        for name, world in tried.items():
            ranker = online_rank(sampler, m, rounds, chosen)
            trace = play(ranker, world, reveal=Full(), measure="InversionLoss", rounds=rounds,
                         runs=20, same_users=True)  # fmt: skip
            ratio = largest_choice_ratio(trace, m, spread, ranker.rate)
            worst = max(worst, ratio)
            assert ratio <= 1.0, (name, m, rounds, chosen)
    print(f"{sampler}: largest regret / bound {worst:.3f}")
    assert worst > 0.1


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_b9_regret_on_uniform_choices(sampler):
    """Any ranker's regret tends to (n - 1) sqrt(nT) / (2 sqrt(pi)); the mean within 4 errors."""
    m, rounds, runs = 5, 20_000, 400
    trace = play(online_rank(sampler, m, rounds, 1), Choices(m), reveal=Full(),
                 measure="InversionLoss", rounds=rounds, runs=runs, seed=1)  # fmt: skip
    regret = trace.regret[:, -1]
    expected = choices.uniform_choice_regret(m, rounds)
    error = float(regret.std(ddof=1)) / math.sqrt(runs)
    print(f"{sampler}: mean regret {regret.mean():.1f}, expected {expected:.1f}, "
          f"within {4 * error:.1f}")  # fmt: skip
    assert 4 * error < expected / 4
    assert abs(regret.mean() - expected) <= 4 * error


def test_uniform_choice_regret_is_the_limit_of_the_exact_one():
    """Half the sum over pairs of E|N_u - N_v|, the difference being a lazy random walk."""
    n, rounds = 5, 2000
    law = np.array([1.0])
    for _ in range(rounds):
        law = np.convolve(law, [1 / n, 1 - 2 / n, 1 / n])
    spread = float(np.abs(np.arange(-rounds, rounds + 1)) @ law)
    exact = math.comb(n, 2) * spread / 2
    # The central limit theorem for |walk| errs by O(1/T) relative for a symmetric lattice step.
    assert choices.uniform_choice_regret(n, rounds) == pytest.approx(exact, rel=2 / rounds)
