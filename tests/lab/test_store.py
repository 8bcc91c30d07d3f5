"""Finished work on disk, and what is resampled of it."""

from functools import partial

import numpy as np
import pytest

from keyhole.lab.result_store import ResultStore
from keyhole.lab.results import Curve


def test_a_curve_comes_back_to_the_bit(tmp_path):
    store = ResultStore(tmp_path)
    values = np.array([[0.1 + 0.2, np.nan, 1e-310], [-0.0, np.inf, 1.0]])
    store.save({"of": ("a", 1)}, Curve("a", np.array([1, 2, 50]), values).as_dict())
    kept = store.load({"of": ["a", 1]}, partial(Curve.of_dict, "b"))
    assert kept is not None
    assert kept.label == "b"
    assert kept.x.dtype == np.int64
    assert kept.x.tolist() == [1, 2, 50]
    assert kept.values.tobytes() == values.tobytes()
    assert store.load({"of": ("a", 2)}, dict) is None


def test_the_interval_of_a_power_is_a_bootstrap_over_runs():
    x, numbers = np.array([1, 10, 100, 1000]), np.random.default_rng(1)
    curve = Curve("a", x, 3.0 * x**-0.5 * numbers.uniform(0.8, 1.2, (6, 4)))
    value, low, high = curve.power(10)
    picks = np.random.default_rng(0).integers(6, size=(500, 6))
    slopes = [
        np.polyfit(np.log(x[1:]), np.log(curve.values[p].mean(axis=0)[1:]), 1)[0] for p in picks
    ]
    assert (low, high) == pytest.approx(tuple(np.quantile(slopes, [0.025, 0.975])))
    assert low < value < high
    alone = Curve("a", x, curve.values[:1]).power(10)
    assert np.isnan(alone[1:]).all()
