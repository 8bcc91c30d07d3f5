"""A search for the crowd that a ranker is worst with, among those that go through phases."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from bench.theory.phases import Phases
from keyhole.base.errors import FloatArray, check_integer
from keyhole.contracts.rankers import Ranker
from keyhole.game.play import play

_MOST_PHASES = 5
_N_PARENTS = 8
_SHARE_AT_RANDOM = 0.3
_TIMES_AGAIN = 3
"""Runs by which a crowd that looks bad is judged, for each of those that it looked bad in."""


class Crowd(NamedTuple):
    """A crowd that goes through phases, and the regret per round that it was found to cause."""

    lengths: tuple[int, ...]
    chances: FloatArray
    regret: float

    def world(self) -> Phases:
        """Return the crowd to play with."""
        return Phases(self.chances, lengths=self.lengths)


def random_crowd(numbers: Any, n_items: int, rounds: int) -> tuple[tuple[int, ...], FloatArray]:
    """Return lengths of all magnitudes, and a random set of items that is liked in each phase."""
    n_phases = int(numbers.integers(1, _MOST_PHASES + 1))
    lengths = tuple(int(n) for n in np.ceil(rounds ** numbers.random(n_phases)))
    liked = numbers.random((n_phases, n_items)) < numbers.random()
    low, high = np.sort(numbers.random(2))
    noise = numbers.normal(0.0, 0.1, liked.shape) * (numbers.random() < 0.5)
    return lengths, np.clip(np.where(liked, high, low) + noise, 0.0, 1.0)


def changed(
    numbers: Any, lengths: tuple[int, ...], chances: FloatArray, rounds: int
) -> tuple[tuple[int, ...], FloatArray]:
    """Return a crowd like a given one: other lengths, other tastes, a phase more or fewer."""
    longer, table = list(lengths), chances.copy()
    phase, item = (int(numbers.integers(n)) for n in table.shape)
    match int(numbers.integers(6)):
        case 0:
            longer[phase] = int(np.ceil(longer[phase] * np.exp(numbers.normal())))
        case 1:
            table[phase, item] = numbers.random()
        case 2:
            table += numbers.normal(0.0, 0.1, table.shape)
        case 3:
            table[phase] = numbers.permutation(table[phase])
        case 4 if len(table) > 1:
            del longer[phase]
            table = np.delete(table, phase, axis=0)
        case _ if len(table) < _MOST_PHASES:
            longer.append(int(np.ceil(rounds ** numbers.random())))
            table = np.vstack([table, numbers.permutation(table[phase])])
    return tuple(min(max(n, 1), rounds) for n in longer), np.clip(table, 0.0, 1.0)


def regret_per_round(
    ranker: Ranker, crowd: Phases, rounds: int, *, runs: int = 4, seed: int = 0
) -> float:
    """Return the mean regret per round against the best fixed ranking of each run."""
    trace = play(ranker, crowd, rounds=rounds, runs=runs, seed=seed, n_points=2, n_threads=1)
    return trace.average_regret.mean


def worst_crowd(
    ranker: Ranker,
    rounds: int,
    *,
    tries: int = 1000,
    runs: int = 4,
    seed: int = 0,
    regret: Callable[..., float] = regret_per_round,
    progress: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> Crowd:
    """Search for the crowd with the largest regret: at random first, then by small changes.

    Parameters
    ----------
    ranker, rounds
        Whom it is searched against, and for how long they play.
    tries, runs, seed
        Crowds that are tried, runs of each, and where the random numbers start. Those that look
        bad are judged by other and more runs; the worst of them is still a little lucky.
    regret
        What is to be large.
    progress
        Is handed the tries, such as a bar that shows them.

    Examples
    --------
    >>> from bench.theory.leader import Leader
    >>> def how_divided(ranker, crowd, rounds, **how):
    ...     return float(np.ptp(crowd.params.chances))
    >>> worst_crowd(Leader(2), 100, tries=200, regret=how_divided).regret > 0.95
    True
    """
    tries = check_integer(tries, "`tries`", at_least=1)
    numbers, best = np.random.default_rng(seed), list[Crowd]()
    for attempt in progress(range(tries)):
        at_random = attempt < _SHARE_AT_RANDOM * tries or not best
        lengths, chances = random_crowd(numbers, ranker.n_items, rounds)
        if not at_random:
            parent = best[int(numbers.integers(len(best)))]
            lengths, chances = parent.lengths, parent.chances
            for _ in range(int(numbers.integers(1, 4))):
                lengths, chances = changed(numbers, lengths, chances, rounds)
        world = Phases(chances, lengths=lengths)
        value = regret(ranker, world, rounds, runs=runs, seed=seed)
        if len(best) == _N_PARENTS and value <= best[-1].regret:
            continue
        value = regret(ranker, world, rounds, runs=_TIMES_AGAIN * runs, seed=seed + 1)
        best = sorted([*best, Crowd(lengths, chances, value)], key=lambda c: -c.regret)
        best = best[:_N_PARENTS]
    return best[0]
