"""What a ranker has learnt, judged on lists that it has not learnt from."""

from collections.abc import Mapping, Sequence
from os.path import exists, samefile
from pathlib import Path
from typing import Any

import numpy as np

from keyhole.base.errors import FloatArray, IntArray, InvalidInput
from keyhole.contracts.measures import Measure
from keyhole.contracts.rankers import Ranker
from keyhole.data.letor.queries import QuerySet
from keyhole.data.letor.reader import letor_columns, read_letor
from keyhole.game.trace import RunMean, mean_and_error
from keyhole.worlds.queries import Queries


def read_held_out(
    files: Sequence[Path],
    learnt_from: Sequence[Path],
    n_features: int,
    how: Mapping[str, Any],
) -> QuerySet:
    """Read lists to test on, their features as those that were learnt from are numbered.

    ``how`` says how both are read; features are scaled within each list, if at all, so that no
    list has a part in how another one is read.
    """
    for path in files:
        for other in learnt_from:
            if exists(path) and exists(other) and samefile(path, other):
                raise InvalidInput(f"--test must be held out, got {path}, which is learnt from.")
    first_index, _ = letor_columns(learnt_from)
    return read_letor(files, **{**how, "n_features": n_features, "first_index": first_index})


def _frozen(ranker: Ranker, run: int, state: Mapping[str, Any], n_items: int) -> Ranker:
    """Return the ranker of a run as it was in the end, for lists of up to ``n_items`` documents.

    Lists may be longer than any that was learnt from.
    """
    copy = ranker.fresh(n_items=max(ranker.n_items, n_items), run=run)
    for name, own in copy.state._asdict().items():
        if own.shape != state[name].shape:
            raise InvalidInput(
                f"{type(ranker).__name__} ranks lists of up to {ranker.n_items} documents, the "
                f"longest it has learnt from, got one of {n_items} in --test."
            )
        own[...] = state[name]
    return copy


def _rankings(ranker: Ranker, lists: Queries, n_lists: int) -> list[IntArray]:
    """Return how a ranker that neither explores nor learns orders each list."""
    explores = ranker.kernel.greedy is not None
    rankings = []
    for index in range(n_lists):
        query = lists.query(round=index)
        order = ranker.best(query) if explores else ranker.rank(query, round=index).ranking
        rankings.append(np.asarray(order, dtype=np.int64))
    return rankings


def held_out_scores(
    ranker: Ranker,
    states: Sequence[Mapping[str, Any]],
    queries: QuerySet | None,
    measures: Sequence[Measure],
    document_seed: int | None = None,
) -> dict[str, RunMean]:
    """Return the mean of each measure over all lists, with its standard error over the runs.

    ``states`` are what the runs have learnt. ``document_seed`` shuffles the documents of each list
    as :class:`~keyhole.worlds.queries.Queries` does: ties go to the first. Where no lists are held
    out, there are no scores.
    """
    if queries is None:
        return {}
    lists = Queries(
        queries.features, queries.relevance, queries.starts,
        shuffle=False, document_seed=document_seed,
    )  # fmt: skip
    relevance = [lists.relevance(round=index) for index in range(queries.n_queries)]
    means: FloatArray = np.empty((len(states), len(measures)))
    for run, state in enumerate(states):
        learnt = _frozen(ranker, run, state, queries.largest)
        rankings = _rankings(learnt, lists, queries.n_queries)
        for column, measure in enumerate(measures):
            values = [measure(*pair) for pair in zip(relevance, rankings, strict=True)]
            means[run, column] = np.mean(values)
    over_runs, errors = mean_and_error(means)
    return {
        measure.label: RunMean(float(mean), float(error))
        for measure, mean, error in zip(measures, over_runs, errors, strict=True)
    }
