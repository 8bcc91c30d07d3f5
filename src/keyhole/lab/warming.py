"""What is worth compiling ahead: each ranker of the table in the games that are usual for it.

A loop is compiled for every combination of a ranker, a world, a reveal and a measure, so not all of
them can be. What is left out is compiled when it is first played, from parts that these have left.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from keyhole.base.errors import KeyholeError, check_choice
from keyhole.contracts.lists import Query
from keyhole.data.letor.queries import QuerySet
from keyhole.data.letor.reader import read_letor
from keyhole.experiment.description import BuiltExperiment, Experiment
from keyhole.experiment.worlds import how_to_read
from keyhole.lab.heldout import held_out_scores
from keyhole.measures import MEASURES, measure
from keyhole.rankers import RANKERS
from keyhole.rankers.fixed.base import FixedListRanker
from keyhole.worlds.queries import Queries
from keyhole.worlds.table import Ratings, Shuffled

_SMALL = ("hedge", "forecaster", "neighbourhood")
"""Rankers that enumerate rankings or sets of items, of lists that must be short."""
_NOT_FOR_NDCG = ("semibandit", "neighbourhood", "forecaster")
_HEADLINE = ("keystone", "rtopk", "ftpl", "random")
_OTHER_WORLDS = ("gaussian", "independent", "alternating", "takeover", "rising", "walking")
_MEASURES = ("DCG", "Precision@3", "NDCG@10")
_ROUNDS = 3

Case = tuple[str, Callable[[], Any]]
"""What is compiled, in words, and a call that needs the code."""


def first_accepted(make: Callable[[str], Any]) -> str:
    """Return the first usual measure with which something can be made."""
    for name in _MEASURES[:-1]:
        with suppress(KeyholeError):
            make(name)
            return name
    return _MEASURES[-1]


def _experiment(ranker: str, measure: str, world: str = "flips", items: int = 4) -> Experiment:
    return Experiment(ranker=ranker, measure=measure, world=world, items=items, rounds=_ROUNDS)


def _usual_measure(ranker: str) -> str:
    return first_accepted(lambda name: _experiment(ranker, name).build())


def _people(grades: int) -> Any:
    numbers = np.random.default_rng(0)
    return numbers.integers(grades, size=(12, 10)).astype(np.float64)


def _play_game(ranker: str, world: str, judged_by: str) -> None:
    _experiment(ranker, judged_by, world, 4 if ranker in _SMALL else 10).play()


def _play_people(ranker: str, kind: Any, grades: int, judged_by: str) -> None:
    world = kind(_people(grades)[:, : 4 if ranker in _SMALL else 10])
    _experiment(ranker, judged_by).build_on(world).play()


def _letor_text() -> str:
    numbers = np.random.default_rng(0)
    rows = (
        f"{numbers.integers(3)} qid:{row // 5} "
        + " ".join(f"{column}:{numbers.random():.3f}" for column in range(1, 5))
        for row in range(40)
    )
    return "\n".join(rows) + "\n"


def _lists(kind: Any) -> QuerySet:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lists.txt"
        path.write_text(_letor_text(), encoding="utf-8")
        return read_letor([path], **{**how_to_read(), "dtype": kind})


def _of_lists(ranker: str, found: QuerySet) -> BuiltExperiment:
    world = Queries(found.features, found.relevance, found.starts)
    return Experiment(ranker=ranker, measure="NDCG@10", rounds=_ROUNDS).build_on(world)


def _learn(ranker: str, kind: Any) -> None:
    found = _lists(kind)
    built = _of_lists(ranker, found)
    held_out_scores(built.ranker, built.play().states, found, [measure("NDCG@10")])


def _round_by_round(ranker: str) -> None:
    cls: Any = RANKERS[ranker]
    if issubclass(cls, FixedListRanker):
        learner = _experiment(ranker, _usual_measure(ranker)).build().ranker
        queries: list[Query | None] = [None]
    else:
        found = _lists(np.float64)
        learner = _of_lists(ranker, found).ranker
        rows = found.features[:3]
        queries = [Query(3, rows.astype(kind)) for kind in (np.float32, np.float64)]
    for query in queries:
        impression = learner.rank(query)
        learner.best(query)
        learner.update(impression, np.zeros(len(impression.ranking)))


def _cases_of(ranker: str) -> Iterator[Case]:
    yield f"{ranker}, round by round", partial(_round_by_round, ranker)
    if not issubclass(RANKERS[ranker], FixedListRanker):
        for kind in (np.float32, np.float64):
            name = f"{ranker}, lists in {np.dtype(kind).name}"
            yield name, partial(_learn, ranker, kind)
        return
    usual = _usual_measure(ranker)
    measures = {usual: None} if ranker in _NOT_FOR_NDCG else {usual: None, "NDCG@10": None}
    for judged_by in measures:
        yield f"{ranker}, flips, {judged_by}", partial(_play_game, ranker, "flips", judged_by)
    for grades in (2, 4):
        name = f"{ranker}, people with {grades} grades, {usual}"
        yield name, partial(_play_people, ranker, Ratings, grades, usual)
    if ranker in _HEADLINE:
        name = f"{ranker}, people in turn, {usual}"
        yield name, partial(_play_people, ranker, Shuffled, 2, usual)
        for world in _OTHER_WORLDS:
            yield f"{ranker}, {world}, {usual}", partial(_play_game, ranker, world, usual)


def _measure_many(name: str) -> None:
    for grades in (2, 3):
        relevance = np.random.default_rng(0).integers(grades, size=(2, 4)).astype(np.float64)
        measure(name).many(relevance, np.tile(np.arange(4), (2, 1)))


def cases(rankers: Sequence[str] = ()) -> list[Case]:
    """Return what to compile for some rankers, or for all of them and for every measure."""
    for ranker in rankers:
        check_choice(ranker, "A name", RANKERS)
    found = [case for ranker in rankers or RANKERS for case in _cases_of(ranker)]
    if not rankers:
        found += [(f"{name} of many lists", partial(_measure_many, name)) for name in MEASURES]
    return found
