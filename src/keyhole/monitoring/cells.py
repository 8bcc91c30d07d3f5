"""Where each action is best: duplicates, Pareto-optimal actions, neighbours, and their proofs.

The cell of an action is the set of outcome distributions under which no other action loses
less. An action is Pareto-optimal if its cell has full dimension, and two such actions are
neighbours if their cells share a face of one dimension less (Bartok et al. 2014).

In a ranking game, relabelling items maps rankings to rankings. All loss vectors then have the
same length and the same sum, so none lies between two others and every ranking is
Pareto-optimal (it alone minimises p . loss for p = c - its own loss); only the neighbours of
one ranking are looked for.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from keyhole.monitoring.elimination import Span
from keyhole.monitoring.games import Losses
from keyhole.monitoring.programs import Margin, widest_margin

Distribution = tuple[Fraction, ...]

_GRAIN = 10**12
_POSITIVE = 1e-9
_LIKELY = 1e-7


class Mixture(NamedTuple):
    """A mixture of other actions that is as good as a first one, wherever a second is too.

    Outcome by outcome, the mean loss of the actions by ``weights`` plus ``slack``, which is never
    negative, equals the first's loss plus ``slope`` times (the first's loss less the second's).
    So where first and second lose the same, the mixture loses no more than they do. Without a
    second the slope is 0, and the mixture never loses more than the first.
    """

    weights: tuple[tuple[int, Fraction], ...]
    slope: Fraction
    slack: tuple[tuple[int, Fraction], ...]


@dataclass(frozen=True)
class ActionPair:
    """Two actions, and whether they are neighbours.

    ``points``: two positive distributions on either side of the face, at both of which every
    action but those of ``between`` loses more; so the face between them has full dimension.
    ``third``: other actions that are optimal wherever both are. ``exchange``: for measures that
    add up gains, two items whose exchange gives such an action. ``margin`` is the linear
    program's, and ``is_proof`` whether the rest was verified in whole numbers.
    """

    first: int
    second: int
    are_neighbours: bool
    between: tuple[int, ...]
    points: tuple[Distribution, ...] = ()
    third: Mixture | None = None
    exchange: tuple[int, ...] = ()
    margin: float = 0.0
    is_proof: bool = True


class Cells:
    """The cells of the actions of a game.

    Examples
    --------
    >>> from keyhole.monitoring.games import Game
    >>> cells = Cells(Game.of("SumLoss", n_items=3, k=1).losses)
    >>> len(cells.optimal), [pair.second for pair in cells.neighbours]
    (6, [1, 2])
    """

    def __init__(self, losses: Losses) -> None:
        self.losses = losses
        self.inferior: dict[int, Mixture | None] = {}
        """Actions that are not Pareto-optimal, with a mixture of others that never loses more."""
        self._nowhere: set[int] = set()
        self.is_proof = True

    @cached_property
    def duplicates(self) -> tuple[tuple[int, ...], ...]:
        """For each action, all actions with the same losses."""
        losses, groups = self.losses, []
        members: dict[Any, list[int]] = {}
        for action in range(len(losses.matrix)):
            if losses.tolerance:
                key: Any = tuple(np.round(losses.matrix[action], 9).tolist())
            else:
                key = tuple(losses.numerators[action].ravel().tolist())
            members.setdefault(key, []).append(action)
            groups.append(members[key])
        return tuple(tuple(group) for group in groups)

    @cached_property
    def distinct(self) -> tuple[int, ...]:
        """The first action of each group of duplicates."""
        return tuple(sorted({group[0] for group in self.duplicates}))

    @cached_property
    def optimal(self) -> tuple[int, ...]:
        """The Pareto-optimal actions, duplicates included."""
        if self.losses.is_ranking:
            return tuple(range(len(self.losses.matrix)))
        best = {action for action in self.distinct if self._has_interior(action)}
        return tuple(a for a, group in enumerate(self.duplicates) if group[0] in best)

    @property
    def dominated(self) -> tuple[int, ...]:
        """The actions that are optimal nowhere: a mixture of others always loses less."""
        optimal = set(self.optimal)
        return tuple(
            a
            for a, group in enumerate(self.duplicates)
            if a not in optimal and group[0] in self._nowhere
        )

    @property
    def degenerate(self) -> tuple[int, ...]:
        """The actions that are optimal somewhere, but on no set of full dimension."""
        known = {*self.optimal, *self.dominated}
        return tuple(action for action in range(len(self.duplicates)) if action not in known)

    def _has_interior(self, action: int) -> bool:
        others = [other for other in self.distinct if other != action]
        if not others:
            return True
        losses = self.losses
        margin = widest_margin(losses.matrix[others] - losses.matrix[action])
        if margin.size > _POSITIVE:
            point = _round(margin.point)
            self.is_proof &= bool((_mean_signs(losses, point, others, action) > 0).all())
            return True
        self.inferior[action] = self._mixture(action, others, margin)
        self.is_proof &= self.inferior[action] is not None
        if margin.size < -_POSITIVE:
            self._nowhere.add(action)
        return False

    # ----------------------------------------------------------------- neighbours

    def between(self, first: int, second: int) -> tuple[int, ...]:
        """Return the actions that are optimal wherever both are: on the segment between them."""
        ends = {*self.duplicates[first], *self.duplicates[second]}
        if self.losses.is_ranking:
            return tuple(sorted(ends))
        step = self.losses.difference(second, first)[:, 0]
        at = int(np.argmax(np.abs(step)))
        for other in self.distinct:
            away = self.losses.difference(other, first)[:, 0]
            share = Fraction(int(away[at]), int(step[at]))
            aligned = away * share.denominator - step * share.numerator
            weight = 2 * (share.denominator + abs(share.numerator))
            if 0 < share < 1 and not self.losses.signs(aligned[:, None], weight).any():
                ends |= {*self.duplicates[other]}
        return tuple(sorted(ends))

    @cached_property
    def pairs(self) -> tuple[ActionPair, ...]:
        """Every pair of distinct Pareto-optimal actions.

        In a ranking game the first of the pair is action 0: all others follow by relabelling.
        """
        best = [action for action in self.distinct if action in set(self.optimal)]
        firsts = best[:1] if self.losses.is_ranking else best
        return tuple(
            self._judge(first, second) for first in firsts for second in best if second > first
        )

    @cached_property
    def neighbours(self) -> tuple[ActionPair, ...]:
        """The pairs that are neighbours."""
        return tuple(pair for pair in self.pairs if pair.are_neighbours)

    @property
    def n_neighbour_pairs(self) -> int:
        """The number of neighbouring pairs of groups of duplicates, over all relabellings."""
        n_pairs = len(self.neighbours)
        return n_pairs * len(self.distinct) // 2 if self.losses.is_ranking else n_pairs

    def _judge(self, first: int, second: int) -> ActionPair:
        losses, between = self.losses, self.between(first, second)
        exchange = self._exchange(first, second)
        if exchange:
            return ActionPair(first, second, False, between, exchange=exchange)
        others = [other for other in self.distinct if other not in between]
        step = losses.matrix[first] - losses.matrix[second]
        margin = widest_margin(losses.matrix[others] - losses.matrix[first], on=step)
        if margin.size > _POSITIVE:
            points = self._sides(first, second, others, margin.point, margin.size)
            return ActionPair(
                first, second, True, between, points, margin=margin.size, is_proof=bool(points)
            )
        third = self._mixture(first, others, margin, second)
        return ActionPair(
            first,
            second,
            False,
            between,
            third=third,
            margin=margin.size,
            is_proof=third is not None,
        )

    def _exchange(self, first: int, second: int) -> tuple[int, ...]:
        """Return items a, b that can be exchanged in ``first`` wherever both are optimal, or none.

        Where gains add up, a ranking is optimal if it sorts the items by their mean gains. The
        first ranking has a just before b (in positions of neighbouring weights), the second has
        b before a. Where both are optimal a and b thus have equal mean gains, and the first with
        the two exchanged is optimal as well: a third action, so the pair are no neighbours.
        """
        losses = self.losses
        if losses.measure is None or not losses.measure.is_linear(losses.grades == 2):
            return ()
        upper, lower = losses.actions[first], losses.actions[second]
        rank = level_of_positions(losses.measure.weights(len(upper)))
        level = {item: rank[place] for place, item in enumerate(upper)}
        other = {item: rank[place] for place, item in enumerate(lower)}
        for a in upper:
            for b in upper:
                if level[b] == level[a] + 1 and other[b] < other[a]:
                    swapped = tuple({a: b, b: a}.get(item, item) for item in upper)
                    if losses.actions.index(swapped) not in self.duplicates[second]:
                        return a, b
        return ()

    def _sides(
        self, first: int, second: int, others: list[int], point: Any, margin: float
    ) -> tuple[Distribution, ...]:
        """Return distributions on both sides of the face, checked; empty if they fail."""
        losses = self.losses
        step = losses.matrix[first] - losses.matrix[second]
        reach = margin / (4.0 * max(1.0, np.abs(losses.matrix).max() * 2.0))
        sides = []
        for outcome, sign in ((int(np.argmax(step)), 1), (int(np.argmin(step)), -1)):
            side = point.copy()
            side[outcome] += reach
            rounded = _round(side)
            signs = _mean_signs(losses, rounded, [second, *others], first)
            if signs[0] != -sign or (signs[1:] <= 0).any() or min(rounded) <= 0:
                return ()
            sides.append(rounded)
        return tuple(sides)

    def _mixture(
        self, first: int, others: list[int], margin: Margin, second: int | None = None
    ) -> Mixture | None:
        """Solve exactly for the mixture that a linear program without a margin points to."""
        losses, n_outcomes = self.losses, self.losses.matrix.shape[1]
        likely = [o for o, weight in zip(others, margin.weights, strict=True) if weight > _LIKELY]
        if losses.tolerance or len(losses.numbers.terms) > 1 or not likely:
            return None
        spare = np.flatnonzero(margin.slack > _LIKELY).tolist()
        units = [[int(x == outcome) for x in range(n_outcomes)] for outcome in spare]
        if margin.size < -_POSITIVE:  # nowhere as good: the same slack everywhere
            units.append([1] * n_outcomes)
        steps = [losses.difference(other, first)[:, 0].tolist() for other in likely]
        along = [] if second is None else [losses.difference(first, second)[:, 0].tolist()]
        shares = Span([*steps[1:], *units, *along]).coefficients(steps[0])
        n_signed = len(steps) - 1 + len(units)
        if shares is None or any(share > 0 for share in shares[:n_signed]):
            return None
        weights = [Fraction(1), *(-share for share in shares[: len(steps) - 1])]
        total = sum(weights)
        sizes = [-share / total / losses.denominator for share in shares[len(steps) - 1 : n_signed]]
        slack = [
            sum((size * row[x] for size, row in zip(sizes, units, strict=True)), Fraction(0))
            for x in range(n_outcomes)
        ]
        return Mixture(
            tuple((o, w / total) for o, w in zip(likely, weights, strict=True) if w),
            shares[-1] / total if along else Fraction(0),
            tuple((x, size) for x, size in enumerate(slack) if size),
        )


def level_of_positions(weights: Any) -> list[int]:
    """Return the number of different weights before each position."""
    return [0, *np.cumsum(np.diff(weights) != 0.0).tolist()]


def _round(point: Any) -> Distribution:
    """Return a distribution as fractions that sum to one."""
    whole = [max(0, round(float(p) * _GRAIN)) for p in point]
    return tuple(Fraction(p, sum(whole)) for p in whole)


def _mean_signs(losses: Losses, point: Distribution, actions: Sequence[int], first: int) -> Any:
    """Return the signs of how much more actions lose than ``first`` does, in the mean."""
    scale = math.lcm(*(p.denominator for p in point))
    whole = np.array([int(p * scale) for p in point], dtype=object)
    more = losses.numerators[list(actions)] - losses.numerators[first]
    return losses.signs(whole @ more, 2.0 * scale)
