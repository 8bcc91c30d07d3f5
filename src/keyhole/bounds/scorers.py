"""B12 and B13: scorers that treat documents alike, and how far scores move with the weights."""

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import FloatArray, InvalidInput, check_integer


def equivariant_dimension(n_items: int, n_features: int) -> int:
    """Return the dimension of the linear scorers of whole lists that any reordering commutes with.

    Theorem 33 of [T16]: it is 2 d for lists of at least two documents, whatever their length
    (d for one). Here it is counted: a linear map f from lists to scores is equivariant
    if f(P X) = P f(X) for a swap and for a rotation P of the documents, which generate all
    reorderings; that is a system of linear equations, and what is left is its null space.

    Examples
    --------
    >>> equivariant_dimension(4, 3), equivariant_dimension(1, 3)
    (6, 3)
    """
    m = check_integer(n_items, "`n_items`", at_least=1)
    d = check_integer(n_features, "`n_features`", at_least=1)
    if m**2 * d > 5000:
        raise InvalidInput(f"`n_items`^2 `n_features` must be at most 5000, got {m**2 * d}.")
    swap, rotation = np.eye(m), np.roll(np.eye(m), 1, axis=0)
    if m > 1:
        swap[[0, 1]] = swap[[1, 0]]
    unknowns, rows = m * m * d, []
    for order in (swap, rotation):
        on_lists = np.kron(order, np.eye(d))
        # (order F - F on_lists) = 0 for the matrix F, m by m d, row after row
        rows.append(np.kron(order, np.eye(m * d)) - np.kron(np.eye(m), on_lists.T))
    return unknowns - int(np.linalg.matrix_rank(np.vstack(rows)))


def equivariant_scores(features: ArrayLike, weights: ArrayLike, shift: ArrayLike) -> FloatArray:
    """Return X w + (1' X v) 1, which all such scorers are: v moves all scores alike.

    So it does not change a ranking, and nothing is lost by scoring with X w alone.

    Examples
    --------
    >>> equivariant_scores([[1.0, 0.0], [0.0, 1.0]], [2.0, 1.0], [0.5, 0.0]).tolist()
    [2.5, 1.5]
    """
    X, w, v = (np.asarray(a, dtype=np.float64) for a in (features, weights, shift))
    return X @ w + (X @ v).sum()


def largest_row_norm(features: ArrayLike, p: float = 2.0) -> float:
    """Return the largest p-norm of a document (Lemma 34): |X'|_{1 to p}.

    The gradient by weight of a loss is at most this times that by score, in l1.

    Examples
    --------
    >>> largest_row_norm([[3.0, 4.0], [1.0, 1.0]])
    5.0
    """
    return float(np.linalg.norm(np.asarray(features, dtype=np.float64), ord=p, axis=1).max())


def bounds_itself(
    smoothness: float, losses: tuple[float, float], first: ArrayLike, second: ArrayLike
) -> bool:
    """Return whether (f(s) - f(s'))^2 <= 6 H (f(s) + f(s')) |s - s'|^2, largest change (Lemma 42).

    It holds for every loss of at least 0 with smoothness H.
    """
    gap = float(np.abs(np.asarray(first, float) - np.asarray(second, float)).max())
    limit = 6.0 * smoothness * (losses[0] + losses[1]) * gap**2
    return (losses[0] - losses[1]) ** 2 <= limit * (1.0 + 1e-12) + 1e-300
