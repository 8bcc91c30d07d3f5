"""Integers of a loaded state: each is refused, or no kernel ever looks beyond the end of an array.

Kernels run interpreted, on arrays that count what compiled code would do in silence: an index past
the end, and one below 0, which Python takes from the end.
"""

import os
import random
from typing import Any

import numpy as np
import pytest

from bench.fuzz.rounds import cast, play_some, query_of
from keyhole import load, ranker
from keyhole.base.errors import MAX_ROUND, InvalidInput, KeyholeError
from keyhole.base.files import write_arrays
from keyhole.rankers import RANKERS
from keyhole.rankers.fixed.audited import MOST_BUCKETS

pytestmark = pytest.mark.interpreted

NEVER = (-1, -(2**63), MAX_ROUND + 1, 2**62)
"""What no whole number of a state is."""
SIZES = (37, 38, 41, 42, 94, 95, 96)
"""Around the numbers of epochs (38 and 42), and of buckets."""


class Guarded(np.ndarray):
    """An array that refuses an index below 0."""

    def __getitem__(self, index):
        check_not_negative(index)
        return super().__getitem__(index)

    def __setitem__(self, index, value):
        check_not_negative(index)
        super().__setitem__(index, value)


def check_not_negative(index):
    for part in index if isinstance(index, tuple) else (index,):
        if isinstance(part, int | np.integer) and part < 0:
            raise IndexError(f"{index} is below 0")


def guarded(value: Any) -> Any:
    """Return tuples of arrays, which may hold tuples themselves, with a guard on every array."""
    if isinstance(value, np.ndarray):
        return value.view(Guarded)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(guarded, value))
    return value


def guard(made):
    """Let all that kernels index be guarded, if they are interpreted: state, settings, scratch."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") == "0":
        return made
    _ = made.state
    made._state = guarded(made._state)
    if not isinstance(vars(type(made)).get("params"), property):
        made.params = guarded(made.params)
    scratch = made.scratch
    made.scratch = lambda n_items: guarded(scratch(n_items))
    return made


def whole_numbers(name):
    """Return the arrays of whole numbers in the state of a ranker."""
    state = cast(name).state._asdict()
    return [field for field, array in state.items() if array.dtype.kind in "iu"]


WITH = [name for name in RANKERS if whole_numbers(name)]
FIELDS = [(name, field) for name in WITH for field in whole_numbers(name)]


def good_state(name):
    """Return the state of a ranker that has learnt something."""
    played = cast(name)
    play_some(played, random.Random(1), 6)
    return played.state_dict()


def states_of(name, field, values):
    """Yield two states for each value: everywhere in the field, and last in it."""
    good = good_state(name)
    for value in values:
        for place in (slice(None), -1):
            array = good[field].copy()
            array.reshape(-1)[place] = value
            yield value, {**good, field: array}


def use(made):
    """Play with a ranker, ask for the best, and answer late."""
    chance = random.Random(2)
    for _ in range(2):
        late = made.rank(query_of(made, chance), round=made.next_round)
        play_some(made, chance, 3)
        made.best(query_of(made, chance))
        made.update(late, [1.0] * len(late.ranking))


def test_most_kinds_of_rankers_have_such_states():
    assert {"keystone", "rtopk", "neighbourhood", "kernel-slam", "recall"} <= set(WITH)


@pytest.mark.parametrize(("name", "field"), FIELDS)
def test_no_integer_of_a_state_leads_out_of_an_array(name, field):
    taken = []
    values = (*NEVER, 1, 4, *SIZES, 10**9, MAX_ROUND)
    for value, state in states_of(name, field, values):
        made = cast(name)
        try:
            made.load_state_dict(state)
        except KeyholeError:
            continue
        taken.append(value)
        try:
            use(guard(made))
        except KeyholeError:  # refused later, and then nothing has happened
            continue
    assert not set(taken) & set(NEVER)
    cast(name).load_state_dict(good_state(name))


@pytest.mark.parametrize("name", [n for n in WITH if hasattr(cast(n).params, "epochs")])
def test_an_epoch_that_there_is_not_is_refused(name, tmp_path):
    made = cast(name)
    last, state = len(made.params.epochs.rates) - 1, made.state_dict()
    for clock, fits in ((last, True), (last + 1, False), (10**9, False)):
        state["clock"][0] = clock
        write_arrays(tmp_path / "ranker.npz", state)
        if fits:
            assert load(tmp_path / "ranker.npz").state.clock[0] == last
            continue
        sentence = f"`clock` of the state must begin with an epoch of 0 to {last}, got {clock}"
        with pytest.raises(InvalidInput, match=sentence):
            load(tmp_path / "ranker.npz")


def full_histogram():
    """Return buckets as observations fill them, as many as a state may have in use."""
    counts = np.zeros(MOST_BUCKETS)
    sizes = [2.0**power for power in range(30, -1, -1) for _ in range(3)]
    counts[: len(sizes)] = sizes
    return counts, len(sizes)


@pytest.mark.parametrize(
    ("wrong", "place"),
    [(0.0, 3), (3.0, 92), (2.0, 92), (4.0, 90), (2.0**32, 0), (2.0, 90), (3.0, None)],
)
def test_buckets_that_would_never_merge_are_refused(wrong, place):
    """No observations lead to any of them."""
    made = cast("keystone")
    state = made.state_dict()
    state["counts"][2], state["n_buckets"][2] = full_histogram()
    for name in ("n", "all_n"):
        state[name][2] = state["counts"][2].sum()
    use(guard(cast("keystone").load_state_dict(state)))
    if place is None:
        sizes, state["n_buckets"][2] = state["counts"][2, 6:93].copy(), 87
        state["counts"][2, :87] = wrong * sizes
    else:
        state["counts"][2, place] = wrong
    with pytest.raises(InvalidInput, match=r"`counts` .* at most three of a size, got .* item 2"):
        made.load_state_dict(state)


def test_a_ranking_that_is_an_array_of_rankings_is_refused():
    for ranking in ([[0, 1, 2, 3]], [[0, 1, 2, 3], [3, 2, 1, 0]], [[[3, 1, 2, 0]]]):
        with pytest.raises(InvalidInput, match="`ranking` of Fixed must be one list of items"):
            ranker("fixed", n_items=4, ranking=ranking)
    assert ranker("fixed", n_items=4, ranking=[3, 1, 2, 0]).best() == [3, 1, 2, 0]
