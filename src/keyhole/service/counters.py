"""Statistics of a ranker's events for the dashboard; learners never read them."""

import math
from typing import Any

import msgspec

from keyhole.service.events import Answered, Ranked

MOST_POINTS = 256
"""The maximum number of points of a series; beyond it neighbours are merged."""
_MOST_ALARMS = 100
_MOST_REFUSALS = 1_000
_LONGEST_DELAY = 48
"""Histogram buckets of delays, which double from a millisecond up."""


class ItemTally(msgspec.Struct):
    """Statistics of one item."""

    shown_top: int = 0
    observed: int = 0
    total: float = 0.0
    squares: float = 0.0
    untaught: int = 0
    """Observations that the ranker did not learn from."""

    def mean(self) -> float | None:
        """Return the mean revealed relevance; None without observations."""
        return self.total / self.observed if self.observed else None

    def variance_of_mean(self, largest: float = 1.0) -> float:
        """Return the variance of the mean, after adding one pseudo-observation at each extreme.

        Without them, intervals of few observations would be too narrow.
        """
        if not self.observed:
            return math.inf
        n = self.observed + 2
        mean = (self.total + largest) / n
        return max((self.squares + largest * largest) / n - mean * mean, 0.0) / self.observed


class Group(msgspec.Struct):
    """The scores of a group of rounds: count, sum and sum of squares."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, score: float) -> None:
        """Add one score."""
        self.n += 1
        self.total += score
        self.squares += score * score

    def mean(self) -> float | None:
        """Return the mean score; None without scores."""
        return self.total / self.n if self.n else None

    def variance_of_mean(self) -> float:
        """Return the variance of the mean."""
        if self.n < 2:
            return math.inf
        mean = self.total / self.n
        return max(self.squares / self.n - mean**2, 0.0) / (self.n - 1)


class Point(msgspec.Struct, array_like=True):
    """A point of a series: sums over consecutive rounds."""

    last_round: int
    n: int = 0
    n_explored: int = 0
    n_scored: int = 0
    score: float = 0.0
    regret: float = 0.0
    full_information: float = 0.0
    n_true: int = 0
    """The number of known truths at its last round, which its regret covers."""


class Truth(msgspec.Struct):
    """In simulations: the true value of the lists shown since the items last changed."""

    gains: dict[str, float] = {}
    """The gain of each item, summed over rounds."""
    n: int = 0
    shown: float = 0.0
    informed: float = 0.0
    """The true value of follow-the-leader with full information."""
    n_before: int = 0
    """The number of truths under earlier items, which the current items cannot be compared with."""


class Tally(msgspec.Struct):
    """Counts and series of one ranker, in memory independent of the log's length."""

    ranks: int = 0
    observed: int = 0
    none: int = 0
    not_shown: int = 0
    late: int = 0
    expired: int = 0
    refused: int = 0
    """Feedback refused because its numbers are too large to learn from."""
    items: dict[str, ItemTally] = {}
    delays: list[int] = msgspec.field(default_factory=lambda: [0] * _LONGEST_DELAY)
    longest_delay: int = 0
    points: list[Point] = []
    width: int = 1
    alarms: list[tuple[int, int]] = []
    baseline: Group = msgspec.field(default_factory=Group)
    own: Group = msgspec.field(default_factory=Group)
    truth: Truth = msgspec.field(default_factory=Truth)
    shown: tuple[str, ...] = ()
    refusals: list[int] = []
    """The seqs of the most recently refused feedback, including those before a reset."""
    forgotten: int = 0
    """The seq up to which older refusals have been forgotten."""

    def count_rank(self, ranked: Ranked, names: tuple[str, ...]) -> None:
        """Count a shown list."""
        self.ranks += 1
        point = self._point_of(ranked.round)
        point.n += 1
        if ranked.explored:
            point.n_explored += 1
        if ranked.catalogue is not None:
            for index in ranked.ranking[: ranked.k]:  # as many are never excluded
                self._item(names[index]).shown_top += 1

    def note_last(self, ranked: Ranked, names: tuple[str, ...]) -> None:
        """Remember the list shown last; called once per batch."""
        shown = ranked.ranking[: len(ranked.ranking) - ranked.n_excluded]
        self.shown = tuple([names[index] for index in shown])

    def count_feedback(
        self,
        ranked: Ranked,
        answered: Answered,
        names: tuple[str, ...],
        delay: int,
        score: float,
    ) -> None:
        """Count feedback that arrived in time; ``score`` is the gain of the top k."""
        if answered.status == "not_shown":
            self.not_shown += 1
            return
        if answered.status == "observed":
            self.observed += 1
        else:
            self.none += 1
        self.delays[min(max(delay, 0).bit_length(), _LONGEST_DELAY - 1)] += 1
        self.longest_delay = max(self.longest_delay, delay)
        point = self._point_of(ranked.round)
        point.n_scored += 1
        point.score += score
        if ranked.mode == "apprentice":
            (self.own if ranked.own is None else self.baseline).add(score)
        if ranked.catalogue is not None:
            is_untaught = answered.learned != "pending"
            for index, relevance in zip(ranked.ranking, answered.relevance, strict=False):
                item = self._item(names[index])
                item.observed += 1
                if is_untaught:
                    item.untaught += 1
                item.total += relevance
                item.squares += relevance * relevance

    def count_truth(
        self,
        ranked: Ranked,
        gains: tuple[float, ...],
        weights: list[float],
        names: tuple[str, ...],
    ) -> None:
        """Count the true value of a list and of follow-the-leader with full information."""
        truth = self.truth
        before = [truth.gains.get(name, 0.0) for name in names]
        leader = sorted(range(len(names)), key=lambda index: -before[index])
        truth.shown += sum(w * gains[i] for w, i in zip(weights, ranked.ranking, strict=True))
        truth.informed += sum(w * gains[i] for w, i in zip(weights, leader, strict=True))
        truth.n += 1
        for name, had, gain in zip(names, before, gains, strict=True):
            truth.gains[name] = had + gain
        totals = sorted((truth.gains[name] for name in names), reverse=True)
        best = sum(w * total for w, total in zip(weights, totals, strict=True))
        point = self._point_of(ranked.round)
        point.n_true = truth.n_before + truth.n
        point.regret = (best - truth.shown) / truth.n
        point.full_information = (best - truth.informed) / truth.n

    def change_items(self) -> None:
        """Start regret anew for changed items: they cannot be compared with the previous ones."""
        self.truth = Truth(n_before=self.truth.n_before + self.truth.n)

    def count_refused(self, seq: int) -> None:
        """Count feedback that the learner refused."""
        self.refused += 1
        self.refusals.append(seq)
        while len(self.refusals) > _MOST_REFUSALS:
            self.forgotten = max(self.forgotten, self.refusals.pop(0))

    def count_alarm(self, round: int, seq: int) -> None:
        """Count an alarm of the change test."""
        self.alarms.append((round, seq))
        del self.alarms[:-_MOST_ALARMS]

    def delay_quantile(self, share: float) -> float | None:
        """Return a quantile of the feedback delay in seconds, to the precision of a bucket."""
        n = sum(self.delays)
        if not n:
            return None
        seen = 0
        for bucket, count in enumerate(self.delays):
            seen += count
            if seen >= share * n:
                return float(min(2**bucket - 1, self.longest_delay)) / 1000.0
        return self.longest_delay / 1000.0

    def _item(self, name: str) -> ItemTally:
        try:
            return self.items[name]
        except KeyError:
            item = self.items[name] = ItemTally()
            return item

    def _point_of(self, round: int) -> Point:
        points = self.points
        place = round // self.width
        if points and place < len(points):
            return points[place]
        while place >= MOST_POINTS:
            self._halve()
            place = round // self.width
        while len(points) <= place:
            points.append(Point((len(points) + 1) * self.width - 1))
        return points[place]

    def _halve(self) -> None:
        """Merge neighbouring points in pairs."""
        merged = []
        for first in range(0, len(self.points), 2):
            one = self.points[first]
            other = self.points[first + 1] if first + 1 < len(self.points) else Point(0)
            later = other if other.n_true > one.n_true else one
            merged.append(
                Point(
                    one.last_round + self.width,
                    one.n + other.n,
                    one.n_explored + other.n_explored,
                    one.n_scored + other.n_scored,
                    one.score + other.score,
                    later.regret,
                    later.full_information,
                    later.n_true,
                )
            )
        self.points[:] = merged
        self.width *= 2


def interval(mean: float | None, variance: float) -> dict[str, Any]:
    """Return a mean with its 95 % confidence interval; None for unknown values."""
    if mean is None or not math.isfinite(variance):
        return {"value": mean, "low": None, "high": None}
    reach = 1.96 * math.sqrt(variance)
    return {"value": mean, "low": mean - reach, "high": mean + reach}
