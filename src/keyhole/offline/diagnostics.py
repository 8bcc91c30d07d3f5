"""Whether a log can answer what a policy is worth."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keyhole.base.errors import FloatArray
from keyhole.data.bandit.log import BanditLog
from keyhole.offline.target import Target

LEAST_EFFECTIVE = 100.0
"""Fewer rows than this, in effect, and the log cannot answer."""

LEAST_REWARDED = 10
"""Fewer rewarded rows than this where the policy acts, and the estimate hangs on single ones."""

MOST_UNKNOWN = 0.01
"""A greater share of its choices on actions that were never logged, and the value is not known."""

_ERRORS = 4.0


@dataclass(frozen=True)
class Diagnostics:
    """How a policy overlaps with a log.

    Attributes
    ----------
    effective_rows
        (sum of weights)^2 / sum of squared weights: as many rows of the policy's own would tell
        as much.
    largest_weight, largest_share
        The largest importance weight, and its share in the sum of all.
    mean_weight, mean_weight_error
        Should be 1 within its error; less where the policy does what the log never shows, more or
        less where propensities are wrong.
    overlap
        The share of rows whose action the policy might have taken.
    n_rewarded
        How many of those have a reward other than 0.
    unknown
        The share of the policy's choices that fall on actions that the log never shows.
    unknown_actions
        These actions, by name.
    """

    n_rows: int
    effective_rows: float
    largest_weight: float
    largest_share: float
    mean_weight: float
    mean_weight_error: float
    overlap: float
    n_rewarded: int
    unknown: float
    unknown_actions: tuple[str, ...]

    @classmethod
    def of_weights(
        cls,
        weights: FloatArray,
        is_rewarded: NDArray[np.bool_],
        unknown: float = 0.0,
        unknown_actions: tuple[str, ...] = (),
    ) -> "Diagnostics":
        """Return what importance weights tell, and in which rows there was a reward."""
        n_rows, total = len(weights), float(weights.sum())
        squares = float((weights * weights).sum())
        acts = weights > 0.0
        return cls(
            n_rows,
            total * total / squares if squares > 0.0 else 0.0,
            float(weights.max()),
            float(weights.max()) / total if total > 0.0 else math.nan,
            total / n_rows,
            float(weights.std(ddof=1)) / math.sqrt(n_rows) if n_rows > 1 else math.inf,
            float(acts.mean()),
            int(is_rewarded[acts].sum()),
            unknown,
            unknown_actions,
        )

    def warnings(self, name: str) -> list[str]:
        """Return a sentence for each reason why the log cannot answer."""
        found = []
        if self.unknown > MOST_UNKNOWN:
            shown = ", ".join(self.unknown_actions[:5])
            more = ", …" if len(self.unknown_actions) > 5 else ""
            found.append(
                f"{name} makes {self.unknown:.1%} of its choices among actions that the log never "
                f"shows ({shown}{more}): what they earn is not known and counts as nothing."
            )
        if self.effective_rows < LEAST_EFFECTIVE:
            found.append(
                f"{name} has {self.effective_rows:.1f} effective rows of {self.n_rows}, fewer than "
                f"{LEAST_EFFECTIVE:.0f}: the log cannot say what it is worth."
            )
        elif self.n_rewarded < LEAST_REWARDED:
            found.append(
                f"{name} has {self.n_rewarded} rewarded rows, fewer than {LEAST_REWARDED}: its "
                f"value hangs on single ones."
            )
        off = abs(self.mean_weight - 1.0 + self.unknown)
        if off > _ERRORS * self.mean_weight_error + 1e-9:
            found.append(
                f"{name} has a mean weight of {self.mean_weight:.3f} ± "
                f"{self.mean_weight_error:.3f} where it should be {1.0 - self.unknown:.3f}: the "
                f"propensities of the log do not fit its actions, or some contexts never see what "
                f"it does."
            )
        return found


def diagnose(log: BanditLog, target: Target) -> Diagnostics:
    """Return how a policy overlaps with a log.

    Examples
    --------
    >>> from keyhole import target_of
    >>> log = BanditLog.of([[0.5], [0.1]], actions=[1, 0], rewards=[0, 1], propensities=[0.5, 0.5])
    >>> diagnose(log, target_of(log, [[0, 1], [0, 1]])).effective_rows
    1.0
    """
    never = np.bincount(log.actions, minlength=log.n_actions) == 0
    mass = target.probabilities[:, never].mean(axis=0)
    names = tuple(
        log.name_of(int(a)) for a, m in zip(np.flatnonzero(never), mass, strict=True) if m > 0
    )
    return Diagnostics.of_weights(target.weights, log.rewards != 0.0, float(mass.sum()), names)
