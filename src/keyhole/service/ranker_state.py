"""The state of a ranker in the service: a fold over the events of its log."""

import hashlib
import struct
from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np

from keyhole.base.errors import FloatArray, InvalidInput
from keyhole.base.version import __version__
from keyhole.contracts.lists import Impression, Query
from keyhole.contracts.measures import Measure
from keyhole.contracts.rankers import Ranker
from keyhole.kernels.checking import all_finite
from keyhole.measures import measure as named_measure
from keyhole.service.batching import (
    Ahead,
    Drawn,
    Lesson,
    by_own_order,
    drawn_by,
    learn_together,
)
from keyhole.service.commands import CodeReply, RankerReply, RankerRequest, StateReply
from keyhole.service.compile_status import Preparation
from keyhole.service.configuration import has_id_column, learner_of
from keyhole.service.counters import Tally
from keyhole.service.errors import StoreDamaged
from keyhole.service.events import (
    FIRST_LINK,
    Answered,
    Config,
    Deleted,
    Event,
    Expired,
    Kind,
    Outcome,
    Ranked,
    Rebased,
    Snapshot,
    body_of,
)
from keyhole.service.snapshots import Kept, is_sealed, kept_by, sealed
from keyhole.service.store.base import Store
from keyhole.service.store.chain import as_written, event_at

_KEPT_BYTES = 2_048
"""Waiting lists up to this size stay in memory; larger ones are read from the log again."""
_KEPT_CATALOGUES = 16
_MANY_FEATURES = 512
_WAITING = np.dtype([("seq", "<i8"), ("deferred", "?")])
_decode_ranked = msgspec.msgpack.Decoder(Ranked).decode


class Waiting(msgspec.Struct, gc=False):
    """A list that waits for feedback."""

    event_id: str
    at: int
    deferred: bool
    body: bytes | None = None
    since: float = 0.0
    """The start of the wait on the monotonic clock; not part of the state."""
    ranked: Ranked | None = None
    """The list itself, between the decision on its feedback and its application."""


class LiveRanker:
    """The state of one ranker.

    Only :meth:`apply` changes it, with committed events in order, so the state is a function of the
    log alone. Not thread-safe.
    """

    def __init__(self, name: str, store: Store) -> None:
        self.name = name
        self.store = store
        self.seq = 0
        self.link = FIRST_LINK
        self.round = 0
        self.version = 0
        self.begun = 0
        """The seq of the config event that created or reset it."""
        self.since = 0
        """The seq up to which the log belongs to deleted rankers of the same name."""
        self.gone: Deleted | None = None
        """The deletion event, once it is deleted."""
        self.config: Config
        self.learner: Ranker
        self.learnt_by = __version__
        self.waiting: dict[int, Waiting] = {}
        self.seq_of: dict[str, int] = {}
        """The seq of the rank event of each waiting list, by event id."""
        self.waits: list[tuple[int, float]] = []
        """The feedback wait in seconds, with the seq from which each value holds."""
        self.tally = Tally()
        self.snapshot_seq = 0
        """The seq of the stored snapshot, after which its log is replayed."""
        self.is_checked = True
        """Whether its whole log was verified, or only the part after its snapshot."""
        self.snapshot_at = 0
        """The seq of its last snapshot; not part of the state."""
        self.preparation: Preparation | None = None
        """The status of its compiled code; not part of the state."""
        self._lessons: list[Lesson] = []
        self._is_gathering = False
        self._last_shown: Ranked | None = None
        self._ahead = Ahead()
        self._catalogues: dict[int, tuple[str, ...]] = {}

    # ------------------------------------------------------------------- folding events

    def apply(self, event: Event, body: Any = None) -> None:
        """Apply the next event of the log; ``body`` spares decoding it."""
        if event.seq != self.seq + 1:
            raise StoreDamaged(
                f"Event {self.seq + 1} of ranker {self.name!r} must follow, got {event.seq}."
            )
        if body is None:
            body = body_of(event)
        match event.kind:
            case "rank":
                self._ranked(body, event)
            case "feedback":
                self._answered(body, event)
            case "config":
                self._configure(body, event.seq)
            case "activate":
                seq = self.seq_of[str(event.key)]
                self.waiting[seq] = msgspec.structs.replace(self.waiting[seq], deferred=False)
            case "expire":
                self._expired(body)
            case "rebase":
                self._rebased(body)
            case "delete":
                self._deleted(body, event.seq)
        self.seq, self.link = event.seq, event.link

    def apply_all(self, events: Iterable[tuple[Event, Any]]) -> None:
        """Apply consecutive events with their bodies.

        Learns from their feedback in batches; the state equals that of :meth:`apply` one by one.
        """
        self._is_gathering = True
        try:
            for event, body in events:
                self.apply(event, body)
        finally:
            self._is_gathering = False
        self._note_last()
        self._study()

    def _configure(self, config: Config, seq: int) -> None:
        self._study()
        self._ahead.void()
        if self.version == 0 or config.fresh:
            self._begin(config, seq)
        elif config.catalogue is not None and config.catalogue != self.config.catalogue:
            self.learner = self.learner.with_items(config.catalogue)
            self.tally.change_items()
        if not self.waits or self.waits[-1][1] != config.wait_seconds:
            self.waits.append((seq, config.wait_seconds))
        self._take(config, seq)

    def _begin(self, config: Config, seq: int) -> None:
        """Start with an empty state: lists shown before do not belong to this ranker."""
        self.learner, self.begun, self.gone = learner_of(config), seq, None
        refusals, forgotten = self.tally.refusals, self.tally.forgotten  # their events remain
        self.tally = Tally(refusals=refusals, forgotten=forgotten)
        self.round, self._last_shown = 0, None
        self.waiting.clear()
        self.seq_of.clear()

    def _deleted(self, body: Deleted, seq: int) -> None:
        self._study()
        self.gone, self.since, self.preparation = body, seq, None
        self.tally, self.waits = Tally(forgotten=seq), []
        self.waiting.clear()
        self.seq_of.clear()

    def _take(self, config: Config, seq: int) -> None:
        self.config, self.version = config, seq
        measure = named_measure(config.measure)
        self._is_exponential = measure.exponential_gain
        self._true_weights: list[float] | None = None
        self.learns_long = int(config.request.get("n_features") or 0) >= _MANY_FEATURES
        """Whether learning from one list may take many milliseconds."""
        if config.catalogue is not None:
            self._remember_catalogue(seq, config.catalogue)
            self._true_weights = _gain_weights(measure, config)

    def _ranked(self, ranked: Ranked, event: Event) -> None:
        event_id, body, seq = str(event.key), event.body, event.seq
        kept = body if len(body) <= _KEPT_BYTES else None
        self.waiting[seq] = Waiting(event_id, event.at, ranked.deferred, kept)
        self.seq_of[event_id] = seq
        self.round = ranked.round + 1
        self.tally.count_rank(ranked, self.names_of(ranked))
        self._last_shown = ranked
        if not self._is_gathering:
            self._note_last()

    def _note_last(self) -> None:
        if self._last_shown is not None:
            self.tally.note_last(self._last_shown, self.names_of(self._last_shown))
            self._last_shown = None

    def _answered(self, answered: Answered, event: Event) -> None:
        if answered.learned == "late":
            self.tally.late += 1
            return
        seq = self.seq_of.pop(str(event.key))
        waited = self.waiting.pop(seq)
        ranked = self.ranked(seq, waited)
        names = self.names_of(ranked)
        if answered.learned == "pending":
            self._learn(ranked, answered.relevance, event.seq)
        mean = sum(answered.relevance) / max(len(answered.relevance), 1)
        self.tally.count_feedback(ranked, answered, names, event.at - waited.at, mean)
        if answered.truth is not None and answered.status != "not_shown":
            self._count_truth(ranked, answered.truth, names)

    def _expired(self, expired: Expired) -> None:
        for seq in expired.seqs:
            waited = self.waiting.pop(seq)
            del self.seq_of[waited.event_id]
            self.tally.expired += 1
            if self.config.missing is not None and not waited.deferred:
                ranked = self.ranked(seq, waited)
                if ranked.teaches:
                    self._learn(ranked, (self.config.missing,) * ranked.k, seq)

    def _learn(self, ranked: Ranked, relevance: tuple[float, ...], seq: int) -> None:
        self._lessons.append(Lesson(ranked, relevance, seq, self.round))
        if not self._is_gathering:
            self._study()

    def _study(self) -> None:
        """Learn from the lessons gathered so far."""
        lessons, self._lessons = self._lessons, []
        if not lessons:
            return
        self._ahead.void()
        same_list = all(lesson.ranked.catalogue == self.version for lesson in lessons)
        if len(lessons) == 1 or not (same_list and learn_together(self.learner, lessons)):
            for lesson in lessons:
                self._learn_one(lesson)

    def _learn_one(self, lesson: Lesson) -> None:
        alarms = self.learner.n_alarms
        try:
            self.learner.update(*self.lesson(lesson.ranked, lesson.relevance))
        except InvalidInput:  # numbers too large to learn from; a replay refuses them as well
            self.tally.count_refused(lesson.seq)
            return
        if self.learner.n_alarms > alarms:
            self.tally.count_alarm(lesson.round, lesson.seq)

    def draw(self, query: Query, round: int) -> Drawn:
        """Return the learner's ranking of a round; for a fixed list, from the cache."""
        if self.config.catalogue is None:
            return drawn_by(self.learner, self.learner.rank(query, round=round))
        return self._ahead.take(self.learner, round)

    def make_state(self) -> None:
        """Allocate the learner's state in advance: with many features it is large."""
        _ = self.learner.state

    def rank_ahead(self, round: int, n_rounds: int) -> None:
        """Rank consecutive rounds in one call, for a fixed list."""
        if self.config.catalogue is not None and self.config.mode != "frozen":
            self._ahead.reserve(self.learner, round, n_rounds)

    def _rebased(self, rebased: Rebased) -> None:
        self._restore(msgspec.msgpack.decode(rebased.state, type=Kept))
        self.learnt_by = rebased.version

    # ------------------------------------------------------------------- impressions

    def ranked(self, seq: int, waited: Waiting | None = None) -> Ranked:
        """Return the body of a rank event, from memory or from the log."""
        if waited is not None and waited.ranked is not None:
            return waited.ranked
        if waited is not None and waited.body is not None:
            return _decode_ranked(waited.body)
        event = event_at(self.store, self.name, seq)
        if event is None or event.kind != "rank":
            raise StoreDamaged(f"Event {seq} of ranker {self.name!r} must be a rank.")
        return body_of(event)

    def found(self, key: str, kind: Kind) -> Event | None:
        """Return the event of a kind on an impression, verified."""
        event = self.store.find(self.name, key, kind)
        if event is not None and (event.key, event.kind) != (key, kind):
            raise StoreDamaged(f"The index of ranker {self.name!r} by event id is corrupt.")
        return None if event is None else as_written(self.store, event)

    def names_of(self, ranked: Ranked) -> tuple[str, ...]:
        """Return the item names of a list by index."""
        if ranked.items is not None:
            return ranked.items
        names = self._catalogues.get(ranked.catalogue or 0)
        return self._catalogue(ranked.catalogue or 0) if names is None else names

    def _catalogue(self, seq: int) -> tuple[str, ...]:
        event = event_at(self.store, self.name, seq)
        config = None if event is None or event.kind != "config" else body_of(event)
        if config is None or config.catalogue is None:
            raise StoreDamaged(f"Event {seq} of ranker {self.name!r} must name its items.")
        self._remember_catalogue(seq, config.catalogue)
        return self._catalogues[seq]

    def _remember_catalogue(self, seq: int, names: tuple[str, ...]) -> None:
        self._catalogues[seq] = names
        while len(self._catalogues) > _KEPT_CATALOGUES:
            del self._catalogues[next(iter(self._catalogues))]

    def query_of(self, names: tuple[str, ...], features: FloatArray | None) -> Query:
        """Return a list as a query of the learner, with an id column if it needs one."""
        if features is None:
            own = self.learner.own_list
            return own if own.items == names else Query(len(names), None, names)
        if has_id_column(self.learner):
            numbers = [id_number(name) for name in names]
            features = np.column_stack([features.astype(np.float64), numbers])
        return Query(len(names), features, names)

    def lesson(
        self, ranked: Ranked, relevance: tuple[float, ...]
    ) -> tuple[Impression, list[float]]:
        """Return the learner's own impression of a list and its revealed relevance.

        Its ranking and note are writable, like those of a fresh one: Numba would compile the kernel
        again for read-only ones.
        """
        names = self.names_of(ranked)
        features = None
        if ranked.features:
            flat = np.frombuffer(ranked.features, dtype=f"<{ranked.dtype}")
            features = flat.reshape(-1, ranked.n_features)
        own = ranked.ranking if ranked.own is None else ranked.own
        impression = Impression(
            ranked.round,
            self.query_of(names, features),
            np.array(own, dtype=np.int64),
            ranked.explored,
            np.nan if ranked.propensity is None else ranked.propensity,
            np.frombuffer(bytearray(ranked.note), dtype="<f8"),
        )
        return impression, by_own_order(ranked, relevance)

    def _count_truth(
        self, ranked: Ranked, truth: tuple[float, ...], names: tuple[str, ...]
    ) -> None:
        weights = self._true_weights
        if weights is None or names != self.config.catalogue:
            return  # a measure without gains per item, or a list of earlier items
        grades = truth
        if self._is_exponential:
            grades = tuple(2.0**grade - 1.0 for grade in truth)
        self.tally.count_truth(ranked, grades, weights, names)

    # ------------------------------------------------------------------- replies

    @property
    def is_preparing(self) -> bool:
        """Whether its code is still compiling, so that it can neither rank nor learn."""
        return self.preparation is not None and self.preparation.is_open

    @property
    def present_spec(self) -> dict[str, Any]:
        """The spec of its learner with the current items."""
        config = self.config
        if config.catalogue is None or config.spec.get("items") == list(config.catalogue):
            return config.spec
        return {**self.learner.described(), "version": config.spec["version"]}

    def reply(self, created: bool = False) -> RankerReply:
        """Return the configuration of the ranker and its progress."""
        return RankerReply(
            name=self.name,
            version=self.version,
            request=msgspec.convert(self.config.request, RankerRequest),
            spec=self.present_spec,
            seq=self.seq,
            round=self.round,
            waiting=len(self.waiting),
            verdict=self.config.verdict,
            created=created,
            code=CodeReply() if self.preparation is None else self.preparation.reply(),
            log="checked" if self.is_checked else "checking",
        )

    def wait_at(self, seq: int) -> float:
        """Return the feedback wait that was in force at an event."""
        for since, wait in reversed(self.waits):
            if since <= seq:
                return wait
        return self.config.wait_seconds

    def outcome(self, answered: Answered, seq: int) -> Outcome:
        """Return the outcome of the feedback in event ``seq``.

        Refusals are known only once the event is applied, and old ones are forgotten.
        """
        if answered.learned != "pending":
            return answered.learned
        if seq in self.tally.refusals:
            return "refused"
        return "learned" if self.tally.forgotten < seq <= self.seq else "unknown"

    def state(self) -> StateReply:
        """Return the progress of the ranker and the hash of its state."""
        return StateReply(self.seq, self.round, self.sha256(), len(self.waiting))

    def sha256(self) -> str:
        """Return the hash of all state that determines future lists and learning."""
        digest = hashlib.sha256()
        spec = {**self.learner.described(), "version": ""}  # the library's version is not state
        _add(digest, msgspec.json.encode(spec, order="sorted"))
        for name, array in sorted(self.learner.state._asdict().items()):
            little = _little_endian(array)
            _add(digest, f"{name} {little.dtype.str} {little.shape}".encode())
            _add(digest, little)
        digest.update(struct.pack("<qqq", self.seq, self.round, self.version))
        waiting = np.empty(len(self.waiting), _WAITING)
        waiting["seq"] = np.fromiter(self.waiting, np.int64, len(waiting))
        waiting["deferred"] = [waited.deferred for waited in self.waiting.values()]
        digest.update(waiting.tobytes())
        return digest.hexdigest()

    # ------------------------------------------------------------------- snapshots

    def _kept(self) -> Kept:
        arrays: dict[str, Any] = {}
        for name, array in self.learner.state._asdict().items():
            little = _little_endian(array)  # copied only once, when it is written
            content = little.reshape(-1).view(np.uint8).data
            arrays[name] = (little.dtype.str, little.shape, content)
        return Kept(
            self.version,
            self.round,
            self.link,
            self.learnt_by,
            arrays,
            self.learner.described(),
            [(seq, w.event_id, w.at, w.deferred) for seq, w in self.waiting.items()],
            self.tally,
            self.waits,
            self.begun,
            self.since,
        )

    def kept_elsewhere(self, version: int, since: int) -> bytes:
        """Return the state for another ranker, whose config event is ``version``.

        It has no waiting lists: those are in this ranker's log.
        """
        tally = msgspec.structs.replace(
            self.tally,
            alarms=[(r, version) for r, _ in self.tally.alarms],
            refusals=[],
            forgotten=since,
        )
        kept = msgspec.structs.replace(
            self._kept(),
            version=version,
            waiting=[],
            tally=tally,
            waits=[],
            begun=version,
            since=since,
        )
        return msgspec.msgpack.encode(kept)

    def kept_bytes(self) -> bytes:
        """Return the serialised state."""
        return msgspec.msgpack.encode(self._kept())

    def snapshot(self) -> Snapshot:
        """Return a snapshot after the last event."""
        return sealed(self.name, self.seq, self.sha256(), self._kept())

    def differs_from(self, snapshot: Snapshot) -> bool:
        """Return whether a snapshot after the same event has a different state."""
        try:
            kept = kept_by(snapshot)
        except StoreDamaged:
            return True
        own = self._kept()
        # The log does not tell which version of the library has learnt it.
        kept.learnt_by, kept.spec = own.learnt_by, {**kept.spec, "version": own.spec["version"]}
        if not is_sealed(snapshot):  # written by an early version, with fewer counters
            kept.waits, kept.tally.refusals = own.waits, own.tally.refusals
            kept.tally.forgotten = own.tally.forgotten
            for name, item in kept.tally.items.items():
                item.untaught = own.tally.items[name].untaught if name in own.tally.items else 0
        return (kept, snapshot.sha256) != (own, self.sha256())

    @classmethod
    def deleted(cls, last: Event, store: Store) -> "LiveRanker":
        """Return a ranker whose log ends with its deletion."""
        live = cls(last.ranker, store)
        live.gone, live.since, live.seq, live.link = body_of(last), last.seq, last.seq, last.link
        live.snapshot_seq, live.is_checked = last.seq, False
        live.tally.forgotten = last.seq
        return live

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot, store: Store) -> "LiveRanker":
        """Return the ranker of a snapshot, or raise if the snapshot is damaged."""
        live, kept = cls(snapshot.ranker, store), kept_by(snapshot)
        try:
            live._restore(kept)
        except (ValueError, LookupError, TypeError) as error:
            raise StoreDamaged(
                f"A snapshot of ranker {live.name!r} cannot be used: {error}"
            ) from error
        live.seq, live.link, live.learnt_by = snapshot.seq, kept.link, kept.learnt_by
        live.snapshot_at = snapshot.seq
        if live.sha256() != snapshot.sha256:
            raise StoreDamaged(
                f"The snapshot of ranker {snapshot.ranker!r} after event {snapshot.seq} does not "
                "match its hash."
            )
        live.snapshot_seq, live.is_checked = snapshot.seq, False
        return live

    def _restore(self, kept: Kept) -> None:
        event = event_at(self.store, self.name, kept.version)
        if event is None or event.kind != "config":
            raise StoreDamaged(f"Event {kept.version} of ranker {self.name!r} must be a config.")
        self._take(body_of(event), kept.version)
        self.round, self.begun, self.since = kept.round, kept.begun, kept.since
        self._ahead.void()
        self.learner = learner_of(msgspec.structs.replace(self.config, spec=kept.spec))
        for name, own in self.learner.state._asdict().items():
            dtype, shape, content = kept.arrays[name]
            own[...] = np.frombuffer(content, dtype=dtype).reshape(shape)
        if not all(
            array.dtype.kind != "f" or all_finite(array.reshape(-1)) for array in self.learner.state
        ):
            raise StoreDamaged(f"A state of ranker {self.name!r} must be finite.")
        self.waiting = {
            seq: Waiting(event_id, at, deferred) for seq, event_id, at, deferred in kept.waiting
        }
        self.seq_of = {waited.event_id: seq for seq, waited in self.waiting.items()}
        self.tally = kept.tally
        self.waits = kept.waits or self.waits


def _gain_weights(measure: Measure, config: Config) -> list[float] | None:
    """Return the weight of a gain at each position; None if the measure has none."""
    if not measure.is_gain_per_item(float(config.request.get("max_grade", 1.0))):
        return None
    sign = -1.0 if measure.is_loss else 1.0
    return [sign * float(weight) for weight in measure.weights(len(config.catalogue or ()))]


def id_number(name: str) -> float:
    """Return a number for a document id; two ids collide with probability 2^-52."""
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return float(int.from_bytes(digest, "little") >> 12)


def _little_endian(array: Any) -> Any:
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))


def _add(digest: Any, content: Any) -> None:
    """Hash bytes or an array without a copy; hashing large buffers releases the GIL."""
    digest.update(struct.pack("<q", memoryview(content).nbytes))
    digest.update(content)
