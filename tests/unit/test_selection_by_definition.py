"""Features that are chosen by what they tell, and what estimates take for granted, spelt out."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput
from keyhole.data.bandit.log import BanditLog
from keyhole.data.bandit.selection import bins_of, information_gain, select_features
from keyhole.offline.estimators import estimate_all, predict_rewards
from keyhole.offline.evaluation import evaluate
from keyhole.offline.target import target_of

pytestmark = pytest.mark.interpreted


def entropy(labels):
    counts = Counter(labels)
    return -math.fsum(n / len(labels) * math.log(n / len(labels)) for n in counts.values())


def gain(values, labels, groups, n_bins):
    """Return H(label) - H(label | bin) within each group, in the mean over the examples."""
    edges = sorted(set(values))
    if len(edges) > n_bins:
        edges = sorted({float(np.quantile(values, n / n_bins)) for n in range(1, n_bins)})
    bins = [sum(edge < value for edge in edges) for value in values]
    total = 0.0
    for group in set(groups):
        rows = [row for row, own in enumerate(groups) if own == group]
        total += len(rows) * entropy([labels[row] for row in rows])
        for one in {bins[row] for row in rows}:
            inside = [labels[row] for row in rows if bins[row] == one]
            total -= len(inside) * entropy(inside)
    return max(0.0, total / len(values))


@pytest.mark.parametrize("n_bins", [2, 3, 10])
@pytest.mark.parametrize("has_groups", [False, True])
def test_what_a_feature_tells_is_the_entropy_it_takes_away(n_bins, has_groups):
    numbers = np.random.default_rng(n_bins)
    labels = numbers.integers(3, size=60)
    features = np.column_stack([
        labels + numbers.normal(size=60), numbers.integers(4, size=60), numbers.normal(size=60),
        np.ones(60), np.round(numbers.normal(size=60)),
    ])  # fmt: skip
    groups = numbers.integers(3, size=60) if has_groups else np.zeros(60, int)
    given: dict[str, Any] = {"groups": groups} if has_groups else {}
    found = information_gain(features, labels, n_bins=n_bins, **given)
    wanted = [
        gain(column.tolist(), labels.tolist(), groups.tolist(), n_bins) for column in features.T
    ]
    assert found.tolist() == pytest.approx(wanted, abs=1e-12)
    assert found[3] == 0.0
    if n_bins == 10:
        assert information_gain(features, labels, **given).tolist() == found.tolist()
    words = np.array(["x", "y", "z"])[labels]
    assert information_gain(features, words, n_bins=n_bins, **given).tolist() == found.tolist()


def test_bins_are_of_equal_values_or_of_equal_numbers():
    assert bins_of(np.array([3.0, 1.0, 2.0, 1.0]), 3).tolist() == [2, 0, 1, 0]
    assert bins_of(np.arange(8.0), 4).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    for wrong in ({"n_bins": 1}, {"groups": [0]}):
        with pytest.raises(InvalidInput):
            information_gain([[1.0], [2.0]], [0, 1], **wrong)
    for features in ([[math.inf], [1.0]], [1.0, 2.0], [[1.0]]):
        with pytest.raises(InvalidInput, match="features must be"):
            information_gain(features, [0, 1])


def test_the_best_share_of_the_features_is_chosen_in_their_order():
    gains = [0.3, 0.0, 0.9, 0.3, 0.5, 0.1, 0.3, 0.2, 0.0, 0.4]
    ranked = sorted(range(10), key=lambda column: (-gains[column], column))
    for share, n in ((0.01, 1), (0.1, 1), (0.2, 2), (0.26, 3), (0.5, 5), (0.64, 6), (1.0, 10)):
        assert select_features(gains, share).tolist() == sorted(ranked[:n])
    assert select_features(gains).tolist() == [2, 4]
    for share in (0.0, 1.1):
        with pytest.raises(InvalidInput, match="`share`"):
            select_features(gains, share)


def test_a_model_is_taken_to_be_fitted_on_the_same_log():
    numbers = np.random.default_rng(2)
    log = BanditLog.of(
        numbers.normal(size=(30, 2)), numbers.integers(2, size=30), numbers.integers(2, size=30),
        np.full(30, 0.5),
    )  # fmt: skip
    target, table = target_of(log, np.tile([0.3, 0.7], (30, 1))), predict_rewards(log)
    usual = estimate_all(log, target, table)
    same, other = (
        estimate_all(log, target, table, fitted_elsewhere=elsewhere) for elsewhere in (False, True)
    )
    told = [
        [(each.name, each.value, each.range, each.value_range) for each in each_way.values()]
        for each_way in (usual, same, other)
    ]
    assert told[0] == told[1] != told[2]
    policy = np.tile([0.3, 0.7], (30, 1))
    for predictions, elsewhere in ((None, False), (table, True)):
        wanted = estimate_all(log, target, table, fitted_elsewhere=elsewhere)["doubly-robust"]
        judged = (
            evaluate(log, policy, predictions=predictions).policy.lines["doubly-robust"].estimate
        )
        assert (judged.value, judged.range, judged.bias) == (
            wanted.value,
            wanted.range,
            wanted.bias,
        )
    assert predict_rewards(log).tolist() == predict_rewards(
        log, penalty=10.0, n_folds=5, seed=0
    ).tolist()  # fmt: skip
    others = [predict_rewards(log, penalty=5.0), predict_rewards(log, n_folds=4)]
    for other_table in (*others, predict_rewards(log, seed=1)):
        assert other_table.tolist() != table.tolist()
    with pytest.raises(InvalidInput, match="`penalty`"):
        predict_rewards(log, penalty=0.0)
    with pytest.raises(InvalidInput, match="`n_folds`"):
        predict_rewards(log, n_folds=1)
