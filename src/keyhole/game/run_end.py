"""What one run of a game leaves behind."""

from typing import Any, NamedTuple

from keyhole.base.errors import FloatArray
from keyhole.game.log import Log


class RunEnd(NamedTuple):
    """What one run leaves: its curve, and all that is needed to go on with it.

    ``state`` is fit for :meth:`~keyhole.Ranker.load_state_dict`; ``sums``, ``snapshots``
    and ``offsets`` are what the comparator has seen.
    """

    state: dict[str, Any]
    totals: FloatArray
    sums: Any
    scores: FloatArray
    greedy: FloatArray
    best: FloatArray
    snapshots: FloatArray
    offsets: FloatArray
    log: Log | None
