"""The records of the event log, the source of truth from which all state is derived."""

import hashlib
from collections.abc import Callable
from typing import Any, Literal

import msgspec

Kind = Literal["config", "rank", "repeat", "feedback", "activate", "expire", "rebase", "delete"]
Mode = Literal["online", "apprentice", "frozen"]
Status = Literal["observed", "none", "not_shown"]
Learned = Literal["pending", "late", "unused"]
"""How the log classifies feedback: to learn from, too late, or unusable."""

Outcome = Literal["learned", "unused", "late", "refused", "unknown"]
"""The outcome of feedback after replay; unknown once the details have been dropped."""

LINK_SIZE = 16
FIRST_LINK = bytes(LINK_SIZE)
"""The hash link before the first event of a ranker."""


class Event(msgspec.Struct, frozen=True, gc=False):
    """A row of the log.

    ``seq`` counts the events of a ranker from 1, without gaps. ``key`` is the id of the impression
    of a rank, feedback or activate event, and None for other kinds; each kind occurs once per key.
    ``idem`` is the idempotency key of a rank request. ``at`` is the wall clock in milliseconds, for
    display only. ``body`` is one of the structs below as MessagePack. ``link`` is a hash of this
    event and the link before it.
    """

    ranker: str
    seq: int
    kind: Kind
    key: str | None
    idem: str | None
    at: int
    body: bytes
    link: bytes


def link_of(before: bytes, event: Event) -> bytes:
    """Return the hash link of an event to its predecessor: any changed byte breaks the chain."""
    # No field contains a line feed, so the joined text is unambiguous.
    key = "" if event.key is None else f"={event.key}"
    idem = "" if event.idem is None else f"={event.idem}"
    head = f"{event.ranker}\n{event.seq}\n{event.kind}\n{key}\n{idem}\n{event.at}\n"
    return hashlib.sha256(before + head.encode() + event.body).digest()[:LINK_SIZE]


def linked(before: bytes, event: Event) -> Event:
    """Set the link of a new event, in place, and return the event."""
    msgspec.structs.force_setattr(event, "link", link_of(before, event))
    return event


class Config(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The configuration of a ranker; every change is a new config event.

    ``spec`` is the complete spec of the library's ranker. ``catalogue`` has the names of a fixed
    list's items and is None if each request brings its own documents.
    """

    spec: dict[str, Any]
    request: dict[str, Any]
    """The request of the owner, as plain data."""
    catalogue: tuple[str, ...] | None
    measure: str
    k: int
    mode: Mode = "online"
    wait_seconds: float = 600.0
    """Seconds until a list without feedback expires."""
    missing: float | None = None
    """The relevance assumed for expired lists; None: such rounds are skipped."""
    apprentice_share: float = 0.0
    """In apprentice mode: the share of rounds that show the apprentice's own list."""
    simulation: bool = False
    """Whether feedback may include the relevance of every item, for the dashboard only."""
    verdict: dict[str, Any] | None = None
    """The observability verdict, if the measure cannot be learnt from this feedback."""
    fresh: bool = False
    """Whether it starts a new state: after a reset, or for a name that was deleted before."""
    by: str | None = None
    """The access key that made the change: its name and prefix."""


class Batch(msgspec.Struct, frozen=True, array_like=True):
    """A batch under one idempotency key, stored with its first list."""

    fingerprint: bytes
    """The SHA-256 of the requests."""
    seqs: tuple[int, ...]
    """The seq of the rank event of each request; 0 if the request was refused."""


class Ranked(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A shown list, with all that later learning and evaluation need.

    ``ranking`` has indices into the items: those of config event ``catalogue``, or ``items``, the
    ids of the request. ``own`` is the apprentice's ranking if the baseline was shown instead.
    ``chances`` are the marginal propensities of the first k items shown: the probabilities that
    they are among the first k; None if the ranker does not know them.
    """

    round: int
    model_seq: int
    ranking: tuple[int, ...]
    explored: bool
    mode: Mode
    k: int
    propensity: float | None = None
    """The probability of the ranker's own draw; None if unknown."""
    p_marginal: float | None = None
    p_conditional: float | None = None
    chances: tuple[float, ...] | None = None
    least_chance: float | None = None
    """The smallest marginal propensity of any item; None if unknown."""
    note: bytes = b""
    """Little-endian float64."""
    catalogue: int | None = None
    items: tuple[str, ...] | None = None
    features: bytes = b""
    """Little-endian numbers, row by row."""
    n_features: int = 0
    dtype: Literal["f4", "f8"] = "f8"
    own: tuple[int, ...] | None = None
    n_excluded: int = 0
    """The number of items at the end of ``ranking`` that were excluded."""
    teaches: bool = True
    """Whether feedback is learnt from: the ranker's own list was shown, and it is not frozen."""
    deferred: bool = False
    fingerprint: bytes = b""
    """The SHA-256 of a request with an idempotency key."""
    batch: Batch | None = None
    """The batch of the idempotency key, if this list is the first one of it."""


class Repeated(msgspec.Struct, frozen=True, omit_defaults=True):
    """A repeated request under a new idempotency key; it changes no state."""

    rank_seq: int
    """The seq of the rank event that answered it, or that answered the batch's first request."""
    batch: Batch | None = None
    """The batch of the idempotency key, if none of its lists is new."""


class Answered(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Feedback on a list: the relevance of its first k items, by position."""

    status: Status
    relevance: tuple[float, ...]
    learned: Learned
    truth: tuple[float, ...] | None = None
    """In simulations, the relevance of every item, by index."""


OutcomeOf = Callable[[Answered, int], Outcome]
"""Maps feedback and the seq of its event to its outcome."""


class Activated(msgspec.Struct, frozen=True):
    """A deferred list was shown: its feedback timer starts."""


class Expired(msgspec.Struct, frozen=True):
    """Lists that expired without feedback, by the seq of their rank events."""

    seqs: tuple[int, ...]


class Deleted(msgspec.Struct, frozen=True, omit_defaults=True):
    """A ranker was deleted; a new ranker of the same name continues its log."""

    to: str | None = None
    """The new name, if the ranker was renamed."""
    by: str | None = None
    """The access key that made the change, as in :class:`Config`."""


class Rebased(msgspec.Struct, frozen=True):
    """The whole state of a ranker, logged when a newer version of its algorithm takes over."""

    state: bytes
    version: str


BODIES: dict[Kind, type[msgspec.Struct]] = {
    "config": Config,
    "rank": Ranked,
    "repeat": Repeated,
    "feedback": Answered,
    "activate": Activated,
    "expire": Expired,
    "rebase": Rebased,
    "delete": Deleted,
}

# Every request creates several of these. They cannot form reference cycles, so ``gc=False`` keeps
# them from triggering the garbage collector.

_encoder = msgspec.msgpack.Encoder()
_decoders = {kind: msgspec.msgpack.Decoder(body) for kind, body in BODIES.items()}


def body_bytes(body: msgspec.Struct) -> bytes:
    """Return a body as MessagePack."""
    return _encoder.encode(body)


def body_of(event: Event) -> Any:
    """Decode the body of an event to the type that BODIES names."""
    return _decoders[event.kind].decode(event.body)


class Snapshot(msgspec.Struct, frozen=True):
    """A ranker's state after event ``seq``: a cache; the two newest are kept."""

    ranker: str
    seq: int
    sha256: str
    """The public hash of the state, not a checksum of these bytes."""
    body: bytes | bytearray


class Key(msgspec.Struct, frozen=True):
    """An access key: its scopes, and a hash instead of its secret."""

    prefix: str
    sha256: bytes
    scopes: tuple[Literal["rank", "feedback", "read", "admin"], ...]
    rankers: tuple[str, ...]
    """The rankers it may see; ``*``: all."""
    created_at: int
    expires_at: int | None = None
    name: str = ""
    """A name given by its owner."""
    used_at: int | None = None
    """The time of its last use, to the minute; None: never used."""
