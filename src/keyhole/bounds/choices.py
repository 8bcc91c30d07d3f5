"""B9, B10 and B14: ranking from discrete choices, and the rates it is compared with.

Notes
-----
Theorem 3.1, Corollary 3.2, Lemma 4.1 and section 4 of [Ai] with erratum R29.
"""

import math

from keyhole.base.errors import check_integer

LOG_2 = math.log(2.0)


def spread(n_items: int, n_chosen: int | None = None) -> float:
    """Return M: the largest sum of squared differences of value over pairs.

    k(n - k) when k items are chosen, n^2/4 for any binary values.
    """
    if n_chosen is None:
        return n_items**2 / 4.0
    n_chosen = check_integer(n_chosen, "`n_chosen`", at_least=1, at_most=n_items, bound="n_items=")
    return max(float(n_chosen * (n_items - n_chosen)), 1.0)


def best_rate(n_items: int, n_updates: float, spread: float) -> float:
    """Return eta = n sqrt(log 2 / (T M))."""
    return n_items * math.sqrt(LOG_2 / (n_updates * spread))


def shortest_horizon(n_items: int, spread: float) -> float:
    """Return the least T for which :func:`choice_bound` is proved."""
    return n_items**2 * LOG_2 / spread


def choice_bound(n_items: int, rounds: float, spread: float, rate: float | None = None) -> float:
    """Return n sqrt(T M log 2), the regret of OnlineRank in the value-inversion loss (B9).

    For a rate eta of at most 1 that is not the best one for these rounds, as in the middle of
    a game: n^2 log 2 / (2 eta) + eta T M / 2, which is the same number at the best rate.

    Examples
    --------
    >>> round(choice_bound(5, 20_000, spread(5, 1)), 1)
    1177.4
    """
    if rate is None:
        return n_items * math.sqrt(rounds * spread * LOG_2)
    return n_items**2 * LOG_2 / (2.0 * rate) + rate * rounds * spread / 2.0


def uniform_choice_regret(n_items: int, rounds: float) -> float:
    """Return (n - 1) sqrt(n T) / (2 sqrt(pi)): regret of any ranker on uniform single choices.

    Examples
    --------
    >>> round(uniform_choice_regret(5, 20_000), 1)
    356.8
    """
    return (n_items - 1) * math.sqrt(n_items * rounds) / (2.0 * math.sqrt(math.pi))


def blocked_bound(
    n_items: int, k: int, n_cells: int, rounds: float, n_blocks: float, spread: float
) -> float:
    """Return R q K + B T / sqrt(K), the pairwise regret of RTop-kF with OnlineRank."""
    exploration = max(k * (n_items - k), 1) * n_cells * n_blocks
    return exploration + rounds * n_items * math.sqrt(spread * LOG_2 / n_blocks)


def best_n_blocks(n_items: int, k: int, n_cells: int, rounds: float, spread: float) -> float:
    """Return (B T / (2 R q))^(2/3), the best K of :func:`blocked_bound`, before rounding."""
    learning = n_items * math.sqrt(spread * LOG_2) * rounds
    exploration = 2.0 * max(k * (n_items - k), 1) * n_cells
    return float((learning / exploration) ** (2 / 3))


def pair_dimension(n_items: int) -> int:
    """Return the affine dimension of the pair matrices of all rankings (B10): n(n - 1)/2."""
    return n_items * (n_items - 1) // 2


def quoted_rates(n_items: int, rounds: float, n_chosen: int | None = 1) -> dict[str, float]:
    """Return the rates quoted in [Ai], without constants, to print beside measurements (B14).

    ``n_chosen`` is the number of items chosen per round, None for any binary values.
    """
    n, root = float(n_items), math.sqrt(rounds)
    chosen = n if n_chosen is None else float(n_chosen)
    own = n**1.5 * math.sqrt(chosen) * root
    rates = {
        "OnlineRank": own,
        "weights over n! rankings": own * math.sqrt(chosen * math.log(n)),
        "FPL on pair matrices": n**2 * chosen * root,
    }
    if n_chosen == 1:
        rates["doubly stochastic matrices"] = n**1.5 * math.sqrt(rounds * math.log(n))
        rates["combinatorial bandit"] = n**2.5 * root
        rates["interior-point bandit"] = n**3.5 * root
    return rates
