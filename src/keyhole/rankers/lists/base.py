"""What the rankers of query-document lists share: a linear scorer that sorts by score."""

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple

from numpy.typing import NDArray

from keyhole.base.errors import FloatArray, InvalidInput, check_choice, check_flag, check_number
from keyhole.base.limits import check_length, check_memory
from keyhole.contracts.arrays import (
    ItemFlags,
    ItemIndices,
    PerFeature,
    PerItem,
    SingleFeature,
    ranker_kernel,
)
from keyhole.contracts.lists import Query
from keyhole.contracts.rankers import Ranker, RankerKernel
from keyhole.kernels.compiled import assemble, kernel
from keyhole.kernels.sorting import sort_descending
from keyhole.kernels.vectors import chain, linear_scores
from keyhole.rankers.lists.steps import STEPS, Step, centre, project
from keyhole.surrogates.base import Surrogate, SurrogateWork, surrogate_work

EVERYTHING = 2**31
"""The depth of a ranker that must see the relevance of every document."""


class LinearState(NamedTuple):
    """The weights, and AdaGrad's sums of squares."""

    weights: PerFeature
    squares: PerFeature


class LinearWork(NamedTuple):
    """Scratch memory."""

    scores: PerItem
    centred: PerItem
    rounded: SingleFeature
    gradient: PerItem
    relevance: PerItem
    descent: PerFeature
    keys: PerItem
    in_top: ItemFlags
    order: ItemIndices
    surrogate: Annotated[SurrogateWork, surrogate_work]


@kernel
def score_list(params: Any, state: Any, features: Any, upcoming: Any, work: Any) -> None:
    """Score the documents of a list."""
    scores = work.scores[: features.shape[0]]
    linear_scores(features, state.weights, work.rounded, upcoming, scores)


@kernel
def rank_greedily(params: Any, state: Any, features: Any, out: Any, work: Any) -> None:
    """Sort the documents of a list by the scores they have been given."""
    sort_descending(work.scores[: features.shape[0]], out, work.surrogate.sort)


def linear_kernel(
    rank: Callable[..., tuple[bool, float]], update: Callable[..., None]
) -> RankerKernel:
    """Return the kernel of a ranker that sorts by a linear score of the features as they are."""
    return ranker_kernel(LinearState, LinearWork, rank, update, rank_greedily, score_list)


def _down_by(step: Any) -> Callable[..., None]:
    def step_down(params: Any, state: Any, seen: Any, gradient: Any, work: Any) -> None:
        if params.step.centred:
            centre(gradient, gradient)
        chain(seen.features, gradient, work.descent)
        step(params.step, seen.draw.round, work.descent, state.weights, state.squares)
        project(params.step.radius, state.weights)

    return step_down


def step_kernel(name: str, step: str) -> Callable[..., None]:
    """Return what steps down a gradient by score, or raise where a step has no such name.

    Features count as they are, or less the mean of their list.
    """
    return assemble(_down_by, STEPS[check_choice(step, f"`step` of {name}", STEPS)], inline=True)


def centres(name: str, centred: bool, surrogate: Surrogate) -> bool:
    """Return whether features must be centred, which some surrogates do not notice, or raise."""
    return check_flag(centred, f"`centred` of {name}") and not surrogate.is_shift_invariant


def step_of(
    name: str,
    step: str,
    rate: float,
    power: float,
    row_norm: float,
    radius: float | None,
    centred: bool,
) -> Step:
    """Return the step that options describe, or raise.

    Scores are the same for features divided by ``row_norm`` and weights multiplied by it; the
    step is that of a game so scaled, in which no document has a norm above 1.
    """
    row_norm = check_number(row_norm, f"`row_norm` of {name}", above=0.0)
    return Step(
        check_number(rate, f"`rate` of {name}", above=0.0)
        / (row_norm if step == "adagrad" else row_norm**2),
        check_number(power, f"`power` of {name}", at_least=0.0),
        math.inf if radius is None else check_number(radius, f"`radius` of {name}", above=0.0),
        check_flag(centred, f"`centred` of {name}"),
    )


class ContextualRanker(Ranker):
    """A ranker of lists that change with the query, by a linear score of their documents.

    Parameters
    ----------
    n_features
        Number of features of a document.
    n_items
        Length of the longest list.
    """

    def __init__(self, n_features: int, n_items: int, *, seed: int = 0, run: int = 0) -> None:
        super().__init__(n_items, seed=seed, run=run)
        self.n_features = check_length(n_features, f"`n_features` of {type(self).__name__}")
        check_memory(
            8.0 * self.n_features * self.n_items,
            f"A list of {self.n_items} documents with {self.n_features} features",
        )

    def features_of(self, query: Query) -> FloatArray:
        features = query.features
        if features is None or features.shape != (query.n_items, self.n_features):
            raise InvalidInput(
                f"`features` of the query must be {query.n_items} rows of {self.n_features}, got "
                f"{None if features is None else features.shape}."
            )
        if query.n_items > self.n_items:
            raise InvalidInput(
                f"`n_items` of the query must be at most {self.n_items}, got {query.n_items}."
            )
        return features

    def check_state(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        for name in ("squares", "norms"):
            if name in arrays and bool((arrays[name] < 0.0).any()):
                raise InvalidInput(
                    f"`{name}` of the state must be sums of squares, got {arrays[name].min()}."
                )
