"""The feedback timers of waiting lists, on a monotonic clock."""

from collections import deque
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

from keyhole.service.ranker_state import LiveRanker

_MOST_EXPIRED = 1_000
"""The maximum number of expired lists reported at once per ranker."""
_SPARE = 64


class Waits:
    """The start of every wait, in order, and the next check of every ranker.

    A ranker is checked only when its oldest wait may have expired, so that the cost depends on the
    number of expired waits, not on the number of rankers or lists.
    """

    def __init__(self) -> None:
        self._lines: dict[str, deque[tuple[float, int]]] = {}
        """Start times and seqs of waits by ranker; ended or restarted waits are skipped."""
        self._looks: list[tuple[float, str]] = []
        self._next_look: dict[str, float] = {}

    def begin(self, live: LiveRanker, seqs: Iterable[int], moment: float) -> None:
        """Start or restart the timers of lists."""
        line = self._lines.get(live.name)
        if line is None:
            line = self._lines[live.name] = deque()
        for seq in seqs:
            waited = live.waiting.get(seq)
            if waited is not None:
                waited.since = moment
                line.append((moment, seq))
        if len(line) > 2 * len(live.waiting) + _SPARE:
            self._lines[live.name] = deque([each for each in line if _goes_on(live, *each)])
        if live.name not in self._next_look:
            self.look_again(live)

    def look_again(self, live: LiveRanker) -> None:
        """Schedule the next check of a ranker, after its lists or its wait have changed."""
        line = self._lines.get(live.name, deque())
        while line and not _goes_on(live, *line[0]):
            line.popleft()
        if not line:
            return
        due = line[0][0] + live.config.wait_seconds
        if due < self._next_look.get(live.name, float("inf")):
            self._next_look[live.name] = due
            heappush(self._looks, (due, live.name))

    def over(self, live: LiveRanker, moment: float) -> list[int]:
        """Return the expired lists of a ranker."""
        wait = live.config.wait_seconds
        found: set[int] = set()  # a list that began to wait twice at one moment stands there twice
        for since, seq in self._lines.get(live.name, ()):
            if moment - since < wait or len(found) >= _MOST_EXPIRED:
                break
            if _goes_on(live, since, seq):
                found.add(seq)
        return sorted(found)

    def due(self, moment: float) -> Iterator[str]:
        """Yield the rankers due for a check; each needs :meth:`look_again` afterwards."""
        while self._looks and self._looks[0][0] <= moment:
            due, name = heappop(self._looks)
            if self._next_look.get(name) == due:
                del self._next_look[name]
                yield name


def _goes_on(live: LiveRanker, since: float, seq: int) -> bool:
    waited = live.waiting.get(seq)
    return waited is not None and waited.since == since
