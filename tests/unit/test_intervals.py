"""Two-sided intervals around what is estimated from a log."""

import numpy as np
import pytest

from keyhole.offline.bounds import clopper_pearson, lower_bounds
from keyhole.offline.estimators import Estimate
from keyhole.offline.intervals import interval, intervals

ROWS = np.tile([0.0, 0.0, 0.0, 4.0], 50)
WEIGHTED = Estimate("importance-weighted", ROWS, "none", (0.0, 40.0), (0.0, 1.0))


def test_no_end_is_beyond_what_rewards_can_be_worth():
    wide = Estimate("importance-weighted", ROWS, "none", (0.0, 40.0))
    above = interval("empirical-bernstein", wide)
    surprise = np.log(2 / 0.025)
    reach = np.sqrt(2 * ROWS.var(ddof=1) * surprise / 200) + 7 * 40 * surprise / (3 * 199)
    assert (above.low, above.high) == pytest.approx((1 - reach, 1 + reach))
    inside = interval("empirical-bernstein", WEIGHTED)
    assert (inside.low, inside.high) == (0.0, 1.0)
    difference = interval("empirical-bernstein", WEIGHTED.minus(WEIGHTED))
    assert (difference.low, difference.high) == (-1.0, 1.0)
    # Weights can lead astray: all of the interval may be beyond.
    too_high = Estimate("importance-weighted", 2.0 + ROWS / 40, "none", (0.0, 40.0), (0.0, 1.0))
    assert interval("student-t", too_high).ends == [1.0, 1.0]
    assert interval("student-t", too_high.negated()).ends == [-1.0, -1.0]


def test_ends_are_lower_bounds_of_gains_and_of_losses():
    half = {name: bound.value for name, bound in lower_bounds(WEIGHTED, 0.975).items()}
    losses = {name: bound.value for name, bound in lower_bounds(WEIGHTED.negated(), 0.975).items()}
    for name in ("betting", "student-t", "bootstrap"):
        found = interval(name, WEIGHTED, 0.95)
        low, high = half[name], losses[name]
        assert low is not None
        assert high is not None
        assert found.low == pytest.approx(low)
        assert found.high == pytest.approx(min(1.0, -high))
        one_sided = lower_bounds(WEIGHTED, 0.95)[name].value
        assert one_sided is not None
        assert low < one_sided  # what may go wrong is shared by two ends


def test_counts_have_the_interval_of_clopper_and_pearson():
    found = interval("clopper-pearson", WEIGHTED, 0.9, trials=(3, 40))
    assert found.low == clopper_pearson(3, 40, 0.95)
    assert found.high == 1.0 - clopper_pearson(37, 40, 0.95)
    assert interval("clopper-pearson", WEIGHTED).ends == [None, None]


def test_what_is_too_low_has_no_upper_end():
    clipped = Estimate("clipped", ROWS, "down", (0.0, 4.0))
    for name, found in intervals(clipped).items():
        assert found.high is None, name
        assert found.why_not
    assert interval("betting", clipped).low is not None
    assert interval("betting", Estimate("direct", ROWS, "unknown")).ends == [None, None]
