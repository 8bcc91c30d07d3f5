"""What every ranker of a fixed list is told about its game, and its epochs."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np

from keyhole.contracts import Measure, Ranker
from keyhole.errors import MAX_ROUND, check_integer, check_number
from keyhole.kernels.compiled import kernel
from keyhole.measures import measure as named_measure


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
    seed: int
    """Seed of the random numbers (default 0)."""
    run: int
    """Which of the independent runs under that seed (default 0)."""


class FixedListRanker(Ranker):
    """A ranker of one list for everybody, told its length and any of :class:`GameFacts`."""

    unknown_horizon = 1024

    def __init__(self, n_items: int, **game: Unpack[GameFacts]) -> None:
        super().__init__(n_items, seed=game.get("seed", 0), run=game.get("run", 0))
        name = type(self).__name__
        horizon = game.get("horizon")
        self.horizon = (
            self.unknown_horizon
            if horizon is None
            else check_integer(horizon, f"`horizon` of {name}", at_least=1, at_most=MAX_ROUND)
        )
        self.k = check_integer(
            game.get("k", 1), f"`k` of {name}", at_least=1, at_most=self.n_items, bound="n_items="
        )
        self.measure = named_measure(game.get("measure", "DCG"))
        self.max_grade = check_number(
            game.get("max_grade", 1.0), f"`max_grade` of {name}", above=0.0
        )
