"""What every reveal must do."""

import numpy as np

from keyhole.checks.base import SEED, a_relabelling, require
from keyhole.contracts.reveals import Reveal
from keyhole.kernels.draw import REVEAL_STREAM, RelabelledDraw, stream_of


def check_reveal(reveal: Reveal, n_items: int = 6, n_lists: int = 200) -> None:
    """Check one reveal: shows what it says, hides the rest, depends on no item's index."""
    lists = np.random.default_rng(SEED)
    depth = reveal.depth(n_items)
    labels = a_relabelling(n_items)
    for t in range(n_lists):
        relevance = lists.integers(0, 3, size=n_items).astype(np.float64)
        ranking = lists.permutation(n_items)
        before = relevance.copy()
        values = reveal(relevance, ranking, round=t).values
        require(np.array_equal(before, relevance), f"{reveal} must not change the relevance.")
        require(
            bool(np.isfinite(values[:depth]).all() and np.isnan(values[depth:]).all()),
            f"{reveal} must show the first {depth} positions and hide the others as NaN.",
        )
        draw = RelabelledDraw(0, stream_of(REVEAL_STREAM, 0), t, labels)
        renamed = np.empty(n_items)
        new_ranking = np.argsort(labels)[ranking]
        reveal.kernel.reveal(reveal.params, draw, relevance[labels], new_ranking, renamed)
        require(
            np.array_equal(values, renamed, equal_nan=True),
            f"Relabelling items must leave what {reveal} shows as it is.",
        )
