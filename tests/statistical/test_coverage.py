"""Bounds and intervals hold as often as they say, no less and no more often.

What is expected of those that hold in the limit, and of Clopper and Pearson's, is added up over all
counts of clicks that a log can have (``expected_rates.py``), so that one which is too wide is seen
as one that is too narrow is. Betting and empirical Bernstein hold for every distribution and are
wide for clicks; the test of them says so.
"""

# ruff: noqa: T201 (tests print the intervals they hold results against)

import pytest

from bench.theory.coverage import SETTINGS, both_ends, lower_end, measure_coverage
from keyhole.offline.bounds import BOUNDS
from tests.statistical.expected_rates import expected_rate

N_LOGS = 2000
FALLS_SHORT = {("neglected-baseline", "student-t"), ("neglected-baseline", "bootstrap")}
"""Known to hold too rarely: the baseline's few clicks are often not in the log at all."""

CASES = [
    (setting, bound)
    for setting in SETTINGS
    for bound in BOUNDS
    if not (bound == "clopper-pearson" and SETTINGS[setting].compare)
]


KNOWN = [case for case in CASES if case[1] in ("clopper-pearson", "student-t", "bootstrap")]


@pytest.mark.parametrize(("setting", "bound"), KNOWN)
def test_bounds_hold_as_often_as_expected(setting, bound):
    """Within 0.1 % on either side of what follows from the distribution of the clicks."""
    is_slow = bound == "bootstrap" and setting != "often"
    found = measure_coverage(setting, bound, n_logs=N_LOGS // (1 + is_slow), seed=1)
    expected = expected_rate(SETTINGS[setting], bound, 0.95)
    low, high = found.interval
    print(f"{found}; expected {expected:.2%}")
    assert low <= expected <= high
    assert found.falls_short == ((setting, bound) in FALLS_SHORT)
    if setting == "often":  # where the limit is near
        assert 0.94 <= expected <= 0.96


@pytest.mark.parametrize(("setting", "bound"), [case for case in CASES if case not in KNOWN])
def test_betting_and_bernstein_hold_more_often_than_they_say(setting, bound):
    """They are conservative: of 95 % they make 98 % or more, whatever the clicks are."""
    found = measure_coverage(setting, bound, n_logs=500, seed=1)
    print(found)
    assert BOUNDS[bound].is_guaranteed
    assert found.rate >= 0.98
    assert found.interval[0] > 0.95


def test_the_shortfall_is_what_it_should_be():
    """Student's bound is above 0 where the baseline has no click and the policy three or more.

    With k clicks of the policy alone it is k - 1.645 sqrt(k) > 0 up to a factor, so k > 2.7; both
    counts are Poisson but for terms of the size of the click rate.
    """
    from scipy import stats

    found = measure_coverage("neglected-baseline", "student-t", n_logs=N_LOGS, seed=1)
    given = SETTINGS["neglected-baseline"]
    policy, baseline = (given.n_rows * given.chances[a] * given.clicks[a] for a in (0, 1))
    expected = 1.0 - stats.poisson.pmf(0, baseline) * stats.poisson.sf(2, policy)
    low, high = found.interval
    print(f"{found}; expected {expected:.1%}")
    assert low < expected < high


@pytest.mark.parametrize("bound", ["clopper-pearson", "student-t", "bootstrap"])
@pytest.mark.parametrize("ends", [lower_end, both_ends])
@pytest.mark.parametrize("confidence", [0.9, 0.99])
def test_a_bound_that_is_too_bold_or_too_shy_is_caught(bound, ends, confidence):
    """The tests can fail: neither a bound at 90 % nor one at 99 % passes for one at 95 %."""
    n_logs = 600 if bound == "bootstrap" else 1000
    other = measure_coverage(
        "often", bound, confidence=confidence, n_logs=n_logs, seed=1, ends=ends
    )
    expected = expected_rate(SETTINGS["often"], bound, 0.95, two_sided=ends is both_ends)
    low, high = other.interval
    print(f"{other}; expected of 95 %: {expected:.2%}")
    assert not low <= expected <= high


@pytest.mark.parametrize("bound", ["clopper-pearson", "student-t", "bootstrap"])
def test_intervals_hold_as_often_as_expected(bound):
    n_logs = 400 if bound == "bootstrap" else N_LOGS
    found = measure_coverage("often", bound, n_logs=n_logs, seed=2, ends=both_ends)
    expected = expected_rate(SETTINGS["often"], bound, 0.95, two_sided=True)
    low, high = found.interval
    print(f"{found}; expected {expected:.2%}")
    assert low <= expected <= high
    assert 0.94 <= expected <= 0.965


@pytest.mark.parametrize(("bound", "rate"), [("student-t", 0.797), ("clopper-pearson", 0.988)])
def test_intervals_of_rare_clicks_hold_as_often_as_the_page_says(bound, rate):
    """Logs with few clicks have a low estimate, and by Student little spread: both ends are low."""
    found = measure_coverage("rare", bound, n_logs=N_LOGS, seed=2, ends=both_ends)
    expected = expected_rate(SETTINGS["rare"], bound, 0.95, two_sided=True)
    low, high = found.interval
    print(f"{found}; expected {expected:.2%}")
    assert low <= expected <= high
    assert round(expected, 3) == rate
    assert found.falls_short == (bound == "student-t")


@pytest.mark.parametrize(
    ("setting", "bound"),
    [("often", "empirical-bernstein"), ("often", "betting"), ("rare-difference", "betting")],
)
def test_intervals_by_betting_and_bernstein_hold_more_often_than_they_say(setting, bound):
    found = measure_coverage(setting, bound, n_logs=400, seed=2, ends=both_ends)
    print(found)
    assert found.rate >= 0.975


def one_sided_on_both_sides(bound, estimate, confidence, **options):
    """An interval whose ends forget that there are two of them: 90 % where 95 % was promised."""
    low, _ = lower_end(bound, estimate, confidence, **options)
    successes, trials = options.pop("trials")
    mirrored = (trials - successes, trials)
    failures, _ = lower_end(bound, estimate.negated(), confidence, trials=mirrored, **options)
    return low, 1.0 - (failures or 0.0)


def too_low_above(bound, estimate, confidence, **options):
    """An interval whose upper end is the estimate."""
    low, _ = both_ends(bound, estimate, confidence, **options)
    return low, estimate.value


@pytest.mark.parametrize("ends", [one_sided_on_both_sides, too_low_above])
def test_an_interval_that_is_too_narrow_is_caught(ends):
    narrow = measure_coverage("often", "clopper-pearson", n_logs=N_LOGS, seed=2, ends=ends)
    print(narrow)
    assert narrow.falls_short
