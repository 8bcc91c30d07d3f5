"""What the log of the service holds: the truth, of which everything else is derived."""

import hashlib
from collections.abc import Callable
from typing import Any, Literal

import msgspec

Kind = Literal["config", "rank", "repeat", "feedback", "activate", "expire", "rebase", "delete"]
Mode = Literal["online", "apprentice", "frozen"]
Status = Literal["observed", "none", "not_shown"]
Learned = Literal["pending", "late", "unused"]
"""What a log says of feedback: it teaches whoever folds the log, came too late, is of no use."""

Outcome = Literal["learned", "unused", "late", "refused", "unknown"]
"""What became of feedback, once the log was folded, as far as that is still known."""

LINK_SIZE = 16
FIRST_LINK = bytes(LINK_SIZE)
"""What the first event of a ranker is linked to."""


class Event(msgspec.Struct, frozen=True, gc=False):
    """A row of the log.

    ``seq`` counts the events of a ranker from 1, without a gap. ``key`` is the id of the impression
    that a rank, feedback or activate is about, and None for other kinds; there is one of each kind
    for a key. ``idem`` is the idempotency key that a rank came with. ``at`` is the wall clock in
    milliseconds, for people: nothing is decided by it. ``body`` is one of the bodies below as
    MessagePack. ``link`` binds the event to all before it.
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
    """Return what binds an event to the one before it: change one byte of a log, and it shows."""
    # None of these texts has a line feed in it, so that no two events are written alike.
    key = "" if event.key is None else f"={event.key}"
    idem = "" if event.idem is None else f"={event.idem}"
    head = f"{event.ranker}\n{event.seq}\n{event.kind}\n{key}\n{idem}\n{event.at}\n"
    return hashlib.sha256(before + head.encode() + event.body).digest()[:LINK_SIZE]


def linked(before: bytes, event: Event) -> Event:
    """Bind a new event, which nobody else has yet, to the one before it, and return it."""
    msgspec.structs.force_setattr(event, "link", link_of(before, event))
    return event


class Config(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A ranker as its owner described it; a change is a new config event.

    ``spec`` is that of the library's ranker, complete. ``catalogue`` names the items of a fixed
    list and is None for a ranker of query-document lists.
    """

    spec: dict[str, Any]
    request: dict[str, Any]
    """What the owner asked for, as plain data."""
    catalogue: tuple[str, ...] | None
    measure: str
    k: int
    mode: Mode = "online"
    wait_seconds: float = 600.0
    """How long feedback is waited for."""
    missing: float | None = None
    """The relevance that counts where none came in time; None: such rounds teach nothing."""
    apprentice_share: float = 0.0
    """In apprentice mode: the share of rounds in which the apprentice's own list is shown."""
    simulation: bool = False
    """Whether feedback may tell the relevance of every item, for the dashboard alone."""
    verdict: dict[str, Any] | None = None
    """What the oracle says of this measure and feedback, where it could not be learnt."""
    fresh: bool = False
    """Whether the ranker begins anew with it: it was reset, or another of its name was deleted."""
    by: str | None = None
    """Who asked for it: the name and the prefix of a key."""


class Batch(msgspec.Struct, frozen=True, array_like=True):
    """Lists that were asked for together, noted with the first of them under their one key."""

    fingerprint: bytes
    """SHA-256 of the requests."""
    seqs: tuple[int, ...]
    """The rank event that each request led to; 0 where it was refused."""


class Ranked(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A list that was shown, and all that learning and judging it later need.

    ``ranking`` are indices into the list of items: that of config event ``catalogue``, or
    ``items``, the ids of the request. ``own`` is the apprentice's ranking where the baseline was
    shown. ``chances`` are the marginal probabilities with which the first k items shown are among
    the first k, and None where the ranker does not know them.
    """

    round: int
    model_seq: int
    ranking: tuple[int, ...]
    explored: bool
    mode: Mode
    k: int
    propensity: float | None = None
    """What the learner said of its own draw; None where it does not know."""
    p_marginal: float | None = None
    p_conditional: float | None = None
    chances: tuple[float, ...] | None = None
    least_chance: float | None = None
    """How likely the least likely item was to be seen; None where that is not known."""
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
    """How many items, the last of ``ranking``, were not shown."""
    teaches: bool = True
    """Whether it is learnt from: the list shown was the ranker's own, and it is not frozen."""
    deferred: bool = False
    fingerprint: bytes = b""
    """SHA-256 of the request that an idempotency key came with."""
    batch: Batch | None = None
    """Where the idempotency key is that of a batch, which this list is the first of."""


class Repeated(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request that came again under an idempotency key of its own; it changes nothing."""

    rank_seq: int
    """That of the rank event which answered it, or the first request of a batch."""
    batch: Batch | None = None
    """Where the idempotency key is that of a batch, none of whose lists is new."""


class Answered(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What was revealed of a list: the relevance of its first k items, by position."""

    status: Status
    relevance: tuple[float, ...]
    learned: Learned
    truth: tuple[float, ...] | None = None
    """In simulations, the relevance of every item, by index."""


OutcomeOf = Callable[[Answered, int], Outcome]
"""Returns what became of feedback, which is in the log as the event of a seq."""


class Activated(msgspec.Struct, frozen=True):
    """A deferred list was shown after all: from now on feedback is waited for."""


class Expired(msgspec.Struct, frozen=True):
    """Rank events, by their seq, for which feedback is no longer waited."""

    seqs: tuple[int, ...]


class Deleted(msgspec.Struct, frozen=True, omit_defaults=True):
    """A ranker is no more; its log stays, and may go on with another one of its name."""

    to: str | None = None
    """The ranker that goes on from its state, where it was renamed."""
    by: str | None = None
    """Who asked for it, as in :class:`Config`."""


class Rebased(msgspec.Struct, frozen=True):
    """The whole state of a ranker, written where a newer algorithm takes over."""

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

# Many of these come and go with every request. None can be part of a cycle, and what the garbage
# collector need not look at (``gc=False``) does not wake it.

_encoder = msgspec.msgpack.Encoder()
_decoders = {kind: msgspec.msgpack.Decoder(body) for kind, body in BODIES.items()}


def body_bytes(body: msgspec.Struct) -> bytes:
    """Return a body as the log keeps it."""
    return _encoder.encode(body)


def body_of(event: Event) -> Any:
    """Return the body of an event, of the type that BODIES says."""
    return _decoders[event.kind].decode(event.body)


class Snapshot(msgspec.Struct, frozen=True):
    """A ranker's state after event ``seq``: a cache, of which two are kept."""

    ranker: str
    seq: int
    sha256: str
    """The hash that the service tells of its state, not of these bytes."""
    body: bytes | bytearray


class Key(msgspec.Struct, frozen=True):
    """An access key: what it may do, and how it is recognised without being kept."""

    prefix: str
    sha256: bytes
    scopes: tuple[Literal["rank", "feedback", "read", "admin"], ...]
    rankers: tuple[str, ...]
    """``*`` stands for all."""
    created_at: int
    expires_at: int | None = None
    name: str = ""
    """What its owner calls it."""
    used_at: int | None = None
    """When it was last used, to a minute; None: never."""
