"""M9: the losses induced by NDCG and AP."""

from typing import Any, ClassVar

from keyhole.base.errors import FloatArray
from keyhole.contracts.measures import MeasureKernel
from keyhole.kernels.compiled import kernel
from keyhole.measures.ap import AP, average_precision, relevant_gains
from keyhole.measures.exact import one_less
from keyhole.measures.linear import fill_exponential, linear_score
from keyhole.measures.ndcg import NDCG, ideal_dcg


@kernel
def _ndcg_losses(params: Any, relevance: Any, gains: Any, work: Any) -> tuple[float, float]:
    fill_exponential(relevance, gains)
    norm = -ideal_dcg(params, gains, work)  # the weights are those of DCG, negated
    return (norm, norm) if norm > 0.0 else (1.0 - params.empty, 1.0)


@kernel
def _one_less_ap(params: Any, gains: Any, offset: float, norm: float, ranking: Any) -> float:
    return 1.0 - average_precision(params, gains, offset, norm, ranking)


class NDCGLoss(NDCG):
    """1 - NDCG(@n): what perceptrons are judged by.

    Examples
    --------
    >>> NDCGLoss(3)([0, 0, 1], [2, 0, 1])
    0.0
    """

    name: ClassVar[str] = "NDCGLoss"
    kernel = MeasureKernel(_ndcg_losses, linear_score)
    is_loss: ClassVar[bool] = True
    discount: ClassVar[str] = "1 less NDCG; the empty value is that of NDCG"
    exact = one_less(NDCG.exact)

    def weights(self, n_items: int) -> FloatArray:
        return -super().weights(n_items)


class APLoss(AP):
    """1 - AP: what perceptrons are judged by.

    Examples
    --------
    >>> APLoss()([0, 1, 0], [0, 1, 2])
    0.5
    """

    name: ClassVar[str] = "APLoss"
    kernel = MeasureKernel(relevant_gains, _one_less_ap)
    is_loss: ClassVar[bool] = True
    discount: ClassVar[str] = "1 less AP; the empty value is that of AP"
    exact = one_less(AP.exact)
