"""Choosing features by what they tell about a label."""

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import FloatArray, IntArray, InvalidInput, check_integer, check_number


def bins_of(values: FloatArray, n_bins: int) -> IntArray:
    """Return the bin of each value: equally many in each, except that equal values stay together.

    A feature with at most ``n_bins`` different values has one bin for each of them.
    """
    edges = np.unique(values)
    if len(edges) > n_bins:
        edges = np.unique(np.quantile(values, np.arange(1, n_bins) / n_bins))
    return np.searchsorted(edges, values, side="left").astype(np.int64)


def _entropy(counts: FloatArray) -> FloatArray:
    """Return the entropy in nats of each row of counts."""
    shares = counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1.0)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0.0)
    entropy: FloatArray = -(shares * logs).sum(axis=-1)
    return entropy


def information_gain(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    n_bins: int = 10,
) -> FloatArray:
    """Return what each feature tells about the label: H(label) - H(label | bin), in nats.

    Parameters
    ----------
    features, labels
        Examples by features; one label of any kind for each example.
    groups
        The gain within each group (the ads of a log, say), averaged over the examples.
    n_bins
        Values are put into so many bins of equal frequency (see :func:`bins_of`).

    Examples
    --------
    >>> gain = information_gain([[0, 5], [0, 6], [1, 5], [1, 6]], [0, 0, 1, 1])
    >>> gain.round(4).tolist()
    [0.6931, 0.0]
    """
    table = np.asarray(features, dtype=np.float64)
    given = np.asarray(labels)
    of_group = np.zeros(len(given), np.int64) if groups is None else np.asarray(groups)
    if table.ndim != 2 or not table.shape[:1] == given.shape == of_group.shape or not len(given):
        raise InvalidInput(
            "features must be examples by features with one label each, got shapes "
            f"{table.shape} and {given.shape}."
        )
    if not np.isfinite(table).all():
        raise InvalidInput("features must be finite to be put into bins.")
    n_bins = check_integer(n_bins, "`n_bins`", at_least=2)
    _, label_codes = np.unique(given, return_inverse=True)
    _, group_codes = np.unique(of_group, return_inverse=True)
    n_labels, n_groups = int(label_codes.max()) + 1, int(group_codes.max()) + 1
    gains = np.empty(table.shape[1])
    for column in range(table.shape[1]):
        bins = bins_of(table[:, column], n_bins)
        n_used = int(bins.max()) + 1
        cells = (group_codes * n_used + bins) * n_labels + label_codes
        counts = np.bincount(cells, minlength=n_groups * n_used * n_labels).astype(np.float64)
        counts = counts.reshape(n_groups, n_used, n_labels)
        before = counts.sum(axis=(1, 2)) @ _entropy(counts.sum(axis=1))
        after = (counts.sum(axis=2) * _entropy(counts)).sum()
        gains[column] = max(0.0, float(before - after) / len(given))
    return gains


def select_features(gains: ArrayLike, share: float = 0.2) -> IntArray:
    """Return the columns of the highest gains, in their order; ``share`` of all, at least one.

    Examples
    --------
    >>> select_features([0.1, 0.5, 0.0, 0.3, 0.2], share=0.4).tolist()
    [1, 3]
    """
    share = check_number(share, "`share`", above=0.0, at_most=1.0)
    ordered = np.argsort(-np.asarray(gains, dtype=np.float64), kind="stable")
    chosen: IntArray = np.sort(ordered[: max(1, round(share * len(ordered)))]).astype(np.int64)
    return chosen
