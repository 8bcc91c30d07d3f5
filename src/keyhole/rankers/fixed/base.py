"""What every ranker of a fixed list is told about its game, and its epochs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, NamedTuple, Self, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keyhole.base.errors import (
    MAX_ROUND,
    FloatArray,
    IntArray,
    InvalidInput,
    check_integer,
    check_top_grade,
    shown,
)
from keyhole.contracts.lists import Feedback, Impression, Item, Query
from keyhole.contracts.measures import Measure
from keyhole.contracts.rankers import Ranker
from keyhole.contracts.states import are_finite
from keyhole.kernels.compiled import kernel
from keyhole.measures import measure as named_measure

Arrays = Mapping[str, NDArray[Any]]


class NoState(NamedTuple):
    """State of a ranker that learns nothing."""

    nothing: Any


class Epochs(NamedTuple):
    """Epoch e covers rounds ``starts[e]`` up to ``starts[e + 1]`` and has its own tuning.

    The first is as long as the horizon, each later one twice as long as the one before:
    doubling, which costs a factor of 2.70 for rates of T^(2/3).
    """

    starts: Any
    n_blocks: Any
    rates: Any
    mixes: Any


class Tuning(NamedTuple):
    """What an epoch of some length is played with; a ranker uses what it needs of it."""

    n_blocks: int = 1
    rate: float = 0.0
    mix: float = 0.0


def epochs(horizon: int, tune: Callable[[int], Tuning]) -> Epochs:
    """Return the epochs from round 0 on, tuned each for its length."""
    starts, tunings, length = [0], [], horizon
    while starts[-1] < MAX_ROUND:
        tunings.append(tune(length))
        starts.append(starts[-1] + length)
        length *= 2
    return Epochs(
        np.array(starts, dtype=np.int64),
        np.array([t.n_blocks for t in tunings], dtype=np.int64),
        np.array([t.rate for t in tunings], dtype=np.float64),
        np.array([t.mix for t in tunings], dtype=np.float64),
    )


@kernel
def epoch_of(epochs: Epochs, round: int) -> int:
    """Return the epoch that a round belongs to."""
    epoch = 0
    while round >= epochs.starts[epoch + 1]:
        epoch += 1
    return epoch


@kernel
def enter_epoch(epochs: Epochs, round: int, clock: Any, totals: Any) -> bool:
    """Start afresh if a round is of a new epoch; return False if its epoch has ended.

    ``clock`` holds the epoch whose ``totals`` are kept. What is learnt late about an epoch that
    has ended would be forgotten at once.
    """
    epoch = epoch_of(epochs, round)
    if epoch > clock[0]:
        clock[0] = epoch
        for index in range(totals.shape[0]):
            totals[index] = 0.0
    return epoch == clock[0]


@kernel
def gain_of(value: float, exponential: bool) -> float:
    """Return the gain of one relevance: r, or 2^r - 1."""
    return 2.0**value - 1.0 if exponential else value


class GameFacts(TypedDict, total=False):
    """What every ranker of a fixed list may be told about its game."""

    horizon: int | None
    """Number of rounds to tune for. None (default): unknown, so start with
    ``unknown_horizon`` and double. Rounds past the horizon are doubling epochs too."""
    k: int
    """Number of top positions whose relevance is revealed (default 1)."""
    measure: str | Measure
    """What to be good at (default DCG)."""
    max_grade: float
    """Largest relevance that can occur (default 1)."""
    items: Sequence[Item] | None
    """Names of the items (default: their indices), by which lists that change are told apart."""
    seed: int
    """Seed of the random numbers (default 0)."""
    run: int
    """Which of the independent runs under that seed (default 0)."""


class FixedListRanker(Ranker):
    """A ranker of one list for everybody, told its length and any of :class:`GameFacts`."""

    unknown_horizon = 1024
    shared_settings: ClassVar[Mapping[str, Any]] = {
        "horizon": None,
        "k": 1,
        "measure": "DCG",
        "max_grade": 1.0,
        "items": None,
        "seed": 0,
        "run": 0,
    }
    by_item: ClassVar[tuple[str, ...] | None] = None
    """Which arrays of the state change with the items of the list, one entry for each.

    None: it is not said, and the list cannot change.
    """

    def __init__(self, n_items: int, **game: Unpack[GameFacts]) -> None:
        facts = {**self.shared_settings, **game}
        super().__init__(n_items, seed=facts["seed"], run=facts["run"])
        name = type(self).__name__
        self.horizon = (
            self.unknown_horizon
            if facts["horizon"] is None
            else check_integer(
                facts["horizon"], f"`horizon` of {name}", at_least=1, at_most=MAX_ROUND
            )
        )
        self.k = check_integer(
            facts["k"], f"`k` of {name}", at_least=1, at_most=self.n_items, bound="n_items="
        )
        self.measure = named_measure(facts["measure"])
        self.max_grade = check_top_grade(
            facts["max_grade"],
            f"`max_grade` of {name}",
            exponential=self.measure.exponential_gain,
        )
        if facts["items"] is not None:
            self.item_names = check_items(facts["items"], f"`items` of {name}", self.n_items)

    @property
    def items(self) -> tuple[Item, ...]:
        """What the items are called, in the order of their indices."""
        return tuple(range(self.n_items)) if self.item_names is None else self.item_names

    def features_of(self, query: Query) -> FloatArray:
        if query.items is not None and self.item_names not in (None, query.items):
            raise InvalidInput(
                f"`items` of the query must be those of {type(self).__name__}: with_items gives "
                f"the ranker of a list that has changed."
            )
        return super().features_of(query)

    def check_state(self, arrays: Arrays) -> None:
        """Raise if arrays can be no state: kernels look up the tuning of the epoch of ``clock``."""
        table = getattr(self.params, "epochs", None)
        if table is None or "clock" not in arrays:
            return
        latest = len(table.rates) - 1
        if arrays["clock"][0] > latest:
            raise InvalidInput(
                f"`clock` of the state must begin with an epoch of 0 to {latest}, got "
                f"{arrays['clock'][0]}."
            )

    def rank(self, query: Query | None = None, *, round: int | None = None) -> Impression:
        if isinstance(query, Query) and query.items is None and query.n_items == self.n_items:
            query = Query(query.n_items, query.features, self.item_names)
        return super().rank(query, round=round)

    # ------------------------------------------------------------------- lists that change

    def with_items(self, items: Sequence[Item]) -> Self:
        """Return the ranker of a list in which items were added and removed.

        What was learnt of the items that stay is kept. A new one begins with the mean of what
        they have, neither ahead of the list nor behind it, and is explored from the next round on
        as all are. This ranker is left as it is. Impressions shown before the change can be
        answered to the new ranker: what they revealed is credited by the items' names, and what
        was revealed of an item that is gone is dropped.

        Examples
        --------
        >>> from keyhole import FTPL
        >>> ranker = FTPL(3, items=["ant", "bee", "cat"])
        >>> shown = ranker.rank()
        >>> ranker = ranker.with_items(["bee", "cat", "dog"])
        >>> ranker.update(shown, [float(name == "cat") for name in shown.items])
        >>> ranker.best()
        ['cat', 'bee', 'dog']
        """
        names = check_items(items, f"items of {type(self).__name__}")
        with self.lock:
            return self._carried_to(names)

    def _learn(
        self, impression: Impression, ranking: IntArray, feedback: Feedback | ArrayLike
    ) -> None:
        if not self._is_of_another_list(impression.query):
            super()._learn(impression, ranking, feedback)
            return
        names = impression.query.items or tuple(range(impression.query.n_items))
        with self.lock:
            earlier = self._carried_to(names)
            before = {name: array.copy() for name, array in earlier.state._asdict().items()}
            earlier.update(impression, feedback)
            if self.rounds.is_learnt(impression.round):
                return
            with self.undone_unless_finite(self.n_items):
                self._credit(earlier, before)
            self.next_round = max(self.next_round, earlier.next_round)
            self.rounds.learn(impression.round)

    def _is_of_another_list(self, query: Query) -> bool:
        """Return whether a list has other items than this ranker's."""
        if self.item_names is None and (query.items is None or query.n_items == self.n_items):
            return False  # items without names are told apart by their places alone
        return (query.items or tuple(range(query.n_items))) != self.items

    def _carried_to(self, names: tuple[Item, ...]) -> Self:
        """Return the ranker of another list, with what is known of the items in both."""
        kept = None if self.item_names is None and names == self.items else list(names)
        where = places_in(self.items, names)
        other = self.fresh(n_items=len(names), items=kept, **self.settings_for(where))
        own = other.state._asdict()
        for name, array in self.carried(self.state._asdict(), other, where).items():
            own[name][...] = array
        if not are_finite(other.state):
            raise InvalidInput(
                f"items must leave the state of {type(self).__name__} finite, but what is known of "
                f"these adds up to more than numbers can be."
            )
        other.next_round, other.rounds = self.next_round, copy(self.rounds)
        return other

    def settings_for(self, where: IntArray) -> dict[str, Any]:
        """Return the settings that another list changes, its item ``i`` being ``where[i]`` here.

        -1 stands for an item that is new.
        """
        return {"k": min(self.k, len(where))}

    def carried(
        self,
        arrays: Arrays,
        other: Self,
        where: IntArray,
        newcomers: float | None = None,
    ) -> dict[str, Any]:
        """Return arrays of this ranker's state as they are for the list of another one.

        Item ``i`` of that list is ``where[i]`` of this one, or new (-1). New ones have the mean of
        those that stay, or the number given.
        """
        if self.by_item is None:
            raise InvalidInput(
                f"{type(self).__name__} must say which arrays of its state are by item (`by_item`) "
                f"before its list can change."
            )
        stay = where >= 0
        moved = {}
        for name in self.by_item:
            array = arrays[name]
            fill = newcomers
            if fill is None:
                with np.errstate(over="ignore"):  # what is not finite is refused by whoever asks
                    fill = float(array[where[stay]].mean()) if stay.any() else 0.0
            moved[name] = np.where(stay, array[where], fill)
        return {**{name: array.copy() for name, array in arrays.items()}, **moved}

    def _credit(self, earlier: Self, before: Arrays) -> None:
        """Take over what an update of the ranker of an earlier list has changed."""
        after, own = earlier.state._asdict(), self.state._asdict()
        where = places_in(earlier.items, self.items)
        by_item = self.by_item or ()
        same_time = all(
            np.array_equal(before[name], after[name]) for name in after if name not in by_item
        )
        if same_time:
            gained = {name: after[name] - before[name] for name in by_item}
            for name, array in earlier.carried({**after, **gained}, self, where, 0.0).items():
                if name in by_item:
                    own[name] += array
        else:  # an epoch or a block has begun, for the items that are new as well
            for name, array in earlier.carried(after, self, where).items():
                own[name][...] = array


def check_items(items: Any, name: str, n_items: int | None = None) -> tuple[Item, ...]:
    """Return names of items, all different, or raise."""
    is_scalar = isinstance(items, np.ndarray) and items.ndim == 0
    if isinstance(items, str | bytes) or is_scalar or not isinstance(items, Iterable):
        raise InvalidInput(f"{name} must be a list of names, got {shown(items)}.")
    names = tuple(item.item() if isinstance(item, np.generic) else item for item in items)
    for item in names:
        if isinstance(item, bool) or not isinstance(item, str | int):
            raise InvalidInput(f"{name} must be strings or whole numbers, got {shown(item)}.")
    if not names or len(set(names)) < len(names):
        twice = next((item for item in names if names.count(item) > 1), None)
        raise InvalidInput(
            f"{name} must be at least one name, all different, got "
            f"{'none' if not names else f'{shown(twice)} twice'}."
        )
    if n_items not in (None, len(names)):
        raise InvalidInput(f"{name} must be n_items={n_items} names, got {len(names)}.")
    return names


def places_in(there: tuple[Item, ...], names: tuple[Item, ...]) -> IntArray:
    """Return where each of some names is in a list, or -1."""
    places = {name: index for index, name in enumerate(there)}
    return np.array([places.get(name, -1) for name in names], dtype=np.int64)
