"""B8: contextual RTop-kF, descent on gradients estimated from the top of lists.

Notes
-----
Section 3.3 of [T16] with erratum R17. Documents have norm at most R, weights are kept in the ball
of radius U, grades are at most r, lists have m documents. Exploring with probability gamma costs
gamma B T, and steps on estimates with E|z|^2 <= C / gamma cost
U^2 / (2 eta) + eta C T / (2 gamma).
"""

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

from keyhole.base.errors import check_choice, check_integer, check_number


class ListSize(NamedTuple):
    """What the bound asks of a problem: m, R, U and the largest grade."""

    n_items: int
    row_norm: float
    radius: float
    max_grade: float

    @property
    def max_score(self) -> float:
        """The largest score, R U."""
        return self.row_norm * self.radius


class DescentSettings(NamedTuple):
    """Rate eta, probability gamma of exploring, and the regret bound that they attain."""

    rate: float
    mix: float
    bound: float


class _Formulas(NamedTuple):
    """C, and B where no score is larger than the second argument."""

    constant: Callable[[ListSize], float]
    worst_loss: Callable[[ListSize, float], float]


def _kl_worst(size: ListSize, score: float) -> float:
    ends = itertools.product((0.0, size.max_grade), (-score, score))
    return size.n_items * max(math.exp(r) * (r - s - 1.0) + math.exp(s) for r, s in ends)


_SURROGATES = {
    "squared": _Formulas(
        lambda size: 4.0 * (size.n_items * size.row_norm * (size.max_score + size.max_grade)) ** 2,
        lambda size, score: size.n_items * (score + size.max_grade) ** 2,
    ),
    "ranksvm": _Formulas(
        lambda size: float((size.row_norm * size.n_items * (size.n_items - 1)) ** 2),
        lambda size, score: size.n_items * (size.n_items - 1) // 2 * (1.0 + 2.0 * score),
    ),
    "kl": _Formulas(
        lambda size: (
            size.n_items * size.row_norm * math.exp(max(size.max_score, size.max_grade))
        ) ** 2,
        _kl_worst,
    ),
}  # fmt: skip


def _formulas(surrogate: str, size: ListSize) -> _Formulas:
    check_integer(size.n_items, "`n_items`", at_least=1)
    for name in ("row_norm", "radius", "max_grade"):
        check_number(getattr(size, name), f"`{name}`", above=0.0)
    return _SURROGATES[check_choice(surrogate, "surrogate of the regret bound", _SURROGATES)]


def estimate_constant(surrogate: str, size: ListSize) -> float:
    """Return C: the mean squared norm of an estimated gradient is at most C / gamma.

    It holds for every probability gamma in (0, 1] of a random top and whatever list is shown
    otherwise. ``squared``: 4 m^2 R^2 (R U + r)^2. ``ranksvm``: R^2 m^2 (m - 1)^2. ``kl``:
    m^2 R^2 max(e^(R U), e^r)^2, where the whole gradient of a document counts as its term, as
    :class:`~keyhole.surrogates.kl.UnnormalisedKL` has it: an estimate in which e^s is not divided
    by the propensity can exceed it.

    Examples
    --------
    >>> size = ListSize(n_items=10, row_norm=1.0, radius=2.0, max_grade=4.0)
    >>> estimate_constant("squared", size), estimate_constant("ranksvm", size)
    (14400.0, 8100.0)
    """
    return _formulas(surrogate, size).constant(size)


def worst_loss(surrogate: str, size: ListSize) -> float:
    """Return B: the largest surrogate loss of a list, scores in [-R U, R U].

    The scores of exploration, uniform in [0, 1], are covered where R U is at least 1.

    Examples
    --------
    >>> size = ListSize(n_items=10, row_norm=1.0, radius=2.0, max_grade=4.0)
    >>> worst_loss("squared", size), worst_loss("ranksvm", size)
    (360.0, 225.0)
    """
    return _formulas(surrogate, size).worst_loss(size, max(size.max_score, 1.0))


def regret_bound(
    constant: float, loss: float, radius: float, rounds: float, *, rate: float, mix: float
) -> float:
    """Return gamma B T + U^2 / (2 eta) + eta C T / (2 gamma).

    Examples
    --------
    >>> regret_bound(1.0, 1.0, 1.0, 100, rate=0.05, mix=0.25)
    45.0
    """
    rate, mix = check_number(rate, "`rate`", above=0.0), check_number(mix, "`mix`", above=0.0)
    return mix * loss * rounds + radius**2 / (2.0 * rate) + rate * constant * rounds / (2.0 * mix)


def best_settings(constant: float, loss: float, radius: float, rounds: float) -> DescentSettings:
    """Return the settings with the least regret bound, and that bound.

    eta = U sqrt(gamma / (C T)) and gamma = (U sqrt(C) / (2 B))^(2/3) T^(-1/3), which make
    3 2^(-2/3) (U^2 C B)^(1/3) T^(2/3). Where the horizon is too short for a gamma below 1/2, which
    the algorithm asks for, gamma is 1/2 and the bound that of it.

    Examples
    --------
    >>> settings = best_settings(1.0, 1.0, 1.0, 1000)
    >>> round(settings.mix, 4), round(settings.bound, 2)
    (0.063, 188.99)
    """
    mix = (radius * math.sqrt(constant) / (2.0 * loss)) ** (2 / 3) * rounds ** (-1 / 3)
    mix = min(mix, 0.5)
    rate = radius * math.sqrt(mix / (constant * rounds))
    return DescentSettings(
        rate, mix, regret_bound(constant, loss, radius, rounds, rate=rate, mix=mix)
    )
