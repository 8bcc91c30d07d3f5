"""States given back to rankers: not finite, out of range, of other shapes and of other rankers."""

import random
from typing import Any

import numpy as np

from bench.fuzz import values
from bench.fuzz.rounds import answer_of, cast, play_some, query_of
from bench.fuzz.scene import ANY, BAD, GOOD, Attack, Scene
from keyhole import load
from keyhole.base.files import write_arrays
from keyhole.contracts.rankers import Ranker
from keyhole.rankers import RANKERS


def _hurt(chance: random.Random, state: dict[str, Any]) -> tuple[str, str]:
    """Change one array of a state; return label and kind."""
    name = chance.choice([n for n in state if n not in ("spec", "next_round")])
    array = state[name]
    attack = chance.randrange(8)
    if attack == 0 and array.dtype.kind == "f" and array.size:
        changed = array.copy()
        changed.flat[chance.randrange(array.size)] = chance.choice(values.NOT_FINITE)
        state[name] = changed
        return BAD, "a number in a state that is not finite"
    if attack in (1, 2) and array.dtype.kind == "i" and array.size:
        changed = array.copy()
        changed.flat[chance.randrange(array.size)] = chance.choice(
            (-1, 10**9, 2**62, -(2**63), 2**63 - 1, 1, 4)
        )
        state[name] = changed
        return ANY, "an integer in a state"
    if attack == 3 and array.size:
        state[name] = np.full_like(array, chance.choice((0, 1, 100)))
        return ANY, "a constant state"
    if attack == 4 and array.dtype.kind == "f" and array.size:
        state[name] = np.full_like(array, chance.choice((1e300, -1e300, 1e308, 1e154, 5e-324)))
        return ANY, "huge numbers in a state"
    if attack == 5:
        state[name] = chance.choice((array[..., :-1], array[None], array.ravel()[:0], array[:1]))
        return (ANY if state[name].shape == array.shape else BAD), "a state of another shape"
    if attack == 6:
        state[name] = array.astype(chance.choice(("f4", "i4", "U5", "c16", "O", ">f8", ">i8")))
        return ANY, "a state of another kind"
    state[name] = values.value(chance)
    return ANY, "anything as a state"


def _swap(chance: random.Random, state: dict[str, Any]) -> tuple[str, str]:
    """Change what a state holds besides its arrays; return label and kind."""
    match chance.randrange(6):
        case 0:
            del state[chance.choice([*state])]
            return BAD, "a state without one of its arrays"
        case 1:
            state["more"] = np.zeros(3)
            return BAD, "a state with more arrays"
        case 2:
            wrong = chance.choice((-1, 2**62, 2**47, 1.5, np.nan, "x", None))
            state["next_round"] = np.array(wrong)
            return BAD, "a state with a wrong next_round"
        case 3:
            state["next_round"] = values.value(chance)
            return ANY, "a state with any next_round"
        case 4:
            state["spec"] = np.array(values.reworded(chance, str(state["spec"])))
            return ANY, "a state with another spec"
        case _:
            state["spec"] = values.value(chance)
            return ANY, "a state with any spec"


def draw(chance: random.Random) -> Attack:
    """Return a state that is not what a ranker gave, loaded or read from a file."""
    name = chance.choice([*RANKERS])
    hurt = chance.choice((_hurt, _hurt, _hurt, _swap))
    by_file = chance.random() < 0.3
    what = f"{name}: {hurt.__name__.strip('_')}{' in a file' if by_file else ''}"

    def act(scene: Scene) -> None:
        donor, made = cast(name), cast(name, seed=5)
        play_some(donor, chance)
        play_some(made, chance, 2)
        state: dict[str, Any] = donor.state_dict()
        label, kind = (GOOD, "good") if chance.random() < 0.05 else hurt(chance, state)
        scene.watch(made, name)
        if not by_file:
            told = {n: v for n, v in state.items() if n != "spec" or "spec" in kind}
            scene.attempt(
                f"load_state_dict({told})", lambda: made.load_state_dict(state), label, kind
            )
        else:
            made = _through_a_file(scene, state, label, kind)
            if made is None:
                return
            scene.watch(made, name)
        for _ in range(3):
            _play_on(scene, made, chance, kind)

    return Attack(what, act)


def _play_on(scene: Scene, made: Ranker, chance: random.Random, kind: str) -> None:
    """Go on with whatever state a ranker has."""
    query = query_of(made, chance)
    shown = scene.attempt("rank", lambda: made.rank(query), kind=kind)
    if shown is not None:
        answer = answer_of(made, shown, chance)
        scene.attempt("update", lambda: made.update(shown, answer), kind=kind)
        scene.attempt("best", lambda: made.best(query), kind=kind)


def _through_a_file(scene: Scene, state: dict[str, Any], label: str, kind: str) -> Any:
    """Return the ranker of a state in a file, if it is one."""
    path = scene.folder / "ranker.npz"
    try:
        arrays = {name: np.asarray(array) for name, array in state.items()}
        if any(array.dtype.kind in "OV" for array in arrays.values()):
            return None  # what a file of plain arrays cannot hold
        write_arrays(path, arrays)
    except (ValueError, TypeError, UnicodeError):
        return None
    scene.write("ranker.npz", path.read_bytes())
    return scene.attempt(f"load of {state}", lambda: load(path), label, f"{kind}, in a file")
