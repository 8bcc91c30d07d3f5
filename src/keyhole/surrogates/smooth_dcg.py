"""S8: SmoothDCG@1."""

import math
from typing import Any, ClassVar, NamedTuple

from keyhole.base.errors import check_integer, check_number
from keyhole.kernels.compiled import kernel
from keyhole.surrogates.base import PartKernel, Surrogate, SurrogateKernel
from keyhole.surrogates.scalar import fill_softmax, gain_of, softmax_norm

_DEFAULT_EPS = 0.1


class SmoothDCGParams(NamedTuple):
    """How soft the arg-max is."""

    eps: float


@kernel
def annealed_eps(start: float, end: float, rate: float, round: int) -> float:
    """Return the softness of a round: start / (1 + round)^rate, but never below ``end``.

    Examples
    --------
    >>> [annealed_eps(1.0, 0.1, 0.5, round) for round in (0, 3, 10_000)]
    [1.0, 0.5, 0.1]
    """
    return max(end, start * (1.0 + round) ** -rate)


@kernel
def _value(params: Any, scores: Any, relevance: Any, work: Any) -> float:
    chances = work.extra[: scores.shape[0]]
    fill_softmax(scores, 1.0 / params.eps, chances)
    mean = 0.0
    for item in range(scores.shape[0]):
        mean += chances[item] * gain_of(relevance[item])
    return -mean


@kernel
def _gradient(params: Any, scores: Any, relevance: Any, out: Any, work: Any) -> None:
    fill_softmax(scores, 1.0 / params.eps, out)
    mean = 0.0
    for item in range(scores.shape[0]):
        mean += out[item] * gain_of(relevance[item])
    for item in range(scores.shape[0]):
        out[item] *= (mean - gain_of(relevance[item])) / params.eps


@kernel
def _known(params: Any, scores: Any, out: Any) -> None:
    for item in range(scores.shape[0]):
        out[item] = 0.0


@kernel
def _part(params: Any, scores: Any, item: int, grade: float, out: Any) -> None:
    scale = 1.0 / params.eps
    largest, total = softmax_norm(scores, scale)
    step = gain_of(grade) * math.exp(scale * (scores[item] - largest)) / total / params.eps
    for other in range(scores.shape[0]):
        out[other] += step * (math.exp(scale * (scores[other] - largest)) / total)
    out[item] -= step


class SmoothDCG(Surrogate):
    """Minus the DCG of the first position, if item i is put there with chance softmax(s / eps).

    Parameters
    ----------
    eps
        Softness of the arg-max; gradients vanish where it is small against the gaps in score.

    Notes
    -----
    Section 3.3.3.2 of [T16], which states the gain but descends, and has a stray factor in the
    estimate; this is the gain's negative (R16). The source's eps of 0.01 saturates, so the
    default is 0.1, and :func:`annealed_eps` lowers it over rounds. Not convex: no regret bound
    holds. With G the gain 2^max_grade - 1, the Lipschitz constant G / (2 eps) is the exact
    supremum where the source has 2 G / eps (B11). So is the smoothness G / (2 eps^2), from four
    items on: the second derivative along u and v is cov(g, x) / eps^2 under the softmax, with
    x = (u - Eu)(v - Ev); extreme u and v are signs, for which x has variance at most 1. The
    Euclidean constants are G / (sqrt(8) eps), exact, and G / (sqrt(27) eps^2), which a search
    found no list to exceed.

    Examples
    --------
    >>> SmoothDCG(1.0).value([0.0, 0.0], [1, 0])
    -0.5
    >>> SmoothDCG(1.0).gradient([0.0, 0.0], [1, 0]).tolist()
    [-0.25, 0.25]
    """

    name: ClassVar[str] = "smooth_dcg"
    kernel: ClassVar[SurrogateKernel] = SurrogateKernel(_value, _gradient)
    is_shift_invariant: ClassVar[bool] = True
    parts: ClassVar[PartKernel | None] = PartKernel(_known, _part)
    is_convex: ClassVar[bool] = False
    is_nonnegative: ClassVar[bool] = False

    def __init__(self, eps: float = _DEFAULT_EPS) -> None:
        self.eps = check_number(eps, "`eps` of SmoothDCG", above=0.0)

    @property
    def max_grade(self) -> float:
        return 50.0

    def params(self, max_items: int) -> SmoothDCGParams:
        check_integer(max_items, "`max_items`", at_least=1)
        return SmoothDCGParams(self.eps)

    def _lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float:
        return gain_of(max_grade) / (2.0 * self.eps) if n_items > 1 else 0.0

    def _smoothness(self, n_items: int, max_grade: float, max_score: float) -> float:
        return gain_of(max_grade) / (2.0 * self.eps**2) if n_items > 1 else 0.0

    def _l2_lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float:
        return gain_of(max_grade) / (math.sqrt(8.0) * self.eps) if n_items > 1 else 0.0

    def _l2_smoothness(self, n_items: int, max_grade: float, max_score: float) -> float:
        return gain_of(max_grade) / (math.sqrt(27.0) * self.eps**2) if n_items > 1 else 0.0

    def _loss_range(self, n_items: int, max_grade: float, max_score: float) -> float:
        return gain_of(max_grade)
