"""Requests, replies and engine commands; JSON bodies are validated against these types."""

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


class _Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A request body: unknown fields are refused."""


class RankerRequest(_Request, frozen=True):
    """``PUT /v1/rankers/{r}``: the whole configuration of a ranker."""

    items: Annotated[list[ItemId], Meta(min_length=1, max_length=MAX_ITEMS)] | None = None
    """The items of a fixed list; omit it if each request brings its own documents."""
    n_features: Annotated[int, Meta(ge=1, le=MAX_FEATURES)] | None = None
    """The number of features per document, if each request brings its own documents."""
    max_items: Annotated[int, Meta(ge=1, le=MAX_ITEMS)] = 100
    """The maximum list length, if each request brings its own documents."""
    ranker: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    """The algorithm; default: ``keystone`` for a fixed list, ``recall`` for request documents."""
    settings: dict[str, Any] = {}
    """Settings of the algorithm."""
    measure: Annotated[str, Meta(min_length=1, max_length=64)] = "DCG"
    k: Annotated[int, Meta(ge=1, le=MAX_ITEMS)] = 1
    """The number of top items whose relevance feedback reveals."""
    max_grade: Annotated[float, Meta(gt=0, le=100)] = 1.0
    """The largest relevance grade."""
    mode: Mode = "online"
    wait_seconds: Annotated[float, Meta(gt=0, le=31_536_000)] = 600.0
    missing: Annotated[float, Meta(ge=0, le=100)] | None = None
    """The relevance to assume if feedback does not arrive in time; null: skip the round."""
    apprentice_share: Annotated[float, Meta(ge=0, le=1)] = 0.0
    simulation: bool = False
    accept_linear_regret: bool = False
    """Accept a measure that cannot be learnt from this feedback: regret may grow linearly."""
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None


class RankerChange(_Request, frozen=True):
    """``PATCH /v1/rankers/{r}``: changes the named fields and nothing else.

    Only these fields can change after creation; any other change needs a new ranker.
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
    """``PUT /v1/rankers/{r}/items``: replaces the list of items."""

    items: Annotated[list[ItemId], Meta(min_length=1, max_length=MAX_ITEMS)]


class ItemsEdit(_Request, frozen=True):
    """``POST /v1/rankers/{r}/items``: items to add and to remove.

    The edit is idempotent: adding a present item or removing an absent one changes nothing.
    """

    add: Annotated[list[ItemId], Meta(max_length=MAX_ITEMS)] = []
    """Items to append to the list, in this order."""
    remove: Annotated[list[ItemId], Meta(max_length=MAX_ITEMS)] = []


Revision = RankerChange | ItemsRequest | ItemsEdit
"""Partial changes of an existing ranker."""


class RenameRequest(_Request, frozen=True):
    """``POST /v1/rankers/{r}/rename``: the new name."""

    to: Name


class Packed(_Request, frozen=True):
    """Features as base64 of little-endian floats: a third of the size of JSON, and faster."""

    shape: tuple[
        Annotated[int, Meta(ge=1, le=MAX_ITEMS)], Annotated[int, Meta(ge=1, le=MAX_FEATURES)]
    ]
    b64: str
    dtype: Literal["f4", "f8"] = "f4"


class Document(_Request, frozen=True):
    """A document that a request brings along."""

    id: ItemId


Row = Annotated[list[float], Meta(min_length=1, max_length=MAX_FEATURES)]
Rows = Annotated[list[Row], Meta(min_length=1, max_length=MAX_ITEMS)]


class RankRequest(_Request, frozen=True, gc=False):
    """``POST /v1/rankers/{r}/rank``: may be empty for a fixed list."""

    items: Annotated[list[Document], Meta(min_length=1, max_length=MAX_ITEMS)] | None = None
    features: Packed | Rows | None = None
    exclude: Annotated[list[ItemId], Meta(max_length=MAX_ITEMS)] | None = None
    """Items to leave out of this list, such as sold-out ones."""
    baseline: Annotated[list[ItemId], Meta(min_length=1, max_length=MAX_ITEMS)] | None = None
    """The caller's own list, which an apprentice shows; default: the order of the items."""
    deferred: bool = False
    """Start the feedback timer only when the list is activated."""
    event_id: EventId | None = None


class PolicyReply(msgspec.Struct, frozen=True, gc=False):
    """The policy that chose a list: its mode, whether it explored, and the propensities."""

    mode: Mode
    explored: bool
    p_marginal: float | None
    p_conditional: float | None


class RankReply(msgspec.Struct, frozen=True, gc=False):
    """The list to show, and the event id to send feedback under."""

    event_id: str
    ranking: list[str]
    k: int
    policy: PolicyReply
    model_seq: int
    feedback_by: str | None
    """The deadline for feedback (ISO 8601); null while the list is deferred."""


MAX_BATCH = 256


class RankBatchRequest(_Request, frozen=True):
    """``POST /v1/rankers/{r}/rank-batch``: several rank requests."""

    requests: Annotated[list[RankRequest], Meta(min_length=1, max_length=MAX_BATCH)]
    """The rank requests; one that fails does not affect the others."""


class RankItem(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The result of one request of a batch: a list or a problem."""

    status: int
    event_id: str | None = None
    ranking: list[str] | None = None
    k: int | None = None
    policy: PolicyReply | None = None
    model_seq: int | None = None
    feedback_by: str | None = None
    type: str | None = None
    """The problem type."""
    detail: str | None = None


class RankBatchReply(msgspec.Struct, frozen=True):
    """The results of a batch, in the order of its requests."""

    replies: list[RankItem]


class FeedbackRequest(_Request, frozen=True, gc=False):
    """``PUT /v1/rankers/{r}/events/{e}/feedback``: the relevance of the top k items shown."""

    status: Status = "observed"
    relevance: (
        Annotated[list[Annotated[float, Meta(ge=0, le=100)]], Meta(max_length=MAX_ITEMS)] | None
    ) = None
    truth: dict[str, Annotated[float, Meta(ge=0, le=100)]] | None = None
    """In simulations: the relevance of every item by name, for the dashboard only."""


Order = Annotated[list[ItemId], Meta(min_length=1, max_length=MAX_ITEMS)]


class EvaluationRequest(_Request, frozen=True):
    """``POST /v1/rankers/{r}/evaluations``: off-policy evaluation of another list on the log."""

    policy: Order | Literal["best", "uniform"] = "best"
    """An order of all items, ``best`` (the ranker's current best list) or ``uniform`` (random)."""
    baseline: Order | Literal["logged", "best", "uniform"] = "logged"
    """The baseline to beat; default: the lists that were shown."""
    confidence: Annotated[float, Meta(gt=0, lt=1)] = 0.95
    bound: Literal["betting", "empirical-bernstein", "student-t"] = "betting"
    """The confidence bound of the verdict. ``betting`` and ``empirical-bernstein`` hold at every
    sample size if lists are drawn independently; ``student-t`` holds asymptotically."""
    after: Annotated[int, Meta(ge=0, le=2**53)] = 0
    """Evaluate only on rounds after this event: a held-out part that the policy did not see."""


class FeedbackReply(msgspec.Struct, frozen=True, gc=False):
    """The outcome of feedback, which is final."""

    learned: Outcome
    """`learned`: the ranker learnt from it. `unused`: the ranker did not learn from it, because
    the list was not the ranker's own, the ranker is frozen or the list was never shown. `late`:
    the feedback arrived after the deadline and is kept for evaluations. `refused`: its numbers
    are too large to learn from.
    """
    seq: int
    created: bool = True


class CodeReply(msgspec.Struct, frozen=True):
    """The state of a ranker's compiled code, which ranking and learning need.

    While the state is `preparing`, requests get a 503; only the first ranker of a kind has to
    wait for its code. If compilation `failed`, the service log has the error and requests are
    compiled on demand.
    """

    state: Literal["preparing", "ready", "failed"] = "ready"
    seconds: float = 0.0
    """Seconds of compilation so far, or in total once it has ended."""


class RankerReply(msgspec.Struct, frozen=True):
    """The configuration of a ranker, and its progress."""

    name: str
    version: int
    """The sequence number of its last config event: the ETag for If-Match."""
    request: RankerRequest
    spec: dict[str, Any]
    seq: int
    round: int
    waiting: int
    verdict: dict[str, Any] | None = None
    created: bool = False
    code: CodeReply = CodeReply()
    log: Literal["checking", "checked"] = "checked"
    """Whether the whole log of the ranker has been verified since the service started. If an
    event turns out to be damaged, the ranker is no longer served."""


class StateReply(msgspec.Struct, frozen=True):
    """The progress of a ranker, and the hash of its state."""

    seq: int
    round: int
    sha256: str
    waiting: int


# ------------------------------------------------------------------- commands of the engine


class MeasureVerdict(msgspec.Struct, frozen=True):
    """The observability verdict on a measure; None if the measure can be learnt."""

    verdict: dict[str, Any] | None


class Configure(msgspec.Struct, frozen=True):
    """Create or change a ranker; ``if_match`` is the version that the caller read."""

    ranker: str
    request: RankerRequest
    if_match: int | None = None
    judged: "MeasureVerdict | None" = None
    """The observability verdict, if it was computed in advance: it can take seconds."""
    left_out: frozenset[str] = frozenset()
    """Fields that the request omits: they have their default values in it."""
    by: str | None = None
    """The access key of the caller, for the log; likewise in the commands below."""


class Reset(msgspec.Struct, frozen=True):
    """Discard everything a ranker has learnt."""

    ranker: str
    if_match: int | None = None
    by: str | None = None


class Rename(msgspec.Struct, frozen=True):
    """Move the state of a ranker to a new name; the old name is deleted."""

    ranker: str
    to: str
    if_match: int | None = None
    by: str | None = None


class Delete(msgspec.Struct, frozen=True):
    """Delete a ranker; its log is kept."""

    ranker: str
    if_match: int | None = None
    by: str | None = None


class Rank(msgspec.Struct, frozen=True, gc=False):
    """Show a list."""

    ranker: str
    request: RankRequest
    idem: str | None = None


class RankMany(msgspec.Struct, frozen=True):
    """Show many lists; a request that could not be parsed is given as its exception."""

    ranker: str
    requests: "list[RankRequest | Exception]"
    idem: str | None = None


class GiveFeedback(msgspec.Struct, frozen=True, gc=False):
    """Learn from feedback on a list."""

    ranker: str
    event_id: str
    request: FeedbackRequest


class GiveMany(msgspec.Struct, frozen=True):
    """Learn from what was revealed of many lists, by their ids."""

    ranker: str
    answers: dict[str, FeedbackRequest]


class Activate(msgspec.Struct, frozen=True):
    """Start the feedback timer of a deferred list."""

    ranker: str
    event_id: str


class Expire(msgspec.Struct, frozen=True):
    """Expire lists without feedback, by the seq of their rank events."""

    ranker: str
    seqs: tuple[int, ...]


OfWhole = Configure | Reset | Rename | Delete | Expire
"""Commands on a whole ranker: they wait until its other commands are settled."""

Command = OfWhole | Rank | RankMany | GiveFeedback | GiveMany | Activate
