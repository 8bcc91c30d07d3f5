"""Bounds and intervals hold as often as they say; where they do not, that is measured."""

# ruff: noqa: T201 (tests print the intervals they hold results against)

import pytest

from keyhole.offline.bounds import BOUNDS
from keyhole.theory.coverage import SETTINGS, both_ends, lower_end, measure_coverage

N_LOGS = 2000
FALLS_SHORT = {("neglected-baseline", "student-t"), ("neglected-baseline", "bootstrap")}
"""Known to hold too rarely: the baseline's few clicks are often not in the log at all."""

CASES = [
    (setting, bound)
    for setting in SETTINGS
    for bound in BOUNDS
    if not (bound == "clopper-pearson" and SETTINGS[setting].compare)
]


@pytest.mark.parametrize(("setting", "bound"), CASES)
def test_bounds_hold_at_their_nominal_rate(setting, bound):
    found = measure_coverage(setting, bound, n_logs=N_LOGS, seed=1)
    print(found)
    assert found.falls_short == ((setting, bound) in FALLS_SHORT)
    if BOUNDS[bound].is_guaranteed:
        assert found.interval[1] >= found.confidence


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


def test_a_bound_that_is_too_bold_is_caught():
    """The test can fail: a bound at 90 % does not pass for one at 95 %."""
    bold = measure_coverage("often", "clopper-pearson", confidence=0.9, n_logs=N_LOGS, seed=1)
    assert bold.interval[1] < 0.95


@pytest.mark.parametrize(
    ("setting", "bound", "n_logs"),
    [
        ("often", "student-t", N_LOGS),
        ("often", "clopper-pearson", N_LOGS),
        ("often", "empirical-bernstein", 400),
        ("often", "bootstrap", 400),
        ("often", "betting", 400),
        ("rare-difference", "betting", 400),
    ],
)
def test_intervals_hold_at_their_nominal_rate(setting, bound, n_logs):
    found = measure_coverage(setting, bound, n_logs=n_logs, seed=2, ends=both_ends)
    print(found)
    assert not found.falls_short


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
