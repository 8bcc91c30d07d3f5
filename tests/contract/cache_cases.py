"""Whatever can be compiled from rows of the tables, as cases that give a digest of their bits.

Run as a script, it prints the digests of some cases (without names: of all) as JSON: ``fill`` has a
process for each, ``play`` plays them in one process in the given order, ``fill some`` takes a
sixteenth of all, which ones the sources of the kernels decide.
"""

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from keyhole.batch.averaging import average_weights
from keyhole.batch.risk import Risk
from keyhole.game.log import Log, replay
from keyhole.game.play import play
from keyhole.kernels import compiled, whole_program
from keyhole.kernels.by_numba import source_stamp
from keyhole.measures import MEASURES, measure
from keyhole.rankers.fixed.plain import Random
from keyhole.rankers.lists.gradient import Descent
from keyhole.rankers.lists.plain import RandomLists
from keyhole.reveals import least_reveal
from keyhole.surrogates import SURROGATES, surrogate
from keyhole.worlds.flips import Flips
from tests.contract.few_lists import EQUAL, N_FEATURES, N_ITEMS

# What only large cases need is imported by these: a dozen processes play small ones alone.

ROUNDS = 40
_ONE_IN = 16
Case = Callable[[], list[Any]]


def _name_of(kernels: Any) -> str:
    """Return what tells kernels apart: rows whose code is the same need one case only."""
    made = (part.args[0] if isinstance(part, partial) else part for part in kernels)
    return " ".join(str(compiled._lasting_name(part)) for part in made if part is not None)


def _arrays(state: dict[str, Any]) -> list[Any]:
    return [array for name, array in state.items() if name not in ("next_round", "spec")]


def _played(ranker: Any, world: Any, **game: Any) -> list[Any]:
    trace = play(ranker, world, rounds=ROUNDS, **game)
    return [trace.scores, trace.best, *_arrays(trace.states[0])]


def _taught(ranker: Any) -> list[Any]:
    """Return what a ranker of lists makes of a log, whose loop compiles sooner than a game's."""
    numbers = np.random.default_rng(4)
    lists = EQUAL.params
    n_lists, order = len(lists.starts) - 1, np.arange(N_ITEMS)
    rankings = numbers.permuted(np.tile(order, (n_lists, 1)), axis=1)
    by_list = lists.relevance.reshape(n_lists, N_ITEMS)
    log = Log(
        0,
        0,
        np.arange(n_lists),
        numbers.random(n_lists) < 0.5,
        numbers.uniform(0.2, 1.0, n_lists),
        lists.starts,
        rankings.ravel(),
        np.take_along_axis(by_list, rankings, axis=1).ravel(),
        np.asarray(EQUAL.features, dtype=np.float64),
        numbers.uniform(0.2, 1.0, (n_lists, ranker.kernel.note_size(ranker.params))),
    )
    return [*replay(ranker, log).state]


def _replayed(ranker: Any, world: Any) -> list[Any]:
    """Return what a ranker of a fixed list shows round by round, and makes of the log of it."""
    from keyhole.checks.rankers import play_by_hand

    learner = ranker.fresh()
    reveal = least_reveal(ranker.depth, ranker.n_items)
    log = Log.of(learner, play_by_hand(learner, world, reveal, ROUNDS))
    return [log.rankings, *learner.state, *replay(ranker, log).state]


def _learnt(ranker: Any, world: Any = EQUAL) -> list[Any]:
    trace = play(ranker, world, rounds=ROUNDS)
    return [trace.scores, trace.greedy, *_arrays(trace.states[0])]


def _met(world: Any) -> list[Any]:
    if world.n_features:
        return _learnt(RandomLists(world.n_features, world.n_items), world)
    return _played(Random(world.n_items, max_grade=max(1, world.max_grade)), world)


def _many(name: str) -> list[Any]:
    numbers = np.random.default_rng(3)
    relevance = numbers.integers(0, 2, (9, 5)).astype(float)
    return [measure(name).many(relevance, numbers.permuted(np.tile(np.arange(5), (9, 1)), axis=1))]


def _surrogate(name: str) -> Any:
    options = {"max_grade": 2} if name in ("logistic", "ordinal") else {}
    return surrogate(name, **options)


def _averaged() -> list[Any]:
    return [average_weights(Descent(N_FEATURES, N_ITEMS), EQUAL, rounds=ROUNDS)]


def _risk(name: str) -> list[Any]:
    lists = EQUAL.params
    risk = Risk(_surrogate(name), EQUAL.features, lists.relevance, lists.starts)
    return [*risk(np.linspace(-1, 1, N_FEATURES))]


def _fixed_list_cases(new: Callable[..., bool]) -> Iterator[tuple[str, Case]]:
    from tests.contract.test_contracts import RANKER_EXAMPLES, REVEAL_EXAMPLES, WORLD_EXAMPLES

    for row, examples in RANKER_EXAMPLES.items():
        for number, (label, make, world) in enumerate(examples):
            if new(*make().kernel):
                crowd = world or Flips(make().n_items, n_relevant=1)
                # The first plays a game; a log's loop, which compiles sooner, serves the others.
                met = _replayed if number else _played
                yield f"ranker {row} {label}", partial(met, make(), crowd)
    for row, worlds in WORLD_EXAMPLES.items():
        yield f"world {row}", partial(_met, worlds[0])
    for row, reveals in REVEAL_EXAMPLES.items():
        yield f"reveal {row}", partial(_played, Random(6), Flips(6), reveal=reveals[0])
    for row in ("NDCG", "AP"):
        yield f"game of {row}", partial(_played, Random(4), Flips(4), measure=row)


def _list_cases(new: Callable[..., bool]) -> Iterator[tuple[str, Case]]:
    from tests.contract.test_contextual import EXAMPLES, _make

    for row, many in EXAMPLES.items():
        for options in many:
            ranker = _make(row, options)
            if new(*ranker.kernel):
                label = " ".join(["ranker of lists", row, *map(str, options.values())])
                yield label, partial(_taught, ranker)
    for row in SURROGATES:
        descent = Descent(N_FEATURES, N_ITEMS, surrogate=_surrogate(row))
        if new(*descent.kernel):
            yield f"descent {row}", partial(_taught, descent)
    for row in ("kl", "squared"):
        yield f"game of {row}", partial(_learnt, _make("contextual-rtopk", {"surrogate": row}))
    yield "average of ListNet", _averaged


SMALL: Mapping[str, Case] = {
    **{f"measure {row}": partial(_many, row) for row in MEASURES},
    **{f"risk {row}": partial(_risk, row) for row in SURROGATES},
}
"""Cases that compile in about a second."""


@cache
def all_cases() -> dict[str, Case]:
    """Return every case by its name."""
    seen: set[str] = set()

    def new(*kernels: Any) -> bool:
        """Return whether no earlier case has this code."""
        name = _name_of(kernels)
        known = name in seen
        seen.add(name)
        return not known

    return {**SMALL, **dict(_fixed_list_cases(new)), **dict(_list_cases(new))}


COMMON = ("world flips", "descent squared", "game of kl", "ranker of lists slam NDCG@3")


def digest(name: str) -> str:
    """Return a digest of the bits that a case computes."""
    total = hashlib.sha256()
    case = SMALL[name] if name in SMALL else all_cases()[name]
    for array in case():
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def _in_a_child(name: str) -> str:
    """Return the digest of a case that a forked process computes, with its own compiled code."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, digest(name).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        found = answer.read()
    _, status = os.waitpid(child, 0)
    if status or not found:
        sys.exit(f"The process of case {name!r} ended with status {status}.")
    return found


def fill(names: Sequence[str]) -> dict[str, str]:
    """Return the digest of every case, each by a process that writes the cache but never reads it.

    These processes have one parent, and so whatever else they could have in common.
    """
    programs: Any = whole_program
    programs.read_code = lambda _: None
    common = [name for name in COMMON if name in names]  # what most need is compiled once
    found = {name: digest(name) for name in common}
    return found | {name: _in_a_child(name) for name in names if name not in found}


if __name__ == "__main__":
    command, *chosen = sys.argv[1:]
    chosen = chosen or list(all_cases())
    if command == "fill some":
        chosen = chosen[int(source_stamp(), 16) % _ONE_IN :: _ONE_IN]
    answers = {n: digest(n) for n in chosen} if command == "play" else fill(chosen)
    sys.stdout.write(json.dumps(answers))
