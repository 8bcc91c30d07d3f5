"""Linear scores: one weight vector and one offset per ad."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import FloatArray, InvalidInput, check_array
from keyhole.policies.base import Arrays, Scorer, check_contexts


class LinearScorer(Scorer):
    """The score of ad a is weights[a] . context + offsets[a]; an offset of -inf rules the ad out.

    Examples
    --------
    >>> LinearScorer([[1.0, 0.0], [0.0, 2.0]], [0.0, -1.0]).scores([[3.0, 4.0]]).tolist()
    [[3.0, 7.0]]
    """

    def __init__(
        self,
        weights: ArrayLike,
        offsets: ArrayLike,
        *,
        feature_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
    ) -> None:
        self.weights = check_array(weights, "`weights` of LinearScorer", n_dims=2)
        self.offsets = check_array(offsets, "`offsets` of LinearScorer", n_dims=1)
        if self.offsets.shape != self.weights.shape[:1]:
            raise InvalidInput(
                "weights of LinearScorer must be ads by features, with one offset per ad, got "
                f"shapes {self.weights.shape} and {self.offsets.shape}."
            )
        if not np.isfinite(self.weights).all() or not (self.offsets < np.inf).all():
            raise InvalidInput("weights and offsets of LinearScorer must be finite.")
        if not np.isfinite(self.offsets).any():
            raise InvalidInput("LinearScorer must have at least one ad that can be chosen.")
        self.n_actions, self.n_features = self.weights.shape
        self._take_names(feature_names, action_names)

    def scores(self, contexts: ArrayLike) -> FloatArray:
        scores: FloatArray = check_contexts(contexts, self.n_features) @ self.weights.T
        return scores + self.offsets

    def arrays(self) -> Arrays:
        return {"weights": self.weights, "offsets": self.offsets}

    @classmethod
    def of_arrays(cls, arrays: Arrays) -> "LinearScorer":
        return cls(arrays["weights"], arrays["offsets"])
