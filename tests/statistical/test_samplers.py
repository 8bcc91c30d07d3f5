"""The samplers follow the laws that their theorems are about (A5, A8).

Seeds are fixed. Frequencies are compared with exact probabilities within a Hoeffding bound,
P(|mean - p| > e) <= 2 exp(-2 n e^2), union over all that is compared; each test prints it.
"""

# ruff: noqa: T201 (tests print the bounds they hold results against)

import itertools
import math

import numpy as np
import pytest

from keyhole.kernels.compiled import assemble
from keyhole.kernels.draw import Draw
from keyhole.rankers.fixed.subroutines import SUBROUTINES, proposal_work

SAMPLERS = [name for name in SUBROUTINES if name != "ftpl"]
FAILURE = 1e-6


def _sampling(propose):
    def sample(rate, scores, seed, rankings, work):
        for row in range(rankings.shape[0]):
            propose(rate, scores, Draw(seed, 0, row), rankings[row], work)

    return sample


def rankings_of(sampler: str, w, n_draws: int, *, seed: int = 0, rate: float = 1.0):
    scores = np.array(w, dtype=np.float64) / rate
    rankings = np.empty((n_draws, len(scores)), np.int64)
    sample_all = assemble(_sampling, SUBROUTINES[sampler].propose)
    sample_all(rate, scores, seed, rankings, proposal_work(len(scores)))
    assert (np.sort(rankings, axis=1) == np.arange(len(scores))).all()
    return rankings


def hoeffding(n_draws: int, n_compared: int) -> float:
    return math.sqrt(math.log(2 * n_compared / FAILURE) / (2 * n_draws))


def weights(kind: str, n_items: int):
    rng = np.random.default_rng(n_items)
    return {
        "equal": np.zeros(n_items),
        "spread": np.linspace(-2.0, 2.0, n_items),
        "random": rng.normal(size=n_items),
        "one far ahead": np.where(np.arange(n_items) == n_items // 2, 6.0, 0.0),
    }[kind]


CASES = [
    ("equal", 3, 200_000),
    ("spread", 3, 200_000),
    ("random", 8, 100_000),
    ("one far ahead", 5, 100_000),
    ("random", 60, 20_000),  # sorted by buckets
    ("random", 1000, 2_000),
]


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize(("kind", "n_items", "n_draws"), CASES)
def test_pair_marginals(name, kind, n_items, n_draws):
    """P(u before v) = sigmoid(w_u - w_v)."""
    w = weights(kind, n_items)
    rankings = rankings_of(name, w, n_draws)
    places = np.empty_like(rankings)
    np.put_along_axis(places, rankings, np.arange(n_items)[None], axis=1)
    pairs = np.array(list(itertools.combinations(range(n_items), 2)))
    if len(pairs) > 2000:
        pairs = np.random.default_rng(0).permutation(pairs)[:2000]
    u, v = pairs.T
    expected = 1.0 / (1.0 + np.exp(w[v] - w[u]))
    before = np.array([(places[:, i] < places[:, j]).mean() for i, j in pairs])  # saves memory
    error = np.abs(before - expected).max()
    bound = hoeffding(n_draws, len(pairs))
    print(f"{name}, {kind}, m={n_items}: {len(pairs)} pairs, {n_draws} draws, "
          f"largest error {error:.5f}, bound {bound:.5f}")  # fmt: skip
    assert error <= bound


def test_rate_multiplies_the_scores():
    for sampler in SUBROUTINES:
        w = np.array([0.5, -0.25, 0.0, 0.75])
        expected = rankings_of(sampler, w, 100)
        assert (rankings_of(sampler, w, 100, rate=0.5) == expected).all()


def test_draws_of_other_rounds_and_seeds_differ():
    for sampler in SUBROUTINES:
        first = rankings_of(sampler, np.zeros(6), 200)
        assert len(np.unique(first, axis=0)) > 100
        assert (first != rankings_of(sampler, np.zeros(6), 200, seed=1)).any(axis=1).sum() > 100


# ------------------------------------------------------------------ whole laws, exactly

Law = dict[tuple[int, ...], float]


def plackett_luce_law(w) -> Law:
    law = {}
    for ranking in itertools.permutations(range(len(w))):
        odds = [math.exp(w[item]) for item in ranking]
        law[ranking] = math.prod(odds[p] / sum(odds[p:]) for p in range(len(w)))
    return law


def reverse_law(w) -> Law:
    return {ranking[::-1]: p for ranking, p in plackett_luce_law([-x for x in w]).items()}


def quicksort_law(w) -> Law:
    def of(items: tuple[int, ...]) -> Law:
        if len(items) < 2:
            return {items: 1.0}
        law: Law = {}
        for pivot in items:
            others = [item for item in items if item != pivot]
            for lefts in itertools.product((True, False), repeat=len(others)):
                chance = 1.0 / len(items)
                for item, left in zip(others, lefts, strict=True):
                    ahead = 1.0 / (1.0 + math.exp(w[pivot] - w[item]))
                    chance *= ahead if left else 1.0 - ahead
                before = of(tuple(i for i, left in zip(others, lefts, strict=True) if left))
                after = of(tuple(i for i, left in zip(others, lefts, strict=True) if not left))
                for (a, p), (b, q) in itertools.product(before.items(), after.items()):
                    ranking = (*a, pivot, *b)
                    law[ranking] = law.get(ranking, 0.0) + chance * p * q
        return law

    return of(tuple(range(len(w))))


LAWS = {
    "plackett-luce": plackett_luce_law,
    "quicksort": quicksort_law,
    "reverse-plackett-luce": reverse_law,
}


def distance(a: Law, b: Law) -> float:
    """Total variation."""
    return sum(abs(a[ranking] - b[ranking]) for ranking in a) / 2


def frequencies(rankings) -> Law:
    n_items = rankings.shape[1]
    law = dict.fromkeys(itertools.permutations(range(n_items)), 0.0)
    seen, counts = np.unique(rankings, axis=0, return_counts=True)
    for ranking, count in zip(seen.tolist(), counts.tolist(), strict=True):
        law[tuple(ranking)] = count / len(rankings)
    return law


def largest_error(a: Law, b: Law) -> float:
    return max(abs(a[ranking] - b[ranking]) for ranking in a)


FULL_LAW_WEIGHTS = [(0.0, 1.0, 2.0), (2.0, 0.0, -1.0, 0.5), (0.0, 0.0, 0.0)]


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("w", FULL_LAW_WEIGHTS)
def test_whole_law(name, w):
    n_draws = 200_000
    law = LAWS[name](w)
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-12)
    error = largest_error(frequencies(rankings_of(name, w, n_draws)), law)
    bound = hoeffding(n_draws, len(law))
    print(f"{name}, w={w}: {len(law)} rankings, largest error {error:.5f}, bound {bound:.5f}")
    assert error <= bound


@pytest.mark.parametrize("w", FULL_LAW_WEIGHTS[:2])
def test_the_three_laws_differ(w):
    """A8: same pairs, other rankings; so no sampler can be taken for another."""
    n_draws = 200_000
    laws = {name: law(w) for name, law in LAWS.items()}
    drawn = {name: frequencies(rankings_of(name, w, n_draws)) for name in SAMPLERS}
    # All 2^(m!) events at once: P(TV(empirical, law) > e) <= 2^(m!) exp(-2 n e^2).
    n_events = 2.0 ** len(laws["quicksort"])
    slack = math.sqrt(math.log(n_events / FAILURE) / (2 * n_draws))
    for a, b in itertools.combinations(SAMPLERS, 2):
        exact, seen = distance(laws[a], laws[b]), distance(drawn[a], drawn[b])
        print(f"w={w}: TV({a}, {b}) = {exact:.4f}, measured {seen:.4f} +- {2 * slack:.4f}")
        assert exact > 4 * slack
        assert abs(seen - exact) <= 2 * slack


def test_the_three_laws_agree_for_equal_weights():
    laws = [law((0.0, 0.0, 0.0)) for law in LAWS.values()]
    for law in laws:
        assert law == pytest.approx(dict.fromkeys(law, 1 / 6), abs=1e-15)


def ftpl_law(w) -> Law:
    """Integrate P(top above x) P(bottom below x) over the middle key x, piece by piece.

    Between breakpoints the integrand is a quadratic, on which Simpson's rule is exact.
    """
    law: Law = {}
    for top, middle, bottom in itertools.permutations(range(3)):

        def integrand(u, top=top, middle=middle, bottom=bottom):
            above = np.clip(1.0 - (w[middle] + u - w[top]), 0.0, 1.0)
            return above * np.clip(w[middle] + u - w[bottom], 0.0, 1.0)

        kinks = [w[other] - w[middle] + edge for other in (top, bottom) for edge in (0.0, 1.0)]
        points = sorted({0.0, 1.0, *(kink for kink in kinks if 0.0 < kink < 1.0)})
        law[top, middle, bottom] = sum(
            (b - a) / 6 * (integrand(a) + 4 * integrand((a + b) / 2) + integrand(b))
            for a, b in itertools.pairwise(points)
        )
    return law


@pytest.mark.parametrize(
    "w", [(0.0, 0.0, 0.0), (0.0, 0.3, 0.5), (0.0, 0.9, 0.2), (0.0, 2.0, 2.1), (0.1, 0.1, 0.7)]
)
def test_ftpl_law(w):
    """A5: sort scores plus noise that is uniform on [0, 1/epsilon]."""
    n_draws = 200_000
    law = ftpl_law(w)
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-12)
    drawn = frequencies(rankings_of("ftpl", w, n_draws, rate=0.02))
    error = largest_error(drawn, law)
    bound = hoeffding(n_draws, len(law))
    print(f"ftpl, w={w}: largest error {error:.5f}, bound {bound:.5f}")
    assert error <= bound
    assert all(drawn[ranking] == 0.0 for ranking, p in law.items() if p == 0.0)
