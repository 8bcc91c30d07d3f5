"""M5: NDCG and NDCG@n."""

from typing import Any, ClassVar

from keyhole.compiled import kernel
from keyhole.contracts import MeasureKernel
from keyhole.measures.dcg import DCG
from keyhole.measures.linear import fill_exponential, linear_score, weighted_sum
from keyhole.sorting import sort_descending


@kernel
def ideal_dcg(params: Any, gains: Any, work: Any) -> float:
    """Return Z: the DCG of the best ranking."""
    sort_descending(gains, work.order, work.sort)
    return weighted_sum(params, gains, work.order[: gains.shape[0]])


@kernel
def normalised_gains(params: Any, relevance: Any, gains: Any, work: Any) -> tuple[float, float]:
    """Use 2^r - 1 as the gain and the ideal DCG as the norm."""
    fill_exponential(relevance, gains)
    norm = ideal_dcg(params, gains, work)
    return (0.0, norm) if norm > 0.0 else (params.empty, 1.0)


class NDCG(DCG):
    """DCG divided by the DCG of the best ranking.

    Notes
    -----
    Section 3.2.2 of [T16], which gives an empty list the value 1; ``empty=0``
    follows the evaluation tools, ``empty=nan`` marks such lists so that they can
    be skipped.

    Examples
    --------
    >>> NDCG(10)([0, 0, 1], [2, 0, 1])
    1.0
    >>> NDCG(empty=0)([0, 0, 0], [2, 0, 1])
    0.0
    """

    name: ClassVar[str] = "NDCG"
    kernel = MeasureKernel(normalised_gains, linear_score)
    discount: ClassVar[str] = "1/log2(1+p), over that of the best ranking"
    gain_per_item: ClassVar[bool] = False
    default_empty: ClassVar[float | None] = 1.0

    def kernel_for(self, binary: bool) -> MeasureKernel:
        return self.kernel
