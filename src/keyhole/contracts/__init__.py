"""What a ranker, a measure, a reveal and a world must be: the whole API, a file for each.

Each is a small Python object that validates its arguments once and holds two
things: ``kernel``, compiled functions over explicit arrays, and ``params``, the
NamedTuple those functions read. The per-round methods below and the compiled
loop of :mod:`keyhole.game.play` call the same kernels, so they give the same bits.

Relevance is by item, feedback values by position; hidden values are NaN.
"""

from keyhole.contracts.lists import (
    Feedback,
    Impression,
    Item,
    Query,
    check_note,
    no_features,
    no_note,
    shown_in,
    values_by_position,
)
from keyhole.contracts.measures import (
    Measure,
    MeasureKernel,
    MeasureParams,
    MeasureWork,
    measure_work,
)
from keyhole.contracts.rankers import (
    Ranker,
    RankerKernel,
    Seen,
    nothing_to_note,
    nothing_to_prepare,
)
from keyhole.contracts.reveals import Reveal, RevealKernel
from keyhole.contracts.states import are_finite, state_arrays
from keyhole.contracts.worlds import World, WorldKernel, nothing_upcoming, whole_matrix

__all__ = [
    "Feedback",
    "Impression",
    "Item",
    "Measure",
    "MeasureKernel",
    "MeasureParams",
    "MeasureWork",
    "Query",
    "Ranker",
    "RankerKernel",
    "Reveal",
    "RevealKernel",
    "Seen",
    "World",
    "WorldKernel",
    "are_finite",
    "check_note",
    "measure_work",
    "no_features",
    "no_note",
    "nothing_to_note",
    "nothing_to_prepare",
    "nothing_upcoming",
    "shown_in",
    "state_arrays",
    "values_by_position",
    "whole_matrix",
]
