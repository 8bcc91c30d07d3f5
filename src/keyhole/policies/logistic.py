"""Logistic regression, solved exactly: the linear classifier, and the calibration of scores."""

import numpy as np

from keyhole.base.errors import FloatArray

_MAX_STEPS = 200
_TOLERANCE = 1e-10


def _objective(
    table: FloatArray, targets: FloatArray, shares: FloatArray, ridge: FloatArray, theta: FloatArray
) -> float:
    odds = table @ theta
    losses = np.logaddexp(0.0, odds) - targets * odds
    return float(shares @ losses + 0.5 * ridge @ theta**2)


def fit_logistic(
    features: FloatArray,
    targets: FloatArray,
    *,
    l2: float = 0.0,
    counts: FloatArray | None = None,
) -> tuple[FloatArray, float]:
    """Return the weights and the intercept of the log-odds of ``targets``.

    They minimise the mean logistic loss + l2/2 |weights|^2; the intercept is free. Targets may be
    anything from 0 to 1, and ``counts`` says how many examples each row stands for.

    Examples
    --------
    >>> import numpy as np
    >>> weights, intercept = fit_logistic(np.zeros((4, 1)), np.array([1.0, 0.0, 0.0, 0.0]), l2=1.0)
    >>> bool(np.isclose(intercept, np.log(1 / 3)))
    True
    """
    table = np.column_stack([features, np.ones(len(features))])
    shares = np.full(len(targets), 1.0 / len(targets)) if counts is None else counts / counts.sum()
    ridge = np.full(table.shape[1], l2)
    ridge[-1] = 0.0
    theta = np.zeros(table.shape[1])
    rate = float(shares @ targets)
    theta[-1] = np.log(rate / (1.0 - rate))
    value = _objective(table, targets, shares, ridge, theta)
    for _ in range(_MAX_STEPS):  # Newton's method; a step is halved until it goes down
        chances = 0.5 * (1.0 + np.tanh(0.5 * (table @ theta)))
        slope = table.T @ (shares * (chances - targets)) + ridge * theta
        bend = (table * (shares * chances * (1.0 - chances))[:, None]).T @ table
        bend[np.diag_indices_from(bend)] += ridge + 1e-12
        step = np.linalg.solve(bend, slope)
        gain = float(slope @ step)
        size = 1.0
        while size > 1e-8:
            trial = _objective(table, targets, shares, ridge, theta - size * step)
            if trial <= value - 1e-4 * size * gain:
                break
            size *= 0.5
        else:
            break  # as low as rounding allows
        theta, value = theta - size * step, trial
        if gain < _TOLERANCE**2 or size * np.abs(step).max() < _TOLERANCE:
            break
    return theta[:-1], float(theta[-1])
