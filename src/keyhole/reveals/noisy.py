"""Feedback of which some is not true."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from keyhole.base.errors import check_integer, check_number
from keyhole.contracts.reveals import Reveal, RevealKernel
from keyhole.kernels.compiled import assemble
from keyhole.kernels.draw import uniform
from keyhole.reveals import PLAIN

_WHETHER, _WHICH = 1, 2


class NoisyParams(NamedTuple):
    """What the reveal has whose feedback is spoilt, the share that is, and the top grade."""

    true: Any
    noise: float
    max_grade: int


def _spoiling(show: Any) -> Callable[..., None]:
    def reveal(params: Any, draw: Any, relevance: Any, ranking: Any, values: Any) -> None:
        show(params.true, draw, relevance, ranking, values)
        for position in range(ranking.shape[0]):
            # A comparison with what is hidden, NaN, is never true.
            item, is_shown = ranking[position], values[position] >= 0.0
            if is_shown and uniform(draw, _WHETHER, item) < params.noise:
                values[position] = int(uniform(draw, _WHICH, item) * (params.max_grade + 1))

    return reveal


class Noisy(Reveal):
    """What another reveal shows, but each value is, with some probability, a grade at random.

    Parameters
    ----------
    of
        The reveal whose feedback is spoilt, or its name or spec: any but this one.
    noise
        Probability that a value shown is replaced, independently for each document and round, by
        one of the grades 0 to ``max_grade``, all equally likely (the true one among them).
    max_grade
        The top grade, a whole number.

    Notes
    -----
    Lists are judged by their true relevance: only what the ranker sees is spoilt.

    Examples
    --------
    >>> Noisy("top", noise=0.0)([0, 1, 2], [2, 0, 1]).values.tolist()
    [2.0, nan, nan]
    >>> Noisy("full", noise=1.0, max_grade=1)([5, 5, 5], [2, 0, 1]).values.max() <= 1
    np.True_
    """

    kernel: RevealKernel

    def __init__(
        self,
        of: Reveal | str | Mapping[str, Any] = "top",
        *,
        noise: float = 0.2,
        max_grade: int = 1,
    ) -> None:
        self.of = self.settings["of"] = PLAIN.make(of)
        self.noise = check_number(noise, "`noise` of Noisy", at_least=0.0, at_most=1.0)
        grades = check_integer(max_grade, "`max_grade` of Noisy", at_least=1, at_most=1000)
        self.kernel = RevealKernel(assemble(_spoiling, self.of.kernel.reveal, inline=True))
        self.params = NoisyParams(self.of.params, self.noise, grades)

    def depth(self, n_items: int) -> int:
        return self.of.depth(n_items)

    def __str__(self) -> str:
        return f"{self.of}, {self.noise:.0%} at random"
