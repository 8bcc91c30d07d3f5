"""What a ranker must be."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keyhole.base.display import Description, some_of
from keyhole.base.errors import (
    FeedbackTooSmall,
    FloatArray,
    IntArray,
    InvalidInput,
    check_integer,
    check_round,
    check_seed,
    shown,
)
from keyhole.base.files import write_arrays
from keyhole.base.limits import check_length
from keyhole.contracts.lists import (
    Feedback,
    Impression,
    Item,
    Query,
    check_note,
    no_features,
    shown_in,
    values_by_position,
)
from keyhole.contracts.registry import Configured
from keyhole.contracts.repeats import Rounds
from keyhole.contracts.rows import Guarantee, Look
from keyhole.contracts.states import (
    are_finite,
    check_arrays,
    check_settings,
    in_few_pieces,
    state_arrays,
)
from keyhole.kernels.compiled import kernel
from keyhole.kernels.draw import RANKER_STREAM, Draw, stream_of


@kernel
def nothing_to_prepare(params: Any, state: Any, features: Any, upcoming: Any, work: Any) -> None:
    """Leave the scratch memory as it is."""


@kernel
def nothing_to_note(params: Any, work: Any, out: Any) -> None:
    """Let the propensity be all that an update must know of how a list came about."""


def _no_size(params: Any) -> int:
    return 0


_NOT_COPIED = ("lock", "_work", "_work_size", "_pieces")
"""What a copy of a ranker has of its own."""


class Seen(NamedTuple):
    """What a round showed and what was revealed of it: all that ``update`` learns from.

    ``draw`` is where the random numbers of that round are drawn, ``features`` its list,
    ``ranking[p]`` the item at position ``p`` and ``values[p]`` its relevance, NaN where it was
    hidden; ``explored`` and ``propensity`` are what ``rank`` returned, ``note`` what else the
    ranker wrote down then.
    """

    draw: Any
    features: Any
    ranking: Any
    explored: bool
    propensity: float
    values: Any
    note: Any


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
    A ranker whose ``update`` must know more of the time of ranking than ``explored`` and
    ``propensity`` has ``rank`` leave it in the scratch memory. ``note(params, work, out)`` then
    writes it into the ``note_size(params)`` numbers that travel with the impression.
    """

    init: Callable[..., Any]
    work: Callable[..., Any]
    rank: Callable[..., tuple[bool, float]]
    update: Callable[..., None]
    greedy: Callable[..., None] | None = None
    prepare: Callable[..., None] = nothing_to_prepare
    note: Callable[..., None] = nothing_to_note
    note_size: Callable[..., int] = _no_size


class Ranker(Configured, ABC):
    """An algorithm that shows rankings and learns from what is revealed of them.

    Any number of threads may use one: its calls are made one after the other, each under ``lock``.
    Whoever holds the lock makes several calls one, such as an update and the line of a log that
    records it.
    """

    kernel: RankerKernel
    params: Any
    n_items: int
    n_features: int = 0
    max_grade: float = np.inf
    """The largest relevance the ranker is tuned for."""
    needs_gain_per_item: ClassVar[bool] = False
    """Whether it can be tuned only for measures whose gains are per item."""
    label: ClassVar[str] = ""
    """What readers of figures call it; that of its row where none is given."""
    look: ClassVar[Look | None] = None
    """How it is drawn; chosen by its name where none is given."""
    guarantee: ClassVar[Guarantee | None] = None
    """What is known of its regret, if there is something to say."""
    item_names: tuple[Item, ...] | None = None
    """What the items are called, or None where they are known by their indices."""

    _state: Any
    _pieces: list[NDArray[Any]]

    def __init__(self, n_items: int, *, seed: int = 0, run: int = 0) -> None:
        self.n_items = check_length(n_items, f"`n_items` of {type(self).__name__}")
        self.seed = check_seed(seed)
        self.run = check_integer(run, "`run`", at_least=0, at_most=2**31)
        self.next_round = 0
        self.rounds = Rounds()
        self.lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy is made of: its own state, and no lock or scratch memory."""
        with self.lock:
            own = {name: value for name, value in vars(self).items() if name not in _NOT_COPIED}
            if "_state" in own:
                own["_state"] = type(self._state)(*(array.copy() for array in self._state))
            return own

    def __setstate__(self, own: dict[str, Any]) -> None:
        vars(self).update(own, lock=threading.RLock())
        if "_state" in own:
            self._state, self._pieces = in_few_pieces(self._state)

    def _described(self) -> Description:
        n_rounds = getattr(self, "next_round", 0)
        rounds = [("rounds", f"{n_rounds:,}")] if n_rounds else []
        return Description(self.call, [*rounds, *self._top_now()] if rounds else [])

    def _top_now(self) -> list[tuple[str, str]]:
        """Return the top of the list by name, unless lists change or another thread is at work."""
        if self.n_features or not self.lock.acquire(blocking=False):
            return []
        try:
            with suppress(Exception):  # of a kernel of a user's own
                return [("top", some_of(self.best(), 5))]
            return []
        finally:
            self.lock.release()

    @property
    @abstractmethod
    def depth(self) -> int:
        """How many top positions a reveal must show for ``update`` to work."""

    @property
    def state(self) -> Any:
        """The learnt state, a NamedTuple of arrays: the very ones that updates write to."""
        with self.lock:
            if not hasattr(self, "_state"):
                state = self.kernel.init(self.params, self.n_items, self.n_features)
                self._state, self._pieces = in_few_pieces(state)
            return self._state

    def written_by_update(self, n_items: int) -> Sequence[NDArray[Any]]:
        """Return the parts of the state that an update by some list may write to."""
        return self.pieces

    @property
    def pieces(self) -> list[NDArray[Any]]:
        """The memory of the state: an array for each kind of number in it."""
        _ = self.state
        return self._pieces

    @cached_property
    def own_list(self) -> Query:
        """The list to rank where none is given: that of a ranker of one list."""
        return Query(self.n_items, None, self.item_names)

    def scratch(self, n_items: int) -> Any:
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

    def _prepare(self, features: FloatArray, work: Any) -> None:
        """Work out what ``rank``, ``greedy`` and ``update`` have in common, if anything."""
        if self.kernel.prepare is not nothing_to_prepare:  # calling it takes as long as ranking
            self.kernel.prepare(self.params, self.state, features, features[:0], work)

    def _prepared(self, query: Query | None) -> tuple[Query, FloatArray, IntArray, Any]:
        """Return a list, its features, room for its ranking, and memory prepared for it."""
        query = self.own_list if query is None else query
        if not isinstance(query, Query):
            raise InvalidInput(f"query must be a Query, got {shown(query)}.")
        features = self.features_of(query)
        work = self.scratch(query.n_items)
        self._prepare(features, work)
        return query, features, np.empty(query.n_items, dtype=np.int64), work

    def rank(self, query: Query | None = None, *, round: int | None = None) -> Impression:
        """Return the ranking to show in ``round`` (default: the next one)."""
        with self.lock:
            round = check_round(self.next_round if round is None else round)
            query, features, ranking, work = self._prepared(query)
            explored, propensity = self.kernel.rank(
                self.params, self.state, self.draw(round), features, ranking, work
            )
            note = np.empty(self.kernel.note_size(self.params))
            if len(note):
                self.kernel.note(self.params, work, note)
            self.next_round = max(self.next_round, round + 1)
            self.rounds.show(round)
        return Impression(round, query, ranking, bool(explored), float(propensity), note)

    def best(self, query: Query | None = None) -> list[Item]:
        """Return the ranking it would show if it never explored, by name, best item first.

        That of a ranker that never explores is what it shows next.
        """
        with self.lock:
            query, features, ranking, work = self._prepared(query)
            if self.kernel.greedy is None:
                draw = self.draw(self.next_round)
                self.kernel.rank(self.params, self.state, draw, features, ranking, work)
            else:
                self.kernel.greedy(self.params, self.state, features, ranking, work)
        return Impression(0, query, ranking, False, np.nan).items

    def update(self, impression: Impression, feedback: Feedback | ArrayLike) -> None:
        """Learn from what was revealed of an impression, in any order and after any delay.

        A number is the relevance of the first item shown; a list of numbers, of the first ones.
        What cannot be learnt from is refused, and then nothing has changed. The first answer to an
        impression counts: a later one changes nothing, for the last 10,240 rounds that this ranker
        has shown (not those before it was loaded from a file).
        """
        self._learn(impression, shown_in(impression), feedback)

    def _learn(
        self, impression: Impression, ranking: IntArray, feedback: Feedback | ArrayLike
    ) -> None:
        """Update by an impression whose ranking is one."""
        features, n_items = self.features_of(impression.query), impression.query.n_items
        values = values_by_position(feedback, n_items, self.max_grade)
        if bool(np.isnan(values[: self.depth]).any()):
            raise FeedbackTooSmall(
                f"{type(self).__name__} needs the relevance of the first {self.depth} positions, "
                f"but the feedback hides some of them."
            )
        seen = Seen(
            self.draw(impression.round),
            features,
            ranking,
            bool(impression.explored),
            float(impression.propensity),
            values,
            check_note(impression.note, self.kernel.note_size(self.params)),
        )
        with self.lock:
            if self.rounds.is_learnt(impression.round):
                return
            work = self.scratch(n_items)
            with self.undone_unless_finite(n_items):
                self._prepare(features, work)
                self.kernel.update(self.params, self.state, seen, work)
            self.rounds.learn(impression.round)
            self.next_round = max(self.next_round, impression.round + 1)

    @contextmanager
    def undone_unless_finite(self, n_items: int) -> Iterator[None]:
        """Undo what is done to the state by an update that fails, or leaves it not finite."""
        written = self.written_by_update(n_items)
        before = [part.copy() for part in written]
        try:
            yield
            if not are_finite(written):
                raise InvalidInput(
                    f"feedback must leave the state of {type(self).__name__} finite: features, "
                    f"relevance or propensity are too large or too small for its settings."
                )
        except BaseException:
            for part, kept in zip(written, before, strict=True):
                part[...] = kept
            raise

    def chances(self, impression: Impression) -> FloatArray | None:
        """Return how likely each of the first ``depth`` items shown was to be among them.

        Marginal over the draws of the ranker: what a log of its impressions can be judged with.
        None where the ranker does not know, or where no estimate may divide by it.
        """
        return None

    def chance_given_the_past(self, impression: Impression) -> float | None:
        """Return how likely what was revealed was, given what the ranker had shown before.

        Where draws depend on earlier ones it is not what :meth:`chances` says: an item that is
        shown once in a block cannot be shown again. Estimates must not divide by it.
        """
        chances = self.chances(impression)
        return None if chances is None else float(chances[-1])

    def least_chance(self, impression: Impression) -> float | None:
        """Return how likely the least likely item of the list was to be seen; None if not known."""
        return None

    def beliefs(self) -> tuple[FloatArray, FloatArray] | None:
        """Return what each item is believed to be worth by now, and how sure that is.

        Means of gains as shares of the largest one, and their standard errors, in the order of the
        items; None for a ranker that holds no such beliefs.
        """
        return None

    @property
    def n_alarms(self) -> int:
        """How often a test for changes has found one; 0 for a ranker without such a test."""
        return 0

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Return a copy of the state as plain arrays, with the spec of the ranker it is of."""
        with self.lock:
            return state_arrays(self.described(), self.state._asdict(), self.next_round)

    def load_state_dict(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Take over a state of :meth:`state_dict`; one that does not fit changes nothing.

        It may come from a ranker with another seed, but with no other setting.
        """
        given, next_round = check_arrays(type(self).__name__, self.state._asdict(), arrays)
        check_settings(self.described(), str(arrays["spec"]))
        self.check_state(given)
        with self.lock:
            for name, own in self.state._asdict().items():
                own[...] = given[name]
            self.next_round = next_round
        return self

    def check_state(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Raise if arrays of the right shapes, and finite, can be no state of this ranker."""

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
