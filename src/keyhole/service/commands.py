"""What can be asked of the service, and what it answers; JSON is checked against these types."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from keyhole.service.events import Mode, Outcome, Status

Name = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=64,
        pattern=r"\A[A-Za-z0-9][A-Za-z0-9._-]*\Z",
        description="Letters, digits, dots, hyphens and underscores.",
    ),
]
ItemId = Annotated[str, Meta(min_length=1, max_length=256, description="The name of an item.")]
EventId = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"\A[!-~]+\Z")]
IdempotencyKey = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"\A[ -~]+\Z")]
MAX_ITEMS = 1_000
MAX_FEATURES = 4_096
MAX_DEPTH = 1_000


class _Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What comes in: a field that does not exist is refused."""


class RankerRequest(_Request, frozen=True):
    """``PUT /v1/rankers/{r}``: everything about a ranker that its owner chooses."""

    items: Annotated[list[ItemId], Meta(min_length=1, max_length=MAX_ITEMS)] | None = None
    """The names of a fixed list; leave it out where lists come with the requests."""
    n_features: Annotated[int, Meta(ge=1, le=MAX_FEATURES)] | None = None
    """The number of features of a document, where lists come with the requests."""
    max_items: Annotated[int, Meta(ge=1, le=MAX_ITEMS)] = 100
    """The length of the longest list, where lists come with the requests."""
    ranker: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    """A ranker of the library: ``keystone`` for a fixed list, ``recall`` for others by default."""
    settings: dict[str, Any] = {}
    """Settings of that ranker."""
    measure: Annotated[str, Meta(min_length=1, max_length=64)] = "DCG"
    k: Annotated[int, Meta(ge=1, le=MAX_ITEMS)] = 1
    """How many items from the top feedback tells of."""
    max_grade: Annotated[float, Meta(gt=0, le=100)] = 1.0
    """The largest relevance."""
    mode: Mode = "online"
    wait_seconds: Annotated[float, Meta(gt=0, le=31_536_000)] = 600.0
    missing: Annotated[float, Meta(ge=0, le=100)] | None = None
    """The relevance that counts where no feedback came in time; none: the round teaches nothing."""
    apprentice_share: Annotated[float, Meta(ge=0, le=1)] = 0.0
    simulation: bool = False
    accept_linear_regret: bool = False
    """Go on even where the measure cannot be learnt from this feedback."""
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None


class RankerChange(_Request, frozen=True):
    """``PATCH /v1/rankers/{r}``: what is named changes, and nothing else.

    All that can change of a ranker once it learns; the rest takes another ranker.
    """

    items: Annotated[list[ItemId], Meta(min_length=1, max_length=MAX_ITEMS)] | msgspec.UnsetType = (
        msgspec.UNSET
    )
    mode: Mode | msgspec.UnsetType = msgspec.UNSET
    wait_seconds: Annotated[float, Meta(gt=0, le=31_536_000)] | msgspec.UnsetType = msgspec.UNSET
    missing: Annotated[float, Meta(ge=0, le=100)] | msgspec.UnsetType | None = msgspec.UNSET
    apprentice_share: Annotated[float, Meta(ge=0, le=1)] | msgspec.UnsetType = msgspec.UNSET
    simulation: bool | msgspec.UnsetType = msgspec.UNSET
    accept_linear_regret: bool | msgspec.UnsetType = msgspec.UNSET


class ItemsRequest(_Request, frozen=True):
    """``PUT /v1/rankers/{r}/items``: the whole list, and nothing but the list."""

    items: Annotated[list[ItemId], Meta(min_length=1, max_length=MAX_ITEMS)]


class ItemsEdit(_Request, frozen=True):
    """``POST /v1/rankers/{r}/items``: what the list must have, and what it must not have.

    What is there already, or not there, stays so: the same edit again changes nothing.
    """

    add: Annotated[list[ItemId], Meta(max_length=MAX_ITEMS)] = []
    """Come last, in this order."""
    remove: Annotated[list[ItemId], Meta(max_length=MAX_ITEMS)] = []


Revision = RankerChange | ItemsRequest | ItemsEdit
"""What can be asked of a ranker that is there; the rest of it stays as it is."""


class RenameRequest(_Request, frozen=True):
    """``POST /v1/rankers/{r}/rename``: what it is called from here on."""

    to: Name


class Packed(_Request, frozen=True):
    """Features as little-endian numbers in base64: a third of the size of JSON, and faster."""

    shape: tuple[
        Annotated[int, Meta(ge=1, le=MAX_ITEMS)], Annotated[int, Meta(ge=1, le=MAX_FEATURES)]
    ]
    b64: str
    dtype: Literal["f4", "f8"] = "f4"


class Document(_Request, frozen=True):
    """An item of a list that comes with its request."""

    id: ItemId


Row = Annotated[list[float], Meta(min_length=1, max_length=MAX_FEATURES)]
Rows = Annotated[list[Row], Meta(min_length=1, max_length=MAX_ITEMS)]


class RankRequest(_Request, frozen=True, gc=False):
    """``POST /v1/rankers/{r}/rank``: empty for a fixed list."""

    items: Annotated[list[Document], Meta(min_length=1, max_length=MAX_ITEMS)] | None = None
    features: Packed | Rows | None = None
    exclude: Annotated[list[ItemId], Meta(max_length=MAX_ITEMS)] | None = None
    """Items of the list that must not be shown now."""
    baseline: Annotated[list[ItemId], Meta(min_length=1, max_length=MAX_ITEMS)] | None = None
    """The list that an apprentice shows; the order of the items where it is left out."""
    deferred: bool = False
    """Whether feedback is waited for only once the list is activated."""
    event_id: EventId | None = None


class Policy(msgspec.Struct, frozen=True, gc=False):
    """How a list came about."""

    mode: Mode
    explored: bool
    p_marginal: float | None
    p_conditional: float | None


class RankReply(msgspec.Struct, frozen=True, gc=False):
    """What to show, and the id under which feedback is awaited."""

    event_id: str
    ranking: list[str]
    k: int
    policy: Policy
    model_seq: int
    feedback_by: str | None
    """When feedback is no longer waited for (ISO 8601); None while the list is deferred."""


MAX_BATCH = 256


class RankBatchRequest(_Request, frozen=True):
    """``POST /v1/rankers/{r}/rank-batch``: many lists at once."""

    requests: Annotated[list[RankRequest], Meta(min_length=1, max_length=MAX_BATCH)]
    """What each list would be asked for with alone; each stands for itself."""


class RankItem(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What became of one request of a batch: a list, or the problem it would have had alone."""

    status: int
    event_id: str | None = None
    ranking: list[str] | None = None
    k: int | None = None
    policy: Policy | None = None
    model_seq: int | None = None
    feedback_by: str | None = None
    type: str | None = None
    """The type of the problem."""
    detail: str | None = None


class RankBatchReply(msgspec.Struct, frozen=True):
    """What became of each request of a batch, in their order."""

    replies: list[RankItem]


class FeedbackRequest(_Request, frozen=True, gc=False):
    """``PUT /v1/rankers/{r}/events/{e}/feedback``: the relevance of the first k items shown."""

    status: Status = "observed"
    relevance: (
        Annotated[list[Annotated[float, Meta(ge=0, le=100)]], Meta(max_length=MAX_ITEMS)] | None
    ) = None
    truth: dict[str, Annotated[float, Meta(ge=0, le=100)]] | None = None
    """In simulations: the relevance of every item by name; shown, never learnt from."""


Order = Annotated[list[ItemId], Meta(min_length=1, max_length=MAX_ITEMS)]


class EvaluationRequest(_Request, frozen=True):
    """``POST /v1/rankers/{r}/evaluations``: what another list would have earned, from the log."""

    policy: Order | Literal["best", "uniform"] = "best"
    """A fixed order of all items, the list that is the best by now, or all orders alike."""
    baseline: Order | Literal["logged", "best", "uniform"] = "logged"
    """What it must beat; by default what was shown."""
    confidence: Annotated[float, Meta(gt=0, lt=1)] = 0.95
    bound: Literal["betting", "empirical-bernstein", "student-t"] = "betting"
    """Decides: the first two hold for every number of rounds where each list is drawn anew, the
    last in the limit."""
    after: Annotated[int, Meta(ge=0, le=2**53)] = 0
    """Judge by rounds after this event alone: those that the policy has not learnt from."""


class FeedbackReply(msgspec.Struct, frozen=True, gc=False):
    """What became of feedback, which nothing changes any more."""

    learned: Outcome
    """`learned`: it has taught. `unused`: it cannot, as the list was not the ranker's own, the
    ranker is frozen or nobody saw the list. `late`: nobody waited for it any more; it is kept for
    evaluations. `refused`: its numbers are too large to learn from.
    """
    seq: int
    created: bool = True


class CodeReply(msgspec.Struct, frozen=True):
    """Whether the compiled code of a ranker is there, which its lists and its learning need.

    The first ranker of its kind has to wait for it: `preparing` is answered with 503 until it is
    `ready`. Where it `failed`, which the log of the service tells of, requests are tried anyway.
    """

    state: Literal["preparing", "ready", "failed"] = "ready"
    seconds: float = 0.0
    """How long preparing it has taken until now, or until it was done."""


class RankerReply(msgspec.Struct, frozen=True):
    """A ranker as it is configured, and how far it has come."""

    name: str
    version: int
    """The seq of its last config event: the entity tag for If-Match."""
    request: RankerRequest
    spec: dict[str, Any]
    seq: int
    round: int
    waiting: int
    verdict: dict[str, Any] | None = None
    created: bool = False
    code: CodeReply = CodeReply()
    log: Literal["checking", "checked"] = "checked"
    """Whether all events of its log were checked since the service started; if one turns out to be
    damaged, the ranker is no longer served."""


class StateReply(msgspec.Struct, frozen=True):
    """How far a ranker has come, and the hash of what it knows."""

    seq: int
    round: int
    sha256: str
    waiting: int


# ------------------------------------------------------------------- what the engine is told


class Judged(msgspec.Struct, frozen=True):
    """Whether a measure can be learnt: the verdict where it cannot, and that was accepted."""

    verdict: dict[str, Any] | None


class Configure(msgspec.Struct, frozen=True):
    """Create or change a ranker; ``if_match`` is the version that the caller has read."""

    ranker: str
    request: RankerRequest
    if_match: int | None = None
    judged: "Judged | None" = None
    """What the oracle says, where it was asked before: that can take seconds."""
    left_out: frozenset[str] = frozenset()
    """Fields that the request does not name, and that have their defaults in it."""
    by: str | None = None
    """Who asks, for the log; so it is in the commands below."""


class Reset(msgspec.Struct, frozen=True):
    """Let a ranker forget all that it has learnt."""

    ranker: str
    if_match: int | None = None
    by: str | None = None


class Rename(msgspec.Struct, frozen=True):
    """Let a new ranker go on from the state of one, which is deleted."""

    ranker: str
    to: str
    if_match: int | None = None
    by: str | None = None


class Delete(msgspec.Struct, frozen=True):
    """Delete a ranker; its log stays."""

    ranker: str
    if_match: int | None = None
    by: str | None = None


class Rank(msgspec.Struct, frozen=True, gc=False):
    """Show a list."""

    ranker: str
    request: RankRequest
    idem: str | None = None


class RankMany(msgspec.Struct, frozen=True):
    """Show many lists; what stands for a request may be what is wrong with it."""

    ranker: str
    requests: "list[RankRequest | Exception]"
    idem: str | None = None


class GiveFeedback(msgspec.Struct, frozen=True, gc=False):
    """Learn from what was revealed of a list."""

    ranker: str
    event_id: str
    request: FeedbackRequest


class GiveMany(msgspec.Struct, frozen=True):
    """Learn from what was revealed of many lists, by their ids."""

    ranker: str
    answers: dict[str, FeedbackRequest]


class Activate(msgspec.Struct, frozen=True):
    """Begin to wait for the feedback of a deferred list."""

    ranker: str
    event_id: str


class Expire(msgspec.Struct, frozen=True):
    """Stop waiting for feedback of lists, by the seq of their rank events."""

    ranker: str
    seqs: tuple[int, ...]


OfWhole = Configure | Reset | Rename | Delete | Expire
"""Commands that are about a whole ranker, and wait until all else of it is settled."""

Command = OfWhole | Rank | RankMany | GiveFeedback | GiveMany | Activate
