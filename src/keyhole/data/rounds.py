"""Logged rounds: what each revealed, what that gained, and how likely it was to be revealed."""

from typing import Any, NamedTuple

import numpy as np

from keyhole.base.errors import FloatArray, IntArray


class Rounds(NamedTuple):
    """Rounds of any log as evaluations see them: a row each, a column for each thing revealed.

    Those of a ``BanditLog`` have one column, the action taken; those of a ranker's ``Log`` the
    first k documents of each list; those of the service's events the items that were answered.
    """

    seen: IntArray
    """The actions or items that were revealed, (n, k); -1 where a list has fewer."""
    gains: FloatArray
    """What each of them gained."""
    chances: FloatArray
    """How likely that was to be revealed; NaN where that is not known, and it does not count."""
    least_chance: float | None = None
    """How likely the least likely item of any round was; None where that is not known."""
    number: IntArray | None = None
    """Which rounds they were, in order, where predictions may use those before."""
    block: int = 1
    """How many rounds on two draws may still depend on each other: 1 where each is drawn anew."""
    shown: Any = None
    """Where each item of a list was, (n, n_items)."""

    def scores(
        self, weights: Any, predicted: Any = 0.0, base: FloatArray | None = None
    ) -> FloatArray:
        """Return base + the sum over what was seen of weight (gain - predicted) / chance, by row.

        That is unbiased for policies that weigh what they choose, whatever was predicted of it.
        """
        counts = ~np.isnan(self.chances)
        chances = np.where(counts, self.chances, 1.0)
        terms = np.where(counts, weights * (self.gains - predicted) / chances, 0.0)
        sums: FloatArray = terms.sum(axis=1)
        return sums if base is None else sums + base
