"""What a ranker, a measure, a reveal and a world must be: the whole API in one file.

Each is a small Python object that validates its arguments once and holds two
things: ``kernel``, compiled functions over explicit arrays, and ``params``, the
NamedTuple those functions read. The per-round methods below and the compiled
loop of :mod:`keyhole.game.play` call the same kernels, so they give the same bits.

Relevance is by item, feedback values by position; hidden values are NaN.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keyhole.errors import (
    FeedbackTooSmall,
    FloatArray,
    IntArray,
    InvalidInput,
    check_choice,
    check_integer,
    check_ranking,
    check_relevance,
    check_round,
    check_seed,
)
from keyhole.files import write_arrays
from keyhole.kernels.compiled import assemble, kernel
from keyhole.kernels.draw import RANKER_STREAM, REVEAL_STREAM, WORLD_STREAM, Draw, stream_of
from keyhole.kernels.sorting import SortWork, sort_work
from keyhole.registry import Described

Item = str | int
"""What an item is called: a name, or its index where it has none."""


@dataclass(frozen=True)
class Query:
    """A list to be ranked.

    ``features`` is (n_items, n_features), or None for a fixed list; ``items`` names the items
    (ids of documents, say), or is None where they are known by their indices.
    """

    n_items: int
    features: FloatArray | None = None
    items: tuple[Item, ...] | None = None


@dataclass(frozen=True)
class Impression:
    """What was shown, and all that ``update`` may remember of ``rank``.

    ``ranking[p]`` is the index of the item at position ``p``. ``propensity`` is the marginal
    probability with which each revealed item was put where it was seen, or NaN
    where the ranker does not compute it (no learner then divides by it).
    """

    round: int
    query: Query
    ranking: IntArray
    explored: bool
    propensity: float

    @property
    def items(self) -> list[Item]:
        """What was shown by name, best first."""
        names = self.query.items
        return [index if names is None else names[index] for index in self.ranking.tolist()]

    def to_json(self) -> str:
        """Return the impression as text, to be kept until its feedback comes."""
        features = self.query.features
        record = {
            "round": self.round,
            "ranking": self.ranking.tolist(),
            "explored": self.explored,
            "propensity": None if np.isnan(self.propensity) else self.propensity,
            "items": self.query.items,
            "features": None if features is None else features.tolist(),
            "dtype": None if features is None else features.dtype.name,
        }
        return json.dumps(record)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the impression that :meth:`to_json` wrote, or raise.

        Examples
        --------
        >>> from keyhole import RTopK
        >>> shown = RTopK(3, horizon=100, items=["ant", "bee", "cat"]).rank()
        >>> Impression.from_json(shown.to_json()).items == shown.items
        True
        """
        try:
            given = json.loads(text)
            n_items, features = len(given["ranking"]), given["features"]
            if features is not None:
                features = np.array(features, dtype=check_choice(
                    given["dtype"], "dtype", ("float32", "float64")
                ))  # fmt: skip
            items = None if given["items"] is None else tuple(given["items"])
            propensity = np.nan if given["propensity"] is None else float(given["propensity"])
            ranking = check_ranking(given["ranking"], n_items, "ranking of the impression")
            query = Query(n_items, features, items)
            round = check_round(given["round"])
            return cls(round, query, ranking, bool(given["explored"]), propensity)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(
                f"An impression must be text that Impression.to_json wrote: {error}"
            ) from None


@dataclass(frozen=True)
class Feedback:
    """Relevance by position of the shown ranking; NaN where it was not revealed.

    There may be fewer values than positions: what is not there was not revealed.
    """

    values: FloatArray

    @classmethod
    def top(cls, *values: float) -> Self:
        """Return what was revealed of the first positions, best position first.

        Examples
        --------
        >>> Feedback.top(1, 0).values.tolist()
        [1.0, 0.0]
        """
        return cls(check_relevance(values, "revealed relevance"))


def values_by_position(feedback: "Feedback | ArrayLike", n_items: int) -> FloatArray:
    """Return what a feedback reveals of each position, NaN where nothing, or raise.

    A number is the relevance of the first position, numbers are those of the first ones.
    """
    given = feedback.values if isinstance(feedback, Feedback) else feedback
    try:
        values = np.atleast_1d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError):
        raise InvalidInput(
            f"feedback must be a Feedback, or the relevance of the first positions as a number or "
            f"a list of numbers, got {feedback!r}."
        ) from None
    if values.ndim != 1 or not 1 <= len(values) <= n_items:
        raise InvalidInput(
            f"values of the feedback must have at most one entry per position ({n_items}; NaN "
            f"where hidden), got shape {values.shape}."
        )
    by_position = np.full(n_items, np.nan)
    by_position[: len(values)] = values
    check_relevance(by_position[~np.isnan(by_position)], "revealed relevance")
    return by_position


# --------------------------------------------------------------------------- rankers


@kernel
def nothing_to_prepare(params: Any, state: Any, features: Any, upcoming: Any, work: Any) -> None:
    """Leave the scratch memory as it is."""


class Seen(NamedTuple):
    """What a round showed and what was revealed of it: all that ``update`` learns from.

    ``draw`` is where the random numbers of that round are drawn, ``features`` its list,
    ``ranking[p]`` the item at position ``p`` and ``values[p]`` its relevance, NaN where it was
    hidden; ``explored`` and ``propensity`` are what ``rank`` returned.
    """

    draw: Any
    features: Any
    ranking: Any
    explored: bool
    propensity: float
    values: Any


class RankerKernel(NamedTuple):
    """The explicit half of a ranker: two functions that allocate and two compiled ones.

    ``init(params, n_items, n_features) -> state`` (a NamedTuple of arrays);
    ``work(params, n_items) -> work`` (scratch memory no result depends on);
    ``rank(params, state, draw, features, out, work) -> (explored, propensity)``;
    ``update(params, state, seen, work)``, where ``seen`` is what was shown and revealed
    (:class:`Seen`).
    Only ``update`` may write to the state. A ranker of query-document lists also has
    ``greedy(params, state, features, out, work)``: what it would show if it did not explore.
    What these need in common ``prepare(params, state, features, upcoming, work)`` works out. It is
    called before any of them, once for several if neither the state nor the list changes in
    between. ``upcoming`` are the features of the next list where they are known, and empty
    elsewhere: no result depends on them, but they can be fetched early.
    """

    init: Callable[..., Any]
    work: Callable[..., Any]
    rank: Callable[..., tuple[bool, float]]
    update: Callable[..., None]
    greedy: Callable[..., None] | None = None
    prepare: Callable[..., None] = nothing_to_prepare


class Ranker(Described, ABC):
    """An algorithm that shows rankings and learns from what is revealed of them."""

    kernel: RankerKernel
    params: Any
    n_items: int
    n_features: int = 0
    max_grade: float = np.inf
    """The largest relevance the ranker is tuned for."""
    needs_gain_per_item: ClassVar[bool] = False
    """Whether it can be tuned only for measures whose gains are per item."""
    item_names: tuple[Item, ...] | None = None
    """What the items are called, or None where they are known by their indices."""

    def __init__(self, n_items: int, *, seed: int = 0, run: int = 0) -> None:
        self.n_items = check_integer(n_items, f"`n_items` of {type(self).__name__}", at_least=1)
        self.seed = check_seed(seed)
        self.run = check_integer(run, "`run`", at_least=0, at_most=2**31)
        self.next_round = 0

    @property
    @abstractmethod
    def depth(self) -> int:
        """How many top positions a reveal must show for ``update`` to work."""

    @property
    def state(self) -> Any:
        """The learnt state: a NamedTuple of arrays."""
        if not hasattr(self, "_state"):
            self._state = self.kernel.init(self.params, self.n_items, self.n_features)
        return self._state

    def _scratch(self, n_items: int) -> Any:
        """Return scratch memory for a list, kept for lists that are no longer."""
        if getattr(self, "_work_size", 0) < n_items:
            self._work, self._work_size = self.kernel.work(self.params, n_items), n_items
        return self._work

    def forget_scratch(self) -> None:
        """Drop the scratch memory; no result depends on it."""
        self.__dict__.pop("_work_size", None)

    def draw(self, round: int) -> Draw:
        """Return where this ranker's random numbers of a round are drawn."""
        return Draw(self.seed, stream_of(RANKER_STREAM, self.run), round)

    def features_of(self, query: Query) -> FloatArray:
        """Return the features of a list, or raise if it is none of this ranker's."""
        if query.n_items != self.n_items:
            raise InvalidInput(
                f"`n_items` of the query must be {self.n_items}, got {query.n_items}."
            )
        return no_features(self.n_items) if query.features is None else query.features

    def _prepared(self, query: Query | None) -> tuple[Query, FloatArray, IntArray, Any]:
        """Return a list, its features, room for its ranking, and memory prepared for it."""
        query = Query(self.n_items, None, self.item_names) if query is None else query
        features = self.features_of(query)
        work = self._scratch(query.n_items)
        self.kernel.prepare(self.params, self.state, features, features[:0], work)
        return query, features, np.empty(query.n_items, dtype=np.int64), work

    def rank(self, query: Query | None = None, *, round: int | None = None) -> Impression:
        """Return the ranking to show in ``round`` (default: the next one)."""
        round = check_round(self.next_round if round is None else round)
        query, features, ranking, work = self._prepared(query)
        explored, propensity = self.kernel.rank(
            self.params, self.state, self.draw(round), features, ranking, work
        )
        self.next_round = max(self.next_round, round + 1)
        return Impression(round, query, ranking, bool(explored), float(propensity))

    def best(self, query: Query | None = None) -> list[Item]:
        """Return the ranking it would show if it never explored, by name, best item first.

        That of a ranker that never explores is what it shows next.
        """
        query, features, ranking, work = self._prepared(query)
        if self.kernel.greedy is None:
            draw = self.draw(self.next_round)
            self.kernel.rank(self.params, self.state, draw, features, ranking, work)
        else:
            self.kernel.greedy(self.params, self.state, features, ranking, work)
        return Impression(self.next_round, query, ranking, False, np.nan).items

    def update(self, impression: Impression, feedback: Feedback | ArrayLike) -> None:
        """Learn from what was revealed of an impression, in any order and after any delay.

        A number is the relevance of the first item shown; a list of numbers, of the first ones.
        """
        if not isinstance(impression, Impression):
            raise InvalidInput(
                f"impression must be what `rank` returned, or Impression.from_json of its text, "
                f"got {impression!r}."
            )
        features, n_items = self.features_of(impression.query), impression.query.n_items
        ranking = check_ranking(impression.ranking, n_items, "ranking of the impression")
        values = values_by_position(feedback, n_items)
        if bool(np.isnan(values[: self.depth]).any()):
            raise FeedbackTooSmall(
                f"{type(self).__name__} needs the relevance of the first {self.depth} positions, "
                f"but the feedback hides some of them."
            )
        work = self._scratch(n_items)
        self.kernel.prepare(self.params, self.state, features, features[:0], work)
        seen = Seen(
            self.draw(check_round(impression.round)),
            features,
            ranking,
            impression.explored,
            impression.propensity,
            values,
        )
        self.kernel.update(self.params, self.state, seen, work)
        self.next_round = max(self.next_round, impression.round + 1)

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Return a copy of the state as plain arrays, with the spec of the ranker it is of."""
        return state_arrays(self.described(), self.state._asdict(), self.next_round)

    def load_state_dict(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Take over a state of :meth:`state_dict`; one that does not fit changes nothing.

        It may come from a ranker with another seed, but with no other setting.
        """
        state = self.state._asdict()
        if set(arrays) != {*state, "next_round", "spec"}:
            raise InvalidInput(
                f"state of {type(self).__name__} must hold "
                f"{', '.join([*state, 'next_round', 'spec'])}, got {', '.join(arrays)}."
            )
        self._check_same_settings(str(arrays["spec"]))
        for name, own in state.items():
            given = np.asarray(arrays[name])
            if given.shape != own.shape or given.dtype != own.dtype:
                raise InvalidInput(
                    f"`{name}` of the state must be {own.dtype} of shape {own.shape}, "
                    f"got {given.dtype} of shape {given.shape}."
                )
        self.next_round = check_round(np.asarray(arrays["next_round"]).item())
        for name, own in state.items():
            own[...] = arrays[name]
        return self

    def _check_same_settings(self, text: str) -> None:
        try:
            theirs = dict(json.loads(text))
        except (TypeError, ValueError):
            raise InvalidInput("`spec` of the state must be the spec of a ranker.") from None
        own = json.loads(json.dumps(self.described()))
        for name in sorted({*own, *theirs} - {"version", "seed", "run"}):
            if own.get(name) != theirs.get(name):
                raise InvalidInput(
                    f"state must be of a {own['name']} with {name}={own.get(name)!r}, got one of a "
                    f"{theirs.get('name')} with {name}={theirs.get(name)!r}."
                )

    def save(self, path: Path | str) -> None:
        """Write spec and state to a file of plain arrays, whole or not at all.

        :func:`keyhole.load` gives the ranker back, in this process or in another one.
        """
        _ = self.spec  # what cannot be made again is not saved
        write_arrays(path, self.state_dict())

    def with_items(self, items: Sequence[Item]) -> Self:
        """Return the ranker of a list in which items were added and removed."""
        raise InvalidInput(
            f"{type(self).__name__} ranks lists that change with every query: there are no items "
            f"to add or to remove."
        )

    def relabelled(self, labels: IntArray) -> Self:
        """Return a fresh ranker of the list in which item ``i`` is the old ``labels[i]``."""
        return self.fresh()


def state_arrays(
    described: Mapping[str, Any], state: Mapping[str, NDArray[Any]], next_round: int
) -> dict[str, NDArray[Any]]:
    """Return a copy of the state of a ranker, as :meth:`Ranker.load_state_dict` takes it."""
    arrays = {name: array.copy() for name, array in state.items()}
    spec = np.array(json.dumps(described))
    return {**arrays, "next_round": np.array(next_round), "spec": spec}


def no_features(n_items: int) -> FloatArray:
    """Return the feature matrix of a list without features."""
    return np.empty((n_items, 0))


# --------------------------------------------------------------------------- measures


class MeasureKernel(NamedTuple):
    """The compiled half of a measure.

    ``prepare(params, relevance, gains, work) -> (offset, norm)`` turns relevance into a
    gain per item; ``score(params, gains, offset, norm, ranking) -> value`` judges a
    ranking. For a linear measure the value is (weights by position . gains + offset) / norm.
    """

    prepare: Callable[..., tuple[float, float]]
    score: Callable[..., float]


class MeasureParams(NamedTuple):
    """What measure kernels read: weight by position, number of positions scored, and rules."""

    weights: Any
    depth: int
    empty: float
    max_grade: float


class MeasureWork(NamedTuple):
    """Scratch memory of ``prepare``; no result depends on its content."""

    order: Any
    sort: SortWork


def measure_work(n_items: int) -> MeasureWork:
    """Allocate the scratch memory of measures for lists of up to ``n_items``."""
    return MeasureWork(np.empty(n_items, np.int64), sort_work(n_items))


def _list_loop(prepare: Any, score: Any) -> Callable[..., None]:
    def score_lists(
        params: Any, relevance: Any, rankings: Any, gains: Any, work: Any, out: Any
    ) -> None:
        for row in range(relevance.shape[0]):
            offset, norm = prepare(params, relevance[row], gains, work)
            out[row] = score(params, gains, offset, norm, rankings[row])

    return score_lists


class Measure(Described, ABC):
    """A named way to judge a ranking by the relevance of its items.

    Printing it states its gain, discount, cutoff and what it gives an empty list
    (one without a relevant item).
    """

    name: ClassVar[str]
    kernel: MeasureKernel
    is_loss: ClassVar[bool] = False
    gain: ClassVar[str] = "1[r > 0]"
    discount: ClassVar[str]
    takes_cutoff: ClassVar[bool] = False
    exponential_gain: ClassVar[bool] = False
    """Whether the gain of an item is 2^r - 1 rather than r."""
    gain_per_item: ClassVar[bool] = False
    """Whether an item's gain depends on its own relevance only so that a part of
    the list tells something about the whole."""
    default_empty: ClassVar[float | None] = None
    """Value of an empty list; None where the formula itself gives one."""

    def __init__(self, cutoff: int | None = None, *, empty: float | None = None) -> None:
        if cutoff is not None:
            self._check_takes_cutoff(cutoff)
        self.cutoff = (
            None if cutoff is None else check_integer(cutoff, f"cutoff of {self.name}", at_least=1)
        )
        if empty is not None and self.default_empty is None:
            raise InvalidInput(f"{self.name} has no rule for empty lists to change.")
        if empty is not None and not isinstance(empty, int | float):
            raise InvalidInput(f"`empty` of {self.name} must be a number, got {empty!r}.")
        self.empty = self.default_empty if empty is None else float(empty)

    @abstractmethod
    def weights(self, n_items: int) -> FloatArray:
        """Return the weight of each position."""

    @property
    def max_grade(self) -> float:
        """The largest relevance the measure is defined for."""
        return 1000.0 if self.exponential_gain else np.inf

    def is_gain_per_item(self, max_grade: float) -> bool:
        """Return whether gains are per item for grades up to ``max_grade``."""
        return self.gain_per_item and self.is_linear(binary=max_grade <= 1.0)

    def kernel_for(self, binary: bool) -> MeasureKernel:
        """Return the kernel to use where relevance is known to be binary, or is not."""
        return self.kernel

    def is_linear(self, binary: bool) -> bool:
        """Return whether a ranking's value is linear in the gains, so that sorting is optimal."""
        return False

    def params(self, n_items: int) -> MeasureParams:
        """Return what the kernels read for lists of ``n_items``."""
        depth = n_items if self.cutoff is None else min(self.cutoff, n_items)
        empty = 0.0 if self.empty is None else self.empty
        return MeasureParams(self.weights(n_items), depth, empty, self.max_grade)

    def __matmul__(self, cutoff: int) -> "Measure":
        """Return the measure cut off at a position: ``measure("NDCG") @ 10``."""
        self._check_takes_cutoff(cutoff)
        return type(self)(cutoff, empty=self.empty)

    def _check_takes_cutoff(self, cutoff: Any) -> None:
        if not self.takes_cutoff:
            raise InvalidInput(f"{self.name} takes no cutoff, got {cutoff!r}.")

    def __call__(self, relevance: ArrayLike, ranking: ArrayLike) -> float:
        """Return the value of one ranking (item at each position, best first)."""
        by_item, order = self._check(relevance, ranking, n_dims=1)
        gains = np.empty(by_item.shape[0])
        params, work = self.params(by_item.shape[0]), measure_work(by_item.shape[0])
        offset, norm = self.kernel.prepare(params, by_item, gains, work)
        return float(self.kernel.score(params, gains, offset, norm, order))

    def many(self, relevance: ArrayLike, rankings: ArrayLike) -> FloatArray:
        """Return the value of many rankings, one per row."""
        by_item, order = self._check(relevance, rankings, n_dims=2)
        n_lists, n_items = by_item.shape
        out, gains = np.empty(n_lists), np.empty(n_items)
        params, work = self.params(n_items), measure_work(n_items)
        assemble(_list_loop, *self.kernel)(params, by_item, order, gains, work, out)
        return out

    def _check(
        self, relevance: ArrayLike, ranking: ArrayLike, n_dims: int
    ) -> tuple[FloatArray, IntArray]:
        by_item = check_relevance(relevance)
        if by_item.ndim != n_dims or by_item.shape[-1] == 0:
            raise InvalidInput(
                f"relevance must have {n_dims} dimension{'s'[: n_dims - 1]} and at least one item, "
                f"got shape {by_item.shape}."
            )
        order = check_ranking(ranking, by_item.shape[-1])
        if order.shape != by_item.shape:
            raise InvalidInput(
                f"ranking must have the shape of relevance {by_item.shape}, got {order.shape}."
            )
        if by_item.size and float(by_item.max()) > self.max_grade:
            raise InvalidInput(
                f"relevance must be at most max_grade={self.max_grade} for {self.name}, "
                f"got {by_item.max()}."
            )
        return by_item, order

    @property
    def label(self) -> str:
        """The name with its cutoff, as :func:`keyhole.measure` takes it."""
        return self.name if self.cutoff is None else f"{self.name}@{self.cutoff}"

    def __str__(self) -> str:
        cutoff = "no cutoff" if self.cutoff is None else f"cutoff {self.cutoff}"
        empty = "" if self.empty is None else f", empty list {self.empty:g}"
        kind = "loss" if self.is_loss else "gain"
        return f"{self.label} ({kind}; item {self.gain}; position {self.discount}; {cutoff}{empty})"

    def __repr__(self) -> str:
        return f"<{self}>"


# --------------------------------------------------------------------------- reveals


class RevealKernel(NamedTuple):
    """The compiled half of a reveal: ``reveal(params, draw, relevance, ranking, values)``."""

    reveal: Callable[..., None]


class Reveal(Described, ABC):
    """What the learner gets to see of the relevance."""

    kernel: ClassVar[RevealKernel]
    params: Any

    @abstractmethod
    def depth(self, n_items: int) -> int:
        """Return how many top positions are shown of a list, or raise if the list is too short."""

    @abstractmethod
    def __str__(self) -> str: ...

    def __call__(
        self,
        relevance: ArrayLike,
        ranking: ArrayLike,
        *,
        round: int = 0,
        seed: int = 0,
        run: int = 0,
    ) -> Feedback:
        """Return what is revealed of one list."""
        by_item = check_relevance(relevance)
        order = check_ranking(ranking, by_item.shape[0])
        values = np.empty(by_item.shape[0])
        draw = Draw(check_seed(seed), stream_of(REVEAL_STREAM, run), check_round(round))
        self.kernel.reveal(self.params, draw, by_item, order, values)
        return Feedback(values)


# --------------------------------------------------------------------------- worlds


@kernel
def whole_matrix(params: Any, draw: Any, matrix: Any) -> tuple[int, int]:
    """Ask for the same list every round."""
    return 0, matrix.shape[0]


@kernel
def nothing_upcoming(params: Any, draw: Any, matrix: Any) -> tuple[int, int]:
    """Name no list."""
    return 0, 0


class WorldKernel(NamedTuple):
    """The compiled half of a world.

    ``relevance(params, draw, out)``, drawn item by item; and where lists change with the round,
    ``query(params, draw, matrix) -> (first, end)``: the rows of the matrix that are the
    features of the round's list (which it may write there). ``upcoming``, of the same form, names
    a list that will come without writing anything, so that it can be fetched early.
    """

    relevance: Callable[..., None]
    query: Callable[..., tuple[int, int]] = whole_matrix
    upcoming: Callable[..., tuple[int, int]] = nothing_upcoming


class World(Described, ABC):
    """Where relevance comes from."""

    kernel: ClassVar[WorldKernel]
    params: Any
    n_items: int
    """Length of the list, or of the longest one."""
    n_features: int = 0
    max_grade: float
    """The largest relevance that can occur."""
    is_binary: bool
    """Whether every relevance is 0 or 1."""
    length: int | None = None
    """The number of rounds that exist, or None if there is no end."""
    item_names: tuple[str, ...] | None = None

    def matrix(self) -> FloatArray:
        """Return the features that lists are rows of; a world that draws them, a new buffer."""
        return no_features(self.n_items)

    def query(self, round: int, *, seed: int = 0, run: int = 0) -> Query:
        """Return the list of one round, with its features if it has any."""
        matrix = self.matrix()
        first, end = self.kernel.query(self.params, self._draw(round, seed, run), matrix)
        features = matrix[first:end]
        return Query(end - first, features if features.shape[1] else None, self.item_names)

    def parts(self, first: int, end: int) -> Iterator[tuple["World", int, int]]:
        """Give worlds that hold the rounds ``first`` to ``end``, and which of them each holds.

        That is the world itself, unless there is more of it than fits into memory.
        """
        yield self, first, end

    def _draw(self, round: int, seed: int, run: int) -> Draw:
        if self.length is not None:
            check_integer(round, "`round`", at_least=0, at_most=self.length - 1)
        return Draw(check_seed(seed), stream_of(WORLD_STREAM, run), check_round(round))

    def relevance(self, round: int, *, seed: int = 0, run: int = 0) -> FloatArray:
        """Return the relevance by item in one round."""
        out = np.empty(self.query(round, seed=seed, run=run).n_items)
        self.kernel.relevance(self.params, self._draw(round, seed, run), out)
        return out

    @abstractmethod
    def relabelled(self, labels: IntArray) -> "World":
        """Return the world in which item ``i`` is the old item ``labels[i]``."""
