"""Which rows something was fitted to: their digests, and how many of them another log has.

A digest is 64 bits of a row: its context in single precision, its action and its reward. Neither
the order of the rows, nor their file, nor a propensity that was mended changes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyhole.base.display import Described, Description, counted
from keyhole.base.errors import FloatArray, IntArray, InvalidInput

Digests = NDArray[np.uint64]

_MOST = 2**18
"""Different digests that are kept; of more rows, those whose digests are the least."""
_ANY = 2**64 - 1
_GOLDEN, _MIX_1, _MIX_2 = (
    np.uint64(word) for word in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
_PENDING = 4096
_ERRORS = 4.0


def row_digests(contexts: FloatArray, actions: IntArray, rewards: FloatArray) -> Digests:
    """Return 64 bits for each row, equal for equal rows.

    Notes
    -----
    Single precision, so that a file which keeps seven digits, or a table in single precision, has
    the digests of what it was made of. Each column goes through the finaliser of SplitMix64.

    Examples
    --------
    >>> a, b, c = row_digests(np.array([[0.1], [0.1 + 1e-12], [0.2]]), np.zeros(3), np.ones(3))
    >>> bool(a == b), bool(a == c)
    (True, False)
    """
    digests = np.zeros(len(actions), np.uint64)
    for column in (*contexts.T, actions, rewards):
        with np.errstate(
            over="ignore"
        ):  # what is too large for it is infinite, and told apart less
            single = column.astype(np.float32) + np.float32(0.0)  # which makes 0 of minus 0
        digests = _mixed(digests + single.view(np.uint32) + _GOLDEN)
    return digests


def _mixed(words: Digests) -> Digests:
    words = (words ^ (words >> np.uint64(30))) * _MIX_1
    words = (words ^ (words >> np.uint64(27))) * _MIX_2
    mixed: Digests = words ^ (words >> np.uint64(31))
    return mixed


@dataclass(frozen=True)
class Overlap:
    """How many rows of a log were found among those that a policy was fitted to.

    ``by_chance`` is what would be found in a log that shares no row with them: rows may be equal
    and not the same. ``error`` is the standard error of the difference.
    """

    n_rows: int
    found: float
    by_chance: float
    error: float

    @property
    def share(self) -> float:
        """The share of the log that is likely to be the very rows: what is not found by chance."""
        room = 1.0 - self.by_chance
        return max(0.0, self.found - self.by_chance) / room if room > 0.0 else 0.0

    @property
    def is_known(self) -> bool:
        """Whether rows differ enough that a log of these very rows would be noticed."""
        return self.n_rows > 0 and 1.0 - self.by_chance > _ERRORS * self.error

    @property
    def is_certain(self) -> bool:
        """Whether more was found than chance explains."""
        return self.is_known and self.found - self.by_chance > _ERRORS * self.error


@dataclass(frozen=True, repr=False)
class SeenRows(Described):
    """The digests of rows, sorted, and how often each came; those above ``limit`` are left out.

    Examples
    --------
    >>> contexts, actions, rewards = np.arange(6.0)[:, None], np.arange(6) % 2, np.zeros(6)
    >>> seen = SeenRows.of(contexts[:4], actions[:4], rewards[:4])
    >>> round(seen.overlap(contexts, actions, rewards).found, 3)
    0.667
    """

    digests: Digests
    counts: IntArray
    limit: int = _ANY

    def _described(self) -> Description:
        kept = len(self.digests)
        return Description(
            f"SeenRows: {counted(kept, 'digest')} of about {counted(self.n_rows, 'row')}"
        )

    @classmethod
    def of(cls, contexts: FloatArray, actions: IntArray, rewards: FloatArray) -> "SeenRows":
        """Return the digests of rows."""
        return cls.nothing().and_rows(contexts, actions, rewards)

    @classmethod
    def nothing(cls) -> "SeenRows":
        """Return the digests of no row."""
        return cls(np.empty(0, np.uint64), np.empty(0, np.int64))

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Any]) -> "SeenRows":
        """Return what :meth:`arrays` describes, or raise."""
        digests, counts = arrays["digests"], arrays["counts"]
        if digests.dtype != np.uint64 or digests.ndim != 1 or counts.shape != digests.shape:
            raise InvalidInput("digests of rows must be 64-bit numbers, each with a count")
        if (digests[1:] <= digests[:-1]).any() or not (counts >= 1).all():
            raise InvalidInput("digests of rows must grow, and each must have come at least once")
        return cls(digests, counts.astype(np.int64), int(arrays["limit"]))

    def arrays(self) -> dict[str, Any]:
        """Return everything there is to save."""
        return {
            "digests": self.digests,
            "counts": self.counts,
            "limit": np.array(self.limit, np.uint64),
        }

    @property
    def n_rows(self) -> int:
        """How many rows there were, about where some were left out."""
        return round(float(self.counts.sum()) * (_ANY / self.limit))

    def and_rows(self, contexts: FloatArray, actions: IntArray, rewards: FloatArray) -> "SeenRows":
        """Return these digests and those of more rows."""
        new, new_counts = np.unique(
            self._kept(row_digests(contexts, actions, rewards)), return_counts=True
        )
        digests, place = np.unique(np.concatenate([self.digests, new]), return_inverse=True)
        counts = np.bincount(
            place, weights=np.concatenate([self.counts, new_counts]), minlength=len(digests)
        ).astype(np.int64)
        if len(digests) <= _MOST:
            return SeenRows(digests, counts, self.limit)
        return SeenRows(digests[:_MOST], counts[:_MOST], int(digests[_MOST - 1]))

    def overlap(self, contexts: FloatArray, actions: IntArray, rewards: FloatArray) -> Overlap:
        """Return how many rows of a log are among these.

        Notes
        -----
        By chance a new row is found as often as one of these rows has an equal among the others:
        that is what leaving each of them out in turn would find. One more of either kind is counted
        in, so that a short log is not certain of anything.
        """
        asked = self._kept(row_digests(contexts, actions, rewards))
        n_seen, n_asked = int(self.counts.sum()), len(asked)
        if not n_seen or not n_asked:
            return Overlap(n_asked, 0.0, 1.0, 0.0)
        found = float(np.isin(asked, self.digests).mean())
        alone = int((self.counts == 1).sum())
        chance = (n_seen - alone + 1) / (n_seen + 2)
        # Rows that are equal come in twos and more, so that they tell half as much.
        error = float(np.sqrt(chance * (1.0 - chance) * (1.0 / n_asked + 2.0 / n_seen)))
        return Overlap(n_asked, found, chance if alone else 1.0, error)

    def _kept(self, digests: Digests) -> Digests:
        return digests[digests <= np.uint64(self.limit)]


class RowRecorder:
    """Digests of rows that come one at a time: what a stream was fitted to."""

    def __init__(self, seen: SeenRows | None) -> None:
        self._seen = seen
        self._pending: list[tuple[FloatArray, IntArray, FloatArray]] = []
        self._n_pending = 0

    def add(self, contexts: FloatArray, actions: IntArray, rewards: FloatArray) -> None:
        """Take note of rows; what was not noted from the start stays unknown."""
        if self._seen is None:
            return
        self._pending.append((contexts.copy(), actions.copy(), rewards.copy()))
        self._n_pending += len(actions)
        # As many as there are already, so that all of it is sorted few times.
        if self._n_pending > max(_PENDING, len(self._seen.digests) // 8):
            self.seen()

    def seen(self) -> SeenRows | None:
        """Return the digests of all rows so far, or None where they are not known."""
        if self._seen is not None and self._pending:
            columns = (np.concatenate(parts) for parts in zip(*self._pending, strict=True))
            self._seen = self._seen.and_rows(*columns)
            self._pending, self._n_pending = [], 0
        return self._seen
