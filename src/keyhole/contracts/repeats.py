"""Which of the last rounds a ranker has shown and learnt from, so that it learns once from each."""

WINDOW = 10_240
"""Rounds back from the newest one for which a repeated answer is known to be one."""

_ALL = (1 << WINDOW) - 1


class Rounds:
    """The last rounds that were shown, as bits of two integers: bit ``a`` is ``a`` rounds back.

    Only rounds that were shown here count: impressions from elsewhere, such as a log's, may have
    any round and are learnt from as often as they come.
    """

    __slots__ = ("_learnt", "_newest", "_shown")

    def __init__(self) -> None:
        self._newest, self._shown, self._learnt = -1, 0, 0

    def show(self, round: int) -> None:
        """Note that a list is shown; one that is shown again may be learnt from again."""
        ahead = round - self._newest
        if ahead > 0:
            self._newest = round
            kept = min(ahead, WINDOW)
            self._shown, self._learnt = self._shown << kept & _ALL, self._learnt << kept & _ALL
        age = self._newest - round
        if age < WINDOW:
            self._shown |= 1 << age
            self._learnt &= ~(1 << age)

    def is_learnt(self, round: int) -> bool:
        """Return whether this round was shown and has been learnt from."""
        age = self._newest - round
        return 0 <= age < WINDOW and bool(self._learnt >> age & 1)

    def learn(self, round: int) -> None:
        """Note that a round has been learnt from."""
        age = self._newest - round
        if 0 <= age < WINDOW:
            self._learnt |= self._shown & 1 << age
