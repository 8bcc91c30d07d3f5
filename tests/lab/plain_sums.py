"""Curves of made-up runs, and their means and errors by plain sums."""

import math
from statistics import fmean, stdev

import numpy as np
import pytest

from keyhole.lab.results import Curve

X = [3, 8, 20, 50, 64, 130, 400]
FROM = 50
"""The round that claims begin at: what is before it would decide otherwise."""
FIRST = X.index(FROM)


def curve(label, values, x=X):
    return Curve(label, np.array(x), np.array(values, dtype=float))


def noise(seed, n_runs, level, spread, power=-0.3):
    """Return runs of a curve that falls, each by a power and a scatter of its own."""
    numbers = np.random.default_rng(seed)
    powers = power + 0.1 * numbers.normal(size=n_runs)
    scatter = 1.0 + spread * numbers.normal(size=(n_runs, len(X)))
    return level * np.array(X) ** powers[:, np.newaxis] * scatter


def mean(curve, place):
    return fmean(curve.values[:, place].tolist())


def error(curve, place):
    """Return the standard error over the runs, NaN if there is one run alone."""
    values = curve.values[:, place].tolist()
    return stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def known(number):
    return 0.0 if math.isnan(number) else number


def place_of(curve, at):
    """Return the place of the last point up to a round, or of the last one."""
    return max(place for place, x in enumerate(curve.x) if at is None or x <= at)


def shown(curve, place):
    off = error(curve, place)
    return f"{mean(curve, place):.4g}" + ("" if math.isnan(off) else f" ± {off:.2g}")


def close(one, other):
    """Return whether numbers, or lists of them, are the same to rounding; None is only None."""
    if not isinstance(other, list | tuple):
        one, other = [one], [other]
    return len(one) == len(other) and all(
        a is b if b is None else a == pytest.approx(b, rel=1e-9, abs=1e-15)
        for a, b in zip(one, other, strict=True)
    )
