"""Making the scores of different ads comparable.

A ranker's scores mean something within one ad only: which visitor is more likely to click. To
choose between ads they need a common zero.
"""

from collections.abc import Callable

import numpy as np

from keyhole.base.errors import FloatArray
from keyhole.policies.logistic import fit_logistic


def f1_threshold(
    scores: FloatArray, clicked: FloatArray, counts: FloatArray | None = None
) -> float:
    """Return the threshold on scores that maximises F1 (R36), of all that there are.

    Between two neighbouring scores all thresholds are alike; the middle is returned. Equal scores
    are never parted, and of equally good cuts the one with the fewest scores above it is taken.
    ``counts`` says how many examples each score stands for.

    Examples
    --------
    >>> import numpy as np
    >>> f1_threshold(np.array([1.0, 4.0, 2.0, 3.0]), np.array([0.0, 1.0, 0.0, 1.0]))
    2.5
    """
    counts = np.ones(len(scores)) if counts is None else counts
    order = np.argsort(-scores, kind="stable")
    ordered, hits = scores[order], (counts * clicked)[order]
    last = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
    f1 = 2.0 * np.cumsum(hits)[last] / (np.cumsum(counts[order])[last] + hits.sum())
    cut = last[int(np.argmax(f1))]
    below = ordered[cut + 1] if cut + 1 < len(ordered) else ordered[cut]
    return float(0.5 * (ordered[cut] + below))


def calibration(
    scores: FloatArray, clicked: FloatArray, counts: FloatArray | None = None
) -> tuple[float, float]:
    """Return (a, b) so that a * score + b are log-odds of a click.

    Notes
    -----
    Platt scaling, with his targets: (n+ + 1)/(n+ + 2) for clicks and 1/(n- + 2) for the others,
    without which the slope is infinite where scores separate the two.

    Examples
    --------
    >>> import numpy as np
    >>> a, b = calibration(np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 0.0, 1.0, 1.0]))
    >>> (1 / (1 + np.exp([-b, -a - b]))).round(6).tolist()
    [0.25, 0.75]
    """
    counts = np.ones(len(scores)) if counts is None else counts
    n_clicks = float(counts @ clicked)
    n_others = float(counts.sum()) - n_clicks
    targets = np.where(clicked > 0.0, (n_clicks + 1.0) / (n_clicks + 2.0), 1.0 / (n_others + 2.0))
    spread = float(scores.std()) or 1.0  # scores of strongly penalised rankers are tiny
    slope, intercept = fit_logistic(scores[:, None] / spread, targets, counts=counts)
    return float(slope[0]) / spread, intercept


def align(
    scores: FloatArray, clicked: FloatArray, how: str, counts: FloatArray | None = None
) -> tuple[float, float]:
    """Return (a, b) so that a * score + b can be compared between ads."""
    return ALIGNMENTS[how](scores, clicked, counts)


ALIGNMENTS: dict[str, Callable[..., tuple[float, float]]] = {
    "calibrated": calibration,
    "f1": lambda scores, clicked, counts: (1.0, -f1_threshold(scores, clicked, counts)),
}
