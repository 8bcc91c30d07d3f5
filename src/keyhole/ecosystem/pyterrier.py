"""Rankers as PyTerrier's re-rankers, and its data frames as query-document lists.

PyTerrier's frames have a row per document: ``qid``, ``docno``, and in ``features`` an array of
numbers; judgements, its *qrels*, have ``qid``, ``docno`` and ``label``. Nothing here starts Java.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from keyhole.base.errors import FloatArray, InvalidInput
from keyhole.contracts.lists import Query
from keyhole.contracts.rankers import Ranker
from keyhole.data.letor.queries import QuerySet

_NEEDED = ("qid", "docno", "features")


def reranker(model: Any) -> Any:
    """Return a PyTerrier transformer that ranks the documents of every query by a model.

    It takes results with ``features`` and gives them with ``score`` and ``rank``, best first.

    Parameters
    ----------
    model
        A :class:`~keyhole.BatchRanker` (which the transformer's ``fit`` fits), a model that
        ``keyhole learn`` saved and ``load_model`` loaded, or any ranker of query-document lists.
        The scores of a ranker are places counted from the end: it shows orders, not scores.
    """
    _score_rule(model)
    return _transformer_class()(model)


def query_lists(results: Any, qrels: Any = None) -> QuerySet:
    """Return results as query-document lists, with the grades that judgements give them.

    Lists and documents keep the order in which they come; a document that nobody judged is of
    grade 0, as it is to evaluations. Without ``qrels`` all grades are 0.
    """
    for name in _NEEDED:
        if name not in results.columns:
            raise InvalidInput(
                f"Results must have the columns {', '.join(_NEEDED)}, got "
                f"{', '.join(map(str, results.columns))}."
            )
    if not len(results):
        raise InvalidInput("Results must have at least one document, got none.")
    lists = [group for _, group in results.groupby("qid", sort=False)]
    grades = _grades(qrels)
    relevance = [
        grades.get((str(qid), str(docno)), 0.0)
        for group in lists
        for qid, docno in zip(group["qid"], group["docno"], strict=True)
    ]
    return QuerySet(
        np.concatenate([_features(group) for group in lists]),
        np.array(relevance),
        np.concatenate([[0], np.cumsum([len(group) for group in lists])]),
        tuple(str(group["qid"].iloc[0]) for group in lists),
        0,
    )


def results_frame(queries: QuerySet, docnos: Sequence[str] | None = None) -> Any:
    """Return query-document lists as PyTerrier's results: ``qid``, ``docno`` and ``features``.

    Documents have no names in LETOR files; without ``docnos`` they are ``d0``, ``d1``, … of all.
    """
    import pandas as pd

    return pd.DataFrame(
        {
            "qid": np.repeat(queries.query_ids, np.diff(queries.starts)),
            "docno": _docnos(queries, docnos),
            "features": list(queries.features),
        }
    )


def qrels_frame(queries: QuerySet, docnos: Sequence[str] | None = None) -> Any:
    """Return the grades of query-document lists as PyTerrier's judgements.

    Its evaluations know whole grades only; a list whose grades are not whole is refused.
    """
    import pandas as pd

    if (queries.relevance != np.floor(queries.relevance)).any():
        raise InvalidInput("Grades must be whole numbers to be PyTerrier's labels.")
    return pd.DataFrame(
        {
            "qid": np.repeat(queries.query_ids, np.diff(queries.starts)),
            "docno": _docnos(queries, docnos),
            "label": queries.relevance.astype(np.int64),
        }
    )


def _docnos(queries: QuerySet, given: Sequence[str] | None) -> list[str]:
    docnos = [f"d{i}" for i in range(queries.n_documents)] if given is None else list(given)
    if len(docnos) != queries.n_documents:
        raise InvalidInput(
            f"`docnos` must name the {queries.n_documents} documents, got {len(docnos)}."
        )
    return docnos


def _features(group: Any) -> FloatArray:
    rows = [np.asarray(row, dtype=np.float64) for row in group["features"]]
    if any(row.ndim != 1 or row.shape != rows[0].shape for row in rows):
        raise InvalidInput(
            f"The features of query {group['qid'].iloc[0]} must be arrays of one length."
        )
    return np.array(rows)


def _grades(qrels: Any) -> Mapping[tuple[str, str], float]:
    if qrels is None:
        return {}
    columns = (qrels["qid"].astype(str), qrels["docno"].astype(str), qrels["label"].astype(float))
    return {(qid, docno): grade for qid, docno, grade in zip(*columns, strict=True)}


def _score_rule(model: Any) -> Callable[[FloatArray], FloatArray]:
    """Return how a model scores the documents of one list, or raise."""
    if isinstance(model, Ranker):
        return lambda features: _places(model, features)
    for name in ("predict", "scores"):
        if hasattr(model, name):
            rule: Callable[[FloatArray], FloatArray] = getattr(model, name)
            return rule
    raise InvalidInput(
        f"`model` must be a ranker, or have predict or scores, got {type(model).__name__}."
    )


def _places(ranker: Ranker, features: FloatArray) -> FloatArray:
    order = ranker.best(Query(len(features), features))
    places = np.empty(len(order))
    places[np.array(order)] = np.arange(len(order), 0, -1)
    return places


@cache
def _transformer_class() -> Any:
    """Return the class of the transformers, which PyTerrier must be there for."""
    import pandas as pd
    import pyterrier as pt

    class KeyholeReranker(pt.Estimator):  # type: ignore[misc]
        def __init__(self, model: Any) -> None:
            self.model = model

        def __repr__(self) -> str:
            return f"KeyholeReranker({self.model!r})"

        def transform(self, results: Any) -> Any:
            pt.validate.result_frame(results, extra_columns=["features"])
            if not len(results):
                return pt.model.add_ranks(results.assign(score=np.empty(0)))
            rule, parts = _score_rule(self.model), []
            for _, group in results.groupby("qid", sort=False):
                part = group.assign(score=rule(_features(group)))
                parts.append(part.sort_values("score", ascending=False, kind="stable"))
            return pt.model.add_ranks(pd.concat(parts))

        def fit(
            self, results: Any, qrels: Any, results_va: Any = None, qrels_va: Any = None
        ) -> Any:
            if not hasattr(self.model, "fit"):
                raise InvalidInput(
                    f"{type(self.model).__name__} learns in rounds: play it on query_lists(...), "
                    f"only models that have fit are fitted by PyTerrier."
                )
            lists = query_lists(results, qrels)
            groups = np.repeat(np.arange(lists.n_queries), np.diff(lists.starts))
            self.model.fit(lists.features, lists.relevance, groups=groups)
            return self

    return KeyholeReranker
