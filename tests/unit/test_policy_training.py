"""One model per ad: thresholds, calibration, classifiers, samples, and what is refused."""

import sys
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from keyhole.base.errors import InvalidInput, LibraryMissing, UnknownName
from keyhole.policies.aligning import calibration, f1_threshold
from keyhole.policies.base import Greedy
from keyhole.policies.logistic import fit_logistic
from keyhole.policies.online import OnlineRankers
from keyhole.policies.pairs import fit_pairs
from keyhole.policies.training import fit_classifiers, fit_forests, fit_rankers

FITS: dict[str, Any] = {
    "ranker": lambda *log, **options: fit_rankers(*log, n_steps=2000, **options),
    "classifier": fit_classifiers,
    "forest": lambda *log, **options: fit_forests(*log, n_trees=20, **options),
}


def campaign(n_visitors=3000, rate=0.1, seed=0):
    numbers = np.random.default_rng(seed)
    visitors = numbers.normal(size=(n_visitors, 3)) * [1, 10, 0.1] + [0, 5, 2]
    ads = numbers.integers(2, size=n_visitors)
    likes = np.where(ads == 0, visitors[:, 0], -visitors[:, 0])
    return visitors, ads, (numbers.random(n_visitors) < rate * np.exp(likes)).astype(float)


@pytest.mark.parametrize("seed", range(20))
def test_the_f1_threshold_is_the_best_of_all(seed):
    numbers = np.random.default_rng(seed)
    scores = numbers.integers(0, 12, size=40) / 4 if seed % 2 else numbers.normal(size=40)
    clicked = (numbers.random(40) < 0.2).astype(float)
    clicked[0] = 1
    found = f1_score(clicked, scores > f1_threshold(scores, clicked) - 1e-12)
    cuts = [f1_score(clicked, scores >= cut, zero_division=0) for cut in np.unique(scores)]
    assert found == pytest.approx(max(cuts), abs=1e-12)


def test_the_f1_threshold_of_scores_that_stand_for_many():
    scores, clicked = np.array([3.0, 2.0, 1.0, 0.0]), np.array([1.0, 0.0, 1.0, 0.0])
    counts = np.array([2, 1, 5, 9])
    repeated = f1_threshold(np.repeat(scores, counts), np.repeat(clicked, counts))
    assert f1_threshold(scores, clicked, counts.astype(float)) == repeated


def test_all_scores_alike():
    assert f1_threshold(np.ones(5), np.array([1.0, 0, 0, 0, 0])) == 1.0
    slope, intercept = calibration(np.ones(4), np.array([1.0, 0, 0, 0]))
    mean_target = (2 / 3 + 3 * (1 / 5)) / 4
    assert slope + intercept == pytest.approx(np.log(mean_target / (1 - mean_target)), abs=1e-6)


@pytest.mark.parametrize("l2", [0.001, 0.1, 10.0])
def test_logistic_regression_is_scikit_learns(l2):
    numbers = np.random.default_rng(1)
    rows = numbers.normal(size=(400, 5))
    labels = (rows[:, 0] + numbers.logistic(size=400) > 2).astype(float)
    weights, intercept = fit_logistic(rows, labels, l2=l2)
    peer = LogisticRegression(C=1 / (l2 * 400), tol=1e-10, max_iter=10_000).fit(rows, labels)
    np.testing.assert_allclose(weights, peer.coef_[0], atol=1e-6)
    assert intercept == pytest.approx(peer.intercept_[0], abs=1e-6)


def test_counts_are_repeated_rows():
    numbers = np.random.default_rng(2)
    rows, targets = numbers.normal(size=(20, 2)), numbers.random(20)
    counts = numbers.integers(1, 5, size=20)
    one = fit_logistic(rows, targets, l2=0.1, counts=counts.astype(float))
    other = fit_logistic(np.repeat(rows, counts, axis=0), np.repeat(targets, counts), l2=0.1)
    np.testing.assert_allclose(np.append(*one), np.append(*other), atol=1e-9)


def test_calibration_undoes_a_scale_and_survives_separable_scores():
    numbers = np.random.default_rng(3)
    odds = numbers.normal(size=200_000) - 3
    clicked = (numbers.random(len(odds)) < 1 / (1 + np.exp(-odds))).astype(float)
    slope, intercept = calibration(1e-4 * odds + 7, clicked)
    # The inverse information gives the standard errors; five of them are allowed.
    chances = 1 / (1 + np.exp(-odds))
    table = np.column_stack([odds, np.ones(len(odds))])
    errors = np.sqrt(np.diag(np.linalg.inv((table * (chances * (1 - chances))[:, None]).T @ table)))
    assert abs(slope * 1e-4 - 1) < 5 * errors[0]
    assert abs(intercept + slope * 7) < 5 * errors[1]
    slope, intercept = calibration(np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.0, 1.0]))
    assert 0 < slope < 20


def test_linear_scores_are_of_contexts_as_they_come():
    visitors, ads, clicks = campaign()
    spread, mean = visitors.std(axis=0), visitors.mean(axis=0)
    scorer = fit_rankers(visitors, ads, clicks, alignment="f1", n_steps=5000, seed=4)
    scaled = (visitors - mean) / spread
    for ad in (0, 1):
        rows, hits = scaled[ads == ad], clicks[ads == ad]
        weights = fit_pairs(rows[hits == 1], rows[hits == 0], n_steps=5000, seed=4, ad=ad)
        expected = scaled @ weights - f1_threshold(rows @ weights, hits)
        np.testing.assert_allclose(scorer.scores(visitors)[:, ad], expected, atol=1e-9)


@pytest.mark.parametrize("name", FITS)
def test_every_kind_learns_who_likes_what(name):
    scorer = FITS[name](*campaign())
    visitors, _, _ = campaign(seed=1)
    clear = np.abs(visitors[:, 0]) > 1
    right = Greedy(scorer).best(visitors) == (visitors[:, 0] < 0)
    assert right[clear].mean() > 0.9


@pytest.mark.parametrize("alignment", ["f1", "calibrated"])
def test_rankers_do_not_depend_on_the_balance_of_the_classes(alignment):
    visitors, ads, clicks = campaign(20_000, rate=0.05)
    everything = Greedy(fit_rankers(visitors, ads, clicks, alignment=alignment, n_steps=50_000))
    sampled = Greedy(
        fit_rankers(
            visitors, ads, clicks, alignment=alignment, n_steps=50_000, negatives_per_click=2
        )
    )
    unseen, _, _ = campaign(5000, seed=1)
    clear = np.abs(unseen[:, 0]) > 0.5
    assert (everything.best(unseen) == sampled.best(unseen))[clear].mean() > 0.99


def test_samples_follow_from_the_seed():
    log = campaign()
    one, same, other = (
        fit_classifiers(*log, negatives_per_click=1, seed=seed).weights for seed in (1, 1, 2)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_a_sample_has_the_ratio_asked_for(monkeypatch):
    seen = []

    def fit(rows, labels, l2):
        seen.append(labels)
        return np.zeros(3), 0.0

    monkeypatch.setattr("keyhole.policies.training.fit_logistic", fit)
    _, ads, clicks = log = campaign()
    fit_classifiers(*log, negatives_per_click=2.0)
    for ad, labels in enumerate(seen):
        assert labels.sum() == clicks[ads == ad].sum()
        assert len(labels) == 3 * labels.sum()


@pytest.mark.parametrize("name", FITS)
def test_ads_that_cannot_be_learnt(name):
    visitors, ads, clicks = campaign()
    nobody = np.where(ads == 1, 0.0, clicks)
    with pytest.raises(
        InvalidInput, match=r"Ad 1 must have .* got 0 clicks on \d+ impressions; no"
    ):
        FITS[name](visitors, ads, nobody)
    policy = Greedy(FITS[name](visitors, ads, nobody, no_click="never"))
    assert (policy.best(visitors) == 0).all()
    with pytest.raises(InvalidInput, match=r"Ad 2 must have .* got 0 clicks on 0 impressions"):
        FITS[name](visitors, ads, clicks, n_actions=3)
    everybody = np.where(ads == 0, 1.0, clicks)
    for rule in ("error", "never"):
        with pytest.raises(InvalidInput, match=r"Ad 0 must have .* got (\d+) clicks on \1 impr"):
            FITS[name](visitors, ads, everybody, no_click=rule)
    with pytest.raises(InvalidInput, match="At least one ad must have a click"):
        FITS[name](visitors, ads, np.zeros(len(ads)), no_click="never")


@pytest.mark.parametrize("name", FITS)
def test_logs_that_cannot_be_used(name):
    visitors, ads, clicks = campaign(200)
    fit = FITS[name]
    with pytest.raises(InvalidInput, match="rewards must be 0 or 1, got nan in row 3"):
        fit(visitors, ads, np.where(np.arange(200) == 3, np.nan, clicks))
    with pytest.raises(InvalidInput, match="contexts must be finite, got inf in row 0, column 1"):
        fit(np.where(np.arange(600).reshape(200, 3) == 1, np.inf, visitors), ads, clicks)
    with pytest.raises(InvalidInput, match="one row per impression"):
        fit(visitors[1:], ads, clicks)
    with pytest.raises(InvalidInput, match="one row per impression"):
        fit(visitors[:0], ads[:0], clicks[:0])
    with pytest.raises(InvalidInput, match="below n_actions=1, got 1"):
        fit(visitors, ads, clicks, n_actions=1)
    with pytest.raises(InvalidInput, match="actions must be integers from 0"):
        fit(visitors, ads - 0.5, clicks)
    with pytest.raises(InvalidInput, match="actions must be integers from 0"):
        fit(visitors, np.where(ads == 1, np.nan, 0), clicks)
    with pytest.raises(InvalidInput, match="rewards must be 0 or 1"):
        fit(visitors, ads, ["yes"] * 200)
    with pytest.raises(UnknownName, match="Did you mean 'never'"):
        fit(visitors, ads, clicks, no_click="nevr")
    with pytest.raises(InvalidInput, match="`negatives_per_click` must be a number above 0"):
        fit(visitors, ads, clicks, negatives_per_click=0)


def test_settings_of_rankers_are_checked():
    log = campaign(200)
    with pytest.raises(UnknownName, match="`loss` must be one of hinge, logistic"):
        fit_rankers(*log, loss="log")
    with pytest.raises(UnknownName, match="`alignment` must be one of calibrated, f1"):
        fit_rankers(*log, alignment="f2")
    with pytest.raises(InvalidInput, match="`l1`"):
        fit_rankers(*log, l1=-1)
    with pytest.raises(InvalidInput, match="`n_steps`"):
        fit_rankers(*log, n_steps=0)


def test_forests_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(LibraryMissing, match=r"need scikit-learn: pip install -e '\.\[ads\]'"):
        fit_forests(*campaign(200))


def test_forests_are_scikit_learns():
    visitors, ads, clicks = campaign(400)
    scores = fit_forests(visitors, ads, clicks, n_trees=7, seed=3).scores(visitors)
    rows, hits = visitors[ads == 1], clicks[ads == 1]
    order = np.argsort(-hits, kind="stable")
    peer = RandomForestClassifier(7, random_state=3 * 2 + 1).fit(rows[order], hits[order])
    np.testing.assert_allclose(scores[:, 1], peer.predict_proba(visitors)[:, 1], atol=1e-14)


# The stream


def test_one_at_a_time_is_the_compiled_loop():
    visitors, ads, clicks = campaign(300)
    whole, single = (OnlineRankers(2, 3, reservoir=20, row_norm=12, seed=5) for _ in range(2))
    whole.learn(visitors, ads, clicks)
    for row in zip(visitors, ads, clicks, strict=True):
        single.update(*row)
    for one, other in zip(whole.state, single.state, strict=True):
        assert np.array_equal(one, other)


def test_a_stream_goes_on_from_its_arrays():
    visitors, ads, clicks = campaign(400)
    whole = OnlineRankers(2, 3, reservoir=20, seed=5)
    whole.learn(visitors[:200], ads[:200], clicks[:200])
    again = OnlineRankers(2, 3, reservoir=20, seed=5).load_state_dict(whole.state_dict())
    for rankers in (whole, again):
        rankers.learn(visitors[200:], ads[200:], clicks[200:])
    assert np.array_equal(whole.scorer().weights, again.scorer().weights)
    with pytest.raises(InvalidInput, match="kept must have shape"):
        OnlineRankers(2, 3, reservoir=10).load_state_dict(whole.state_dict())


def test_a_stream_arrives_where_the_batch_does():
    numbers = np.random.default_rng(0)
    visitors, ads = numbers.normal(size=(100_000, 3)), numbers.integers(2, size=100_000)
    likes = np.where(ads == 0, visitors[:, 0], -visitors[:, 1])
    clicks = (numbers.random(len(ads)) < 0.05 * np.exp(likes - 0.5)).astype(float)
    rankers = OnlineRankers(2, 3, row_norm=np.sqrt(3))
    rankers.learn(visitors, ads, clicks)
    batch = fit_rankers(visitors, ads, clicks, n_steps=100_000)
    chosen = Greedy(rankers.scorer()).best(visitors)
    scores = batch.scores(visitors)
    sure = np.abs(scores[:, 0] - scores[:, 1]) > 0.3
    assert (chosen == Greedy(batch).best(visitors))[sure].mean() > 0.95


def test_reservoirs_are_uniform_samples():
    n_streams, n_examples, size = 400, 60, 12
    counts = np.zeros(n_examples)
    rows = np.arange(n_examples, dtype=float)[:, None]
    for seed in range(n_streams):
        rankers = OnlineRankers(1, 1, reservoir=size, seed=seed)
        rankers.learn(rows, np.zeros(n_examples), np.zeros(n_examples))
        kept = rankers.state.kept[0, 0, :, 0].astype(int)
        assert len(set(kept)) == size
        counts[kept] += 1
    share = size / n_examples
    spread = np.sqrt(n_streams * share * (1 - share))
    # Normal tails: of 60 counts none strays by 4.5 standard deviations but once in 2,000 tests.
    assert np.abs(counts - n_streams * share).max() < 4.5 * spread


def test_a_stream_without_both_classes_has_nothing_to_say():
    rankers = OnlineRankers(2, 1)
    rankers.learn([[1.0], [2.0]], [0, 1], [0, 1])
    assert (rankers.state.steps == 0).all()
    with pytest.raises(InvalidInput, match="with and without a click"):
        rankers.scorer()
    rankers.update([3.0], 0, 1)
    assert Greedy(rankers.scorer()).best([[5.0]]).tolist() == [0]
    with pytest.raises(InvalidInput, match="n_features=1, got 2"):
        rankers.update([3.0, 1.0], 0, 1)
