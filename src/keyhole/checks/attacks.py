"""What no ranker may be broken by: many threads, and input that makes no sense."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from keyhole.base.errors import KeyholeError
from keyhole.checks.base import is_ranking, name_of, require, same
from keyhole.contracts.lists import Feedback, Impression, Query
from keyhole.contracts.rankers import Ranker
from keyhole.contracts.worlds import World
from keyhole.reveals import least_reveal

_THREADS = 8
_SWITCH_SECONDS = 1e-5


class _Round(NamedTuple):
    """A list, what its items are worth, and how its feedback is drawn."""

    query: Query
    relevance: Any
    where: dict[str, int]


def _rounds(ranker: Ranker, world: World, rounds: int) -> list[_Round]:
    draws = [{"round": t, "seed": ranker.seed, "run": ranker.run} for t in range(rounds)]
    return [_Round(world.query(**d), world.relevance(**d), d) for d in draws]


@contextmanager
def _hasty_threads() -> Iterator[ThreadPoolExecutor]:
    """Give threads that interrupt each other as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        with ThreadPoolExecutor(_THREADS) as pool:
            yield pool
    finally:
        sys.setswitchinterval(before)


def check_threads_take_turns(ranker: Ranker, world: World, rounds: int) -> None:
    """Check that threads sharing a ranker give the state of a replay in the order of updates."""
    shared, serial = ranker.fresh(), ranker.fresh()
    reveal = least_reveal(ranker.depth, ranker.n_items)
    lists = _rounds(ranker, world, rounds)
    log: list[tuple[Impression, Feedback]] = []
    shown: list[tuple[int, int, Impression]] = []

    def one_round(each: _Round) -> None:
        before = len(log)
        impression = shared.rank(each.query, round=each.where["round"])
        shown.append((before, len(log), impression))
        feedback = reveal(each.relevance, impression.ranking, **each.where)
        with shared.lock:  # so that the log is in the order of the updates
            shared.update(impression, feedback)
            log.append((impression, feedback))

    with _hasty_threads() as pool:
        list(pool.map(one_round, lists))
    unmatched = dict(enumerate(shown))
    for n_updates in range(len(log) + 1):
        for index, (before, after, impression) in list(unmatched.items()):
            # An update is made before it is in the log, so it may be seen one too early.
            if before <= n_updates <= after + 1:
                again = serial.rank(impression.query, round=impression.round)
                if np.array_equal(again.ranking, impression.ranking):
                    del unmatched[index]
        if n_updates < len(log):
            serial.update(*log[n_updates])
    require(
        not unmatched,
        f"What {name_of(ranker)} shows to many threads must be what it shows to one.",
    )
    require(
        same(shared.state_dict(), serial.state_dict()),
        f"The state of {name_of(ranker)} must be that of its updates in the order of the log.",
    )


class _Watch:
    """In place of a ranker's lock: it takes down what the ranker holds when it comes and goes."""

    def __init__(self, ranker: Ranker) -> None:
        self._ranker, self._lock, self._depth = ranker, ranker.lock, 0
        self._state = ranker.state  # the very arrays that updates write to
        self.begins: list[dict[str, Any]] = []
        self.ends: list[dict[str, Any]] = []

    def held(self) -> dict[str, Any]:
        """Return a copy of what the ranker holds."""
        arrays = {name: array.copy() for name, array in self._state._asdict().items()}
        return {**arrays, "next_round": np.array(self._ranker.next_round)}

    def __enter__(self) -> None:
        self._lock.__enter__()
        self._depth += 1
        if self._depth == 1:
            self.begins.append(self.held())

    def __exit__(self, *reason: Any) -> None:
        if self._depth == 1:
            self.ends.append(self.held())
        self._depth -= 1
        self._lock.__exit__(*reason)

    def acquire(self, blocking: bool = True) -> bool:
        self.__enter__()
        return True

    def release(self) -> None:
        self.__exit__(None, None, None)

    def covered(self, call: Callable[[], Any]) -> tuple[Any, bool]:
        """Return what a call gives, and whether all that it changed it changed under the lock."""
        before = self.held()
        self.begins, self.ends = [], []
        given, begins, ends = call(), self.begins, self.ends
        moments = [before, *(each for pair in zip(begins, ends, strict=True) for each in pair)]
        moments.append(self.held())
        # Nothing changes before it is taken, between two times, or after it was given back.
        unheld = zip(moments[::2], moments[1::2], strict=True)
        return given, bool(begins) and all(same(one, other) for one, other in unheld)


def check_calls_hold_the_lock(ranker: Ranker, world: World, rounds: int) -> None:
    """Check that ranking, updating and loading a state change the ranker under its lock only."""
    shared = ranker.fresh()
    reveal = least_reveal(shared.depth, shared.n_items)
    sentence = "{} of {} must change the ranker under its lock only."
    watch = _Watch(shared)
    shared.lock = watch  # type: ignore[assignment]
    for each in _rounds(shared, world, min(rounds, 12)):
        where = each.where
        impression, covered = watch.covered(
            lambda each=each: shared.rank(each.query, round=each.where["round"])  # type: ignore[misc]
        )
        require(covered, sentence.format("`rank`", name_of(shared)))
        feedback = reveal(each.relevance, impression.ranking, **where)
        _, covered = watch.covered(
            lambda seen=(impression, feedback): shared.update(*seen)  # type: ignore[misc]
        )
        require(covered, sentence.format("`update`", name_of(shared)))
    empty = ranker.fresh().state_dict()
    _, covered = watch.covered(lambda: shared.load_state_dict(empty))
    require(covered, sentence.format("`load_state_dict`", name_of(shared)))


def _misused_impressions(shown: Impression) -> Iterator[Callable[[], Impression]]:
    """Give impressions as no ranker returned them."""
    n_items, ranking = len(shown.ranking), shown.ranking
    changes: list[dict[str, Any]] = [
        *({"propensity": p} for p in (0.0, -1.0, np.nan, np.inf, 5e-324, 1e308, None)),
        *({"round": t} for t in (-1, 2**62, 0.5, None)),
        {"ranking": np.full(n_items, 10**9)},
        {"ranking": ranking - 5_000_000},
        {"ranking": np.zeros(n_items + 1, np.int64)},
        {"ranking": ranking[np.newaxis]},
        {"ranking": ranking[:0]},
        {"ranking": None},
        {"explored": None},
        {"query": None},
    ]
    for change in changes:
        yield lambda change=change: replace(shown, **change)  # type: ignore[misc]
    features = shown.query.features
    if features is not None:
        for factor in (1e30, 1e300, 1e-300, np.inf, np.nan):
            yield lambda f=factor: replace(  # type: ignore[misc]
                shown, query=Query(n_items, (features * f).astype(features.dtype))
            )


def _misused_feedback(ranker: Ranker, values: Any) -> Iterator[Any]:
    """Give feedback as no crowd has it."""
    for wrong in (-1.0, np.inf, 1e308, 2.0 * min(ranker.max_grade, 1e300)):
        yield np.where(np.isnan(values), values, wrong)
    yield from (values[np.newaxis], [], "good", None, {}, [10**400])


def _misused_states(arrays: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Give states that a damaged file may hold."""
    for name, array in arrays.items():
        wrong = {"f": (np.nan, np.inf, -np.inf, 1e308, -1e308), "i": (-1, 2**62), "U": ("{}",)}
        for value in wrong.get(array.dtype.kind, ()):
            yield {**arrays, name: np.full(array.shape, value, array.dtype)}
        yield {**arrays, name: np.zeros((3, 3, 3))}
    yield {}


def check_nothing_breaks_the_state(ranker: Ranker, world: World, rounds: int) -> None:
    """Check that any input is learnt from or refused, and that the state stays finite."""
    given = ranker.fresh()
    reveal = least_reveal(given.depth, given.n_items)
    lists = _rounds(given, world, min(rounds, 12))

    def play(each: _Round) -> tuple[Impression, Feedback]:
        impression = given.rank(each.query, round=each.where["round"])
        require(
            is_ranking(impression.ranking, each.query.n_items),
            f"{name_of(given)} must show each item once whatever it was given before.",
        )
        return impression, reveal(each.relevance, impression.ranking, **each.where)

    for each in lists:
        given.update(*play(each))
    impression, feedback = play(lists[-1])
    for make in _misused_impressions(impression):
        _attack(given, lambda make=make: given.update(make(), feedback))  # type: ignore[misc]
        play(lists[0])
    for wrong in _misused_feedback(given, feedback.values):
        _attack(given, lambda wrong=wrong: given.update(impression, wrong))  # type: ignore[misc]
        play(lists[0])
    arrays = given.state_dict()
    for state in _misused_states(arrays):
        _attack(given, lambda state=state: given.load_state_dict(state))  # type: ignore[misc]
        for each in lists[:2]:
            _attack(given, lambda each=each: given.update(*play(each)))  # type: ignore[misc]
        given.load_state_dict(arrays)


def _attack(ranker: Ranker, attempt: Callable[[], Any]) -> None:
    """Check that something leaves the state finite, or is refused and leaves no trace."""
    before = ranker.state_dict()
    try:
        attempt()
    except KeyholeError:
        require(
            same(before, ranker.state_dict()),
            f"What {name_of(ranker)} refuses must leave its state as it was.",
        )
    for name, array in ranker.state._asdict().items():
        require(
            bool(np.isfinite(array).all()),
            f"`{name}` of the state of {name_of(ranker)} must be finite whatever it is given.",
        )


ATTACKS: tuple[Callable[[Ranker, World, int], None], ...] = (
    check_threads_take_turns,
    check_calls_hold_the_lock,
    check_nothing_breaks_the_state,
)
