"""Whether a policy is judged on the very rows that it was trained on."""

from typing import Any

import numpy as np

from keyhole.base.errors import InvalidInput
from keyhole.data.bandit.log import BanditLog
from keyhole.data.bandit.row_digests import Overlap
from keyhole.offline.matching import UNKNOWN, view_of

MOST_SHARED = 0.01
"""A greater share of training rows in a log, and it is refused.

A policy's advantage on its own rows is luck for the most part. What share of a log they are, that
share of the luck is in the estimate: one row in a hundred moves it by a hundredth of that.
"""


def training_overlap(log: BanditLog, policy: Any) -> Overlap | None:
    """Return how many rows of a log a policy was trained on; None where it does not say.

    Examples
    --------
    >>> from keyhole.data.bandit.campaign import Campaign
    >>> from keyhole import Greedy, fit_classifiers
    >>> log = Campaign([0.2, 0.3], n_features=3, n_informative=2).log(2000)
    >>> train, held_out = log.split(0.5, by="random")
    >>> policy = Greedy(fit_classifiers(train))
    >>> [round(training_overlap(part, policy).share, 2) for part in (train, log, held_out)]
    [1.0, 0.5, 0.0]
    """
    seen = getattr(policy, "seen_rows", None)
    if seen is None:
        return None
    view = view_of(log, policy)
    known = view.actions != UNKNOWN
    found: Overlap = seen.overlap(view.contexts[known], view.actions[known], log.rewards[known])
    return found


def is_shared(overlap: Overlap | None) -> bool:
    """Return whether so much of a log is training rows that it flatters a policy."""
    return overlap is not None and overlap.is_certain and overlap.share > MOST_SHARED


def training_remarks(
    name: str, policy: Any, overlap: Overlap | None, *, allowed: bool
) -> tuple[list[str], list[str]]:
    """Return notes and warnings about what a policy was trained on, or raise where it is this log.

    What is no policy fitted to data needs no remark.
    """
    if overlap is None:
        if not getattr(policy, "is_fitted", False):
            return [], []
        return [
            f"{name} does not say what it was trained on: nobody knows whether that was this log."
        ], []
    if not overlap.is_known:
        return [
            f"Whether {name} was trained on rows of this log cannot be told: hardly any of its "
            f"training rows differs from all others."
        ], []
    if not is_shared(overlap):
        return [], []
    told = (
        f"{name} was trained on {overlap.share:.1%} of this log: {overlap.found:.1%} of its rows "
        f"are among the training rows, {overlap.by_chance:.1%} would be by chance"
    )
    if not allowed:
        raise InvalidInput(
            f"{told}. Judge it on rows that were held out (BanditLog.split, keyhole train-policy); "
            f"`allow_training_rows` judges it all the same."
        )
    return [], [f"{told}. Its value here is flattered."]


def unseen_remarks(log: BanditLog, name: str, policy: Any) -> list[str]:
    """Return a note where a log has levels of one-hot features that a policy does not know."""
    unseen = view_of(log, policy).unseen
    if not unseen:
        return []
    columns = [(log.feature_names or ()).index(each) for each in unseen]
    n_rows = int(np.any(log.contexts[:, columns] != 0.0, axis=1).sum())
    shown = ", ".join(unseen[:5]) + (", …" if len(unseen) > 5 else "")
    return [
        f"{name} does not know {shown}: {n_rows:,} of {len(log):,} rows have one of them, and "
        f"count for it as rows of none of the levels that it knows."
    ]
