"""Batch rankers: the mean loss, the solvers and their certificates, averaging, conventions."""

import math

import numpy as np
import pytest
import sklearn
from scipy.optimize import linprog, minimize
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from keyhole.base.errors import InvalidInput, KeyholeError
from keyhole.batch.averaging import Averaged, average_weights
from keyhole.batch.ranker import BatchRanker
from keyhole.batch.risk import Risk
from keyhole.batch.solvers import Ball, minimise
from keyhole.bounds import generalisation
from keyhole.checks import check_ranker
from keyhole.contracts.lists import Feedback, Query
from keyhole.rankers.lists.gradient import Descent
from keyhole.surrogates import SURROGATES, surrogate
from keyhole.surrogates.slam import SLAM
from keyhole.surrogates.smooth_dcg import SmoothDCG
from keyhole.worlds.queries import Queries

pytestmark = pytest.mark.interpreted

OPTIONS = {"logistic": {"max_grade": 3}, "ordinal": {"max_grade": 3}}
CONVEX = {n: surrogate(n, **OPTIONS.get(n, {})) for n in SURROGATES if n != "smooth_dcg"}
BALLS = [(Ball("l2", 2.0), 0.0), (Ball("l1", 2.0), 0.0), (Ball(), 0.05), (Ball("l2", 1.0), 0.05)]


def lists(n_queries=25, n_items=5, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * n_items, n_features))
    X /= np.linalg.norm(X, axis=1).max()
    y = np.clip(np.round(2 * X @ rng.normal(size=n_features) + rng.normal(size=len(X)) + 1), 0, 3)
    return X, y, np.arange(0, len(X) + 1, n_items)


def groups_of(starts):
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def minimised(loss, ball, held, **options):
    risk = Risk(loss, *lists())
    smooth = loss.smoothness(risk.n_items, max_grade=3) is not None
    found = minimise(risk, 4, ball=ball, regularisation=held, smooth=smooth, **options)
    return risk, found


# ------------------------------------------------------------------------------- mean loss


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_mean_loss_is_that_of_the_lists(dtype):
    X, y, starts = lists()
    X = X.astype(dtype)
    w = np.array([0.5, -1.0, 2.0, 0.1])
    for loss in (CONVEX["listnet"], CONVEX["ranksvm"]):
        value, gradient = Risk(loss, X, y, starts)(w)
        scores = X @ w
        per_list = [loss.value(scores[a : a + 5], y[a : a + 5]) for a in starts[:-1]]
        by_hand = sum(X[a : a + 5].T @ loss.gradient(scores[a : a + 5], y[a : a + 5])
                      for a in starts[:-1])  # fmt: skip
        accuracy = 1e-12 if dtype is np.float64 else 1e-6
        assert value == pytest.approx(np.mean(per_list), rel=accuracy)
        assert gradient == pytest.approx(by_hand / 25, rel=100 * accuracy, abs=accuracy)


# -------------------------------------------------------------------------------- solvers


@pytest.mark.parametrize("name", CONVEX)
def test_every_convex_surrogate_is_minimised_to_a_millionth_in_every_ball(name):
    """The gap is a certificate: by convexity no weights inside have a loss below value - gap."""
    rng = np.random.default_rng(3)
    for ball, held in BALLS:
        risk, found = minimised(CONVEX[name], ball, held)
        assert found.converged
        assert found.gap <= 1e-6 * max(1.0, found.value)
        w = found.weights
        assert ball.project(w) == pytest.approx(w, abs=1e-12)
        assert found.value == pytest.approx(risk(w)[0] + held * w @ w / 2)
        for _ in range(20):  # nowhere inside is it lower than the certificate says
            other = ball.project(w + rng.choice([1e-4, 1e-2, 1.0]) * rng.normal(size=4))
            assert risk(other)[0] + held * other @ other / 2 >= found.value - found.gap


@pytest.mark.parametrize("name", ["listnet", "squared", "kl"])
@pytest.mark.parametrize(
    ("ball", "held"),
    [(Ball("l2", 500.0), 0.0), (Ball("l2", 3.0), 0.0), (Ball("l1", 3.0), 0.0), (Ball(), 1e-6)],
)
def test_features_that_hardly_differ_do_not_stop_it(name, ball, held):
    """Condition numbers of a million and more: plain descent would take ever so long."""
    X, y, starts = lists()
    X = X @ (np.ones((4, 4)) + 1e-3 * np.random.default_rng(0).normal(size=(4, 4)))
    risk = Risk(CONVEX[name], X / np.linalg.norm(X, axis=1).max(), y, starts)
    found = minimise(risk, 4, ball=ball, regularisation=held, max_evaluations=3000)
    assert found.converged
    assert found.gap <= 1e-6 * max(1.0, found.value)
    assert ball.project(found.weights) == pytest.approx(found.weights, abs=1e-9)


@pytest.mark.parametrize("name", ["listnet", "squared", "logistic", "pairwise_squared"])
def test_newtons_steps_alone_find_the_least_too(name, monkeypatch):
    for ball, held in BALLS:
        expected = minimised(CONVEX[name], ball, held, tolerance=1e-9)[1]
        with monkeypatch.context() as patch:
            patch.setattr("keyhole.batch.solvers._FIRST", -3)  # one evaluation before them
            found = minimised(CONVEX[name], ball, held)[1]
        assert found.converged
        assert found.value == pytest.approx(expected.value, abs=1e-6 * max(1.0, found.value))
        assert ball.project(found.weights) == pytest.approx(found.weights, abs=1e-9)


def test_weights_of_zero_can_be_the_least():
    """Grades that features say nothing about: many tangents meet where nothing is learnt."""
    rng = np.random.default_rng(6)
    X, y = rng.random((600, 8)), rng.integers(0, 3, 600).astype(float)
    for name in ("slam", "max_violation"):
        risk = Risk(name, X, y, np.arange(0, 601, 20))
        for ball, held in ((Ball("l1", 10.0), 0.0), (Ball("l2", 10.0), 0.0), (Ball(), 1e-3)):
            found = minimise(risk, 8, ball=ball, regularisation=held, smooth=False,
                             max_evaluations=1000)  # fmt: skip
            assert found.converged
            assert found.value <= risk(np.zeros(8))[0]


def test_many_weights_are_descended_without_newtons_steps(monkeypatch):
    monkeypatch.setattr("keyhole.batch.solvers._WIDEST", 3)
    monkeypatch.setattr("keyhole.batch.solvers.newton", None)
    assert minimised(CONVEX["listnet"], Ball("l2", 2.0), 0.0)[1].converged


def test_ridge_is_scikit_learns():
    X, y, _ = lists()
    _, found = minimised(CONVEX["squared"], Ball(), 0.3, tolerance=1e-12)
    # mean over lists of squares + 0.15 |w|^2
    other = Ridge(alpha=0.15 * 25, fit_intercept=False).fit(X, y)
    assert found.weights == pytest.approx(other.coef_, abs=1e-5)


@pytest.mark.parametrize("radius", [0.5, 3.0])
def test_ranksvm_in_the_l1_ball_is_a_linear_program(radius):
    X, y, starts = lists()
    _, found = minimised(CONVEX["ranksvm"], Ball("l1", radius), 0.0)
    pairs = [(i, j) for a in starts[:-1] for i in range(a, a + 5) for j in range(a, a + 5)
             if y[i] > y[j]]  # fmt: skip
    gaps = np.array([X[i] - X[j] for i, j in pairs])
    # weights are u - v with u, v >= 0; slack of a pair >= 1 - gap . w
    cost = np.concatenate([np.zeros(8), np.full(len(pairs), 1 / 25)])
    above = np.hstack([-gaps, gaps, -np.eye(len(pairs))])
    inside = np.concatenate([np.ones(8), np.zeros(len(pairs))])
    solved = linprog(cost, np.vstack([above, inside]), np.append(-np.ones(len(pairs)), radius))
    assert abs(found.value - solved.fun) <= 1e-6 * max(1.0, solved.fun)


def test_regularised_ranksvm_is_liblinears():
    X, y, starts = lists()
    held = 0.3
    _, found = minimised(CONVEX["ranksvm"], Ball(), held)
    gaps = np.array([X[i] - X[j] for a in starts[:-1] for i in range(a, a + 5)
                     for j in range(a, a + 5) if y[i] > y[j]])  # fmt: skip
    signs = np.where(np.arange(len(gaps)) % 2, 1.0, -1.0)
    peer = LinearSVC(C=1 / (25 * held), loss="hinge", fit_intercept=False, tol=1e-10,
                     max_iter=10**6)  # fmt: skip
    w = peer.fit(signs[:, None] * gaps, signs).coef_.ravel()
    other = np.maximum(1 - gaps @ w, 0).sum() / 25 + held * w @ w / 2
    assert abs(found.value - other) <= 1e-6 * max(1.0, other)


def test_listnet_in_the_l2_ball_is_scipys():
    risk, found = minimised(CONVEX["listnet"], Ball("l2", 2.0), 0.0)
    inside = {"type": "ineq", "fun": lambda w: 4.0 - w @ w, "jac": lambda w: -2 * w}
    solved = minimize(risk, np.zeros(4), jac=True, method="SLSQP", constraints=[inside],
                      options={"ftol": 1e-12})  # fmt: skip
    assert abs(found.value - solved.fun) <= 1e-6


def test_projections_are_the_nearest_points():
    rng = np.random.default_rng(5)
    for norm, order in (("l1", 1), ("l2", 2)):
        ball = Ball(norm, 1.5)
        for _ in range(50):
            w = rng.normal(size=6) * rng.choice([0.1, 3.0])
            near = ball.project(w)
            assert np.linalg.norm(near, order) <= 1.5 + 1e-12
            inside = rng.normal(size=(50, 6))
            inside *= 1.5 * rng.random((50, 1)) / np.linalg.norm(inside, order, axis=1)[:, None]
            away = np.linalg.norm(inside - w, axis=1).min()
            assert away >= np.linalg.norm(near - w) - 1e-12
            slope = rng.normal(size=6)
            assert ball.lowest(slope, 0.0) <= (inside @ slope).min() + 1e-12
            bent = inside @ slope + 0.35 * (inside**2).sum(axis=1)
            assert ball.lowest(slope, 0.7) <= bent.min() + 1e-12


def test_a_solver_that_gives_up_says_so():
    X, y, starts = lists()
    for name in ("listnet", "ranksvm"):
        ranker = BatchRanker(name, regularisation=1e-4, max_evaluations=3)
        with pytest.warns(UserWarning, match="stopped after"):
            ranker.fit(X, y, groups_of(starts))
        assert ranker.gap_ > 1e-6


def test_there_must_be_a_least():
    with pytest.raises(InvalidInput, match="`radius` must be given, or `regularisation`"):
        minimise(lambda w: (0.0, w), 1, ball=Ball())


@pytest.mark.compiled
def test_annealing_finds_a_lower_smooth_dcg_than_plain_descent():
    """Halving the softness from the size of the scores comes near the best of many starts."""
    rng, found = np.random.default_rng(0), []
    for seed in range(12):
        X, y, starts = lists(seed=seed)
        risk, ball = Risk(SmoothDCG(0.02), X, y, starts), Ball("l2", 1.0)
        ranker = BatchRanker(risk.surrogate, radius=1.0, regularisation=0.0)
        ranker.fit(X, y, groups_of(starts))
        assert math.isnan(ranker.gap_)
        assert np.linalg.norm(ranker.coef_) <= 1.0 + 1e-9
        plain, *others = (
            minimise(risk, 4, ball=ball, convex=False, start=start).value
            for start in [np.zeros(4), *rng.normal(size=(10, 4))]
        )
        found.append((plain, ranker.objective_, min(plain, *others)))
    plain, annealed, best = np.mean(found, axis=0)
    assert annealed <= plain - 0.8 * (plain - best)
    assert plain - best > 0.03


# -------------------------------------------------------------------------------- averaging


def test_an_averaged_ranker_keeps_the_contract():
    check_ranker(Averaged(Descent(4, 5, radius=1.0)), Queries(*lists()))


@pytest.mark.compiled
def test_the_compiled_average_is_that_of_the_rounds():
    X, y, starts = lists()
    world = Queries(X, y, starts)
    ranker = Descent(4, 5, rate=0.7)
    found = average_weights(ranker, world, rounds=40, seed=9)
    by_hand, seen = Descent(4, 5, rate=0.7), []
    for t in range(40):
        query, relevance = world.query(t, seed=9), world.relevance(t, seed=9)
        seen.append(by_hand.state.weights.copy())
        impression = by_hand.rank(Query(query.n_items, query.features))
        by_hand.update(impression, Feedback(relevance[impression.ranking]))
    assert found == pytest.approx(np.mean(seen, axis=0), abs=1e-14)


# ------------------------------------------------------------------------------ conventions


def test_groups_may_stand_anywhere():
    X, y, starts = lists()
    groups = groups_of(starts)
    first = BatchRanker().fit(X, y, groups)
    order = np.random.default_rng(1).permutation(len(X))
    names = np.array([f"query {g}" for g in groups[order]])
    second = BatchRanker().fit(X[order], y[order], names)
    assert second.coef_ == pytest.approx(first.coef_, abs=1e-4)
    assert second.score(X[order], y[order], groups[order]) == pytest.approx(
        first.score(X, y, groups)
    )
    positions = first.rank(X, groups)
    assert (np.sort(positions.reshape(25, 5), axis=1) == np.arange(5)).all()
    assert (
        first.predict(X)[:5][np.argsort(positions[:5])] == -np.sort(-first.predict(X)[:5])
    ).all()


def test_scikit_learn_clones_pipes_and_cross_validates():
    X, y, starts = lists()
    groups = groups_of(starts)
    ranker = BatchRanker(SLAM("AP"), regularisation=0.1)
    copy = clone(ranker)
    assert copy.get_params()["regularisation"] == 0.1
    assert copy.get_params()["surrogate"].measure.name == "AP"
    assert ranker.set_params(radius=2.0).radius == 2.0
    with pytest.raises(LookupError, match="Did you mean 'radius'"):
        ranker.set_params(radios=1)
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(StandardScaler(), BatchRanker(regularisation=0.1))
        scores = cross_val_score(pipe, X, y, cv=GroupKFold(5), params={"groups": groups})
        search = GridSearchCV(BatchRanker(), {"regularisation": [1e-3, 1e-1]}, cv=GroupKFold(3))
        search.fit(X, y, groups=groups)
    assert scores.shape == (5,)
    assert (scores > 0.5).all()
    assert search.best_estimator_.coef_.shape == (4,)
    by_hand = pipe.fit(X, y, batchranker__groups=groups).predict(X)
    assert by_hand.shape == (125,)


def test_the_theory_sets_strength_and_rate():
    X, y, starts = lists()
    groups = groups_of(starts)
    ranker = BatchRanker(radius=2.0, regularisation="theory").fit(X, y, groups)
    norm = np.linalg.norm(X, axis=1).max()
    lam = generalisation.best_regularisation(2.0, 2.0, norm, 25)
    assert ranker.regularisation_ == pytest.approx(lam)
    online = BatchRanker(method="online", radius=2.0, regularisation=0.0).fit(X, y, groups)
    rate = generalisation.best_rate(2.0, 2.0, norm, 25)
    descent = Descent(4, 5, step="fixed", rate=rate, radius=2.0, centred=False)
    assert (
        online.coef_.tolist() == average_weights(descent, Queries(X, y, starts), rounds=25).tolist()
    )


def test_repr_shows_what_was_changed():
    assert (
        repr(BatchRanker("ranksvm", radius=2.0)) == "BatchRanker(surrogate='ranksvm', radius=2.0)"
    )


@pytest.mark.parametrize(
    ("options", "change", "sentence"),
    [
        ({}, {"groups": None}, "`groups` must say which documents belong to one list."),
        ({}, {"groups": [1]}, "`groups` must have one query per document"),
        ({}, {"y": [1]}, "`y` must have one grade per document"),
        ({}, {"X": [1.0]}, "`X` must be documents by features"),
        ({"method": "erm "}, {}, "Did you mean 'erm'"),
        ({"method": "online"}, {}, '`method` "online" needs the l2 ball and a `radius`'),
        ({"regularisation": "theory"}, {}, "needs the l2 ball and a `radius`"),
        ({"regularisation": -1.0}, {}, "`regularisation` of BatchRanker must be a number"),
        ({"norm": "l3"}, {}, "norm of a ball must be one of l1, l2"),
        ({"surrogate": "logistic"}, {}, "`relevance` must be at most 1 for logistic"),
    ],
)
def test_bad_input_is_one_sentence(options, change, sentence):
    X, y, starts = lists()
    given = {"X": X, "y": y, "groups": groups_of(starts), **change}
    with pytest.raises(KeyholeError, match=sentence):
        BatchRanker(**options).fit(**given)


def test_prediction_needs_a_fit_of_the_same_width():
    X, y, starts = lists()
    with pytest.raises(InvalidInput, match="must be fitted"):
        BatchRanker().predict(X)
    ranker = BatchRanker().fit(X, y, groups_of(starts))
    with pytest.raises(InvalidInput, match="is expecting 4 features"):
        ranker.predict(X[:, :2])
