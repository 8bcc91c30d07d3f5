"""Crowds that judge every item on its own: by chances that stay, take turns, or change once."""

import copy
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import (
    FloatArray,
    IntArray,
    InvalidInput,
    check_array,
    check_integer,
    check_number,
    shown,
)
from keyhole.base.limits import check_length
from keyhole.contracts.worlds import World, WorldKernel
from keyhole.kernels.compiled import kernel
from keyhole.kernels.draw import uniforms
from keyhole.worlds.flips import a_quarter

_OPINIONS = 0
_A_THIRD = 3333
"""When a crowd changes where nobody says: after a third of a game of 10,000 rounds."""


class PhasesParams(NamedTuple):
    """Chances by phase and item, the rounds of a phase, and whether the first follows the last.

    Where it does not, the last phase has no end.
    """

    chances: Any
    period: int
    repeats: bool


@kernel
def _relevance(params: Any, draw: Any, out: Any) -> None:
    n_phases = params.chances.shape[0]
    phase = draw.round // params.period
    phase = phase % n_phases if params.repeats else min(phase, n_phases - 1)
    uniforms(draw, _OPINIONS, out)
    for item in range(out.shape[0]):
        out[item] = 1.0 if out[item] < params.chances[phase, item] else 0.0


class Phases(World):
    """What crowds share whose users find each item relevant with a chance of its own."""

    kernel: ClassVar[WorldKernel] = WorldKernel(_relevance)
    params: PhasesParams
    max_grade = 1.0
    is_binary = True

    def relabelled(self, labels: IntArray) -> Self:
        other = copy.copy(self)
        chances = np.ascontiguousarray(self.params.chances[:, labels])
        other.params = self.params._replace(chances=chances)
        return other


def _chance(value: Any, name: str) -> float:
    return check_number(value, name, at_least=0.0, at_most=1.0)


def _sets_in_turn(n_items: int, n_relevant: int, n_sets: int, flip: float) -> FloatArray:
    """Return chances by set and item: the first set are the last items, the next come before it."""
    truth = np.zeros((n_sets, n_items))
    for index in range(n_sets):
        end = n_items - index * n_relevant
        truth[index, end - n_relevant : end] = 1.0
    return np.where(truth == 1.0, 1.0 - flip, flip)


class Independent(Phases):
    """Users who find every item relevant with a chance of its own, whatever they think of others.

    Parameters
    ----------
    n_items
        Size of the list.
    low, high
        Chances of the first and of the last item; those between rise evenly.
    chances
        The chance of each item, in place of ``low`` and ``high``.

    Notes
    -----
    Neighbours differ by little, so most of the regret comes from telling apart items that
    hardly differ.

    Examples
    --------
    >>> Independent(4).params.chances.round(9).tolist()
    [[0.2, 0.4, 0.6, 0.8]]
    >>> Independent(3, chances=[1, 0, 1]).relevance(round=5).tolist()
    [1.0, 0.0, 1.0]
    """

    def __init__(
        self,
        n_items: int = 20,
        *,
        low: float = 0.2,
        high: float = 0.8,
        chances: ArrayLike | None = None,
    ) -> None:
        self.n_items = check_length(n_items, "`n_items` of Independent")
        low = _chance(low, "`low` of Independent")
        high = _chance(high, "`high` of Independent")
        if chances is None:
            row = np.linspace(low, high, self.n_items)
        else:
            row = check_array(chances, "`chances` of Independent", n_dims=1)
            if row.shape != (self.n_items,) or not bool(((row >= 0.0) & (row <= 1.0)).all()):
                raise InvalidInput(
                    f"`chances` of Independent must be {self.n_items} numbers from 0 to 1, got "
                    f"{shown(chances)}."
                )
        self.params = PhasesParams(row[np.newaxis], 1, False)


class Alternating(Phases):
    """Two sets of items, or more, that are relevant in turn.

    Parameters
    ----------
    n_items, n_relevant
        Size of the list and how many items are relevant at a time; by default a quarter, but no
        more than there is room for in ``n_sets``.
    period
        Rounds of a turn.
    n_sets
        Sets that take turns. The last items of the list begin, those before them follow.
    flip
        Probability that an opinion is reversed, independently for each item and round.

    Notes
    -----
    The best fixed ranking has all sets on top and is right for none of them, so a ranker
    that notices the turns has negative regret.

    Examples
    --------
    >>> crowd = Alternating(6, n_relevant=2, period=3, flip=0.0)
    >>> [crowd.relevance(round=t).tolist() for t in (2, 3)]
    [[0.0, 0.0, 0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]]
    >>> crowd.relevance(round=6).tolist() == crowd.relevance(round=0).tolist()
    True
    """

    def __init__(
        self,
        n_items: int = 20,
        *,
        n_relevant: int | None = None,
        period: int = 500,
        n_sets: int = 2,
        flip: float = 0.1,
    ) -> None:
        self.n_items = check_length(n_items, "`n_items` of Alternating", at_least=2)
        n_sets = check_integer(
            n_sets, "`n_sets` of Alternating", at_least=2, at_most=self.n_items, bound="n_items="
        )
        n_relevant = _n_in_a_set(n_relevant, self.n_items, n_sets, "Alternating")
        chances = _sets_in_turn(
            self.n_items, n_relevant, n_sets, _chance(flip, "`flip` of Alternating")
        )
        period = check_integer(period, "`period` of Alternating", at_least=1)
        self.params = PhasesParams(chances, period, True)


def _n_in_a_set(n_relevant: int | None, n_items: int, n_sets: int, owner: str) -> int:
    """Return how many items a set has, of which there is room for some, or raise."""
    most = n_items // n_sets
    if n_relevant is None:
        return min(a_quarter(n_items), most)
    return check_integer(n_relevant, f"`n_relevant` of {owner}", at_least=0, at_most=most)


class Takeover(Phases):
    """One set of items is relevant, until another takes its place for good.

    Parameters
    ----------
    n_items, n_relevant
        Size of the list and how many items are relevant at a time, by default a quarter: first the
        last ones of the list, then those before them.
    at
        The round that begins with the second set.
    flip
        Probability that an opinion is reversed, independently for each item and round.

    Examples
    --------
    >>> crowd = Takeover(4, at=100, flip=0.0)
    >>> crowd.relevance(round=99).tolist(), crowd.relevance(round=100).tolist()
    ([0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0])
    """

    def __init__(
        self,
        n_items: int = 20,
        *,
        n_relevant: int | None = None,
        at: int = _A_THIRD,
        flip: float = 0.1,
    ) -> None:
        self.n_items = check_length(n_items, "`n_items` of Takeover", at_least=2)
        n_relevant = _n_in_a_set(n_relevant, self.n_items, 2, "Takeover")
        chances = _sets_in_turn(self.n_items, n_relevant, 2, _chance(flip, "`flip` of Takeover"))
        at = check_integer(at, "`at` of Takeover", at_least=1)
        self.params = PhasesParams(chances, at, False)


class Rising(Phases):
    """Items that few people like become the best of all, while the leaders stay as they are.

    Parameters
    ----------
    n_items, n_rising
        Size of the list and how many items rise, by default a quarter. They are the ones before
        the leaders, which are as many, and the last of the list.
    at
        The round in which the rising items have risen.
    low, leading, high
        Chances of all other items, and of the rising ones before; of the leaders; and of the
        items that have risen.

    Notes
    -----
    What a ranker shows stays as good as it was, so only one that goes on looking at items it
    has given up finds out.

    Examples
    --------
    >>> crowd = Rising(4, at=100, low=0.0, leading=0.0, high=1.0)
    >>> crowd.relevance(round=99).tolist(), crowd.relevance(round=100).tolist()
    ([0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0])
    """

    def __init__(
        self,
        n_items: int = 20,
        *,
        n_rising: int | None = None,
        at: int = _A_THIRD,
        low: float = 0.1,
        leading: float = 0.6,
        high: float = 0.95,
    ) -> None:
        self.n_items = check_length(n_items, "`n_items` of Rising", at_least=2)
        most = self.n_items // 2
        n_rising = min(a_quarter(self.n_items), most) if n_rising is None else n_rising
        n_rising = check_integer(n_rising, "`n_rising` of Rising", at_least=1, at_most=most)
        chances = np.full((2, self.n_items), _chance(low, "`low` of Rising"))
        first_leader = self.n_items - n_rising
        chances[:, first_leader:] = _chance(leading, "`leading` of Rising")
        risen = _chance(high, "`high` of Rising")
        chances[1, first_leader - n_rising : first_leader] = risen
        at = check_integer(at, "`at` of Rising", at_least=1)
        self.params = PhasesParams(chances, at, False)
