"""All that B11 promises of one problem, each with what it asks for."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from keyhole.base.described import described
from keyhole.base.errors import (
    InvalidInput,
    check_choice,
    check_integer,
    check_number,
    check_top_grade,
)
from keyhole.bounds import covering, generalisation as risk
from keyhole.surrogates import surrogate as named_surrogate
from keyhole.surrogates.base import Surrogate

BALLS = ("l2", "l1")


@dataclass(frozen=True)
class Problem:
    """What bounds ask of a problem.

    Radius and norm are Euclidean; in the ``l1`` ball they are the sum of absolute weights and the
    largest feature. Only that ball asks for the number of features.
    """

    surrogate: Surrogate | str = described(
        "listnet", "The loss: a name of 'keyhole list'.", type=str
    )
    n_queries: int = described(10_000, "Lists to learn from (n).", option="--queries")
    n_items: int = described(100, "Documents of the longest list (m).", option="--items")
    radius: float = described(1.0, "Weights lie in a ball of this radius (W).")
    norm: float = described(1.0, "No document has a larger norm (R).")
    ball: str = described(
        "l2", "The ball: l2, or l1 (radius is then a sum of weights, norm the largest feature)."
    )
    confidence: float = described(0.95, "The confidence of bounds that hold with a probability.")
    n_features: int | None = described(
        None, "Features of a document (d); required for the l1 ball.", option="--features"
    )
    max_grade: float = described(
        1.0, "The top grade: one less than --grades.", option="--max-grade/--grade"
    )
    loss_bound: float | None = described(
        None, "Range of the loss of a list (B). Default: its range for scores up to W R."
    )
    optimal_loss: float | None = described(
        None, "Expected loss of the best weights (L); required for the fast rates."
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "surrogate", named_surrogate(self.surrogate))
        check_integer(self.n_queries, "`n_queries`", at_least=3)
        check_integer(self.n_items, "`n_items`", at_least=1)
        for name in ("radius", "norm"):
            check_number(getattr(self, name), f"`{name}`", above=0.0)
        check_choice(self.ball, "ball", BALLS)
        level = check_number(self.confidence, "`confidence`", above=0.0, at_most=1.0)
        if level == 1.0:
            raise InvalidInput("`confidence` must be a number above 0 and below 1, got 1.0.")
        if self.n_features is not None:
            check_integer(self.n_features, "`n_features`", at_least=1)
        elif self.ball == "l1":
            raise InvalidInput("`n_features` must be given for the l1 ball.")
        check_top_grade(self.max_grade, "`max_grade`", exponential=True)
        if self.loss_bound is not None:
            check_number(self.loss_bound, "`loss_bound`", above=0.0)
        if self.optimal_loss is not None:
            check_number(self.optimal_loss, "`optimal_loss`", at_least=0.0)

    @property
    def loss(self) -> Surrogate:
        """The surrogate itself."""
        return named_surrogate(self.surrogate)

    @property
    def max_score(self) -> float:
        """The largest score, W R."""
        return self.radius * self.norm

    @property
    def euclidean_norm(self) -> float:
        """The largest Euclidean norm of a document that ``norm`` allows."""
        return self.norm * (math.sqrt(self.n_features or 1) if self.ball == "l1" else 1.0)

    @property
    def range(self) -> float:
        """The range of the loss of a list, B."""
        if self.loss_bound is not None:
            return self.loss_bound
        bound = self.loss.loss_range(
            self.n_items, max_grade=self.max_grade, max_score=self.max_score
        )
        if bound is None or bound == 0.0:
            raise InvalidInput(f"`loss_bound` must be given for {self.loss.name} on these lists.")
        return bound

    def constant(self, kind: str, norm: str = "linf") -> float | None:
        """Return the ``lipschitz`` or ``smoothness`` constant of the loss on these lists."""
        return getattr(self.loss, kind)(
            self.n_items, max_grade=self.max_grade, max_score=self.max_score, norm=norm
        )


@dataclass(frozen=True)
class RiskBound:
    """A bound on the excess risk, or why there is none (``value`` None, ``needs`` says what)."""

    name: str
    source: str
    learner: str
    holds: str
    value: float | None
    needs: str


@dataclass(frozen=True)
class _Theorem:
    """One bound: what it is called, what it asks for, and its value.

    ``value`` takes the problem, the constant of the loss that the bound asks for, and ``safe``.
    """

    name: str
    source: str
    learner: str
    needs: str
    value: Callable[[Problem, float, bool], float]
    constant: str = "lipschitz"
    norm: str = "linf"
    convex: bool = False
    in_expectation: bool = False
    knows_optimum: bool = False
    balls: tuple[str, ...] = BALLS

    def lacks(self, problem: Problem) -> str:
        """Return what a problem lacks for this bound, or nothing."""
        loss = problem.loss
        if self.convex and not loss.is_convex:
            return f"a convex loss: {loss.name} is not"
        if problem.constant(self.constant, self.norm) is None:
            word = "Lipschitz" if self.constant == "lipschitz" else "smooth"
            return f"a {word} loss: {loss.name} is not"
        if self.constant == "smoothness" and not loss.is_nonnegative:
            return f"a loss of at least 0: {loss.name} can be less"
        if self.knows_optimum and problem.optimal_loss is None:
            return _OPTIMUM
        return ""

    def on(self, problem: Problem, safe: bool) -> RiskBound:
        """Return what this bound promises of a problem, or what is lacking."""
        holds = _MEAN if self.in_expectation else f"with confidence {problem.confidence:g}"
        about = (self.name, self.source, self.learner, holds)
        lacking = self.lacks(problem)
        if lacking:
            return RiskBound(*about, None, lacking)
        constant = problem.constant(self.constant, self.norm) or 0.0
        return RiskBound(*about, self.value(problem, constant, safe), self.needs)


def guarantees(problem: Problem, *, safe: bool = False) -> list[RiskBound]:
    """Return every bound of B11 on a problem, the smallest first, then those that do not apply.

    Parameters
    ----------
    problem
        What is learnt.
    safe
        Covering integrals with all their ceilings (R28); these bounds hold as stated.

    Examples
    --------
    >>> found = guarantees(Problem("listnet", n_queries=10_000, n_items=100))
    >>> found[0].name, round(found[0].value, 3)
    ('descent, averaged, tight', 0.02)
    >>> [row.name for row in found if row.value is None]
    ['descent, averaged, smooth loss', 'least mean loss, smooth loss']
    """
    rows = [theorem.on(problem, safe) for theorem in _THEOREMS if problem.ball in theorem.balls]
    return sorted(rows, key=lambda row: math.inf if row.value is None else row.value)


def smallest(found: list[RiskBound]) -> RiskBound | None:
    """Return the smallest bound, or None where none applies."""
    return found[0] if found and found[0].value is not None else None


# --------------------------------------------------------------------------- values of the bounds


def _sizes(problem: Problem) -> tuple[float, float, int]:
    """Return W, the largest Euclidean norm of a document, and n."""
    return problem.radius, problem.euclidean_norm, problem.n_queries


def _descent(problem: Problem, lipschitz: float, _: bool, tight: bool = False) -> float:
    return risk.descent_bound(lipschitz, *_sizes(problem), tight=tight)


def _regularised(problem: Problem, lipschitz: float, _: bool) -> float:
    return risk.regularised_bound(lipschitz, *_sizes(problem))


def _in_l2_ball(problem: Problem, lipschitz: float, safe: bool) -> float:
    complexity = covering.l2_complexity(
        lipschitz=lipschitz, radius=problem.radius, norm=problem.euclidean_norm,
        loss_bound=problem.range, n_queries=problem.n_queries, n_items=problem.n_items, safe=safe,
    )  # fmt: skip
    return risk.erm_bound(complexity, problem.range, problem.n_queries, problem.confidence)


def _in_l1_ball(problem: Problem, lipschitz: float, safe: bool) -> float:
    complexity = covering.l1_complexity(
        lipschitz=lipschitz, radius=problem.radius, norm=problem.norm, loss_bound=problem.range,
        n_queries=problem.n_queries, n_items=problem.n_items, n_features=problem.n_features or 1,
        safe=safe,
    )  # fmt: skip
    return risk.erm_bound(complexity, problem.range, problem.n_queries, problem.confidence)


def _smooth_descent(problem: Problem, smoothness: float, _: bool) -> float:
    return risk.smooth_descent_bound(smoothness, *_sizes(problem), problem.optimal_loss or 0.0)


def _smooth_least(problem: Problem, smoothness: float, safe: bool) -> float:
    scale = covering.local_scale(
        smoothness=smoothness, radius=problem.radius, norm=problem.euclidean_norm,
        n_queries=problem.n_queries, n_items=problem.n_items, safe=safe,
    )  # fmt: skip
    return risk.fast_erm_bound(
        covering.fixed_point(scale, problem.range), problem.range, problem.n_queries,
        problem.confidence, problem.optimal_loss or 0.0,
    )  # fmt: skip


def _older(problem: Problem, lipschitz: float, _: bool) -> float:
    return risk.older_bound(
        lipschitz, *_sizes(problem), problem.n_items, problem.confidence, loss_bound=problem.range
    )


# --------------------------------------------------------------------------- the table

_MEAN = "in expectation"
_OPTIMUM = "the loss of the best weights"
_AVERAGED = "one pass of gradient descent, weights averaged"
_LEAST = "least mean loss in the ball"
_STEEP = "a convex loss, Lipschitz"
_ANY = "a Lipschitz, bounded loss, convex or not"

_THEOREMS = (
    _Theorem(
        "descent, averaged", "Theorem 35", _AVERAGED, _STEEP, _descent,
        convex=True, in_expectation=True,
    ),
    _Theorem(
        "descent, averaged, tight", "Theorem 35", _AVERAGED, _STEEP, partial(_descent, tight=True),
        convex=True, in_expectation=True,
    ),
    _Theorem(
        "regularised", "Theorem 36", "least regularised mean loss, at the lambda of Theorem 36",
        _STEEP, _regularised, convex=True, in_expectation=True,
    ),
    _Theorem("least mean loss", "Theorem 38", _LEAST, _ANY, _in_l2_ball),
    _Theorem(
        "least mean loss, l1", "Theorem 40", "least mean loss in the l1 ball", _ANY, _in_l1_ball,
        balls=("l1",),
    ),
    _Theorem(
        "descent, averaged, smooth loss", "Eq. 4.8",
        "one pass of gradient descent at the rate of Eq. 4.7, weights averaged",
        f"a convex loss, smooth, of at least 0; {_OPTIMUM}", _smooth_descent,
        constant="smoothness", convex=True, in_expectation=True, knows_optimum=True,
    ),
    _Theorem(
        "least mean loss, smooth loss", "Theorem 44", _LEAST,
        f"a smooth, bounded loss of at least 0; {_OPTIMUM}", _smooth_least,
        constant="smoothness", knows_optimum=True,
    ),
    _Theorem(
        "least mean loss, grows with lists", "Chapelle and Wu", _LEAST,
        "a Lipschitz loss (l2), bounded", _older, norm="l2",
    ),
)  # fmt: skip
