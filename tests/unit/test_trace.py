"""Curves, their errors and their slopes are what a few lines of NumPy say."""

import math

import numpy as np
import pytest

from keyhole.game.trace import Trace, log_log_slope, mean_and_error

ROUNDS = np.array([1, 9, 10, 30, 100])


def trace_of(scores, best, is_loss, rounds=ROUNDS):
    arrays = np.array(scores, float), np.array(best, float)
    return Trace(np.array(rounds), *arrays, is_loss, "running", "exact", (), (), 0.0)


def test_regret_is_what_was_missed():
    scores, best = [[1.0, 2.0]], [[1.5, 5.0]]
    assert trace_of(scores, best, False).regret.tolist() == [[0.5, 3.0]]
    assert trace_of(scores, best, True).regret.tolist() == [[-0.5, -3.0]]


def test_averages_are_per_round_over_the_runs():
    scores = [[2.0, 7.0, 10.0], [4.0, 7.0, 40.0], [6.0, 7.0, 10.0]]
    best = [[9.0, 12.0, 60.0], [9.0, 12.0, 60.0], [9.0, 12.0, 90.0]]
    trace = trace_of(scores, best, False, rounds=[4, 10, 20])
    assert trace.n_runs == 3
    assert trace.average_score == pytest.approx((1.0, 0.5))  # 0.5, 2, 0.5: deviation sqrt(0.75)
    assert trace.best_fixed_score == pytest.approx((3.5, 0.5))
    assert trace.average_regret == pytest.approx((2.5, math.sqrt((0 + 1.5**2 + 1.5**2) / 2 / 3)))
    rounds, mean, error = trace.curve()
    assert rounds.tolist() == [4, 10, 20]
    assert mean == pytest.approx([5.0 / 4, 0.5, 2.5])
    assert error == pytest.approx([2.0 / 4 / math.sqrt(3), 0.0, trace.average_regret.error])
    two = trace_of(scores[:2], best[:2], False, rounds=[4, 10, 20])
    assert two.average_score == pytest.approx((1.25, 0.75))


def test_one_run_has_no_error():
    trace = trace_of([[1.0, 2.0]], [[3.0, 6.0]], False, rounds=[1, 2])
    assert trace.average_regret.mean == 2.0
    assert math.isnan(trace.average_regret.error)
    mean, error = mean_and_error(np.array([[1.0, 2.0]]))
    assert mean.tolist() == [1.0, 2.0]
    assert np.isnan(error).all()
    mean, error = mean_and_error(np.array([[1.0, 2.0], [2.0, 6.0]]))
    assert mean.tolist() == [1.5, 4.0]
    assert error == pytest.approx([0.5, 2.0])


@pytest.mark.parametrize("power", [0.5, 2 / 3, 1.0])
def test_the_slope_is_that_of_the_last_nine_tenths(power):
    regret = 3.0 * ROUNDS**power
    regret[:2] = 1e6  # rounds 1 and 9 are of the first tenth, round 10 is not
    slope = trace_of([regret], [np.zeros(5)], True).slope()
    assert slope.value == pytest.approx(power)
    assert math.isnan(slope.low)
    assert math.isnan(slope.high)
    regret[2] *= 2.0
    assert log_log_slope(ROUNDS, regret[None]).value < power - 0.1


def test_the_interval_is_a_bootstrap_over_runs():
    rng = np.random.default_rng(3)
    regret = ROUNDS ** rng.uniform(0.4, 0.9, (7, 1)) * rng.uniform(1.0, 5.0, (7, 5))
    late, logs = regret[:, 2:], np.log(ROUNDS[2:])
    slopes = [
        np.polyfit(logs, np.log(late[pick].mean(axis=0)), 1)[0]
        for pick in np.random.default_rng(0).integers(7, size=(1000, 7))
    ]
    slope = log_log_slope(ROUNDS, regret)
    assert slope.value == pytest.approx(np.polyfit(logs, np.log(late.mean(axis=0)), 1)[0])
    assert (slope.low, slope.high) == pytest.approx(tuple(np.quantile(slopes, [0.025, 0.975])))
    assert slope.low < slope.value < slope.high


def test_two_runs_have_an_interval():
    slope = log_log_slope(ROUNDS, np.array([ROUNDS**0.5, ROUNDS**1.0]))
    assert slope.low == pytest.approx(0.5)
    assert slope.high == pytest.approx(1.0)


def test_there_is_no_slope_of_regret_that_is_zero_or_of_one_point():
    curves = np.array([[1.0, 1.0, 0.0, 2.0, 4.0]] * 2)
    assert np.isnan(log_log_slope(ROUNDS, curves)).all()
    assert not math.isnan(log_log_slope(ROUNDS, curves + [[0, 0, 0.1, 0, 0]] * 2).value)
    assert np.isnan(log_log_slope(np.array([1, 100]), np.ones((2, 2)))).all()
    assert log_log_slope(np.array([1, 50, 100]), np.ones((1, 3))).value == pytest.approx(0.0)
