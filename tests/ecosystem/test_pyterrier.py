"""Rankers in PyTerrier's pipelines and experiments, on MQ2008, with the numbers of Keyhole."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import AP, RR, P, nDCG

from keyhole import Query, measure, play, ranker
from keyhole.base.errors import InvalidInput
from keyhole.batch.ranker import BatchRanker
from keyhole.ecosystem.pyterrier import qrels_frame, query_lists, reranker, results_frame
from keyhole.rankers.lists.models import load_model, save_model
from keyhole.worlds.queries import Queries


def precision(grades, order):
    """Return the share of relevant documents among five; Keyhole's own adds grades up."""
    return measure("Precision@5")((grades > 0).astype(float), order) / 5


MEASURES: dict[Any, Callable[..., float]] = {
    nDCG(gains={0: 0, 1: 1, 2: 3}) @ 10: measure("NDCG@10"),
    AP: measure("AP"),
    RR: measure("RR"),
    P @ 5: precision,
}


@pytest.fixture(scope="module")
def queries(mq2008):
    return mq2008


@pytest.fixture(scope="module")
def frames(queries):
    return results_frame(queries), qrels_frame(queries)


@pytest.fixture(scope="module")
def fitted(queries):
    groups = np.repeat(queries.query_ids, np.diff(queries.starts))
    return BatchRanker(regularisation=0.1).fit(queries.features, queries.relevance, groups)


def test_frames_come_back_as_lists(queries, frames):
    results, qrels = frames
    again = query_lists(results, qrels)
    for name in ("features", "relevance", "starts"):
        assert np.array_equal(getattr(again, name), getattr(queries, name)), name
    assert again.query_ids == queries.query_ids
    assert query_lists(results[::-1]).query_ids == queries.query_ids[::-1]
    mixed = results.sample(frac=1.0, random_state=0)
    shuffled = query_lists(mixed, qrels)
    assert sorted(shuffled.query_ids) == sorted(queries.query_ids)
    place = {qid: index for index, qid in enumerate(queries.query_ids)}
    for index, qid in enumerate(shuffled.query_ids):
        rows = [np.column_stack(lists.query(i)).tolist()
                for lists, i in ((shuffled, index), (queries, place[qid]))]  # fmt: skip
        assert sorted(rows[0]) == sorted(rows[1])
    assert not query_lists(results).relevance.any()


def test_documents_that_nobody_judged_are_of_grade_0(frames):
    results, qrels = frames
    some = qrels[qrels["label"] > 0]
    assert np.array_equal(query_lists(results, some).relevance, qrels["label"])


def test_an_experiment_has_the_numbers_of_keyhole(queries, frames, fitted):
    results, qrels = frames
    lists = {qid: queries.query(index) for index, qid in enumerate(queries.query_ids)}
    scores = {qid: fitted.predict(features) for qid, (features, _) in lists.items()}
    # Each breaks ties in its own way, and some documents of MQ2008 are twice in a list.
    clear = [qid for qid in lists if len(np.unique(scores[qid])) == len(scores[qid])]
    assert len(clear) > 80
    topics = pd.DataFrame({"qid": clear, "query": ""})
    pipeline = pt.Transformer.from_df(results) >> reranker(fitted)
    table = pt.Experiment([pipeline], topics, qrels, list(MEASURES), names=["keyhole"])
    for theirs, ours in MEASURES.items():
        values = [ours(lists[qid][1], np.argsort(-scores[qid])) for qid in clear]
        assert 0.2 < np.mean(values) < 0.9
        assert table[str(theirs)].item() == pytest.approx(np.mean(values), abs=1e-12), theirs
    assert not pt.java.started()


def test_a_ranker_that_learnt_online_ranks_as_it_would(queries, frames, tmp_path):
    results, qrels = frames
    world = Queries(queries.features, queries.relevance, queries.starts)
    learner = ranker("listnet", n_features=world.n_features, n_items=world.n_items)
    state = play(learner, world, rounds=200, seed=0).states[0]
    learner.load_state_dict(state)
    ranked = reranker(learner)(results)
    assert list(ranked.columns) == ["qid", "docno", "features", "score", "rank"]
    of_qid = dict(iter(ranked.groupby("qid")))
    for index in range(20):
        features, _ = queries.query(index)
        shown = learner.best(Query(len(features), features))
        group = of_qid[queries.query_ids[index]].sort_values("rank")
        documents = [f"d{queries.starts[index] + item}" for item in shown]
        assert group["docno"].tolist() == documents
        assert group["rank"].tolist() == list(range(len(shown)))
    save_model(tmp_path / "model.npz", learner, state, False)
    saved = reranker(load_model(tmp_path / "model.npz"))(results)
    values = [pt.Evaluate(run, qrels, metrics=[nDCG @ 10])["nDCG@10"] for run in (ranked, saved)]
    assert values[0] == pytest.approx(values[1], abs=2e-3)  # but for ties
    with pytest.raises(InvalidInput, match="learns in rounds"):
        reranker(learner).fit(results, qrels)


def test_pyterrier_fits_what_keyhole_fits(frames, fitted):
    results, qrels = frames
    pipeline = pt.Transformer.identity() >> reranker(BatchRanker(regularisation=0.1))
    pipeline.fit(results, qrels, results, qrels)
    assert pipeline[-1].model.coef_.tolist() == fitted.coef_.tolist()
    ranked = pipeline(results.head(50))
    assert ranked["score"].to_numpy() == pytest.approx(
        fitted.predict(np.array(ranked["features"].tolist()))
    )


def test_pipelines_know_its_columns(frames, fitted):
    results, _ = frames
    transformer = reranker(fitted)
    assert set(pt.inspect.transformer_outputs(transformer, list(results.columns))) == {
        "qid", "docno", "features", "score", "rank"
    }  # fmt: skip
    lists = [group for _, group in transformer(results).groupby("qid", sort=False)]
    assert all(group["rank"].tolist() == list(range(len(group))) for group in lists)
    assert all(group["score"].is_monotonic_decreasing for group in lists)
    again = transformer(transformer(results.head(30)))  # it takes results that have ranks
    assert again.columns.is_unique
    pd.testing.assert_frame_equal(again, transformer(results.head(30)))
    cut = (pt.Transformer.identity() >> transformer % 3)(results.head(30))
    assert cut.groupby("qid").size().max() <= 3


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda frame: frame.drop(columns="features"),
            "must have the columns qid, docno, features",
        ),
        (lambda frame: frame.iloc[:0], "at least one document"),
        (
            lambda frame: frame.assign(features=[np.ones(2), *[np.ones(3)] * (len(frame) - 1)]),
            "must be arrays of one length",
        ),
    ],
)
def test_frames_that_hold_no_lists(frames, change, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        query_lists(change(frames[0].head(10)))


def test_models_that_score_nothing():
    with pytest.raises(InvalidInput, match="must be a ranker, or have predict or scores, got int"):
        reranker(3)
