"""AUC rankers that learn from a stream, one impression at a time."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import InvalidInput, check_choice, check_integer, check_number, check_seed
from keyhole.base.limits import check_memory
from keyhole.data.bandit.columns import Names
from keyhole.data.bandit.log import BanditLog
from keyhole.data.bandit.row_digests import RowRecorder, SeenRows
from keyhole.kernels.compiled import rare_kernel
from keyhole.kernels.draw import Draw, start, to_unit, word
from keyhole.policies.aligning import ALIGNMENTS, align
from keyhole.policies.base import Arrays
from keyhole.policies.examples import check_log
from keyhole.policies.linear import LinearScorer
from keyhole.policies.pairs import (
    POLICY_STREAM,
    RESERVOIR_USE,
    PairParams,
    PairState,
    descend_pair,
    pair_params,
    thresholded,
)

_NO_NAMES = (None, None)
_ROWS = "rows."
"""What the names of arrays begin with that hold the digests of rows."""


class StreamState(NamedTuple):
    """Everything that the rankers remember: one row per ad."""

    gradients: Any
    average: Any
    cut: Any
    steps: Any
    kept: Any
    """Examples, by ad, class (0 no click, 1 click), place in the reservoir, feature."""
    seen: Any
    """Examples so far, by ad and class."""


@rare_kernel
def _learn(
    params: PairParams,
    state: StreamState,
    seed: int,
    contexts: Any,
    ads: Any,
    clicks: Any,
) -> None:
    size = state.kept.shape[2]
    for row in range(contexts.shape[0]):
        ad, side = ads[row], int(clicks[row])
        seen = state.seen[ad]
        begin = start(Draw(seed, POLICY_STREAM, ad), ad, RESERVOIR_USE)
        index = 2 * (seen[0] + seen[1])
        n_others = min(seen[1 - side], size)
        if n_others > 0:
            other = state.kept[ad, 1 - side, int(to_unit(word(begin, index)) * n_others)]
            own = PairState(
                state.gradients[ad],
                state.average[ad],
                state.cut[ad : ad + 1],
                state.steps[ad : ad + 1],
            )
            if side == 1:
                descend_pair(params, own, contexts[row], other)
            else:
                descend_pair(params, own, other, contexts[row])
        # Each example of a class is in its reservoir with the same probability.
        place = seen[side]
        if place >= size:
            place = int(to_unit(word(begin, index + 1)) * (seen[side] + 1))
        if place < size:
            for column in range(contexts.shape[1]):
                state.kept[ad, side, place, column] = contexts[row, column]
        seen[side] += 1


class OnlineRankers:
    """A linear AUC ranker per ad, updated by each impression as it comes.

    Parameters
    ----------
    n_actions, n_features
        Number of ads, and length of a context.
    loss, l1, l2
        See :func:`~keyhole.policies.pairs.fit_pairs`.
    row_norm
        How long a typical context is; steps are scaled by it. Contexts are taken as they come, so
        features should be of similar size.
    reservoir
        Examples to remember per ad and class.
    seed
        What is remembered and compared follows from it.

    Notes
    -----
    Each impression is paired with one drawn from the reservoir of the ad's other class, a uniform
    sample of all that came before, and takes the step that :func:`fit_pairs` would take; an ad
    without any example of the other class only remembers (Zhao et al. 2011 keep buffers in the
    same way). The scores are aligned by the reservoirs, in which each example counts for as many
    as its class has per place.

    Examples
    --------
    >>> import numpy as np
    >>> numbers = np.random.default_rng(0)
    >>> visitors, ads = numbers.normal(size=(5000, 2)), numbers.integers(2, size=5000)
    >>> likes = np.where(ads == 0, visitors[:, 0], -visitors[:, 0])
    >>> clicks = (numbers.random(5000) < 0.05 * np.exp(likes)).astype(float)
    >>> rankers = OnlineRankers(2, 2)
    >>> for visitor, ad, click in zip(visitors[:10], ads, clicks):
    ...     rankers.update(visitor, ad, click)
    >>> rankers.learn(visitors[10:], ads[10:], clicks[10:])    # the same, in one compiled loop
    >>> from keyhole import Greedy
    >>> Greedy(rankers.scorer()).best([[2.0, 0.0], [-2.0, 0.0]]).tolist()
    [0, 1]
    """

    def __init__(
        self,
        n_actions: int,
        n_features: int,
        *,
        loss: str = "logistic",
        l1: float = 0.0,
        l2: float = 0.01,
        row_norm: float = 1.0,
        reservoir: int = 1000,
        seed: int = 0,
    ) -> None:
        self.n_actions = check_integer(n_actions, "`n_actions` of OnlineRankers", at_least=1)
        self.n_features = check_integer(n_features, "`n_features` of OnlineRankers", at_least=1)
        size = check_integer(reservoir, "`reservoir` of OnlineRankers", at_least=1)
        row_norm = check_number(row_norm, "`row_norm` of OnlineRankers", above=0.0)
        check_memory(
            16.0 * self.n_actions * (size + 2) * self.n_features,
            f"OnlineRankers of {self.n_actions} ads, {self.n_features} features and a `reservoir` "
            f"of {size}",
        )
        # Two independent contexts are so far apart, squared.
        self.params = pair_params(loss, l1, l2, curvature=2.0 * row_norm**2)
        self.seed = check_seed(seed)
        self.state = StreamState(
            np.zeros((self.n_actions, self.n_features)),
            np.zeros((self.n_actions, self.n_features)),
            np.zeros(self.n_actions),
            np.zeros(self.n_actions, dtype=np.int64),
            np.zeros((self.n_actions, 2, size, self.n_features)),
            np.zeros((self.n_actions, 2), dtype=np.int64),
        )
        self._recorder = RowRecorder(SeenRows.nothing())
        self._names: tuple[Names, Names] = _NO_NAMES

    def update(self, context: ArrayLike, action: int, reward: float) -> None:
        """Learn from one impression."""
        self.learn(np.asarray(context, dtype=np.float64)[None], [action], [reward])

    def learn(
        self,
        contexts: ArrayLike | BanditLog,
        actions: ArrayLike | None = None,
        rewards: ArrayLike | None = None,
    ) -> None:
        """Learn from impressions in their order, or from those of a log."""
        given = check_log(contexts, actions, rewards, self.n_actions)
        table, ads, clicks = given.contexts, given.ads, given.clicks
        if table.shape[1] != self.n_features:
            raise InvalidInput(
                f"contexts must have n_features={self.n_features}, got {table.shape[1]}."
            )
        names = (given.feature_names, given.action_names)
        if self._names not in (_NO_NAMES, names) and names != _NO_NAMES:
            raise InvalidInput("A log must have the names of those before it, got others.")
        self._names = self._names if names == _NO_NAMES else names
        _learn(self.params, self.state, self.seed, table, ads, clicks)
        self._recorder.add(table, ads, clicks)

    def scorer(self, alignment: str = "calibrated") -> LinearScorer:
        """Return the scorer learnt so far; an ad that lacks one of the classes is ruled out."""
        check_choice(alignment, "`alignment`", ALIGNMENTS)
        weights = np.zeros((self.n_actions, self.n_features))
        offsets = np.full(self.n_actions, -np.inf)
        size = self.state.kept.shape[2]
        learnt = np.flatnonzero(self.state.seen.min(axis=1) > 0)
        if not len(learnt):
            raise InvalidInput("At least one ad must have been seen with and without a click.")
        for ad in learnt:
            ranker = thresholded(self.state.average[ad], self.state.cut[ad])
            sizes = np.minimum(self.state.seen[ad], size)
            rows = np.concatenate([self.state.kept[ad, side, : sizes[side]] for side in (0, 1)])
            counts = np.repeat(self.state.seen[ad] / sizes, sizes)
            slope, offsets[ad] = align(
                rows @ ranker, np.repeat([0.0, 1.0], sizes), alignment, counts
            )
            weights[ad] = slope * ranker
        return LinearScorer(weights, offsets).fitted_to(self._recorder.seen(), *self._names)

    def state_dict(self) -> Arrays:
        """Return copies of all arrays of the state, and the digests of the rows behind it."""
        seen = self._recorder.seen()
        rows = {} if seen is None else {f"{_ROWS}{name}": a for name, a in seen.arrays().items()}
        return {name: array.copy() for name, array in {**self.state._asdict(), **rows}.items()}

    def load_state_dict(self, arrays: Arrays) -> "OnlineRankers":
        """Go on from the arrays of :meth:`state_dict`."""
        for name, own in self.state._asdict().items():
            check_choice(name, "An array of the state", arrays)
            if arrays[name].shape != own.shape or arrays[name].dtype != own.dtype:
                raise InvalidInput(
                    f"{name} must have shape {own.shape} and type {own.dtype}, got "
                    f"{arrays[name].shape} and {arrays[name].dtype}."
                )
        self.state = StreamState(**{name: arrays[name].copy() for name in StreamState._fields})
        rows = {n.removeprefix(_ROWS): array for n, array in arrays.items() if n.startswith(_ROWS)}
        self._recorder = RowRecorder(SeenRows.of_arrays(rows) if rows else None)
        return self
