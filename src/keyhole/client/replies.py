"""What the service answers, as types; fields that a newer service adds are passed over."""

from typing import Any

import msgspec


class Policy(msgspec.Struct, frozen=True):
    """How a list came about: the mode, whether it explores, and how likely its top was."""

    mode: str
    explored: bool = False
    p_marginal: float | None = None
    p_conditional: float | None = None


class Ranking(msgspec.Struct, frozen=True):
    """A list to show, best first.

    ``event_id`` is what feedback is given under, and ``k`` how many items from the top it tells of.
    Where the service was away, ``from_fallback`` is true: there is no event, nothing is awaited,
    and feedback for it is not sent.
    """

    ranking: list[str]
    event_id: str | None = None
    k: int = 1
    policy: Policy | None = None
    model_seq: int | None = None
    feedback_by: str | None = None
    from_fallback: bool = False


class RankItem(msgspec.Struct, frozen=True):
    """What became of one request of a batch: the status that it would have had alone.

    With 201 it has the fields of a :class:`Ranking`; otherwise ``type`` and ``detail`` are those
    of the problem.
    """

    status: int
    event_id: str | None = None
    ranking: list[str] = []
    k: int = 1
    policy: Policy | None = None
    model_seq: int | None = None
    feedback_by: str | None = None
    type: str | None = None
    detail: str | None = None


class RankBatch(msgspec.Struct, frozen=True):
    """What became of all requests of a batch."""

    replies: list[RankItem]


class FeedbackResult(msgspec.Struct, frozen=True):
    """What became of feedback.

    ``learned`` is ``learned`` (it has taught), ``unused`` (it cannot teach), ``late`` (nobody
    waited for it any more) or ``refused`` (its numbers are too large to learn from). Feedback for a
    list that did not come from the service is not sent: ``sent`` is false, and there is no ``seq``.
    """

    learned: str
    seq: int | None = None
    created: bool = True
    sent: bool = True


class LineResult(msgspec.Struct, frozen=True):
    """What became of a line of a batch, numbered from 1: the status that it would have had alone.

    Where that is not 200 or 201, ``type`` and ``detail`` are those of the problem.
    """

    line: int
    status: int
    event_id: str | None = None
    learned: str | None = None
    seq: int | None = None
    type: str | None = None
    detail: str | None = None


class Evaluation(msgspec.Struct, frozen=True):
    """What came of judging another policy on a log; ``result`` has values and their bounds."""

    id: str
    status: str
    result: dict[str, Any] | None = None
    problem: dict[str, Any] | None = None


class Page(msgspec.Struct, frozen=True):
    """A page of a log, and after which seq the next one begins."""

    events: list[dict[str, Any]]
    next_after: int | None = None


class RankerPage(msgspec.Struct, frozen=True):
    """A page of rankers, and after which name the next one begins."""

    rankers: list["RankerInfo"]
    next_after: str | None = None


class Code(msgspec.Struct, frozen=True):
    """Whether the compiled code of a ranker is there, and how long it has taken.

    ``state`` is ``preparing``, ``ready`` or ``failed``; a service that does not tell is ready.
    """

    state: str = "ready"
    seconds: float = 0.0


class RankerInfo(msgspec.Struct, frozen=True):
    """A ranker as it is configured, and how far it has come.

    ``version`` is what ``if_match`` of a later change takes; ``code`` tells whether it can be asked
    for lists.
    """

    name: str
    version: int
    request: dict[str, Any]
    spec: dict[str, Any] = {}
    seq: int = 0
    round: int = 0
    waiting: int = 0
    verdict: dict[str, Any] | None = None
    created: bool = False
    code: Code = Code()


class State(msgspec.Struct, frozen=True):
    """How far a ranker has come, and the hash of what it knows."""

    seq: int
    round: int
    sha256: str
    waiting: int = 0
