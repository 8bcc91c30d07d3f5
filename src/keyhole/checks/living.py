"""What every ranker must do while it lives: be written down, saved, and see its list change."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from keyhole.base.errors import InvalidInput, NotObservable
from keyhole.base.files import reading_arrays
from keyhole.checks.base import name_of, require, same
from keyhole.checks.rankers import one_round, play_by_hand
from keyhole.contracts.lists import Feedback, Impression
from keyhole.contracts.rankers import Ranker
from keyhole.contracts.worlds import World
from keyhole.rankers import load, ranker
from keyhole.rankers.fixed.base import FixedListRanker
from keyhole.reveals import least_reveal


def _learnt(given: Ranker, world: World, rounds: int) -> Any:
    """Return a ranker of the same settings that has played by hand."""
    learner: Any = given.fresh()
    play_by_hand(learner, world, least_reveal(given.depth, given.n_items), rounds)
    return learner


def _go_on_alike(first: Ranker, second: Ranker, world: World, rounds: int, sentence: str) -> None:
    """Check that two rankers show the same from now on and reach the same state."""
    reveal = least_reveal(first.depth, first.n_items)
    for _ in range(rounds):
        shown = []
        for one in (first, second):
            impression, feedback = one_round(one, world, reveal, one.next_round)
            one.update(impression, feedback)
            shown.append(impression.ranking)
        require(np.array_equal(shown[0], shown[1]), sentence)
    require(same(first.state_dict(), second.state_dict()), sentence)


def _has_a_name(given: Ranker) -> bool:
    """Return whether a class can be found again: one of an interactive session cannot."""
    return type(given).__module__ != "__main__" and "<locals>" not in type(given).__qualname__


def _made_of(spec: dict[str, Any], given: Ranker) -> Ranker:
    """Return the ranker that a spec describes, of the given one's class if that has no name."""
    if _has_a_name(given):
        return ranker(spec)
    return type(given)(**{name: spec[name] for name in given.settings})


def check_spec_round_trip(given: Ranker, world: World, rounds: int) -> None:
    """Check that the spec, as JSON, makes a ranker that plays the same to the last bit."""
    again = _made_of(json.loads(json.dumps(given.spec)), given)
    require(again.spec == given.spec, f"The spec of {name_of(given)} must make one like it.")
    sentence = f"The spec of {name_of(given)} must make a ranker that plays as it does."
    _go_on_alike(given.fresh(), again, world, rounds, sentence)


def check_saved_goes_on(given: Ranker, world: World, rounds: int) -> None:
    """Check that a ranker saved and loaded goes on where it was, to the last bit."""
    learner = _learnt(given, world, rounds)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ranker.npz"
        learner.save(path)
        with reading_arrays(path, "a ranker") as arrays:
            spec = json.loads(str(arrays["spec"]))
        again = load(path) if _has_a_name(given) else _made_of(spec, given).load_state_dict(arrays)
    require(again.spec == learner.spec, f"A loaded {name_of(given)} must have the spec it had.")
    sentence = f"A loaded {name_of(given)} must go on where it was saved."
    _go_on_alike(learner, again, world, rounds, sentence)


def _named(given: Ranker, world: World, rounds: int) -> Any:
    """Return a ranker whose items have names, and which has learnt; None if it has none."""
    if not isinstance(given, FixedListRanker):
        try:
            given.with_items(["a"])
        except InvalidInput:
            return None
        raise AssertionError(f"{name_of(given)} must refuse items: its lists change.")
    return _learnt(given.fresh(items=[f"item {i}" for i in range(given.n_items)]), world, rounds)


def _state(of: Any) -> dict[str, Any]:
    return {name: array.copy() for name, array in of.state._asdict().items()}


def check_same_items_change_nothing(given: Ranker, world: World, rounds: int) -> None:
    """Check that a list that has not changed has the same ranker."""
    learner = _named(given, world, rounds)
    if learner is None:
        return
    same_list = learner.with_items(learner.items)
    require(same_list.spec == learner.spec, f"The same items must leave {name_of(given)} as it is.")
    sentence = f"{name_of(given)} must go on as it was where the items are the same."
    _go_on_alike(learner, same_list, world, rounds, sentence)


def check_names_do_not_matter(given: Ranker, world: World, rounds: int) -> None:
    """Check that renaming the items commutes with changing the list."""
    learner = _named(given, world, rounds)
    if learner is None or learner.n_items < 2:
        return
    renamed = learner.fresh(items=[f"other {i}" for i in range(learner.n_items)])
    arrays = learner.state_dict()
    renamed.load_state_dict({**arrays, "spec": renamed.state_dict()["spec"]})
    keep = [i for i in range(learner.n_items) if i != 1]
    one = learner.with_items([*(f"item {i}" for i in keep), "item new"])
    other = renamed.with_items([*(f"other {i}" for i in keep), "other new"])
    require(
        same(_state(one), _state(other)),
        f"Renaming the items of {name_of(given)} must commute with changing its list.",
    )
    places = {name: place for place, name in enumerate(one.items)}
    there = {name: place for place, name in enumerate(other.items)}
    require(
        [places[name] for name in one.best()] == [there[name] for name in other.best()],
        f"The best ranking of {name_of(given)} must not depend on what items are called.",
    )


def check_visitors_leave_no_trace(given: Ranker, world: World, rounds: int) -> None:
    """Check that adding an item and removing it leaves what is known of the others."""
    learner = _named(given, world, rounds)
    if learner is None:
        return
    try:
        more = learner.with_items([*learner.items, "visitor"])
    except NotObservable:
        return  # the longer list cannot be learnt by anybody
    except InvalidInput as error:  # such as a list that has become too long to enumerate
        require("n_items" in str(error), f"{name_of(given)} must take one item more: {error}")
        return
    back = more.with_items(learner.items)
    # Losses of rankings come back as means of what they were split into: the same to rounding.
    require(
        all(
            np.allclose(array, _state(back)[name], rtol=1e-12, atol=1e-12)
            for name, array in _state(learner).items()
        ),
        f"An item that comes and goes must leave {name_of(given)} what it knew of the others.",
    )
    require(
        back.best() == learner.best() and back.next_round == learner.next_round,
        f"An item that comes and goes must leave the ranking of {name_of(given)} as it was.",
    )


def check_late_answers_find_their_items(given: Ranker, world: World, rounds: int) -> None:
    """Check that what was shown before a change is credited by name after it.

    The list is turned round and loses the item shown last. Of the items that stay, the state
    must be what it would have been had the answer come before the change.
    """
    learner = _named(given, world, rounds)
    if learner is None or learner.n_items < 2:
        return
    reveal = least_reveal(learner.depth, learner.n_items)
    for _ in range(rounds):
        impression, feedback = one_round(learner, world, reveal, learner.next_round)
        asked = Impression.from_json(impression.to_json())
        changed = [name for name in reversed(learner.items) if name != impression.items[-1]]
        late = learner.with_items(changed)
        late.update(asked, Feedback(feedback.values))
        learner.update(impression, feedback)
        early = learner.with_items(changed)
        require(
            all(
                np.allclose(array, _state(early)[name], rtol=1e-12, atol=1e-12)
                for name, array in _state(late).items()
            ),
            f"An answer that comes after a change must be credited to the items that "
            f"{name_of(given)} had shown, in round {impression.round}.",
        )


KEEPING_CHECKS: tuple[Callable[[Ranker, World, int], None], ...] = (
    check_spec_round_trip,
    check_saved_goes_on,
)
LIVING_CHECKS: tuple[Callable[[Ranker, World, int], None], ...] = (
    *KEEPING_CHECKS,
    check_same_items_change_nothing,
    check_names_do_not_matter,
    check_visitors_leave_no_trace,
    check_late_answers_find_their_items,
)
"""The last ones are of a fixed list; of rankers of lists they ask that items be refused."""
