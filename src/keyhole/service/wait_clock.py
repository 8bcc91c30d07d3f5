"""How long lists have been waited for, on a clock of this process that only goes forward."""

from collections import deque
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

from keyhole.service.ranker_state import LiveRanker

_MOST_EXPIRED = 1_000
"""Lists of a ranker whose wait is told to be over at once."""
_SPARE = 64


class Waits:
    """When each wait began, in order, and when each ranker must be looked at next.

    What a look costs depends on the waits that are over, not on how many rankers or lists there
    are: a ranker is looked at once the oldest of its waits may be over.
    """

    def __init__(self) -> None:
        self._lines: dict[str, deque[tuple[float, int]]] = {}
        """When the waits of a ranker began, and the seqs of their lists; those that have ended or
        were begun anew since are passed over."""
        self._looks: list[tuple[float, str]] = []
        self._next_look: dict[str, float] = {}

    def begin(self, live: LiveRanker, seqs: Iterable[int], moment: float) -> None:
        """Begin to wait for lists, or begin anew."""
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
        """Note when to look at a ranker next: its lists have changed, or how long they may wait."""
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
        """Return the lists of a ranker whose feedback is no longer waited for."""
        wait = live.config.wait_seconds
        found: list[int] = []
        for since, seq in self._lines.get(live.name, ()):
            if moment - since < wait or len(found) >= _MOST_EXPIRED:
                break
            if _goes_on(live, since, seq):
                found.append(seq)
        return sorted(found)

    def due(self, moment: float) -> Iterator[str]:
        """Yield rankers with a wait that may be over; each is then to be looked at again."""
        while self._looks and self._looks[0][0] <= moment:
            due, name = heappop(self._looks)
            if self._next_look.get(name) == due:
                del self._next_look[name]
                yield name


def _goes_on(live: LiveRanker, since: float, seq: int) -> bool:
    waited = live.waiting.get(seq)
    return waited is not None and waited.since == since
