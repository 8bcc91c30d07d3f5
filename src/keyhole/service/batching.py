"""Rounds of one list in few calls: what they teach is learnt at once, and they are ranked ahead."""

from typing import NamedTuple

import numpy as np

from keyhole.contracts.lists import Impression
from keyhole.contracts.rankers import Ranker
from keyhole.game.batched import learn_many, rank_many
from keyhole.service.events import Ranked

_MOST_AHEAD = 64


class Lesson(NamedTuple):
    """A list, what was revealed of it, and which event said so in which round."""

    ranked: Ranked
    relevance: tuple[float, ...]
    seq: int
    round: int


def by_own_order(ranked: Ranked, relevance: tuple[float, ...]) -> list[float]:
    """Return what was revealed in the order of the learner's own list, whichever was shown."""
    if ranked.own is None:
        return list(relevance[: ranked.k])
    by_item = dict(zip(ranked.ranking, relevance, strict=False))
    return [by_item[item] for item in ranked.own[: ranked.k]]


def learn_together(learner: Ranker, lessons: list[Lesson]) -> bool:
    """Learn from lessons of the learner's present list, in their order.

    Returns whether it was done. It was not, and nothing has changed, where something is to be said
    of one of them: that it was refused, or that it showed a change.
    """
    alarms = learner.n_alarms
    values = np.full((len(lessons), learner.n_items), np.nan)
    for row, lesson in enumerate(lessons):
        values[row, : lesson.ranked.k] = by_own_order(lesson.ranked, lesson.relevance)
    ranked = [lesson.ranked for lesson in lessons]
    # Of a bytearray, which can be written to: for other arrays kernels would be compiled anew.
    notes = np.frombuffer(bytearray().join(one.note for one in ranked), "<f8")
    return learn_many(
        learner,
        [one.round for one in ranked],
        np.array([one.ranking if one.own is None else one.own for one in ranked], np.int64),
        [one.explored for one in ranked],
        [np.nan if one.propensity is None else one.propensity for one in ranked],
        values,
        notes.reshape(len(lessons), -1),
        undo_if=lambda: learner.n_alarms > alarms,
    )


class Ahead:
    """Rounds that are ranked at once; what is learnt makes those that were not shown void."""

    def __init__(self) -> None:
        self._ranked: list[Impression] = []
        self._n_next = 1

    def take(self, learner: Ranker, round: int) -> Impression:
        """Return what a learner shows in a round, and rank more of them the more are taken."""
        ranked = self._ranked
        place = round - ranked[0].round if ranked else 0
        if not 0 <= place < len(ranked):
            if ranked and place == len(ranked):
                self._n_next = min(2 * len(ranked), _MOST_AHEAD)
            self._ranked, place = rank_many(learner, round, self._n_next), 0
        return self._ranked[place]

    def reserve(self, learner: Ranker, round: int, n_rounds: int) -> None:
        """Rank rounds from one on in one call, if they are not ranked yet."""
        place = round - self._ranked[0].round if self._ranked else 0
        if place < 0 or place + n_rounds > len(self._ranked):
            self._ranked = rank_many(learner, round, n_rounds)

    def void(self) -> None:
        """Forget what was ranked: the learner is no longer what it was."""
        self._n_next = min(max(len(self._ranked), 1), _MOST_AHEAD)
        self._ranked = []
