"""A true relevance vector seen through Gaussian noise and a threshold (experiment E1)."""

from typing import Any, ClassVar, NamedTuple, Self

from numpy.typing import ArrayLike

from keyhole.base.errors import IntArray, check_number
from keyhole.base.limits import check_length
from keyhole.contracts.worlds import World, WorldKernel
from keyhole.kernels.compiled import kernel
from keyhole.kernels.draw import normals
from keyhole.worlds.flips import binary_truth

_NOISE = 0


class GaussianParams(NamedTuple):
    """The true vector and the standard deviation of the noise."""

    truth: Any
    sd: float


@kernel
def _relevance(params: Any, draw: Any, out: Any) -> None:
    normals(draw, _NOISE, out)
    for item in range(out.shape[0]):
        out[item] = 1.0 if params.truth[item] + params.sd * out[item] > 0.5 else 0.0


class Gaussian(World):
    """Users who find an item relevant when truth plus Gaussian noise exceeds one half.

    Parameters
    ----------
    n_items, n_relevant
        Size of the list and how many items (the last ones) are truly relevant; by default half.
    sd
        Standard deviation of the noise.
    truth
        The true binary vector, in place of ``n_relevant``.

    Notes
    -----
    Experiment of section 10 of [CT15], which leaves the deviation open (R40).

    Examples
    --------
    >>> Gaussian(4, n_relevant=1, sd=1e-9).relevance(round=0).tolist()
    [0.0, 0.0, 0.0, 1.0]
    """

    kernel: ClassVar[WorldKernel] = WorldKernel(_relevance)
    max_grade = 1.0
    is_binary = True

    def __init__(
        self,
        n_items: int = 10,
        *,
        n_relevant: int | None = None,
        sd: float = 0.3,
        truth: ArrayLike | None = None,
    ) -> None:
        self.n_items = check_length(n_items, "`n_items` of Gaussian")
        self.sd = check_number(sd, "`sd` of Gaussian", at_least=0.0)
        n_relevant = max(1, self.n_items // 2) if n_relevant is None else n_relevant
        self.truth = binary_truth(truth, self.n_items, n_relevant)
        self.params = GaussianParams(self.truth, self.sd)

    def relabelled(self, labels: IntArray) -> Self:
        return type(self)(self.n_items, sd=self.sd, truth=self.truth[labels])
