"""The sort is the stable descending one for whatever keys can be thought of."""

import numpy as np
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as npst

from keyhole.kernels.sorting import sort_descending, sort_work

FINITE = st.floats(allow_nan=False, allow_infinity=False)
SETTINGS = settings(deadline=None, derandomize=True)  # the first example pays for compilation


def check(keys) -> None:
    order = np.empty(len(keys), np.int64)
    sort_descending(keys, order, sort_work(len(keys)))
    assert order.tolist() == np.argsort(-keys, kind="stable").tolist()


def arrays(elements, low, high):
    return npst.arrays(np.float64, st.integers(low, high), elements=elements)


@SETTINGS
@given(arrays(FINITE, 1, 48))
def test_short_lists(keys):
    check(keys)


@SETTINGS
@given(arrays(FINITE, 49, 160))
def test_long_lists(keys):
    check(keys)


@SETTINGS
@given(arrays(st.sampled_from([0.0, -0.0, 1.0, 5e-324, -5e-324, 1e-300, 1e300]), 1, 160))
def test_ties_and_extremes(keys):
    check(keys)


@SETTINGS
@given(arrays(st.integers(0, 40).map(float), 49, 160), FINITE, st.floats(1e-300, 1e280))
def test_shifted_and_scaled_ties(keys, shift, scale):
    moved = keys * scale + shift
    check(np.ascontiguousarray(moved[np.isfinite(moved)]) if np.isinf(moved).any() else moved)
