"""B11 to B13 against second implementations: integrals, high precision, minimisation."""

import itertools
import math
from decimal import Decimal, getcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar

from keyhole.base.errors import KeyholeError
from keyhole.bounds import covering as c, generalisation as g, scorers
from keyhole.bounds.guarantees import Problem, guarantees, smallest
from keyhole.surrogates import SURROGATES, surrogate

getcontext().prec = 50
GRID = list(itertools.product((0.3, 2.0), (0.5, 4.0), (1.0, 3.0), (10, 1000, 10**6)))


def D(x):  # noqa: N802
    return Decimal(repr(float(x)))


# ------------------------------------------------------------------ closed forms in 50 digits


@pytest.mark.parametrize(("G", "W", "R", "n"), GRID)
def test_bounds_in_fifty_digits(G, W, R, n):
    def same(value, exact):
        assert value == pytest.approx(float(exact), rel=1e-13)

    reach, n_ = D(G) * D(W) * D(R), D(n)
    same(g.descent_bound(G, W, R, n), reach * (2 / n_).sqrt())
    same(g.descent_bound(G, W, R, n, tight=True), reach / n_.sqrt())
    same(g.regularised_bound(G, W, R, n), 2 * reach * (8 / n_ + (2 / n_).sqrt()))
    lam = ((4 * (D(G) * D(R)) ** 2 / n_) / (D(W) ** 2 / 2 + 4 * D(W) ** 2 / n_)).sqrt()
    same(g.best_regularisation(G, W, R, n), lam)
    delta = Decimal("0.05")
    for m, B in ((1, 1.0), (50, 3.0)):
        older = 3 * reach * (m / n_).sqrt() + D(B) * (8 * (1 / delta).ln() / n_).sqrt()
        same(g.older_bound(G, W, R, n, m, 0.95, loss_bound=B), older)
        dev = 2 * D(0.25) + 3 * D(B) * ((2 / delta).ln() / (2 * n_)).sqrt()
        same(g.uniform_deviation(0.25, B, n, 0.95), dev)
        half = 2 * D(0.25) + 3 * D(B) * ((4 / delta).ln() / (2 * n_)).sqrt()
        same(g.erm_bound(0.25, B, n, 0.95), half + D(B) * ((2 / delta).ln() / (2 * n_)).sqrt())
        same(g.residual(B, n, 0.95), D(B) * ((1 / delta).ln() + n_.ln().ln()) / n_)
        A = reach * ((3 * m * n_).ln() / Decimal(2).ln() / n_).sqrt()
        for safe in (False, True):
            size = A * (Decimal(2).sqrt() if safe else 1)
            exact = 10 * size * (D(6) * D(B) / (5 * size)).ln()
            if 5 * size / 2 >= D(B) or exact > D(B):
                exact = D(B)
            same(c.l2_complexity(lipschitz=G, radius=W, norm=R, loss_bound=B, n_queries=n,
                                 n_items=m, safe=safe), exact)  # fmt: skip
        H = D(G)
        C = (
            5
            * Decimal(3).sqrt()
            * D(W)
            * D(R)
            * (H * (3 * m * n_).ln() / Decimal(2).ln() / n_).sqrt()
        )
        for safe in (False, True):
            scale = C * (Decimal(8).sqrt() if safe else 1)
            got = c.local_scale(smoothness=G, radius=W, norm=R, n_queries=n, n_items=m, safe=safe)
            same(got, scale)
            slope = min(D(B).sqrt(), 4 * scale * (3 * D(B).sqrt() / scale).ln())
            if scale >= D(B).sqrt():
                slope = D(B).sqrt()
            same(c.local_complexity(0.3, got, B), D(0.3).sqrt() * slope)
            same(c.fixed_point(got, B), slope**2)


@pytest.mark.parametrize("d", [2, 30, 10**5])
@pytest.mark.parametrize(("m", "n"), [(2, 10**7), (100, 10**10)])
def test_l1_complexity_in_fifty_digits(m, n, d):
    a, B, ln2 = D(2) * D(0.5) * D(3), D(30), Decimal(2).ln()
    inside = 24 * m * n * a
    root = (D(d).ln() * inside.ln() / ln2).sqrt()
    exact = 120 * D(2).sqrt() * a * root / D(n).sqrt()
    exact *= ((B + inside) / (40 * D(2).sqrt() * a * root)).ln() ** 2
    got = c.l1_complexity(
        lipschitz=2, radius=0.5, norm=3, loss_bound=30, n_queries=n, n_items=m, n_features=d
    )
    assert got == pytest.approx(min(30.0, float(exact)), rel=1e-12)


# ---------------------------------------------------------------- the integrals they come from


def dudley(log_covering, top, loss_bound, n):
    """inf over a of 4 a + 10 int_a^B sqrt(log2 N / n), N with its ceilings and 1 beyond ``top``."""
    top = min(top, loss_bound)
    edges = np.geomspace(top, top * 1e-7, 4000)
    middle = np.sqrt(edges[1:] * edges[:-1])
    pieces = [math.sqrt(log_covering(e) / n) for e in middle] * -np.diff(edges)
    return min(4 * top, float((4 * edges[1:] + 10 * np.cumsum(pieces)).min()))


@pytest.mark.parametrize(("G", "m", "n"), list(itertools.product((0.1, 2), (1, 40), (1e4, 1e8))))
def test_safe_complexities_are_above_the_integral_of_their_covering_numbers(G, m, n):
    how: dict[str, Any] = {
        "lipschitz": G,
        "radius": 1.0,
        "norm": 1.0,
        "n_queries": int(n),
        "n_items": m,
    }
    for B in (0.05, 1.0, 50.0):
        exact = dudley(lambda e: c.l2_covering(e, **how), G, B, n)
        safe = c.l2_complexity(**how, loss_bound=B, safe=True)
        assert safe >= min(B, exact) * (1 - 1e-3)
        plain = c.l2_complexity(**how, loss_bound=B)
        assert safe <= math.sqrt(2) * plain * (1 + 1e-12)  # R28
        for d in (2, 10**4):
            exact = dudley(lambda e, d=d: c.l1_covering(e, **how, n_features=d), G, B, n)
            safe = c.l1_complexity(**how, n_features=d, loss_bound=B, safe=True)
            assert min(B, exact) * (1 - 1e-3) <= safe <= max(1.2 * exact, 1e-12)
            assert safe <= c.l1_complexity(**how, n_features=d, loss_bound=B) * (1 + 1e-12)


def test_the_plain_complexity_is_the_integral_without_ceilings():
    G, B, m, n = 2.0, 5.0, 20, 10**7
    A = G * math.sqrt(math.log2(3 * m * n) / n)

    def total(a):
        return 4 * a + 10 * quad(lambda e: A / e, a, B)[0]

    best = minimize_scalar(total, bounds=(1e-6, B), method="bounded", options={"xatol": 1e-9}).fun
    got = c.l2_complexity(lipschitz=G, radius=1, norm=1, loss_bound=B, n_queries=n, n_items=m)
    assert best <= got <= best * 1.02  # 6 stands for 2 e
    assert 10 * A * math.log(2 * math.e * B / (5 * A)) == pytest.approx(best, rel=1e-6)


def test_the_fixed_point_is_one():
    scale, B = 0.002, 2.0
    found = brentq(lambda r: c.local_complexity(r, scale, B) - r, 1e-9, 2.0)
    assert c.fixed_point(scale, B) == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize(("H", "W", "R", "n"), GRID)
def test_the_smooth_rate_is_best_and_its_bound_holds(H, W, R, n):
    for L in (0.0, 0.1, 2.0):
        curve = H * R**2

        def risk(rate, L=L, curve=curve):
            room = 1 - 4 * rate * curve
            return (L / room + W**2 / (2 * rate * room * n)) if room > 0 else math.inf

        rate = g.smooth_rate(H, W, R, n, L)
        limit = 0.25 / curve
        best = minimize_scalar(risk, bounds=(0, limit), method="bounded", options={"xatol": 1e-14})
        assert risk(rate) <= best.fun * (1 + 1e-6)
        assert risk(rate) <= L + g.smooth_descent_bound(H, W, R, n, L) + 1e-12


@pytest.mark.parametrize(("G", "W", "R", "n"), GRID)
def test_lambda_of_a14_is_best_and_its_bound_holds(G, W, R, n):
    def bound(log_lambda):
        lam = math.exp(log_lambda)
        return lam * W**2 / 2 + 4 * (lam * W + G * R) ** 2 / (lam * n)

    best = minimize_scalar(bound, bracket=(-3, 0))
    assert g.best_regularisation(G, W, R, n) == pytest.approx(math.exp(best.x), rel=1e-5)
    assert best.fun <= g.regularised_bound(G, W, R, n) * (1 + 1e-12)


def test_the_rate_of_descent_is_best():
    def regret(log_rate):
        rate = math.exp(log_rate)
        return 4.0 / (2 * rate) + rate * (3.0 * 1.5) ** 2 * 400 / 2

    best = minimize_scalar(regret, bracket=(-5, 0))
    assert g.best_rate(3.0, 2.0, 1.5, 400) == pytest.approx(math.exp(best.x), rel=1e-5)
    assert g.descent_bound(3.0, 2.0, 1.5, 400, tight=True) == pytest.approx(best.fun / 400)


def test_largest_loss_solves_its_inequality():
    for mean, point, rest in itertools.product((0.0, 0.2, 3.0), (0.0, 1e-3, 0.2), (1e-4, 0.1)):

        def excess(L, mean=mean, point=point, rest=rest):
            right = mean + 45 * point + 20 * rest
            return L - right - math.sqrt(8 * point * L) - math.sqrt(4 * rest * L)

        found = brentq(excess, (mean + 1e-9) / 2, 1e4, xtol=1e-12)
        assert g.largest_loss(mean, point, rest) == pytest.approx(found, rel=1e-8)
    assert g.fast_erm_bound(0.0, 1.0, 10**12, 0.9, 0.5) < 1e-4


# ------------------------------------------------------------------------------- properties

sizes = st.floats(0.01, 50.0)
counts = st.integers(3, 10**7)


@settings(max_examples=60, deadline=None)
@given(
    G=sizes, W=sizes, R=sizes, B=sizes, n=counts, m=st.integers(1, 1000), more=st.floats(1.01, 9)
)
def test_bounds_rise_and_fall_as_they_should(G, W, R, B, n, m, more):
    def values(G=G, W=W, R=R, B=B, n=n, m=m, d=50, level=0.9, L=0.1):
        how = {"radius": W, "norm": R, "n_queries": n, "n_items": m}
        kinds = {"loss_bound": B, **how}
        return np.array([
            g.descent_bound(G, W, R, n), g.regularised_bound(G, W, R, n),
            g.older_bound(G, W, R, n, m, level, loss_bound=B),
            g.smooth_descent_bound(G, W, R, n, L),
            *(c.l2_complexity(lipschitz=G, **kinds, safe=safe) for safe in (False, True)),
            c.l1_complexity(lipschitz=G, **kinds, n_features=d, safe=True),
            g.erm_bound(0.1, B, n, level),
            c.fixed_point(c.local_scale(smoothness=G, **how), B),
        ])  # fmt: skip

    here = values()
    slack = 1 + 1e-9
    assert (here >= 0).all()
    for changed in ({"G": G * more}, {"W": W * more}, {"R": R * more}, {"B": B * more},
                    {"d": 500}, {"level": 0.99}, {"L": 0.2}, {"m": 2 * m}):  # fmt: skip
        assert (here <= values(**changed) * slack).all(), changed
    assert (values(n=8 * n) <= here * slack).all()
    without_length = [0, 1, 3, 7]
    assert (values(m=10**6)[without_length] == here[without_length]).all()


def test_limits():
    how: dict[str, Any] = {
        "lipschitz": 2.0,
        "radius": 1.0,
        "norm": 1.0,
        "loss_bound": 5.0,
        "n_items": 100,
    }
    many = 10**15
    assert c.l2_complexity(**how, n_queries=many) < 1e-4
    assert c.l1_complexity(**how, n_queries=9 * 10**18, n_features=100) < 1e-2
    assert g.descent_bound(2, 1, 1, many) < 1e-6
    assert g.smooth_descent_bound(1, 1, 1, 1000, 0.0) == 8e-3  # 1 / n
    ratio = g.smooth_descent_bound(1, 1, 1, 4 * 10**8, 1.0) / g.smooth_descent_bound(
        1, 1, 1, 10**8, 1.0
    )
    assert ratio == pytest.approx(0.5, abs=1e-3)  # 1 / sqrt(n)


# ------------------------------------------------------------------------------- all of them


def test_every_surrogate_has_its_guarantees():
    for name in SURROGATES:
        options = {"max_grade": 2} if name in ("logistic", "ordinal") else {}
        problem = Problem(surrogate(name, **options), 1000, 10, max_grade=2, optimal_loss=0.1)
        rows = guarantees(problem)
        found = [row.value for row in rows if row.value is not None]
        assert found == sorted(found)
        assert smallest(rows) is rows[0]
        convex = {row.source for row in rows if row.value is not None} & {"Theorem 35", "Eq. 4.8"}
        assert bool(convex) is problem.loss.is_convex
        for row, safe in zip(
            sorted(rows, key=str), sorted(guarantees(problem, safe=True), key=str), strict=True
        ):
            assert row.value is None or safe.value is not None


def test_the_length_of_lists_matters_only_to_the_older_bound_and_through_logarithms():
    short, long = (Problem("listnet", 10**6, m, loss_bound=5.0, optimal_loss=0.1) for m in (5, 500))
    by_name = [{row.name: row.value for row in guarantees(p)} for p in (short, long)]
    grows = {name: by_name[1][name] / by_name[0][name] for name in by_name[0]}  # type: ignore[operator]
    for name in ("descent, averaged", "regularised", "descent, averaged, smooth loss"):
        assert grows[name] == 1.0
    assert 1.0 < grows["least mean loss"] < 1.5
    assert grows["least mean loss, grows with lists"] > 1.5


def test_bounds_that_do_not_apply_say_why():
    rows = {row.name: row.needs for row in guarantees(Problem("smooth_dcg", 100, 5))}
    assert rows["descent, averaged"] == "a convex loss: smooth_dcg is not"
    rows = {row.name: row.needs for row in guarantees(Problem("ranksvm", 100, 5))}
    assert rows["descent, averaged, smooth loss"] == "a smooth loss: ranksvm is not"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"surrogate": "listnett"}, "Did you mean 'listnet'"),
        ({"n_queries": 2}, "`n_queries` must be an integer of at least 3, got 2."),
        ({"radius": 0.0}, "`radius` must be a number above 0.0, got 0.0."),
        ({"confidence": 1.0}, "`confidence` must be a number above 0 and below 1"),
        ({"ball": "l1"}, "`n_features` must be given for the l1 ball."),
    ],
)
def test_bad_problems_are_one_sentence(change, sentence):
    fields = {"surrogate": "listnet", "n_queries": 10, "n_items": 5, **change}
    with pytest.raises(KeyholeError, match=sentence.replace("(", r"\(")):
        Problem(**fields)


# -------------------------------------------------------------------------------- B12 and B13


@pytest.mark.parametrize(("m", "d"), [(1, 3), (2, 1), (2, 4), (3, 3), (5, 2), (6, 5)])
def test_equivariant_scorers_have_twice_as_many_dimensions_as_features(m, d):
    assert scorers.equivariant_dimension(m, d) == (2 * d if m > 1 else d)


def test_equivariant_scorers_are_xw_plus_a_shift():
    """The 2 d of them are independent (m > 1) and commute with every order."""
    rng = np.random.default_rng(0)
    m, d = 4, 3
    basis = []
    for k in range(2 * d):
        w, v = np.zeros(d), np.zeros(d)
        (w if k < d else v)[k % d] = 1.0
        units = np.eye(m * d).reshape(-1, m, d)
        basis.append([scorers.equivariant_scores(X, w, v) for X in units])
        X, order = rng.normal(size=(m, d)), rng.permutation(m)
        assert np.allclose(
            scorers.equivariant_scores(X[order], w, v), scorers.equivariant_scores(X, w, v)[order]
        )
    assert np.linalg.matrix_rank(np.reshape(basis, (2 * d, -1))) == 2 * d


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_the_largest_row_norm_is_an_operator_norm(p):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(5, 3))
    ends = [np.linalg.norm(X.T @ v, p) for v in np.vstack([np.eye(5), -np.eye(5)])]
    inside = [np.linalg.norm(X.T @ v, p) for v in rng.dirichlet(np.ones(5), 200)]
    assert scorers.largest_row_norm(X, p) == pytest.approx(max(ends))
    assert max(inside) <= max(ends) + 1e-12


def test_smooth_losses_bound_themselves():
    rng = np.random.default_rng(2)
    tightest = 0.0
    for name in ("listnet", "squared", "ndcg_squared", "logistic", "pairwise_squared"):
        loss = surrogate(name)
        for _ in range(200):
            s, R = rng.uniform(-2, 2, 4), rng.integers(0, 2, 4)
            other = s + rng.choice([0.01, 1.0]) * rng.uniform(-1, 1, 4)
            H, two = loss.smoothness(4), (loss.value(s, R), loss.value(other, R))
            assert H is not None
            assert scorers.bounds_itself(H, two, s, other), name
            gap = np.abs(s - other).max()
            tightest = max(tightest, (two[0] - two[1]) ** 2 / (6 * H * sum(two) * gap**2))
    assert not scorers.bounds_itself(0.01 * tightest, (1.0, 0.0), [0.0], [0.5])


def test_what_the_docs_say_about_constants():
    """Of ListNet with W = R = 1, from docs/generalisation.md."""

    def value(name, n, m=100, **problem):
        given = Problem("listnet", n, m, optimal_loss=0.0, **problem)
        rows = guarantees(given, safe="ball" in problem)
        return {row.name: row.value or np.nan for row in rows}[name] / given.range

    plain, older = "least mean loss", "least mean loss, grows with lists"
    assert value(plain, 17_000) > 1 > value(plain, 25_000)
    smooth = "least mean loss, smooth loss"
    assert value(smooth, 10**7) > 1 > value(smooth, 3 * 10**7)
    assert value(plain, 10**6, 10**5) > value(older, 10**6, 10**5)
    assert value(plain, 10**6, 10**6) < value(older, 10**6, 10**6)
    for d, better in ((100, False), (10_000, True)):
        both = [value(name, 10**9, 10, ball="l1", n_features=d) for name in (plain + ", l1", plain)]
        assert (both[0] < both[1]) is better
