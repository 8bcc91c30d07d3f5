"""A7 where more of the top is seen than a term of the gradient needs: every item seen counts."""

from collections.abc import Callable
from typing import Any

from keyhole.kernels.compiled import assemble
from keyhole.surrogates.base import Surrogate
from keyhole.surrogates.estimators import not_observable
from keyhole.surrogates.propensities import inclusion_chance, mixed


def _from_parts(known: Any, part: Any) -> Callable[..., None]:
    def estimate_from_parts(
        params: Any,
        scores: Any,
        ranking: Any,
        values: Any,
        places: Any,
        k: int,
        gamma: float,
        mismatch_scale: float,
        out: Any,
        work: Any,
    ) -> None:
        n_items, extra = scores.shape[0], work.extra[: scores.shape[0]]
        chance = inclusion_chance(n_items, k, 1)
        known(params, scores, out)
        for match in (True, False):
            for item in range(n_items):
                extra[item] = 0.0
            for position in range(min(k, n_items)):
                if (places[position] < k) == match:
                    part(params, scores, ranking[position], values[position], extra)
            propensity = mixed(match, chance, gamma, mismatch_scale)
            for item in range(n_items):
                out[item] += extra[item] / propensity

    return estimate_from_parts


def _from_pairs(pair: Any) -> Callable[..., None]:
    def estimate_from_pairs(
        params: Any,
        scores: Any,
        ranking: Any,
        values: Any,
        places: Any,
        k: int,
        gamma: float,
        mismatch_scale: float,
        out: Any,
        work: Any,
    ) -> None:
        n_items, extra = scores.shape[0], work.extra[: scores.shape[0]]
        for item in range(n_items):
            out[item] = 0.0
        if n_items < 2:  # R32: a list of one item has no pairs
            return
        chance = inclusion_chance(n_items, k, 2)
        for match in (True, False):
            for item in range(n_items):
                extra[item] = 0.0
            for one in range(min(k, n_items)):
                for other in range(one):
                    if (places[one] < k and places[other] < k) == match:
                        i, j = ranking[one], ranking[other]
                        pair(params, scores, i, j, values[one], values[other], extra)
                        pair(params, scores, j, i, values[other], values[one], extra)
            propensity = mixed(match, chance, gamma, mismatch_scale)
            for item in range(n_items):
                out[item] += extra[item] / propensity

    return estimate_from_pairs


def inclusion_kernel(surrogate: Surrogate) -> Callable[..., None]:
    """Return the kernel that estimates a gradient from the first k items, k at least its order.

    It takes (params, scores, ranking, values, places, k, gamma, mismatch_scale, out, work), where
    ``places[p]`` is the position that the item at position p had in the greedy list.

    Notes
    -----
    With the greedy list shown with probability 1 - gamma and a random top otherwise, a term of
    one item is seen with probability (1 - gamma) 1[greedy top] + gamma k / m, and one of two items
    with (1 - gamma) 1[both in the greedy top] + gamma k (k - 1) / (m (m - 1)); k is the length of
    lists that are shorter (R32). Each term seen is divided by that. Lemma 25 of [T16] divides by
    the probability of the whole top instead: unbiased as well, but the greedy tops, which
    are most, then weigh next to nothing. Of all weights by the top that leave a term unbiased,
    one over its own probability has the least second moment (Cauchy-Schwarz). Where k is the order
    both are the same.
    """
    if surrogate.parts is not None:
        return assemble(_from_parts, *surrogate.parts)
    if surrogate.pairs is not None:
        return assemble(_from_pairs, *surrogate.pairs)
    raise not_observable(surrogate, 2)
