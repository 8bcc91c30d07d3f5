"""Batching for a fixed list: learn from many rounds in one call, rank future rounds in advance."""

import math
from itertools import chain
from typing import NamedTuple

import msgspec
import numpy as np

from keyhole.contracts.lists import Impression
from keyhole.contracts.rankers import Ranker
from keyhole.game.batched import learn_many, rank_many
from keyhole.service.events import Ranked

_MOST_AHEAD = 64
_NOTE_TYPE = np.dtype("<f8")
"""The dtype of propensities on little-endian machines, compared by identity."""


class Drawn(msgspec.Struct, frozen=True, gc=False):
    """A ranking drawn for a round, with the propensities that the ranker knows, for the log."""

    ranking: tuple[int, ...]
    explored: bool
    propensity: float | None
    note: bytes
    p_marginal: float | None = None
    p_conditional: float | None = None
    chances: tuple[float, ...] | None = None
    least_chance: float | None = None


def drawn_by(learner: Ranker, impression: Impression) -> Drawn:
    """Return the ranking of an impression and its propensities."""
    note, propensity = impression.note, impression.propensity
    marginal = None if math.isnan(propensity) else propensity
    noted = (note if note.dtype is _NOTE_TYPE else note.astype(_NOTE_TYPE)).tobytes()
    ranking, explored = tuple(impression.ranking.tolist()), impression.explored
    known = learner.chances(impression)
    if known is None:
        return Drawn(ranking, explored, marginal, noted, marginal, marginal)
    chances, least = tuple(known.tolist()), learner.least_chance(impression)
    given_past: float | None = chances[-1]
    if type(learner).chance_given_the_past is not Ranker.chance_given_the_past:
        given_past = learner.chance_given_the_past(impression)
    return Drawn(ranking, explored, marginal, noted, chances[-1], given_past, chances, least)


class Lesson(NamedTuple):
    """One training example: a list, its revealed relevance, its feedback event and its round."""

    ranked: Ranked
    relevance: tuple[float, ...]
    seq: int
    round: int


def by_own_order(ranked: Ranked, relevance: tuple[float, ...]) -> list[float]:
    """Return the revealed relevance in the order of the learner's own list."""
    if ranked.own is None:
        return list(relevance[: ranked.k])
    by_item = dict(zip(ranked.ranking, relevance, strict=False))
    return [by_item[item] for item in ranked.own[: ranked.k]]


def learn_together(learner: Ranker, lessons: list[Lesson]) -> bool:
    """Learn from lessons on the learner's current list, in order.

    Returns False, with the learner unchanged, if one lesson would be refused or raise a change
    alarm: such lessons have to be learnt one by one.
    """
    alarms = learner.n_alarms
    ranked, n_items = [lesson.ranked for lesson in lessons], learner.n_items
    values = np.full((len(lessons), n_items), np.nan)
    values[:, : ranked[0].k] = [by_own_order(each.ranked, each.relevance) for each in lessons]
    own = chain.from_iterable([one.ranking if one.own is None else one.own for one in ranked])
    # A bytearray gives a writable array: a read-only one would make Numba compile the kernel again.
    notes = np.frombuffer(bytearray().join(one.note for one in ranked), "<f8")
    return learn_many(
        learner,
        [one.round for one in ranked],
        np.fromiter(own, np.int64, len(lessons) * n_items).reshape(-1, n_items),
        [one.explored for one in ranked],
        [np.nan if one.propensity is None else one.propensity for one in ranked],
        values,
        notes.reshape(len(lessons), -1),
        undo_if=lambda: learner.n_alarms > alarms,
    )


class Ahead:
    """A cache of lists ranked in advance; learning invalidates those that were not shown."""

    def __init__(self) -> None:
        self._first = 0
        self._drawn: list[Drawn] = []
        self._n_next = 1

    def take(self, learner: Ranker, round: int) -> Drawn:
        """Return the ranking of a round; each miss ranks twice as many rounds in advance."""
        drawn, place = self._drawn, round - self._first
        if not 0 <= place < len(drawn):
            if drawn and place == len(drawn):
                self._n_next = min(2 * len(drawn), _MOST_AHEAD)
            self._rank(learner, round, self._n_next)
            drawn, place = self._drawn, 0
        return drawn[place]

    def reserve(self, learner: Ranker, round: int, n_rounds: int) -> None:
        """Rank ``n_rounds`` rounds in one call, unless they are in the cache."""
        if not self._first <= round <= self._first + len(self._drawn) - n_rounds:
            self._rank(learner, round, n_rounds)

    def _rank(self, learner: Ranker, first: int, n_rounds: int) -> None:
        self._first = first
        self._drawn = [drawn_by(learner, each) for each in rank_many(learner, first, n_rounds)]

    def void(self) -> None:
        """Empty the cache: the learner has changed."""
        self._n_next = min(max(len(self._drawn), 1), _MOST_AHEAD)
        self._drawn = []
