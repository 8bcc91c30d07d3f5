"""Lower confidence bounds against their formulas, and the bets row by row."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from keyhole.base.errors import InvalidInput
from keyhole.base.limits import VARIABLE
from keyhole.offline.bounds import (
    betting,
    bootstrap,
    clopper_pearson,
    empirical_bernstein,
    student_t,
)


def test_bounds_against_their_formulas():
    x = np.random.default_rng(0).random(50)
    mean, sd = x.mean(), x.std(ddof=1)
    assert student_t(x, 0.9) == pytest.approx(mean - sd / math.sqrt(50) * stats.t.ppf(0.9, 49))
    scipys = stats.ttest_1samp(x, 0.0, alternative="greater").confidence_interval(0.9)
    assert student_t(x, 0.9) == pytest.approx(scipys.low)
    log_2 = math.log(2 / 0.1)
    expected = mean - sd * math.sqrt(2 * log_2 / 50) - 7 * log_2 / (3 * 49)
    assert empirical_bernstein(x, 0.9, low=0, high=1) == pytest.approx(expected)
    exact = stats.binomtest(7, 90, alternative="greater").proportion_ci(0.9, method="exact")
    assert clopper_pearson(7, 90, 0.9) == pytest.approx(exact.low)
    assert clopper_pearson(0, 90) == 0.0


@pytest.mark.parametrize("n_rows", [50, 5000, 12_000])
@pytest.mark.parametrize("binary", [True, False])
def test_bootstrap_against_the_limit(n_rows, binary):
    """Many rows make it normal; the tolerance is the skewness term and the noise of resampling."""
    x = np.random.default_rng(0).random(n_rows)
    x = (x < 0.3).astype(float) if binary else x
    error = x.std() / math.sqrt(n_rows)
    normal = x.mean() - 1.2816 * error
    n_resamples = 4000
    noise = 5 * math.sqrt(0.1 * 0.9 / n_resamples) / 0.1755  # the normal density at that quantile
    tolerance = error * (noise + 1 / math.sqrt(n_rows)) + binary / n_rows
    found = bootstrap(x, 0.9, n_resamples=n_resamples)
    assert abs(found - normal) < tolerance, f"{found} is not {normal} within {tolerance}"


@pytest.mark.parametrize("n_values", [2, 40, 300])
def test_a_bootstrap_needs_what_it_draws_at_once(n_values, monkeypatch):
    """Eight bytes for each resample of each value, or of a hundred where there are more."""
    x = np.linspace(0.0, 1.0, n_values)
    needed = 8 * 500 * min(n_values, 100)
    monkeypatch.setenv(VARIABLE, str(needed))
    assert 0.0 <= bootstrap(x, n_resamples=500) <= 0.5
    monkeypatch.setenv(VARIABLE, str(needed - 1))
    with pytest.raises(InvalidInput, match="`n_resamples`=500"):
        bootstrap(x, n_resamples=500)


def test_betting_rules_out_exactly_what_makes_the_gambler_rich():
    numbers = np.random.default_rng(3)
    x = 2.0 * (numbers.random(400) < 0.1) - 0.5 * (numbers.random(400) < 0.2)
    low, high, surprise = -0.5, 2.0, math.log(20)

    def wealth(mean):
        """Row by row, as the definition has it."""
        total, past = 0.0, list[float]()
        for value in x:
            before = np.array(past)
            spread = ((before - before.mean()) ** 2).sum() if past else 0.0
            variance = ((high - low) ** 2 / 4 + spread) / (len(past) + 1)
            bet = min(math.sqrt(2 * surprise / (len(x) * variance)), 0.5 / (mean - low))
            total += math.log1p(bet * (value - mean))
            past.append(value)
        return total

    bound = betting(x, low=low, high=high)
    assert bound < x.mean()
    assert wealth(bound - 1e-9) >= surprise
    assert wealth(bound + 1e-9) < surprise


def test_betting_needs_no_largest_value_to_hold():
    """Whatever `high` is said to be, the mean wealth at the true mean is at most 1."""
    outcomes, chances = np.array([0.0, 5.0]), np.array([0.8, 0.2])
    for high in (5.0, 50.0):
        expected = 0.0
        for rows in itertools.product((0, 1), repeat=8):
            x = outcomes[list(rows)]
            expected += float(np.prod(chances[list(rows)])) * (
                betting(x, 0.9, low=0.0, high=high) > 1.0
            )
        assert expected <= 0.1


def test_bounds_refuse_what_they_cannot_bound():
    x = np.array([0.0, 1.0, 3.0])
    with pytest.raises(InvalidInput, match="between low=0 and high=1, got 0 to 3"):
        betting(x, low=0.0, high=1.0)
    with pytest.raises(InvalidInput, match="between low=0 and high=1"):
        empirical_bernstein(x, low=0.0, high=1.0)
    with pytest.raises(InvalidInput, match="at least 2 rows, got 1"):
        student_t(x[:1])
    for confidence in (0.0, 1.0, math.nan):
        with pytest.raises(InvalidInput, match="`confidence` must be a number"):
            student_t(x, confidence)
    with pytest.raises(InvalidInput, match="`n_successes` must be an integer between 0 and"):
        clopper_pearson(4, 3)


def test_two_rows_are_enough_for_a_variance():
    surprise = math.log(2.0 / 0.05)
    expected = 0.5 - math.sqrt(2.0 * 0.5 * surprise / 2.0) - 7.0 * surprise / 3.0
    found = empirical_bernstein(np.array([0.0, 1.0]), low=0.0, high=1.0)
    assert found == pytest.approx(expected)
    with pytest.raises(InvalidInput, match="at least 2 rows, got 1"):
        empirical_bernstein(np.array([1.0]), low=0.0, high=1.0)


@pytest.mark.parametrize(("n_rows", "n_groups"), [(151, 151), (12_000, 5000)])
def test_a_bootstrap_is_the_quantile_of_means_of_resamples_drawn_one_by_one(n_rows, n_groups):
    """However many are drawn at once: 250 do not end with a full batch of 20."""
    x, numbers = np.random.default_rng(1).normal(size=n_rows), np.random.default_rng(7)
    group = numbers.permutation(n_rows) % n_groups
    sums, sizes = np.bincount(group, weights=x), np.bincount(group)
    means = []
    for _ in range(250):
        picks = numbers.integers(n_groups, size=n_groups)
        means.append(sums[picks].sum() / sizes[picks].sum())
    expected = np.quantile(means, 0.1, method="lower")
    assert bootstrap(x, 0.9, n_resamples=250, seed=7) == expected
