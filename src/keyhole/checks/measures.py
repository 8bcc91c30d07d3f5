"""What every measure must do."""

import numpy as np

from keyhole.base.errors import FloatArray, IntArray
from keyhole.checks.base import SEED, a_relabelling, require
from keyhole.contracts.measures import Measure, measure_work


def check_measure(measure: Measure, n_items: int = 6, n_lists: int = 200) -> None:
    """Check one measure on random lists: finite, batch equals single, items exchangeable."""
    lists = np.random.default_rng(SEED)
    top = 4.0 if measure.max_grade >= 4.0 else measure.max_grade
    relevance = lists.integers(0, int(top) + 1, size=(n_lists, n_items)).astype(np.float64)
    relevance[0] = 0.0
    rankings = lists.permuted(np.tile(np.arange(n_items), (n_lists, 1)), axis=1)
    values = measure.many(relevance, rankings)
    require(bool(np.isfinite(values).all()), f"{measure.label} must be finite on every list.")
    single = [measure(r, p) for r, p in zip(relevance, rankings, strict=True)]
    require(np.array_equal(values, single), f"{measure.label} of many lists must equal one by one.")
    labels = a_relabelling(n_items)
    renamed = measure.many(relevance[:, labels], np.argsort(labels)[rankings])
    require(
        np.array_equal(values, renamed), f"Relabelling items must leave {measure.label} as it is."
    )
    binary = (relevance > 0).astype(np.float64)
    if measure.is_linear(True):
        _check_linear(measure, binary, rankings, binary_kernel=True)
    if measure.is_linear(False):
        _check_linear(measure, relevance, rankings, binary_kernel=False)
    require(measure.label in str(measure), f"{measure.label} must print its name.")


def _check_linear(
    measure: Measure, relevance: FloatArray, rankings: IntArray, *, binary_kernel: bool
) -> None:
    n_items = relevance.shape[1]
    prepare = measure.kernel_for(binary_kernel).prepare
    params, work, gains = measure.params(n_items), measure_work(n_items), np.empty(n_items)
    for r, ranking in zip(relevance, rankings, strict=True):
        offset, norm = prepare(params, r, gains, work)
        linear = (params.weights @ gains[ranking] + offset) / norm
        require(
            bool(np.isclose(linear, measure(r, ranking), rtol=1e-12, atol=1e-12)),
            f"{measure.label} says it is linear but is not on {r.tolist()}, {ranking.tolist()}.",
        )
