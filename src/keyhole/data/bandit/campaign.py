"""Simulated advertising campaigns whose click probabilities are known (E7)."""

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import (
    FloatArray,
    InvalidInput,
    check_choice,
    check_integer,
    check_number,
    check_seed,
    shown,
)
from keyhole.data.bandit.log import BanditLog
from keyhole.kernels.draw import WORLD_STREAM, Draw, normals, stream_of, uniforms

SHAPES = ("linear", "bent")
HOTEL_RATES = (0.081, 0.082, 0.078, 0.077, 0.055)
HOTEL_IMPRESSIONS = (36_164, 37_944, 30_871, 32_765, 20_719)
BANK_RATES = (0.0017, 0.0040, 0.0045, 0.0030, 0.0023)
BANK_IMPRESSIONS = (37_750, 38_254, 182_191, 168_789, 17_291)
_N_REFERENCE = 100_000
_TASTE_USE, _REFERENCE_USE, _CONTEXT_USE, _ACTION_USE, _CLICK_USE = range(5)


def _numbers(
    seed: int, use: int, shape: tuple[int, ...], *, normal: bool, round: int
) -> FloatArray:
    out = np.empty(int(np.prod(shape)))
    draw = Draw(seed, stream_of(WORLD_STREAM, 0), round)
    (normals if normal else uniforms)(draw, use, out)
    return out.reshape(shape)


def _chances(odds: FloatArray) -> FloatArray:
    chances: FloatArray = 0.5 * (1.0 + np.tanh(0.5 * odds))
    return chances


def _intercept(odds: FloatArray, rate: float) -> float:
    """Return what to add to the log-odds for the mean chance to be ``rate``."""
    low, high = -50.0, 50.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _chances(odds + middle).mean() < rate else (low, middle)
    return 0.5 * (low + high)


class Campaign:
    """Visitors with standard normal contexts who click on each ad at a chosen rate.

    Parameters
    ----------
    rates
        Click rate of each ad, averaged over all visitors. The default is the thesis's bank, with
        extremely sparse clicks; its hotel is ``HOTEL_RATES``.
    n_features, n_informative
        Length of a context, and how many of its features, the first, say anything.
    strength
        Standard deviation of an ad's log-odds over the visitors.
    shape
        ``linear`` log-odds, or ``bent``: every other informative feature acts by its absolute
        value, which no linear model can see.
    seed
        The tastes follow from it.

    Examples
    --------
    >>> campaign = Campaign(seed=1)
    >>> campaign.click_chances(campaign.visitors(50_000, seed=2)).mean(axis=0).round(3).tolist()
    [0.002, 0.004, 0.004, 0.003, 0.002]
    >>> log = campaign.log(1000, seed=3)
    >>> log.contexts.shape, log.n_actions, log.propensities[0]
    ((1000, 40), 5, np.float64(0.2))
    """

    def __init__(
        self,
        rates: ArrayLike = BANK_RATES,
        *,
        n_features: int = 40,
        n_informative: int = 8,
        strength: float = 1.0,
        shape: str = "linear",
        seed: int = 0,
    ) -> None:
        self.rates = np.array(rates, dtype=np.float64)
        if self.rates.ndim != 1 or not ((self.rates > 0.0) & (self.rates < 1.0)).all():
            raise InvalidInput(
                f"rates of Campaign must be a list of numbers in (0, 1), got {shown(rates)}."
            )
        self.n_actions = len(self.rates)
        self.n_features = check_integer(n_features, "`n_features` of Campaign", at_least=1)
        self.n_informative = check_integer(
            n_informative,
            "`n_informative` of Campaign",
            at_least=1,
            at_most=self.n_features,
            bound="n_features=",
        )
        strength = check_number(strength, "`strength` of Campaign", above=0.0)
        self.shape = check_choice(shape, "`shape` of Campaign", SHAPES)
        seed = check_seed(seed)
        size = (self.n_actions, self.n_informative)
        tastes = _numbers(seed, _TASTE_USE, size, normal=True, round=0)
        self.tastes = strength * tastes / np.linalg.norm(tastes, axis=1, keepdims=True)
        size = (_N_REFERENCE, self.n_informative)
        reference = _numbers(seed, _REFERENCE_USE, size, normal=True, round=0)
        odds = self._pull(reference)
        self.intercepts = np.array(
            [_intercept(odds[:, ad], rate) for ad, rate in enumerate(self.rates)]
        )

    def _pull(self, informative: FloatArray) -> FloatArray:
        if self.shape == "bent":
            informative = informative.copy()
            bent = np.abs(informative[:, ::2])
            informative[:, ::2] = (bent - np.sqrt(2 / np.pi)) / np.sqrt(1 - 2 / np.pi)
        pull: FloatArray = informative @ self.tastes.T
        return pull

    def visitors(self, n_visitors: int, *, seed: int = 0) -> FloatArray:
        """Return the contexts of so many visitors."""
        n_visitors = check_integer(n_visitors, "`n_visitors`", at_least=1)
        size = (n_visitors, self.n_features)
        return _numbers(check_seed(seed), _CONTEXT_USE, size, normal=True, round=1)

    def click_chances(self, contexts: FloatArray) -> FloatArray:
        """Return the probability that a visitor clicks on each ad if it is shown."""
        return _chances(self._pull(contexts[:, : self.n_informative]) + self.intercepts)

    def value(self, probabilities: FloatArray, contexts: FloatArray) -> float:
        """Return the true click rate of a policy that shows ads to these visitors."""
        return float((probabilities * self.click_chances(contexts)).sum(axis=1).mean())

    def log(self, n_visitors: int, *, shares: ArrayLike | None = None, seed: int = 0) -> BanditLog:
        """Return a log of ads shown at random, uniformly or with the given shares."""
        contexts = self.visitors(n_visitors, seed=seed)
        weights = np.ones(self.n_actions) if shares is None else np.asarray(shares, np.float64)
        if weights.shape != (self.n_actions,) or not (weights > 0.0).all():
            raise InvalidInput(
                f"shares must be {self.n_actions} positive numbers, got {shown(shares)}."
            )
        chances = weights / weights.sum()
        chosen = _numbers(check_seed(seed), _ACTION_USE, (n_visitors,), normal=False, round=1)
        actions = np.searchsorted(np.cumsum(chances)[:-1], chosen, side="right").astype(np.int64)
        clicks = _numbers(seed, _CLICK_USE, (n_visitors,), normal=False, round=1)
        clicked = clicks < self.click_chances(contexts)[np.arange(n_visitors), actions]
        return BanditLog.of(contexts, actions, clicked, chances[actions], n_actions=self.n_actions)
