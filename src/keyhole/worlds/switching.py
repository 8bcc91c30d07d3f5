"""A crowd whose taste changes abruptly."""

from typing import Any, ClassVar, NamedTuple, Self

from keyhole.base.errors import IntArray, check_integer, check_number
from keyhole.base.limits import check_length
from keyhole.contracts.worlds import World, WorldKernel
from keyhole.kernels.compiled import kernel
from keyhole.kernels.draw import uniform, uniforms_of
from keyhole.worlds.choices import mark_largest
from keyhole.worlds.flips import a_quarter

_TASTE, _FLIPS = 0, 1


class SwitchingParams(NamedTuple):
    """Length of a phase, number of relevant items, probability of a flip."""

    period: int
    n_relevant: int
    flip: float


@kernel
def _relevance(params: Any, draw: Any, out: Any) -> None:
    phase = draw.round // params.period
    uniforms_of(draw, phase, _TASTE, out)
    mark_largest(out, params.n_relevant)
    for item in range(out.shape[0]):
        flipped = uniform(draw, _FLIPS, item) < params.flip
        out[item] = abs(out[item] - (1.0 if flipped else 0.0))


class Switching(World):
    """Phases of equal length; in each another random set of items is relevant.

    Parameters
    ----------
    n_items, n_relevant
        Size of the list and how many items are relevant in a phase, by default a quarter. With
        ``n_relevant=1`` and ``flip=0`` every user of a phase makes the same single choice.
    period
        Rounds between two switches.
    flip
        Probability that an entry is flipped, independently for each item and round.

    Examples
    --------
    >>> Switching(6, n_relevant=2, flip=0.0).relevance(round=0).sum()
    np.float64(2.0)
    """

    kernel: ClassVar[WorldKernel] = WorldKernel(_relevance)
    max_grade = 1.0
    is_binary = True

    def __init__(
        self,
        n_items: int = 20,
        *,
        n_relevant: int | None = None,
        period: int = 1000,
        flip: float = 0.1,
    ) -> None:
        self.n_items = check_length(n_items, "`n_items` of Switching")
        n_relevant = a_quarter(self.n_items) if n_relevant is None else n_relevant
        self.params = SwitchingParams(
            check_integer(period, "`period` of Switching", at_least=1),
            check_integer(
                n_relevant, "`n_relevant`", at_least=0, at_most=self.n_items, bound="n_items="
            ),
            check_number(flip, "`flip` of Switching", at_least=0.0, at_most=1.0),
        )

    def relabelled(self, labels: IntArray) -> Self:
        period, n_relevant, flip = self.params
        return type(self)(self.n_items, n_relevant=n_relevant, period=period, flip=flip)
