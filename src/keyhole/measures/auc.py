"""M8: AUC loss."""

from fractions import Fraction
from typing import Any, ClassVar

from keyhole.base.errors import FloatArray
from keyhole.contracts.measures import Measure, MeasureKernel
from keyhole.kernels.compiled import kernel
from keyhole.measures.exact import Items, Sum, of_empty, rational, wrong_pairs
from keyhole.measures.linear import linear_score, position_numbers


@kernel
def _gains(params: Any, relevance: Any, gains: Any, work: Any) -> tuple[float, float]:
    n_items = relevance.shape[0]
    n_relevant = 0
    for item in range(n_items):
        relevant = relevance[item] > 0.0
        gains[item] = 1.0 if relevant else 0.0
        n_relevant += 1 if relevant else 0
    if n_relevant in (0, n_items):
        for item in range(n_items):
            gains[item] = 0.0
        return params.empty, 1.0
    return -n_relevant * (n_relevant + 1) / 2.0, float(n_relevant * (n_items - n_relevant))


class AUC(Measure):
    """Share of (relevant, irrelevant) pairs shown in the wrong order: a loss.

    Notes
    -----
    Section 3.2.2 of [T16]: PairwiseLoss over n(m - n), and 0 where all or no
    items are relevant. One less this value is the area under the ROC curve.

    Examples
    --------
    >>> AUC()([0, 1, 0], [0, 1, 2])
    0.5
    """

    name: ClassVar[str] = "AUC"
    kernel = MeasureKernel(_gains, linear_score)
    is_loss: ClassVar[bool] = True
    discount: ClassVar[str] = "pairs, over their number"
    default_empty: ClassVar[float | None] = 0.0

    def weights(self, n_items: int) -> FloatArray:
        return position_numbers(n_items)

    def is_linear(self, binary: bool) -> bool:
        return True

    def exact(self, relevance: Items, ranking: Items) -> Sum:
        binary = tuple(int(grade > 0) for grade in relevance)
        n_pairs = sum(binary) * (len(binary) - sum(binary))
        if n_pairs == 0:
            return of_empty(self)
        return rational(Fraction(len(wrong_pairs(binary, ranking)), n_pairs))
