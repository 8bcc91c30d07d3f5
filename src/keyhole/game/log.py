"""Logs of impressions and feedback, and their replay: the log is the truth, the state a cache."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from keyhole.base.display import Description, description_of
from keyhole.base.errors import (
    FeedbackTooSmall,
    FloatArray,
    IntArray,
    InvalidInput,
    check_integer,
    shown,
)
from keyhole.base.files import reading_arrays, write_arrays
from keyhole.contracts.lists import (
    Feedback,
    Impression,
    Query,
    check_note,
    no_features,
    no_note,
    read_only,
    shown_in,
    values_by_position,
)
from keyhole.contracts.rankers import Ranker, Seen
from keyhole.contracts.states import are_finite
from keyhole.data.rounds import Rounds
from keyhole.game.log_checks import check_log
from keyhole.kernels.compiled import assemble
from keyhole.kernels.draw import RANKER_STREAM, Draw, stream_of

R = TypeVar("R", bound=Ranker)

_GROWING = ("rounds", "explored", "propensities", "rankings", "values", "features", "notes")
"""The arrays of a log that one more row makes longer, but for where its list begins."""


class Log(NamedTuple):
    """Impressions and feedback, in the order in which updates were made.

    Row i is round ``rounds[i]``; its list is ``starts[i]`` up to ``starts[i + 1]`` of
    ``rankings``, ``values`` and ``features``, and ``notes[i]`` the note of its impression. ``seed``
    and ``run`` say where the ranker's random numbers came from: an update may need those of the
    round it learns from.
    """

    seed: int
    run: int
    rounds: IntArray
    explored: Any
    propensities: FloatArray
    starts: IntArray
    rankings: IntArray
    values: FloatArray
    features: FloatArray
    notes: FloatArray = np.empty((0, 0))
    """Empty where the ranker takes no notes."""

    def _described(self) -> Description:
        lengths = np.diff(self.starts)
        shortest, longest = (int(lengths.min()), int(lengths.max())) if len(lengths) else (0, 0)
        rows = [
            ("rounds", f"{len(self.rounds):,}"),
            ("items", f"{longest:,}" if shortest == longest else f"{shortest:,} to {longest:,}"),
            ("features", f"{self.features.shape[1]:,}"),
            ("seed", str(self.seed)),
            ("run", str(self.run)),
        ]
        return Description("Log", rows)

    def __repr__(self) -> str:
        return description_of(self).text()

    def _repr_html_(self) -> str:
        return description_of(self).html()

    @classmethod
    def empty(
        cls,
        seed: int,
        run: int,
        length: int,
        n_items: int,
        n_features: int = 0,
        dtype: Any = np.float64,
        note_size: int = 0,
    ) -> "Log":
        """Return a log with room for ``length`` rounds of lists of up to ``n_items``."""
        return cls(
            seed,
            run,
            np.zeros(length, np.int64),
            np.zeros(length, np.bool_),
            np.full(length, np.nan),
            np.arange(length + 1) * n_items,
            np.zeros(length * n_items, np.int64),
            np.full(length * n_items, np.nan),
            np.empty((length * n_items, n_features), dtype),
            np.zeros((length, note_size)),
        )

    def trimmed(self) -> "Log":
        """Return the log without the room that shorter lists have left."""
        used = int(self.starts[-1])
        return self._replace(
            rankings=self.rankings[:used].copy(),
            values=self.values[:used].copy(),
            features=self.features[:used].copy(),
        )

    @classmethod
    def of(cls, ranker: Ranker, pairs: Sequence[tuple[Impression, Feedback]]) -> "Log":
        """Return the log of what a ranker showed and saw, collected round by round.

        It grows by :meth:`followed_by`. A log is of one list: begin another when items change.
        """
        if not pairs:
            raise InvalidInput("A log must have at least one impression.")
        shown = [impression for impression, _ in pairs]
        for impression in shown:
            shown_in(impression)
            if ranker.item_names not in (None, impression.query.items):
                raise InvalidInput(
                    "A log must be of the items of its ranker: begin another one when they change."
                )
        if len({i.query.features is None or i.query.features.shape[1] for i in shown}) > 1:
            raise InvalidInput("A log must be of documents with one number of features.")
        note_size = ranker.kernel.note_size(ranker.params)
        features = [
            no_features(i.query.n_items) if i.query.features is None else i.query.features
            for i in shown
        ]
        return cls(
            ranker.seed,
            ranker.run,
            np.array([i.round for i in shown], dtype=np.int64),
            np.array([i.explored for i in shown], dtype=np.bool_),
            np.array([i.propensity for i in shown], dtype=np.float64),
            np.cumsum([0, *(len(i.ranking) for i in shown)], dtype=np.int64),
            np.concatenate([i.ranking for i in shown]).astype(np.int64),
            np.concatenate([values_by_position(f, len(i.ranking)) for i, f in pairs]),
            np.concatenate(features),
            np.array([check_note(i.note, note_size) for i in shown]).reshape(len(shown), note_size),
        )

    def followed_by(self, rest: "Log") -> "Log":
        """Return a log that goes on with the updates of another one."""
        if not isinstance(rest, Log):
            raise InvalidInput(f"A log must go on with a log, got {shown(rest)}.")
        if (self.seed, self.run) != (rest.seed, rest.run):
            raise InvalidInput(
                f"A log of seed {self.seed} and run {self.run} must go on with the same, got "
                f"{rest.seed} and {rest.run}."
            )
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(rest, name)]) for name in _GROWING
        }
        starts = np.concatenate([self.starts, self.starts[-1] + rest.starts[1:]])
        return self._replace(**joined, starts=starts)

    def part(self, first: int, end: int | None = None) -> "Log":
        """Return the rows from ``first`` up to ``end`` (default: all that follow)."""
        n_rows = len(self.rounds)
        check_integer(first, "the first row of a log", at_least=0, at_most=n_rows)
        last = n_rows if end is None else end
        check_integer(last, "the end of the rows of a log", at_least=first, at_most=n_rows)
        where = slice(int(self.starts[first]), int(self.starts[last]))
        return self._replace(
            rounds=self.rounds[first:last],
            explored=self.explored[first:last],
            propensities=self.propensities[first:last],
            notes=self.notes[first:last],
            starts=self.starts[first : last + 1] - self.starts[first],
            rankings=self.rankings[where],
            values=self.values[where],
            features=self.features[where],
        )

    def pair(self, row: int) -> tuple[Impression, Feedback]:
        """Return one row as the objects of the per-round API."""
        check_integer(row, "a row of a log", at_least=0, at_most=len(self.rounds) - 1)
        where = slice(int(self.starts[row]), int(self.starts[row + 1]))
        ranking, features = self.rankings[where], self.features[where]
        impression = Impression(
            int(self.rounds[row]),
            Query(len(ranking), features if features.shape[1] else None),
            ranking,
            bool(self.explored[row]),
            float(self.propensities[row]),
            self.notes[row] if self.notes.size else no_note(),
        )
        return impression, Feedback(self.values[where])

    def as_rounds(self, k: int) -> Rounds:
        """Return the first k items of each list and their relevance, as evaluations see them."""
        places, lengths = np.arange(k), np.diff(self.starts)[:, np.newaxis]
        inside = places < lengths
        at = np.where(inside, self.starts[:-1, np.newaxis] + places, 0)
        gains = np.where(inside, self.values[at], np.nan)
        for row in np.flatnonzero((inside & np.isnan(gains)).any(axis=1))[:1].tolist():
            raise InvalidInput(
                f"The log must reveal the first {min(k, int(lengths[row, 0]))} items, but row "
                f"{row} hides some of them."
            )
        return Rounds(
            np.where(inside, self.rankings[at], -1),
            gains,
            np.repeat(self.propensities[:, np.newaxis], k, axis=1),
            float(self.propensities.min(initial=1.0)),
        )

    def save(self, path: Path | str) -> None:
        """Write the log as plain arrays (.npz)."""
        write_arrays(path, self._asdict())

    @classmethod
    def load(cls, path: Path | str) -> "Log":
        """Read a log written by :meth:`save`."""
        with reading_arrays(path, "a log saved by Log.save") as arrays:
            arrays.setdefault("notes", cls._field_defaults["notes"])  # there were none once
            fields: dict[str, Any] = {name: arrays[name] for name in cls._fields}
            return cls(**check_log(fields))


def _log_loop(prepare: Any, update: Any) -> Callable[..., None]:
    def update_all(params: Any, state: Any, work: Any, log: Any) -> None:
        stream = stream_of(RANKER_STREAM, log.run)
        for row in range(log.rounds.shape[0]):
            first, end = log.starts[row], log.starts[row + 1]
            features = log.features[first:end]
            prepare(params, state, features, features[:0], work)
            seen = Seen(
                Draw(log.seed, stream, log.rounds[row]),
                features,
                log.rankings[first:end],
                log.explored[row],
                log.propensities[row],
                log.values[first:end],
                log.notes[row],
            )
            update(params, state, seen, work)

    return update_all


def replay(ranker: R, log: Log, *, start: Mapping[str, Any] | None = None) -> R:
    """Return a fresh ranker brought to the state that the updates of a log lead to.

    Its settings are the given ranker's, its random numbers those of the log. The log's order
    is the order of the updates; the rounds in it may come late or shuffled. They go on from
    ``start``, a state of :meth:`~keyhole.Ranker.state_dict`, where one is given.

    Examples
    --------
    >>> from keyhole import Flips, RTopK, play, replay
    >>> ranker = RTopK(5, horizon=1000)
    >>> trace = play(ranker, Flips(5, n_relevant=2), rounds=1000, record=True)
    >>> again = replay(ranker, trace.logs[0])
    >>> bool((again.state.scores == trace.states[0]["scores"]).all())
    True
    """
    if not isinstance(log, Log):
        raise InvalidInput(f"log must be a Log, got {shown(log)}.")
    log = Log(**check_log(log._asdict()))
    fresh = ranker.fresh(seed=log.seed, run=log.run)
    if start is not None:
        fresh.load_state_dict(start)
    _check_fits(fresh, log)
    work = fresh.kernel.work(fresh.params, fresh.n_items)
    update_all = assemble(_log_loop, fresh.kernel.prepare, fresh.kernel.update)
    update_all(fresh.params, fresh.state, work, log._replace(features=read_only(log.features)))
    if not are_finite(fresh.state):
        raise InvalidInput(
            f"The log must leave the state of {type(ranker).__name__} finite: features, relevance "
            f"or propensities are too large or too small for its settings."
        )
    if len(log.rounds):
        fresh.next_round = max(fresh.next_round, int(log.rounds.max()) + 1)
    return fresh


def _check_fits(ranker: Ranker, log: Log) -> None:
    """Raise unless all lists of a log are of a ranker, and show what it needs."""
    name, lengths = type(ranker).__name__, np.diff(log.starts)
    if log.features.shape[1] != ranker.n_features:
        raise InvalidInput(
            f"The log must be of documents with {ranker.n_features} features, got "
            f"{log.features.shape[1]}."
        )
    note_size = ranker.kernel.note_size(ranker.params)
    if log.notes.shape[1] != note_size:
        raise InvalidInput(
            f"The log must have the notes of {name}, {note_size} numbers a round, got "
            f"{log.notes.shape[1]}."
        )
    for row in np.flatnonzero(lengths != ranker.n_items)[:1]:
        # A ranker that refuses one length refuses all others, or else the longer ones.
        longest = int(lengths.argmax())
        for place in (int(row), longest):
            ranker.features_of(log.pair(place)[0].query)
    too_much = np.flatnonzero(log.values > ranker.max_grade)
    if len(too_much):
        raise InvalidInput(
            f"The log must hold no relevance above max_grade={ranker.max_grade:g} of {name}, got "
            f"{log.values[too_much[0]]:g}."
        )
    positions = np.arange(len(log.values)) - np.repeat(log.starts[:-1], lengths)
    if bool(np.isnan(log.values[positions < ranker.depth]).any()):
        raise FeedbackTooSmall(
            f"{name} needs the relevance of the first {ranker.depth} positions, but the log hides "
            f"some of them."
        )
