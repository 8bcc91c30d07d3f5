"""All that B11 promises of one problem, each with what it asks for."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from keyhole.bounds import covering
from keyhole.bounds import generalisation as risk
from keyhole.errors import InvalidInput, check_choice, check_integer, check_number
from keyhole.surrogates import Surrogate
from keyhole.surrogates import surrogate as named_surrogate

BALLS = ("l2", "l1")


@dataclass(frozen=True)
class Problem:
    """What bounds ask of a problem.

    Parameters
    ----------
    surrogate
        The loss, or its name.
    n_queries, n_items
        Lists to learn from (n), documents of the longest list (m).
    radius, norm
        Weights lie in a ball of this radius (W); no document has a larger norm (R).
    ball
        ``l2``: both are Euclidean. ``l1``: the sum of absolute weights, and the largest feature.
    confidence
        Of the bounds that hold with a probability.
    n_features
        Features of a document; only the l1 ball asks for it.
    max_grade
        The top grade.
    loss_bound
        Range of the loss of a list (B). By default what the surrogate says for scores in [-WR, WR].
    optimal_loss
        Expected loss of the best weights (L): only the fast rates ask for it.
    """

    surrogate: Surrogate | str
    n_queries: int
    n_items: int
    radius: float = 1.0
    norm: float = 1.0
    ball: str = "l2"
    confidence: float = 0.95
    n_features: int | None = None
    max_grade: float = 1.0
    loss_bound: float | None = None
    optimal_loss: float | None = None

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
class Guarantee:
    """A bound on the excess risk, or why there is none (``value`` None, ``needs`` says what)."""

    name: str
    source: str
    learner: str
    holds: str
    value: float | None
    needs: str


def guarantees(problem: Problem, *, safe: bool = False) -> list[Guarantee]:
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
    rows = [make(problem, safe) for make in _ROWS if make is not _l1 or problem.ball == "l1"]
    return sorted(rows, key=lambda row: math.inf if row.value is None else row.value)


def smallest(found: list[Guarantee]) -> Guarantee | None:
    """Return the smallest bound, or None where none applies."""
    return found[0] if found and found[0].value is not None else None


_MEAN = "in expectation"
_CONVEX = "a convex loss"
_KNOWN = "the loss of the best weights"


def _level(problem: Problem) -> str:
    return f"with confidence {problem.confidence:g}"


def _missing(problem: Problem, *, convex: bool, kind: str, norm: str = "linf") -> str:
    """Return what a problem lacks, or nothing."""
    if convex and not problem.loss.is_convex:
        return f"{_CONVEX}: {problem.loss.name} is not"
    if problem.constant(kind, norm) is None:
        word = "Lipschitz" if kind == "lipschitz" else "smooth"
        return f"a {word} loss: {problem.loss.name} is not"
    if kind == "smoothness" and not problem.loss.is_nonnegative:
        return f"a loss of at least 0: {problem.loss.name} can be less"
    return ""


def _row(
    problem: Problem, names: tuple[str, str, str, str], needs: str, missing: str,
    value: Callable[[], float],
) -> Guarantee:  # fmt: skip
    if missing:
        return Guarantee(*names, None, missing)
    return Guarantee(*names, value(), needs)


def _descent(problem: Problem, safe: bool, tight: bool = False) -> Guarantee:
    name = "descent, averaged, tight" if tight else "descent, averaged"
    names = (name, "Theorem 35", "one pass of gradient descent, weights averaged", _MEAN)
    lipschitz = problem.constant("lipschitz")
    return _row(
        problem, names, f"{_CONVEX}, Lipschitz", _missing(problem, convex=True, kind="lipschitz"),
        lambda: risk.descent_bound(
            lipschitz or 0.0, problem.radius, problem.euclidean_norm, problem.n_queries, tight=tight
        ),
    )  # fmt: skip


def _regularised(problem: Problem, safe: bool) -> Guarantee:
    names = (
        "regularised",
        "Theorem 36",
        "least regularised mean loss, at the lambda of Theorem 36",
        _MEAN,
    )
    lipschitz = problem.constant("lipschitz")
    return _row(
        problem, names, f"{_CONVEX}, Lipschitz", _missing(problem, convex=True, kind="lipschitz"),
        lambda: risk.regularised_bound(
            lipschitz or 0.0, problem.radius, problem.euclidean_norm, problem.n_queries
        ),
    )  # fmt: skip


def _l2(problem: Problem, safe: bool) -> Guarantee:
    names = ("least mean loss", "Theorem 38", "least mean loss in the ball", _level(problem))
    return _row(
        problem, names, "a Lipschitz, bounded loss, convex or not",
        _missing(problem, convex=False, kind="lipschitz"),
        lambda: risk.erm_bound(
            covering.l2_complexity(
                lipschitz=problem.constant("lipschitz") or 0.0, radius=problem.radius,
                norm=problem.euclidean_norm, loss_bound=problem.range,
                n_queries=problem.n_queries, n_items=problem.n_items, safe=safe,
            ),
            problem.range, problem.n_queries, problem.confidence,
        ),
    )  # fmt: skip


def _l1(problem: Problem, safe: bool) -> Guarantee:
    names = ("least mean loss, l1", "Theorem 40", "least mean loss in the l1 ball", _level(problem))
    return _row(
        problem, names, "a Lipschitz, bounded loss, convex or not",
        _missing(problem, convex=False, kind="lipschitz"),
        lambda: risk.erm_bound(
            covering.l1_complexity(
                lipschitz=problem.constant("lipschitz") or 0.0, radius=problem.radius,
                norm=problem.norm, loss_bound=problem.range, n_queries=problem.n_queries,
                n_items=problem.n_items, n_features=problem.n_features or 1, safe=safe,
            ),
            problem.range, problem.n_queries, problem.confidence,
        ),
    )  # fmt: skip


def _smooth_descent(problem: Problem, safe: bool) -> Guarantee:
    learner = "one pass of gradient descent at the rate of Eq. 4.7, weights averaged"
    names = ("descent, averaged, smooth loss", "Eq. 4.8", learner, _MEAN)
    missing = _missing(problem, convex=True, kind="smoothness")
    return _row(
        problem, names, f"{_CONVEX}, smooth, of at least 0; {_KNOWN}",
        missing or _not_told(problem),
        lambda: risk.smooth_descent_bound(
            problem.constant("smoothness") or 0.0, problem.radius, problem.euclidean_norm,
            problem.n_queries, problem.optimal_loss or 0.0,
        ),
    )  # fmt: skip


def _smooth_erm(problem: Problem, safe: bool) -> Guarantee:
    names = ("least mean loss, smooth loss", "Theorem 44", "least mean loss in the ball",
             _level(problem))  # fmt: skip

    def value() -> float:
        scale = covering.local_scale(
            smoothness=problem.constant("smoothness") or 0.0, radius=problem.radius,
            norm=problem.euclidean_norm, n_queries=problem.n_queries, n_items=problem.n_items,
            safe=safe,
        )  # fmt: skip
        return risk.fast_erm_bound(
            covering.fixed_point(scale, problem.range), problem.range, problem.n_queries,
            problem.confidence, problem.optimal_loss or 0.0,
        )  # fmt: skip

    missing = _missing(problem, convex=False, kind="smoothness") or _not_told(problem)
    return _row(problem, names, f"a smooth, bounded loss of at least 0; {_KNOWN}", missing, value)


def _not_told(problem: Problem) -> str:
    return "" if problem.optimal_loss is not None else _KNOWN


def _older(problem: Problem, safe: bool) -> Guarantee:
    names = ("least mean loss, grows with lists", "Chapelle and Wu", "least mean loss in the ball",
             _level(problem))  # fmt: skip
    return _row(
        problem, names, "a Lipschitz loss (l2), bounded",
        _missing(problem, convex=False, kind="lipschitz", norm="l2"),
        lambda: risk.older_bound(
            problem.constant("lipschitz", "l2") or 0.0, problem.radius, problem.euclidean_norm,
            problem.n_queries, problem.n_items, problem.confidence, loss_bound=problem.range,
        ),
    )  # fmt: skip


_ROWS: tuple[Callable[[Problem, bool], Guarantee], ...] = (
    _descent,
    partial(_descent, tight=True),
    _regularised,
    _l2,
    _l1,
    _smooth_descent,
    _smooth_erm,
    _older,
)
