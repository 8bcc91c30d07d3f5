"""Types of the service's replies; unknown fields, from newer services, are ignored."""

from typing import Any

import msgspec


class PolicyInfo(msgspec.Struct, frozen=True):
    """The policy that chose a list: its mode, whether it explored, and the propensity."""

    mode: str
    explored: bool = False
    p_marginal: float | None = None
    p_conditional: float | None = None


class Ranking(msgspec.Struct, frozen=True):
    """A list to show, best first.

    Feedback is given under ``event_id``, on the first ``k`` items. If the service was down,
    ``from_fallback`` is true: there is no event, and feedback on the list is not sent.
    """

    ranking: list[str]
    event_id: str | None = None
    k: int = 1
    policy: PolicyInfo | None = None
    model_seq: int | None = None
    feedback_by: str | None = None
    from_fallback: bool = False


class RankItem(msgspec.Struct, frozen=True):
    """The result of one request of a batch, with the status of a single request.

    With status 201 it has the fields of a :class:`Ranking`, otherwise the ``type`` and ``detail``
    of the problem.
    """

    status: int
    event_id: str | None = None
    ranking: list[str] = []
    k: int = 1
    policy: PolicyInfo | None = None
    model_seq: int | None = None
    feedback_by: str | None = None
    type: str | None = None
    detail: str | None = None


class RankBatch(msgspec.Struct, frozen=True):
    """The results of all requests of a batch."""

    replies: list[RankItem]


class FeedbackResult(msgspec.Struct, frozen=True):
    """The outcome of feedback.

    ``learned`` is ``learned``, ``unused`` (nothing to learn from), ``late`` (the list had expired)
    or ``refused`` (its numbers are too large to learn from). Feedback on a fallback list is not
    sent: ``sent`` is false, and there is no ``seq``.
    """

    learned: str
    seq: int | None = None
    created: bool = True
    sent: bool = True


class LineResult(msgspec.Struct, frozen=True):
    """The result of a line of a batch, numbered from 1, with the status of a single request.

    If that is not 200 or 201, ``type`` and ``detail`` describe the problem.
    """

    line: int
    status: int
    event_id: str | None = None
    learned: str | None = None
    seq: int | None = None
    type: str | None = None
    detail: str | None = None


class EvaluationResult(msgspec.Struct, frozen=True):
    """An off-policy evaluation; ``result`` has values and their confidence bounds."""

    id: str
    status: str
    result: dict[str, Any] | None = None
    problem: dict[str, Any] | None = None


class Page(msgspec.Struct, frozen=True):
    """A page of a log, and the seq after which the next page starts."""

    events: list[dict[str, Any]]
    next_after: int | None = None


class RankerPage(msgspec.Struct, frozen=True):
    """A page of rankers, and the name after which the next page starts."""

    rankers: list["RankerInfo"]
    next_after: str | None = None


class Code(msgspec.Struct, frozen=True):
    """The status of a ranker's compiled code, and the seconds of compilation.

    ``state`` is ``preparing``, ``ready`` or ``failed``; older services do not send it.
    """

    state: str = "ready"
    seconds: float = 0.0


class RankerInfo(msgspec.Struct, frozen=True):
    """The configuration of a ranker, and its progress.

    ``version`` is the value for ``if_match``; ``code`` has the status of compilation.
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
    """The progress of a ranker, and the hash of its state."""

    seq: int
    round: int
    sha256: str
    waiting: int = 0
