"""The linear programs of the oracle; SciPy is needed here and nowhere else."""

from typing import Any, NamedTuple

import numpy as np

from keyhole.base.errors import FloatArray, KeyholeError, LibraryMissing


class Margin(NamedTuple):
    """The largest margin, where it is attained, and what proves that there is no larger.

    ``weights`` are those of the rows, ``slack`` those of the entries of the distribution.
    """

    size: float
    point: FloatArray
    weights: FloatArray
    slack: FloatArray


def solve(objective: Any, *, below: Any, limits: Any, equal: Any, targets: Any, free: Any) -> Any:
    """Maximise objective . x with below x <= limits, equal x = targets, x >= 0 unless free."""
    try:
        from scipy.optimize import linprog
    except ModuleNotFoundError:
        raise LibraryMissing("The learnability oracle needs SciPy", "oracle") from None
    bounds = [(None, None) if is_free else (0.0, None) for is_free in free]
    result = linprog(
        -np.asarray(objective), A_ub=below, b_ub=limits, A_eq=equal, b_eq=targets, bounds=bounds
    )
    if result.status != 0:
        raise KeyholeError(f"a linear program of the oracle could not be solved: {result.message}")
    return result


def widest_margin(rows: FloatArray, on: FloatArray | None = None) -> Margin:
    """Return a distribution p that is as far inside ``rows . p > 0`` and ``p > 0`` as can be.

    Its margin is the least number among rows . p and the entries of p. Where ``on`` is given,
    only distributions with on . p = 0 count. The margin is positive iff some p with positive
    entries has rows . p > 0. If it is not, the duals prove it: weights . rows + slack is then a
    multiple of ``on``.
    """
    n_rows, n_outcomes = rows.shape
    below = np.zeros((n_rows + n_outcomes, n_outcomes + 1))
    below[:n_rows, :-1], below[n_rows:, :-1] = -rows, -np.eye(n_outcomes)
    below[:, -1] = 1.0
    equal = np.zeros((1 if on is None else 2, n_outcomes + 1))
    equal[0, :-1] = 1.0
    if on is not None:
        equal[1, :-1] = on
    objective = np.zeros(n_outcomes + 1)
    objective[-1] = 1.0
    result = solve(
        objective,
        below=below,
        limits=np.zeros(len(below)),
        equal=equal,
        targets=np.eye(len(equal))[0],
        free=[True] * (n_outcomes + 1),
    )
    duals = -result.ineqlin.marginals
    return Margin(float(result.x[-1]), result.x[:-1], duals[:n_rows], duals[n_rows:])
