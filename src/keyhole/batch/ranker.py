"""A linear ranker learnt from a set of lists, with scikit-learn's conventions."""

import inspect
import math
import warnings
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.display import Described, Description
from keyhole.base.errors import FloatArray, IntArray, InvalidInput, check_choice, check_number
from keyhole.batch.averaging import average_weights
from keyhole.batch.risk import Risk
from keyhole.batch.solvers import Ball, Minimum, minimise
from keyhole.batch.tables import (
    check_features,
    documents_of,
    feature_names,
    grades_of,
    not_fitted,
)
from keyhole.bounds import generalisation
from keyhole.bounds.scorers import largest_row_norm
from keyhole.measures import measure as named_measure
from keyhole.rankers.lists.gradient import Descent
from keyhole.surrogates import surrogate as named_surrogate
from keyhole.surrogates.base import Surrogate
from keyhole.surrogates.smooth_dcg import SmoothDCG
from keyhole.worlds.queries import Queries

_THEORY = "theory"


class BatchRanker(Described):
    """The linear ranker with the least mean surrogate loss over lists, or the mean of one pass.

    Parameters
    ----------
    surrogate
        A surrogate or its name; options are those of the surrogate itself, as in
        ``SmoothDCG(0.5)``.
    norm, radius
        Weights lie in the ``l2`` or ``l1`` ball of this radius; None: anywhere.
    regularisation
        Times half the squared norm of the weights it is added to the mean loss. ``"theory"``: the
        lambda of A14, which asks for the l2 ball.
    method
        ``erm``: the least mean loss. ``online``: one pass of gradient descent over the lists
        in random order, its weights averaged, at the rate that the theory asks for (a radius
        is needed, and no regularisation).
    measure
        What :meth:`score` is the mean of.
    tolerance
        How far above the least the objective may be, relative to it where it is above 1.
    max_evaluations
        When the solver gives up.
    seed
        Order of the pass.

    Attributes
    ----------
    coef_
        The weights.
    n_features_in_, feature_names_in_
        How many features it was fitted with, and the names of the columns if it was a data frame
        whose columns all have names: other documents must then have these columns in this order.
    objective_, gap_, n_evaluations_
        Mean loss with the regularisation, by how much at most it is above the least (a certificate
        by duality; NaN if the loss is not convex, or for ``online``), and times it was evaluated.

    Notes
    -----
    A14 and Theorems 35, 36 and 38 of [T16]. SmoothDCG is not convex: it is descended with a
    softness that starts at the size of the scores and is halved down to its own, and the
    result is a stationary point. ``X``, ``y`` and ``groups`` are documents by features,
    grades and queries: rows of one group are a list, wherever they stand. The estimator asks for
    ``groups`` by scikit-learn's metadata routing, so that cross-validation
    and pipelines hand them on; scikit-learn itself is not needed.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.0, 0.9]])
    >>> ranker = BatchRanker(regularisation=0.1).fit(X, [1, 0, 1, 0], groups=["a", "a", "b", "b"])
    >>> ranker.rank(X, ["a", "a", "b", "b"]).tolist(), ranker.gap_ < 1e-5
    ([0, 1, 0, 1], True)
    >>> ranker.score(X, [1, 0, 1, 0], groups=["a", "a", "b", "b"])
    1.0
    """

    def __init__(
        self,
        surrogate: str | Surrogate = "listnet",
        *,
        norm: str = "l2",
        radius: float | None = None,
        regularisation: float | str = 1e-3,
        method: str = "erm",
        measure: str = "NDCG@10",
        tolerance: float = 1e-6,
        max_evaluations: int = 20_000,
        seed: int = 0,
    ) -> None:
        self.surrogate = surrogate
        self.norm = norm
        self.radius = radius
        self.regularisation = regularisation
        self.method = method
        self.measure = measure
        self.tolerance = tolerance
        self.max_evaluations = max_evaluations
        self.seed = seed

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Learn from lists: documents ``X`` with grades ``y``, those of one group being a list."""
        documents, names = documents_of(X), feature_names(X)
        order, starts = _lists(groups, len(documents))
        grades = grades_of(y, order)
        risk = Risk(named_surrogate(self.surrogate), documents[order], grades, starts)
        methods = {"erm": self._least, "online": self._average}
        learn = methods[check_choice(self.method, "`method` of BatchRanker", methods)]
        ball = Ball(self.norm, math.inf if self.radius is None else self.radius)
        strength = self._strength(risk, ball)
        minimum = learn(risk, ball, strength)
        self.n_features_in_ = risk.n_features
        vars(self).pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names
        self.coef_: FloatArray = minimum.weights
        self.objective_, self.gap_ = minimum.value, minimum.gap
        self.n_evaluations_, self.regularisation_ = minimum.n_evaluations, strength
        return self

    def predict(self, X: ArrayLike) -> FloatArray:
        """Return the scores of documents: the higher, the nearer to the top."""
        owner = type(self).__name__
        if not hasattr(self, "coef_"):
            raise not_fitted(owner)
        names = getattr(self, "feature_names_in_", None)
        documents = check_features(X, self.n_features_in_, names, owner)
        return documents @ self.coef_

    def rank(self, X: ArrayLike, groups: ArrayLike | None = None) -> IntArray:
        """Return the position of every document in its list, counted from 0."""
        scores = self.predict(X)
        order, starts = _lists(groups, len(scores))
        positions = np.empty(len(scores), np.int64)
        for first, end in pairwise(starts):
            rows = order[first:end]
            positions[rows[_best_first(scores[rows])]] = np.arange(end - first)
        return positions

    def score(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> float:
        """Return the mean of the measure over the lists."""
        scores, judge = self.predict(X), named_measure(self.measure)
        order, starts = _lists(groups, len(scores))
        scores, grades = scores[order], grades_of(y, order)
        lists = list(pairwise(starts))
        values = [judge(grades[a:b], _best_first(scores[a:b])) for a, b in lists]
        return float(np.mean(values))

    def _strength(self, risk: Risk, ball: Ball) -> float:
        if self.regularisation != _THEORY:
            if isinstance(self.regularisation, str):
                check_choice(self.regularisation, "`regularisation` of BatchRanker", [_THEORY])
            return check_number(
                self.regularisation, "`regularisation` of BatchRanker", at_least=0.0
            )
        if ball.norm != "l2" or ball.radius == math.inf:
            raise InvalidInput('`regularisation` "theory" needs the l2 ball and a `radius`.')
        steepness, norm = _steepness(risk, ball)
        return generalisation.best_regularisation(steepness, ball.radius, norm, risk.n_queries)

    def _least(self, risk: Risk, ball: Ball, strength: float) -> Minimum:
        convex = risk.surrogate.is_convex
        smooth = risk.surrogate.smoothness(risk.n_items, max_grade=risk.max_grade) is not None
        start = None
        for stage in [] if convex else _softer(risk, ball):
            start = self._solve(stage, ball, strength, True, False, start).weights
        found = self._solve(risk, ball, strength, smooth, convex, start)
        if not found.converged:
            warnings.warn(
                f"BatchRanker stopped after {found.n_evaluations} evaluations, at most "
                f"{found.gap:.2g} above the least objective; `max_evaluations` can be larger.",
                stacklevel=3,
            )
        return found

    def _solve(
        self, risk: Risk, ball: Ball, strength: float, smooth: bool, convex: bool,
        start: FloatArray | None,
    ) -> Minimum:  # fmt: skip
        return minimise(
            risk, risk.n_features, ball=ball, regularisation=strength, smooth=smooth,
            convex=convex, tolerance=self.tolerance, max_evaluations=self.max_evaluations,
            start=start,
        )  # fmt: skip

    def _average(self, risk: Risk, ball: Ball, strength: float) -> Minimum:
        if ball.norm != "l2" or ball.radius == math.inf:
            raise InvalidInput('`method` "online" needs the l2 ball and a `radius`.')
        steepness, norm = _steepness(risk, ball)
        rate = generalisation.best_rate(steepness, ball.radius, norm, risk.n_queries)
        descent = Descent(
            risk.n_features, risk.n_items, surrogate=risk.surrogate, step="fixed", rate=rate,
            radius=ball.radius, centred=False,
        )  # fmt: skip
        world = Queries(risk.features, risk.relevance, risk.starts)
        weights = average_weights(descent, world, rounds=risk.n_queries, seed=self.seed)
        return Minimum(weights, risk(weights)[0], math.nan, risk.n_queries, True)

    # ------------------------------------------------------------------ scikit-learn's conventions

    @classmethod
    def _options(cls) -> list[str]:
        return list(inspect.signature(cls.__init__).parameters)[1:]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the options by name."""
        return {name: getattr(self, name) for name in self._options()}

    def set_params(self, **options: Any) -> Self:
        """Change options by name."""
        for name, value in options.items():
            setattr(self, check_choice(name, "option of BatchRanker", self._options()), value)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=True))

    def get_metadata_routing(self) -> Any:
        """Ask scikit-learn for ``groups`` in ``fit`` and ``score``."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        for method in (request.fit, request.score):
            method.add_request(param="groups", alias=True)
        request.score.add_request(param="sample_weight", alias=None)  # pipelines name it
        return request

    def _described(self) -> Description:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value is not defaults[name].default and value != defaults[name].default
        ]
        return Description(f"{type(self).__name__}({', '.join(changed)})")


def _best_first(scores: FloatArray) -> IntArray:
    return np.argsort(-scores, kind="stable")


def _lists(groups: ArrayLike | None, n_documents: int) -> tuple[IntArray, IntArray]:
    """Return the rows list by list, and where the lists begin."""
    if groups is None:
        raise InvalidInput("`groups` must say which documents belong to one list.")
    names = np.asarray(groups)
    if names.shape != (n_documents,):
        raise InvalidInput(
            f"`groups` must have one query per document ({n_documents}), got shape {names.shape}."
        )
    _, first, codes = np.unique(names, return_index=True, return_inverse=True)
    turn = np.empty(len(first), np.int64)
    turn[np.argsort(first)] = np.arange(len(first))  # lists in the order in which they appear
    by_list = turn[codes.ravel()]
    sizes = np.bincount(by_list)
    return np.argsort(by_list, kind="stable"), np.concatenate([[0], np.cumsum(sizes)])


def _steepness(risk: Risk, ball: Ball) -> tuple[float, float]:
    """Return the Lipschitz constant of the loss on these lists, and the largest norm of a row."""
    norm = largest_row_norm(risk.features) or 1.0
    steepness = risk.surrogate.lipschitz(
        risk.n_items, max_grade=risk.max_grade, max_score=ball.radius * norm
    )
    return steepness or 1.0, norm


def _softer(risk: Risk, ball: Ball) -> list[Risk]:
    """Return the same risk with softer and softer arg-maxes, the softest first."""
    if not isinstance(risk.surrogate, SmoothDCG):
        return []
    norm = largest_row_norm(risk.features)
    softest, eps = norm * min(ball.radius, 10.0), risk.surrogate.eps
    n_halvings = max(0, math.ceil(math.log2(max(softest / eps, 1.0))))
    return [risk.with_surrogate(SmoothDCG(eps * 2.0**k)) for k in range(n_halvings, 0, -1)]
