"""The sort is the stable descending one whatever the keys."""

import numpy as np
import pytest

from keyhole.kernels.sorting import _COUNTING_LIMIT, _INSERTION_LIMIT, sort_descending, sort_work

SIZES = sorted(
    {1, 2, 3, 5, 10, 100, 257, 1000, 3001}
    | {limit + d for limit in (_COUNTING_LIMIT, _INSERTION_LIMIT) for d in (-1, 0, 1)}
    | {2 * _INSERTION_LIMIT + 1, 4 * _INSERTION_LIMIT, 4 * _INSERTION_LIMIT + 1}
)


def check(keys) -> None:
    keys = np.ascontiguousarray(keys, dtype=np.float64)
    before = keys.copy()
    order = np.full(len(keys), -1)
    work = sort_work(len(keys))
    for part in work:
        part.fill(7)  # no result depends on the content of the scratch memory
    sort_descending(keys, order, work)
    assert order.tolist() == np.argsort(-keys, kind="stable").tolist()
    assert keys.tolist() == before.tolist()


def outlier(n, rng, where, size):
    """All keys but one share a bucket."""
    keys = rng.random(n)
    keys[where % n] = size
    return keys


def exponents(low, high):
    return lambda n, rng: rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(low, high, n)


KINDS = {
    "uniform": lambda n, rng: rng.random(n),
    "normal": lambda n, rng: rng.normal(size=n),
    "gumbel": lambda n, rng: rng.gumbel(size=n) + 5 * rng.random(n),
    "few values": lambda n, rng: rng.integers(0, 3, n),
    "many values": lambda n, rng: rng.integers(0, n, n),
    "all equal": lambda n, _: np.full(n, 0.1),
    "all zero, both signs": lambda n, rng: rng.choice([0.0, -0.0], n),
    "ascending": lambda n, _: np.arange(n),
    "descending": lambda n, _: -np.arange(n),
    "organ pipe": lambda n, _: -np.abs(np.arange(n) - n // 2),
    "two clusters": lambda n, rng: rng.integers(0, 2, n) + 1e-9 * rng.random(n),
    "clusters of ties": lambda n, rng: rng.integers(0, 2, n) + 1e-9 * rng.integers(0, 3, n),
    "geometric": lambda n, rng: 0.5 ** rng.permutation(n),
    "outlier above": lambda n, rng: outlier(n, rng, 3, 1e9),
    "outlier below": lambda n, rng: outlier(n, rng, n - 1, -1e9),
    "outlier, rest tied": lambda n, _: np.where(np.arange(n) == n // 2, 1e300, 1.0),
    "outlier far above": lambda n, rng: outlier(n, rng, 0, 1e308),
    "large": exponents(250, 300),
    "small": exponents(-300, -250),
    "from small to large": exponents(-300, 300),
    "range beyond the largest number": lambda n, rng: rng.uniform(-1, 1, n) * 1.7e308,
    "subnormal": lambda n, rng: rng.integers(-50, 50, n) * 5e-324,
    "one step apart": lambda n, rng: 1.0 + rng.integers(0, 4, n) * 2.0**-52,
    "subnormal range about one": lambda n, rng: np.where(rng.random(n) < 0.5, 5e-324, 1e-320),
    "least normal range": lambda n, rng: rng.random(n) * 2.3e-308,
}


@pytest.mark.parametrize("kind", KINDS)
def test_equals_a_stable_sort(kind):
    rng = np.random.default_rng(0)
    for n_items in SIZES:
        for _ in range(3):
            check(KINDS[kind](n_items, rng))


@pytest.mark.parametrize("n_items", [_COUNTING_LIMIT + 1, 200])
def test_one_crowded_bucket_among_others(n_items):
    """More keys in one bucket than are put in place one by one, the others spread out."""
    rng = np.random.default_rng(1)
    for crowd in range(_INSERTION_LIMIT - 1, min(n_items, 2 * _INSERTION_LIMIT + 3)):
        keys = np.linspace(0.0, 1.0, n_items)
        keys[:crowd] = 0.5 + 1e-7 * rng.integers(0, crowd, crowd)
        check(rng.permutation(keys))


def test_scratch_memory_may_be_larger_and_used_again():
    rng = np.random.default_rng(2)
    work = sort_work(300)
    for n_items in (300, 7, 49, 120, 48, 300):
        keys, order = rng.random(n_items).round(2), np.empty(n_items, np.int64)
        sort_descending(keys, order, work)
        assert order.tolist() == np.argsort(-keys, kind="stable").tolist()
