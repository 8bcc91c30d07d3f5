"""What a reveal must be."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import (
    check_ranking,
    check_relevance,
    check_round,
    check_seed,
)
from keyhole.contracts.lists import Feedback
from keyhole.contracts.registry import Configured
from keyhole.kernels.draw import REVEAL_STREAM, Draw, stream_of


class RevealKernel(NamedTuple):
    """The compiled half of a reveal: ``reveal(params, draw, relevance, ranking, values)``."""

    reveal: Callable[..., None]


class Reveal(Configured, ABC):
    """What the learner gets to see of the relevance."""

    kernel: RevealKernel
    params: Any

    @abstractmethod
    def depth(self, n_items: int) -> int:
        """Return how many top positions are shown of a list, or raise if the list is too short."""

    @abstractmethod
    def __str__(self) -> str: ...

    def __call__(
        self,
        relevance: ArrayLike,
        ranking: ArrayLike,
        *,
        round: int = 0,
        seed: int = 0,
        run: int = 0,
    ) -> Feedback:
        """Return what is revealed of one list."""
        by_item = check_relevance(relevance)
        order = check_ranking(ranking, by_item.shape[0])
        values = np.empty(by_item.shape[0])
        draw = Draw(check_seed(seed), stream_of(REVEAL_STREAM, run), check_round(round))
        self.kernel.reveal(self.params, draw, by_item, order, values)
        return Feedback(values)
