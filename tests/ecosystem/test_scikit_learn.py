"""BatchRanker is an estimator to scikit-learn: its checks, searches, pipelines and data frames."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    parametrize_with_checks,
)

from keyhole import measure
from keyhole.batch.ranker import BatchRanker


class OneList(BatchRanker):
    """All documents are one list unless groups are given: scikit-learn's checks give none."""

    def fit(self, X, y, groups=None):
        return super().fit(X, y, np.zeros(np.shape(X)[0]) if groups is None else groups)

    def score(self, X, y, groups=None):
        return super().score(X, y, np.zeros(len(X)) if groups is None else groups)


# Whatever scikit-learn asks of an estimator it finds; nothing is expected to fail.
@parametrize_with_checks([OneList()])
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks give data without an order on purpose
        check(estimator)


def test_column_names_are_checked_as_scikit_learn_checks_them():
    check_dataframe_column_names_consistency("OneList", OneList(tolerance=1e-2))


@pytest.fixture(scope="module")
def table(mq2008):
    """Return documents as a data frame, grades and queries."""
    starts = mq2008.starts
    names = [f"feature {column}" for column in range(mq2008.n_features)]
    queries = np.repeat(mq2008.query_ids, np.diff(starts))
    return pd.DataFrame(mq2008.features, columns=names), mq2008.relevance, queries


def test_a_search_hands_the_queries_on(table):
    X, y, queries = table
    with sklearn.config_context(enable_metadata_routing=True):
        folds = GroupKFold(3)
        pipe = make_pipeline(StandardScaler().set_output(transform="pandas"), BatchRanker())
        grid = {"batchranker__regularisation": [1e-2, 1.0, 100.0]}
        search = GridSearchCV(pipe, grid, cv=folds).fit(X, y, groups=queries)
        scores = cross_validate(search.best_estimator_, X, y, cv=folds, params={"groups": queries})
    by_hand = []
    for train, test in folds.split(X, y, queries):
        scaler = StandardScaler().fit(X.iloc[train])
        best = BatchRanker(**search.best_estimator_[-1].get_params())
        best.fit(scaler.transform(X.iloc[train]), y[train], queries[train])
        by_hand.append(best.score(scaler.transform(X.iloc[test]), y[test], groups=queries[test]))
        # The folds keep queries whole, or the scores would be those of parts of lists.
        assert not set(queries[train]) & set(queries[test])
    assert scores["test_score"] == pytest.approx(by_hand, abs=1e-12)
    assert search.best_score_ == pytest.approx(np.mean(by_hand), abs=1e-12)
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    assert np.ptp(search.cv_results_["mean_test_score"]) > 1e-3
    assert list(search.best_estimator_[-1].feature_names_in_) == list(X.columns)


def test_a_score_is_the_mean_of_the_measure(table):
    X, y, queries = table
    ranker = BatchRanker(regularisation=0.1).fit(X, y, queries)
    ndcg, scores = measure("NDCG@10"), ranker.predict(X)
    lists = pd.Series(range(len(y))).groupby(queries, sort=False)
    by_hand = [
        ndcg(y[rows], np.argsort(-scores[rows], kind="stable"))
        for rows in (group.to_numpy() for _, group in lists)
    ]
    assert ranker.score(X, y, queries) == pytest.approx(np.mean(by_hand), abs=1e-12)


def test_copies_know_what_was_learnt(table):
    X, y, queries = table
    ranker = BatchRanker(regularisation=0.1).fit(X, y, queries)
    for again in (pickle.loads(pickle.dumps(ranker)), copy.deepcopy(ranker)):  # noqa: S301
        assert again.get_params() == ranker.get_params()
        assert (again.predict(X) == ranker.predict(X)).all()
        assert list(again.feature_names_in_) == list(X.columns)
    fresh = clone(ranker)
    assert fresh.get_params() == ranker.get_params()
    with pytest.raises(NotFittedError, match="must be fitted"):
        fresh.predict(X)


def test_names_that_differ_are_told(table):
    X, y, queries = table
    ranker = BatchRanker(regularisation=0.1).fit(X, y, queries)
    renamed = X.rename(columns={"feature 3": "price"})
    with pytest.raises(ValueError, match="unseen at fit time:\n- price\n"):
        ranker.predict(renamed)
    with pytest.raises(ValueError, match="yet now missing:\n- feature 3\n"):
        ranker.predict(renamed)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        assert (ranker.predict(X.to_numpy()) == ranker.predict(X)).all()
    ranker.fit(X.to_numpy(), y, queries)
    assert not hasattr(ranker, "feature_names_in_")
    with pytest.warns(UserWarning, match="X has valid feature names, but BatchRanker was not"):
        ranker.predict(X)
