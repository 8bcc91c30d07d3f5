"""B11, second half: what a ranker learnt from n lists promises on new ones.

Notes
-----
Chapter 4 of [T16] with errata R27 and R28. Losses are G-Lipschitz or H-smooth with respect to the
largest change of a score (``Surrogate.lipschitz`` and ``smoothness``), documents have norm at most
R, weights lie in the ball of radius W. Where length m is missing, it does not matter. All bounds
are on the expected loss of a new list less that of the best weights in the ball, in expectation
over the lists seen or with a confidence.
"""

import math

from keyhole.base.errors import check_integer, check_number


def _reach(constant: float, radius: float, norm: float, n_queries: int) -> float:
    check_integer(n_queries, "`n_queries`", at_least=1)
    return (
        check_number(constant, "constant of the loss", at_least=0.0)
        * check_number(radius, "`radius`", above=0.0)
        * check_number(norm, "`norm`", above=0.0)
    )


def _doubt(confidence: float) -> float:
    """Return delta, one less the confidence."""
    inside = check_number(confidence, "`confidence`", above=0.0, at_most=1.0)
    if inside == 1.0:
        check_number(math.nan, "`confidence` below 1")
    return 1.0 - inside


def descent_bound(
    lipschitz: float, radius: float, norm: float, n_queries: int, *, tight: bool = False
) -> float:
    """Return G W R sqrt(2 / n): averaged online gradient descent, in expectation (Theorem 35).

    ``tight``: G W R / sqrt(n), which the rate of :func:`best_rate` attains (R27).

    Examples
    --------
    >>> round(descent_bound(2.0, 1.0, 1.0, 10_000), 4)
    0.0283
    >>> descent_bound(2.0, 1.0, 1.0, 10_000, tight=True)
    0.02
    """
    reach = _reach(lipschitz, radius, norm, n_queries)
    return reach * math.sqrt((1.0 if tight else 2.0) / n_queries)


def best_rate(lipschitz: float, radius: float, norm: float, n_queries: int) -> float:
    """Return the rate W / (G R sqrt(n)) of the descent that :func:`descent_bound` is about.

    Its regret is at most W^2 / (2 eta) + eta (G R)^2 n / 2.
    """
    slope = _reach(lipschitz, 1.0, norm, n_queries)
    return check_number(radius, "`radius`", above=0.0) / (slope * math.sqrt(n_queries))


def regularised_bound(lipschitz: float, radius: float, norm: float, n_queries: int) -> float:
    """Return 2 G R W (8 / n + sqrt(2 / n)): regularised risk minimisation (Theorem 36).

    In expectation, for the strength of :func:`best_regularisation`.
    """
    reach = _reach(lipschitz, radius, norm, n_queries)
    return 2.0 * reach * (8.0 / n_queries + math.sqrt(2.0 / n_queries))


def best_regularisation(lipschitz: float, radius: float, norm: float, n_queries: int) -> float:
    """Return lambda = sqrt((4 G^2 R^2 / n) / (W^2 / 2 + 4 W^2 / n)) of A14.

    What is minimised is the mean loss plus lambda / 2 times the squared norm of the weights. This
    lambda makes the bound lambda W^2 / 2 + 4 (lambda W + G R)^2 / (lambda n) least.

    Examples
    --------
    >>> round(best_regularisation(2.0, 1.0, 1.0, 10_000), 4)
    0.0565
    """
    slope = _reach(lipschitz, 1.0, norm, n_queries)
    square = check_number(radius, "`radius`", above=0.0) ** 2
    return math.sqrt(4.0 * slope**2 / n_queries / (square / 2.0 + 4.0 * square / n_queries))


def older_bound(
    l2_lipschitz: float,
    radius: float,
    norm: float,
    n_queries: int,
    n_items: int,
    confidence: float,
    *,
    loss_bound: float = 1.0,
) -> float:
    """Return 3 G2 W R sqrt(m / n) + B sqrt(8 ln(1 / delta) / n), which grows with the lists.

    The bound of Chapelle and Wu that the chapter improves on, with the Euclidean constant G2 of
    the loss. Theirs is for losses in [0, 1]; those in [0, B] are B times such.
    """
    reach = _reach(l2_lipschitz, radius, norm, n_queries)
    n_items = check_integer(n_items, "`n_items`", at_least=1)
    loss_bound = check_number(loss_bound, "`loss_bound`", above=0.0)
    doubt = math.log(1.0 / _doubt(confidence))
    return 3.0 * reach * math.sqrt(n_items / n_queries) + loss_bound * math.sqrt(
        8.0 * doubt / n_queries
    )


def uniform_deviation(
    complexity: float, loss_bound: float, n_queries: int, confidence: float
) -> float:
    """Return 2 Rademacher + 3 B sqrt(ln(2 / delta) / (2 n)), for all weights of the ball at once.

    With the confidence, the expected loss of no weights exceeds their mean loss over the n lists by
    more than this. Complexities are those of :mod:`keyhole.bounds.covering`.
    """
    complexity = check_number(complexity, "`complexity`", at_least=0.0)
    n_queries = check_integer(n_queries, "`n_queries`", at_least=1)
    loss_bound = check_number(loss_bound, "`loss_bound`", above=0.0)
    doubt = math.log(2.0 / _doubt(confidence))
    return 2.0 * complexity + 3.0 * loss_bound * math.sqrt(doubt / (2.0 * n_queries))


def erm_bound(complexity: float, loss_bound: float, n_queries: int, confidence: float) -> float:
    """Return the excess risk of the weights with the least mean loss (Theorems 38 and 40).

    It is the sum of two deviations, each of which may fail with probability delta / 2: of all
    weights at once (:func:`uniform_deviation`), and of the mean loss of the best weights above
    their expected loss, at most B sqrt(ln(2 / delta) / (2 n)) by Hoeffding's inequality.
    """
    doubt = _doubt(confidence)
    above = uniform_deviation(complexity, loss_bound, n_queries, 1.0 - doubt / 2.0)
    return above + loss_bound * math.sqrt(math.log(2.0 / doubt) / (2.0 * n_queries))


def smooth_rate(
    smoothness: float, radius: float, norm: float, n_queries: int, optimal_loss: float
) -> float:
    """Return eta = W / (4 H W + 2 sqrt(4 H^2 W^2 + 2 H L n)), with H = R^2 ``smoothness``.

    The rate of Eq. 4.7, which asks for the loss L of the best weights.
    """
    curve = _reach(smoothness, 1.0, norm, n_queries) * norm
    radius = check_number(radius, "`radius`", above=0.0)
    optimal = check_number(optimal_loss, "`optimal_loss`", at_least=0.0)
    root = math.sqrt(4.0 * (curve * radius) ** 2 + 2.0 * curve * optimal * n_queries)
    return radius / (4.0 * curve * radius + 2.0 * root)


def smooth_descent_bound(
    smoothness: float, radius: float, norm: float, n_queries: int, optimal_loss: float
) -> float:
    """Return 2 sqrt(2 H W^2 L / n) + 8 H W^2 / n, H = R^2 ``smoothness`` (Eq. 4.8).

    Averaged descent at the rate of :func:`smooth_rate`, in expectation, for losses of at least 0:
    1 / n where the best weights have no loss.

    Examples
    --------
    >>> round(smooth_descent_bound(1.0, 1.0, 1.0, 10_000, 0.0), 4)
    0.0008
    """
    size = _reach(smoothness, radius, norm, n_queries) * radius * norm / n_queries
    optimal = check_number(optimal_loss, "`optimal_loss`", at_least=0.0)
    return 2.0 * math.sqrt(2.0 * size * optimal) + 8.0 * size


def residual(loss_bound: float, n_queries: int, confidence: float) -> float:
    """Return r0 = B (ln(1 / delta) + ln ln n) / n of Theorem 44."""
    n_queries = check_integer(n_queries, "`n_queries`", at_least=3)
    loss_bound = check_number(loss_bound, "`loss_bound`", above=0.0)
    doubt = math.log(1.0 / _doubt(confidence))
    return loss_bound * (doubt + math.log(math.log(n_queries))) / n_queries


def largest_loss(mean_loss: float, point: float, rest: float) -> float:
    """Return the largest L with L <= mean + 45 r* + sqrt(8 r* L) + sqrt(4 r0 L) + 20 r0.

    What Theorem 44 promises of weights whose mean loss over the lists seen is known; ``point`` is
    r* (:func:`keyhole.bounds.covering.fixed_point`) and ``rest`` r0 (:func:`residual`).

    Examples
    --------
    >>> largest_loss(0.25, 0.0, 0.0)
    0.25
    """
    point = check_number(point, "`point`", at_least=0.0)
    rest = check_number(rest, "`rest`", at_least=0.0)
    slope = math.sqrt(8.0 * point) + math.sqrt(4.0 * rest)
    offset = check_number(mean_loss, "`mean_loss`", at_least=0.0) + 45.0 * point + 20.0 * rest
    return ((slope + math.sqrt(slope**2 + 4.0 * offset)) / 2.0) ** 2


def fast_erm_bound(
    point: float, loss_bound: float, n_queries: int, confidence: float, optimal_loss: float
) -> float:
    """Return the excess risk of the weights with the least mean loss, losses smooth (Theorem 44).

    It rests on two statements, each of which may fail with probability delta / 2: that of
    :func:`largest_loss`, and that the best weights have a mean loss of at most
    L + sqrt(4 r0 L) + 4 r0, by Bernstein's inequality. The source simplifies further, and
    has larger constants for it.
    """
    doubt = _doubt(confidence)
    optimal = check_number(optimal_loss, "`optimal_loss`", at_least=0.0)
    rest = residual(loss_bound, n_queries, 1.0 - doubt / 2.0)
    mean = optimal + math.sqrt(4.0 * rest * optimal) + 4.0 * rest
    return largest_loss(mean, point, rest) - optimal
