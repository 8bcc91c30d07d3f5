"""Policies: the probability of showing each of K ads to a visitor."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keyhole.base.display import Description, counted, short, some_of
from keyhole.base.errors import (
    FloatArray,
    IntArray,
    InvalidInput,
    check_integer,
    check_number,
    shown,
)
from keyhole.contracts.registry import Configured
from keyhole.data.bandit.columns import Names, different_names
from keyhole.data.bandit.row_digests import SeenRows

Arrays = dict[str, NDArray[Any]]


def check_contexts(contexts: ArrayLike, n_features: int | None = None) -> FloatArray:
    """Return contexts as a table of finite numbers, one row per visitor, or raise."""
    try:
        table = np.ascontiguousarray(contexts, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("contexts must be rows of numbers, all of one length.") from None
    if table.ndim != 2 or (n_features is not None and table.shape[1] != n_features):
        wanted = "features" if n_features is None else f"{n_features} features"
        raise InvalidInput(f"contexts must be visitors by {wanted}, got shape {table.shape}.")
    bad = ~np.isfinite(table)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise InvalidInput(
            f"contexts must be finite, got {table[row, column]} in row {row}, column {column}."
        )
    return table


class Scorer(Configured, ABC):
    """A score of each ad for each visitor; scores of different ads can be compared."""

    n_actions: int
    n_features: int
    feature_names: Names
    """What the numbers of a context are called, where they have names."""
    action_names: Names
    seen_rows: SeenRows | None = None
    """What it was fitted to; None where that is not known."""

    def _take_names(
        self, feature_names: Sequence[str] | None, action_names: Sequence[str] | None
    ) -> None:
        """Keep names that fit, or raise: for the end of a constructor."""
        kind = type(self).__name__
        self.feature_names = different_names(
            feature_names, f"`feature_names` of {kind}", self.n_features
        )
        self.action_names = different_names(
            action_names, f"`action_names` of {kind}", self.n_actions
        )

    def fitted_to(
        self,
        seen: SeenRows | None,
        feature_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
    ) -> Self:
        """Return this scorer with what it was fitted to, and with the names that had."""
        named = self.fresh(
            feature_names=None if feature_names is None else list(feature_names),
            action_names=None if action_names is None else list(action_names),
        )
        named.seen_rows = seen
        return named

    def _described(self) -> Description:
        return Description(type(self).__name__, self._origin())

    def _origin(self) -> list[tuple[str, str]]:
        """Return what is told of a scorer: of which actions and features, and of how many rows."""
        rows = [
            (
                "actions",
                f"{self.n_actions:,}" if self.action_names is None else some_of(self.action_names),
            ),
            (
                "features",
                f"{self.n_features:,}"
                if self.feature_names is None
                else some_of(self.feature_names),
            ),
        ]
        if self.seen_rows is not None:
            rows.append(("trained on", counted(self.seen_rows.n_rows, "row")))
        return rows

    @abstractmethod
    def scores(self, contexts: ArrayLike) -> FloatArray:
        """Return the scores, visitors by ads; -inf is an ad that must not be chosen."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """Return everything there is to save."""

    @classmethod
    @abstractmethod
    def of_arrays(cls, arrays: Arrays) -> "Scorer":
        """Return the scorer that :meth:`arrays` describes."""


class Policy(Configured, ABC):
    """A choice of one of K ads by chance, given a visitor's context."""

    n_actions: int
    is_fitted: bool = False
    """Whether it comes from data: then whoever judges it asks which."""

    @property
    def feature_names(self) -> Names:
        """What the numbers of a context must be, in this order; None where that is not known."""
        return None

    @property
    def action_names(self) -> Names:
        """What the ads are called, in their order; None where they have no names."""
        return None

    @property
    def seen_rows(self) -> SeenRows | None:
        """The rows that it was fitted to; None where they are not known."""
        return None

    @abstractmethod
    def probabilities(self, contexts: ArrayLike) -> FloatArray:
        """Return the probability of each ad for each visitor; every row sums to 1."""


class Uniform(Policy):
    """Every ad with the same probability.

    Examples
    --------
    >>> Uniform(4).probabilities([[0.5], [1.5]]).tolist()
    [[0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25]]
    """

    def __init__(self, n_actions: int) -> None:
        self.n_actions = check_integer(n_actions, "`n_actions` of Uniform", at_least=1)

    def probabilities(self, contexts: ArrayLike) -> FloatArray:
        shape = (len(check_contexts(contexts)), self.n_actions)
        return np.full(shape, 1.0 / self.n_actions)


class Always(Policy):
    """The same ad for everybody.

    Examples
    --------
    >>> Always(3, action=1).probabilities([[0.5]]).tolist()
    [[0.0, 1.0, 0.0]]
    """

    def __init__(self, n_actions: int, action: int) -> None:
        self.n_actions = check_integer(n_actions, "`n_actions` of Always", at_least=1)
        self.action = check_integer(
            action, "`action` of Always", at_least=0, at_most=self.n_actions - 1
        )

    def probabilities(self, contexts: ArrayLike) -> FloatArray:
        chosen = np.zeros((len(check_contexts(contexts)), self.n_actions))
        chosen[:, self.action] = 1.0
        return chosen


class ScorePolicy(Policy):
    """A policy that looks at scores."""

    scorer: Scorer
    is_fitted = True

    def __init__(self, scorer: Scorer) -> None:
        if not isinstance(scorer, Scorer):
            raise InvalidInput(
                f"`scorer` of {type(self).__name__} must be a scorer that is made, got "
                f"{shown(scorer)}."
            )
        self.scorer = scorer
        self.n_actions = scorer.n_actions

    def _described(self) -> Description:
        own = {name: value for name, value in self.settings.items() if name != "scorer"}
        told = ", ".join(f"{name}={short(value)}" for name, value in own.items())
        scorer = ("scorer", type(self.scorer).__name__)
        return Description(f"{type(self).__name__}({told})", [scorer, *self.scorer._origin()])

    @property
    def feature_names(self) -> Names:
        return self.scorer.feature_names

    @property
    def action_names(self) -> Names:
        return self.scorer.action_names

    @property
    def seen_rows(self) -> SeenRows | None:
        return self.scorer.seen_rows

    def best(self, contexts: ArrayLike) -> IntArray:
        """Return the ad with the highest score for each visitor (ties: the lowest index)."""
        best: IntArray = np.argmax(self.scorer.scores(contexts), axis=1).astype(np.int64)
        return best


class Greedy(ScorePolicy):
    """The ad with the highest score, always.

    Examples
    --------
    >>> from keyhole.policies import LinearScorer
    >>> scorer = LinearScorer([[1.0], [-1.0]], [0.0, 0.5])
    >>> Greedy(scorer).probabilities([[2.0], [-2.0]]).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def probabilities(self, contexts: ArrayLike) -> FloatArray:
        best = self.best(contexts)
        chosen = np.zeros((len(best), self.n_actions))
        chosen[np.arange(len(best)), best] = 1.0
        return chosen


class EpsilonGreedy(ScorePolicy):
    """The best ad with probability 1 - epsilon, each other one with epsilon / (K - 1).

    Examples
    --------
    >>> from keyhole.policies import LinearScorer
    >>> scorer = LinearScorer([[1.0], [-1.0], [0.0]], [0.0, 0.0, 0.0])
    >>> EpsilonGreedy(scorer, epsilon=0.2).probabilities([[2.0]]).tolist()
    [[0.8, 0.1, 0.1]]
    """

    def __init__(self, scorer: Scorer, epsilon: float = 0.1) -> None:
        super().__init__(scorer)
        self.epsilon = check_number(
            epsilon, "`epsilon` of EpsilonGreedy", at_least=0.0, at_most=1.0
        )
        if self.n_actions == 1:
            self.epsilon = 0.0

    def probabilities(self, contexts: ArrayLike) -> FloatArray:
        best = self.best(contexts)
        chosen = np.full((len(best), self.n_actions), self.epsilon / max(1, self.n_actions - 1))
        chosen[np.arange(len(best)), best] = 1.0 - self.epsilon
        return chosen


class Softmax(ScorePolicy):
    """Each ad with a probability proportional to exp(score / temperature).

    Scores of log-odds suit it: calibrated rankers' and classifiers' are.

    Examples
    --------
    >>> from keyhole.policies import LinearScorer
    >>> scorer = LinearScorer([[1.0], [-1.0]], [0.0, 0.0])
    >>> Softmax(scorer, temperature=2.0).probabilities([[0.0]]).tolist()
    [[0.5, 0.5]]
    """

    def __init__(self, scorer: Scorer, temperature: float = 1.0) -> None:
        super().__init__(scorer)
        self.temperature = check_number(temperature, "`temperature` of Softmax", above=0.0)

    def probabilities(self, contexts: ArrayLike) -> FloatArray:
        scores = self.scorer.scores(contexts)
        powers = np.exp((scores - scores.max(axis=1, keepdims=True)) / self.temperature)
        chosen: FloatArray = powers / powers.sum(axis=1, keepdims=True)
        return chosen
