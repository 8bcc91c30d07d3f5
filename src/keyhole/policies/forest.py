"""Random forests as flat arrays, and their evaluation in compiled code."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import FloatArray, InvalidInput, check_integer, shown
from keyhole.kernels.compiled import rare_kernel
from keyhole.policies.base import Arrays, Scorer, check_contexts

_LEAF = -1
_BLOCK = 256
"""Rows that are scored together; they and a tree stay in the processor's cache."""


class Trees(NamedTuple):
    """The nodes of all trees of all ads, one after another.

    ``left`` and ``right`` count from the start of the node's tree; a ``feature`` of -1 is a leaf.
    """

    feature: Any
    threshold: Any
    left: Any
    right: Any
    value: Any
    """Share of clicks in the node."""
    tree_starts: Any
    """First node of each tree, and the number of nodes."""
    ad_starts: Any
    """First tree of each ad, and the number of trees."""


_DTYPES = (np.int32, np.float64, np.int32, np.int32, np.float64, np.int64, np.int64)
"""Those of :class:`Trees`, which a spec does not tell."""


@rare_kernel
def _fill_scores(trees: Trees, contexts: Any, scores: Any) -> None:
    """Fill ``scores`` with the mean over an ad's trees of the share of clicks in the leaf."""
    n_rows = scores.shape[0]
    for ad in range(scores.shape[1]):
        first, end = trees.ad_starts[ad], trees.ad_starts[ad + 1]
        for block in range(0, n_rows, _BLOCK):
            last = min(block + _BLOCK, n_rows)
            for row in range(block, last):
                scores[row, ad] = 0.0 if end > first else -np.inf
            for tree in range(first, end):
                root = np.uint64(trees.tree_starts[tree])  # unsigned: no test for negative ones
                for row in range(block, last):
                    node = root
                    feature = trees.feature[node]
                    while feature >= 0:
                        if contexts[np.uint64(row), np.uint64(feature)] <= trees.threshold[node]:
                            node = root + np.uint64(trees.left[node])
                        else:
                            node = root + np.uint64(trees.right[node])
                        feature = trees.feature[node]
                    scores[row, ad] += trees.value[node]
            for row in range(block, last):
                if end > first:
                    scores[row, ad] /= end - first


class ForestScorer(Scorer):
    """One forest per ad; an ad without trees is never chosen.

    Notes
    -----
    The same as scikit-learn's ``predict_proba``: contexts are rounded to single precision first.
    """

    def __init__(
        self,
        trees: Trees | Sequence[ArrayLike],
        n_features: int,
        *,
        feature_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
    ) -> None:
        self.n_features = check_integer(n_features, "`n_features` of ForestScorer", at_least=0)
        try:
            given = Trees(*(np.asarray(a, dtype) for a, dtype in zip(trees, _DTYPES, strict=True)))
        except (TypeError, ValueError, OverflowError):
            raise InvalidInput(
                f"`trees` of ForestScorer must be {len(_DTYPES)} lists of numbers, got "
                f"{shown(trees)}."
            ) from None
        self.trees = _checked(given, self.n_features)
        self.n_actions = len(given.ad_starts) - 1
        self._take_names(feature_names, action_names)

    def scores(self, contexts: ArrayLike) -> FloatArray:
        table = check_contexts(contexts, self.n_features).astype(np.float32)
        scores = np.empty((len(table), self.n_actions))
        _fill_scores(self.trees, table, scores)
        return scores

    def arrays(self) -> Arrays:
        return {**self.trees._asdict(), "n_features": np.array(self.n_features)}

    @classmethod
    def of_arrays(cls, arrays: Arrays) -> "ForestScorer":
        trees = Trees(**{name: arrays[name] for name in Trees._fields})
        return cls(trees, int(arrays["n_features"]))


def _checked(trees: Trees, n_features: int) -> Trees:
    """Return the trees if every walk from a root ends in a leaf of its tree, or raise."""
    if not (_are_nodes(trees) and _branches_end(trees, n_features)):
        raise InvalidInput(
            "The arrays of a forest must describe trees whose branches end in leaves."
        )
    if len(trees.tree_starts) == 1:
        raise InvalidInput("A forest must have at least one ad that can be chosen.")
    return trees


def _are_nodes(trees: Trees) -> bool:
    """Return whether the arrays fit each other: nodes to trees, trees to ads."""
    nodes = (trees.feature, trees.threshold, trees.left, trees.right, trees.value)
    if any(array.ndim != 1 for array in trees) or len({len(array) for array in nodes}) != 1:
        return False
    sound = bool(np.isfinite(trees.threshold).all() and np.isfinite(trees.value).all())
    for starts, n_parts, least in (
        (trees.tree_starts, len(trees.feature), 1), (trees.ad_starts, len(trees.tree_starts) - 1, 0)
    ):  # fmt: skip
        fits = len(starts) > 0 and starts[0] == 0 and starts[-1] == n_parts
        sound = sound and bool(fits) and bool((np.diff(starts) >= least).all())
    return sound


def _branches_end(trees: Trees, n_features: int) -> bool:
    """Return whether children come after their parents, within their tree, by a known feature."""
    sizes = np.diff(trees.tree_starts)
    place = np.arange(len(trees.feature)) - np.repeat(trees.tree_starts[:-1], sizes)
    room = np.repeat(sizes, sizes)
    inner = trees.feature != _LEAF
    features = trees.feature[inner]
    sound = bool(((features >= 0) & (features < n_features)).all())
    for child in (trees.left[inner], trees.right[inner]):
        sound = sound and bool(((child > place[inner]) & (child < room[inner])).all())
    return sound


def join_forests(forests: list[Any | None], n_features: int) -> ForestScorer:
    """Return fitted scikit-learn forests as one scorer; None is an ad that is never chosen."""
    trees = [
        [] if forest is None else [tree.tree_ for tree in forest.estimators_] for forest in forests
    ]
    flat = [tree for ad in trees for tree in ad]

    def joined(parts: list[Any], dtype: Any) -> Any:
        return np.concatenate(parts).astype(dtype) if parts else np.empty(0, dtype)

    def share_of_clicks(tree: Any) -> FloatArray:
        counts = tree.value[:, 0, :]
        share: FloatArray = counts[:, 1] / counts.sum(axis=1)
        return share

    def starts(sizes: list[int]) -> Any:
        return np.cumsum([0, *sizes], dtype=np.int64)

    return ForestScorer(
        Trees(
            joined([np.maximum(tree.feature, _LEAF) for tree in flat], np.int32),
            joined([tree.threshold for tree in flat], np.float64),
            joined([tree.children_left for tree in flat], np.int32),
            joined([tree.children_right for tree in flat], np.int32),
            joined([share_of_clicks(tree) for tree in flat], np.float64),
            starts([tree.node_count for tree in flat]),
            starts([len(ad) for ad in trees]),
        ),
        n_features,
    )
