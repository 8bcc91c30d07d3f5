"""B11, first half: covering numbers of linear scorers and the Rademacher complexity they give.

Notes
-----
Chapter 4 of [T16]. Loss G-Lipschitz with respect to the largest change of a score, n lists of m
documents, weights in a ball. Complexities follow from covering numbers N by the integral
inf over a of 4 a + 10 int_a^B sqrt(log2 N(e) / n) de. The source drops the ceilings of the
covering numbers in it; ``safe=True`` puts them back (R28). No complexity exceeds B, the range of
the loss; where a formula does, or where its logarithm makes no sense, B is returned.
"""

import math

from keyhole.base.errors import check_integer, check_number

_LEAST_ARGUMENT = math.e**2
"""Below it the squared logarithm of Corollary 39 falls faster than what it multiplies rises."""


def _checked(
    lipschitz: float, radius: float, norm: float, loss_bound: float, n_queries: int, n_items: int
) -> float:
    """Return the largest change of the loss within the ball, G W R."""
    check_integer(n_queries, "`n_queries`", at_least=1)
    check_integer(n_items, "`n_items`", at_least=1)
    check_number(loss_bound, "`loss_bound`", above=0.0)
    return (
        check_number(lipschitz, "`lipschitz`", at_least=0.0)
        * check_number(radius, "`radius`", above=0.0)
        * check_number(norm, "`norm`", above=0.0)
    )


def l2_covering(
    scale: float, *, lipschitz: float, radius: float, norm: float, n_queries: int, n_items: int
) -> float:
    """Return log2 of how many weights of the l2 ball represent all of them to within ``scale``.

    The losses of any weights on the n lists are then within ``scale`` of those of one of them:
    ceil(G^2 W^2 R^2 / scale^2) log2(2 m n + 1), Proposition 3.

    Examples
    --------
    >>> l2_covering(0.5, lipschitz=2, radius=1, norm=1, n_queries=1, n_items=1) / math.log2(3)
    16.0
    """
    reach = _checked(lipschitz, radius, norm, 1.0, n_queries, n_items)
    scale = check_number(scale, "`scale`", above=0.0)
    return math.ceil((reach / scale) ** 2) * math.log2(2 * n_items * n_queries + 1)


def l1_covering(
    scale: float,
    *,
    lipschitz: float,
    radius: float,
    norm: float,
    n_queries: int,
    n_items: int,
    n_features: int,
) -> float:
    """Return the same for the l1 ball, with ``norm`` the largest feature: Proposition 4.

    ceil(288 a^2 (2 + ln d) / scale^2) log2(2 ceil(8 a / scale) m n + 1), a = G W R.
    """
    reach = _checked(lipschitz, radius, norm, 1.0, n_queries, n_items)
    scale = check_number(scale, "`scale`", above=0.0)
    n_features = check_integer(n_features, "`n_features`", at_least=1)
    many = math.ceil(288.0 * (reach / scale) ** 2 * (2.0 + math.log(n_features)))
    return many * math.log2(2 * math.ceil(8.0 * reach / scale) * n_items * n_queries + 1)


def l2_complexity(
    *,
    lipschitz: float,
    radius: float,
    norm: float,
    loss_bound: float,
    n_queries: int,
    n_items: int,
    safe: bool = False,
) -> float:
    """Return the Rademacher complexity of the losses over the l2 ball, Corollary 37.

    10 A ln(6 B / (5 A)) with A = G W R sqrt(log2(3 m n) / n). ``safe``: with sqrt(2) A for A, as
    beyond a scale of G W R one weight covers all, and below it a ceiling at most doubles.

    Examples
    --------
    >>> problem = {"lipschitz": 2, "radius": 1, "norm": 1, "loss_bound": 7, "n_items": 100}
    >>> round(l2_complexity(**problem, n_queries=10**6), 3)
    0.708
    >>> l2_complexity(**problem, n_queries=10)
    7.0
    """
    reach = _checked(lipschitz, radius, norm, loss_bound, n_queries, n_items)
    size = reach * math.sqrt(math.log2(3 * n_items * n_queries) / n_queries)
    size *= math.sqrt(2.0) if safe else 1.0
    if size == 0.0:
        return 0.0
    if 2.5 * size >= loss_bound:  # the integral would begin beyond its end
        return float(loss_bound)
    return min(float(loss_bound), 10.0 * size * math.log(1.2 * loss_bound / size))


def l1_complexity(
    *,
    lipschitz: float,
    radius: float,
    norm: float,
    loss_bound: float,
    n_queries: int,
    n_items: int,
    n_features: int,
    safe: bool = False,
) -> float:
    """Return the Rademacher complexity of the losses over the l1 ball, Corollary 39.

    With a = G W R, R the largest feature, and b = a sqrt(ln d log2(24 m n a)):
    120 sqrt(2) b / sqrt(n) ln^2((B + 24 m n a) / (40 sqrt(2) b)). That is the source's formula,
    which leaves the 2 of 2 + ln d out. ``safe`` integrates the covering numbers with
    it, ceilings included: 4 e + c (2/3) ln 2 (T(e)^(3/2) - T(min(a, B))^(3/2)) at the best
    scale e, with T(e) = log2(19 m n a / e) and c = 10 a sqrt(288.5 (2 + ln d) / n).
    """
    reach = _checked(lipschitz, radius, norm, loss_bound, n_queries, n_items)
    n_features = check_integer(n_features, "`n_features`", at_least=1)
    if reach == 0.0:
        return 0.0
    many = n_items * n_queries
    if safe:
        return _safe_l1(reach, loss_bound, n_queries, many, n_features)
    inside = 24.0 * many * reach
    if inside <= 1.0 or n_features == 1:
        return float(loss_bound)
    spread = reach * math.sqrt(math.log(n_features) * math.log2(inside))
    argument = (loss_bound + inside) / (40.0 * math.sqrt(2.0) * spread)
    if argument <= _LEAST_ARGUMENT:
        return float(loss_bound)
    value = 120.0 * math.sqrt(2.0 / n_queries) * spread * math.log(argument) ** 2
    return min(float(loss_bound), value)


def _safe_l1(reach: float, loss_bound: float, n: int, many: int, n_features: int) -> float:
    c = 10.0 * reach * math.sqrt(288.5 * (2.0 + math.log(n_features)) / n)
    top = min(reach, loss_bound)  # one weight covers beyond a; there 288 (2 + ln d) is over 576

    def depth(scale: float) -> float:
        return math.log2(19.0 * many * reach / scale)

    scale = top
    for _ in range(60):  # 4 scale = c sqrt(T(scale)) is where the bound is least
        scale = min(top, 0.25 * c * math.sqrt(depth(scale)))
    integral = (2.0 / 3.0) * math.log(2.0) * (depth(scale) ** 1.5 - depth(top) ** 1.5)
    return min(float(loss_bound), 4.0 * scale + c * integral)


def local_scale(
    *,
    smoothness: float,
    radius: float,
    norm: float,
    n_queries: int,
    n_items: int,
    safe: bool = False,
) -> float:
    """Return C = 5 sqrt(3) W R sqrt(H log2(3 m n) / n) of Corollary 43.

    ``safe``: sqrt(8) times as much. A factor sqrt(2) puts the ceilings back. The other 2 is
    for a gap in the source: it covers the weights of small loss by weights that may have a
    large one, and choosing them among those of small loss halves the scale.
    """
    _checked(smoothness, radius, norm, 1.0, n_queries, n_items)
    size = 5.0 * math.sqrt(3.0 * smoothness * math.log2(3 * n_items * n_queries) / n_queries)
    return size * radius * norm * (math.sqrt(8.0) if safe else 1.0)


def local_complexity(loss: float, scale: float, loss_bound: float) -> float:
    """Return 4 sqrt(r) C ln(3 sqrt(B) / C): the complexity of the losses of mean at most r.

    ``scale`` is the C of :func:`local_scale`. It is at most sqrt(B r), by Jensen's inequality.

    Examples
    --------
    >>> round(local_complexity(0.01, 0.05, 1.0), 3)
    0.082
    """
    loss = check_number(loss, "`loss`", at_least=0.0)
    loss_bound = check_number(loss_bound, "`loss_bound`", above=0.0)
    return math.sqrt(loss) * _slope(check_number(scale, "`scale`", at_least=0.0), loss_bound)


def _slope(scale: float, loss_bound: float) -> float:
    if scale == 0.0:
        return 0.0
    most = math.sqrt(loss_bound)
    if scale >= most:
        return most
    return min(most, 4.0 * scale * math.log(3.0 * most / scale))


def fixed_point(scale: float, loss_bound: float) -> float:
    """Return r* = (4 C ln(3 sqrt(B) / C))^2, where the local complexity of r is r itself.

    Examples
    --------
    >>> r = fixed_point(0.01, 1.0)
    >>> math.isclose(local_complexity(r, 0.01, 1.0), r)
    True
    """
    loss_bound = check_number(loss_bound, "`loss_bound`", above=0.0)
    return _slope(check_number(scale, "`scale`", at_least=0.0), loss_bound) ** 2
