"""How likely the shown top was, when a greedy ranking is now and then replaced by a random one."""

from typing import Any

from keyhole.kernels.compiled import kernel


@kernel
def ordered_chance(n_items: int, k: int) -> float:
    """Return (m - k)! / m!: the chance of k given items in a given order on top."""
    chance = 1.0
    for position in range(min(k, n_items)):
        chance /= n_items - position
    return chance


@kernel
def set_chance(n_items: int, k: int) -> float:
    """Return k! (m - k)! / m!: the chance of k given items on top, in any order."""
    chance = 1.0
    for position in range(min(k, n_items)):
        chance *= (position + 1.0) / (n_items - position)
    return chance


@kernel
def inclusion_chance(n_items: int, k: int, n_chosen: int) -> float:
    """Return the chance that ``n_chosen`` given items are all among k random ones (k' of R32)."""
    depth, chance = min(k, n_items), 1.0
    for one in range(n_chosen):
        chance *= max(0.0, depth - one) / (n_items - one)
    return chance


@kernel
def mixed(match: bool, chance: float, gamma: float, mismatch_scale: float) -> float:
    """Return how likely something on top was: by exploration, or by the greedy ranking too.

    A random ranking, shown with probability gamma, has it on top with probability ``chance``; the
    greedy one has it there if ``match``. If not, ``mismatch_scale`` multiplies the result.
    """
    return (1.0 - gamma) + gamma * chance if match else mismatch_scale * gamma * chance


@kernel
def ordered_propensity(
    greedy: Any, ranking: Any, k: int, gamma: float, mismatch_scale: float
) -> float:
    """Return the probability that the first k items are those of ``ranking``, in their order.

    Notes
    -----
    Eq. 3.8 of [T16] for the law "``greedy`` with probability 1 - gamma, else a uniformly random
    ranking"; the least value is gamma (m - k)! / m! (R39: for k = 2 gamma / (m (m - 1)), not
    gamma / m^2). Lists shorter than k count as seen whole (R32). A ``mismatch_scale`` c other
    than 1 multiplies the propensity of tops that are not greedy (R21): estimates then vary
    less and lack a share 1 - 1/c of what the greedy top does not show.

    Examples
    --------
    >>> import numpy as np
    >>> greedy, shown = np.array([0, 1, 2]), np.array([1, 0, 2])
    >>> [round(ordered_propensity(greedy, top, 2, 0.3, 1.0), 4) for top in (greedy, shown)]
    [0.75, 0.05]
    """
    n_items = ranking.shape[0]
    match = True
    for position in range(min(k, n_items)):
        match = match and ranking[position] == greedy[position]
    return mixed(match, ordered_chance(n_items, k), gamma, mismatch_scale)


@kernel
def set_propensity(greedy: Any, ranking: Any, k: int, gamma: float, mismatch_scale: float) -> float:
    """Return the probability that the first k items are those of ``ranking``, in any order.

    Notes
    -----
    The denominator of Lemma 25 of [T16] (A7): the sum of :func:`ordered_propensity` over
    all orders of the top, in which the *sets* decide what matches (R20).

    Examples
    --------
    >>> import numpy as np
    >>> greedy, shown = np.array([0, 1, 2]), np.array([1, 0, 2])
    >>> round(set_propensity(greedy, shown, 2, 0.3, 1.0), 4)
    0.8
    """
    n_items = ranking.shape[0]
    depth = min(k, n_items)
    match = True
    for position in range(depth):
        found = False
        for place in range(depth):
            found = found or greedy[place] == ranking[position]
        match = match and found
    return mixed(match, set_chance(n_items, k), gamma, mismatch_scale)
