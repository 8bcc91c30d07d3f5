"""Off-policy evaluations as jobs: requested, run in a thread, fetched later."""

import secrets
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import msgspec

from keyhole.base.errors import KeyholeError
from keyhole.service.commands import EvaluationRequest
from keyhole.service.errors import NoSuchResource
from keyhole.service.evaluations import evaluate, scoring_of
from keyhole.service.events import Config
from keyhole.service.http.problems import Busy, ProblemDetails, problem_of
from keyhole.service.ranker_state import LiveRanker
from keyhole.service.store.base import Store
from keyhole.service.structured_logs import logger

_KEPT = 200
_WAITING = 16


class EvaluationReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """An evaluation: its status and its result."""

    id: str
    ranker: str
    status: Literal["queued", "running", "done", "failed"]
    request: EvaluationRequest
    result: dict[str, Any] | None = None
    problem: ProblemDetails | None = None


class Evaluations:
    """The evaluations since startup; they are not stored, since they can be repeated."""

    def __init__(self) -> None:
        self._replies: OrderedDict[tuple[str, str], EvaluationReply] = OrderedDict()
        self._pool: ThreadPoolExecutor | None = None

    def ask(self, live: LiveRanker, store: Store, request: EvaluationRequest) -> EvaluationReply:
        """Queue an evaluation."""
        best: tuple[str, ...] = ()
        if live.config.catalogue is not None:
            best = tuple(str(name) for name in live.learner.best())
        scoring_of(live.config)  # raises now if it cannot be evaluated
        waiting = sum(reply.status in ("queued", "running") for reply in self._replies.values())
        if waiting >= _WAITING:
            raise Busy(f"At most {_WAITING} evaluations may be queued.")
        reply = EvaluationReply(secrets.token_hex(8), live.name, "queued", request)
        self._keep(reply)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="evaluation")
        self._pool.submit(self._run, reply, store, live.config, best)
        return reply

    def find(self, ranker: str, evaluation: str) -> EvaluationReply:
        """Return an evaluation."""
        reply = self._replies.get((ranker, evaluation))
        if reply is None:
            raise NoSuchResource(f"There is no evaluation {evaluation!r} of this ranker.")
        return reply

    def of(self, ranker: str) -> list[EvaluationReply]:
        """Return the evaluations of a ranker, newest first."""
        return [reply for (of, _), reply in reversed(self._replies.items()) if of == ranker]

    def close(self) -> None:
        """Cancel queued evaluations."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _run(
        self, reply: EvaluationReply, store: Store, config: Config, best: tuple[str, ...]
    ) -> None:
        self._keep(msgspec.structs.replace(reply, status="running"))
        try:
            result = evaluate(store, reply.ranker, config, best, reply.request)
            done = msgspec.structs.replace(reply, status="done", result=result)
        except Exception as error:
            if not isinstance(error, KeyholeError):
                logger().exception("An evaluation failed.", evaluation=reply.id)
            done = msgspec.structs.replace(reply, status="failed", problem=problem_of(error))
        self._keep(done)

    def _keep(self, reply: EvaluationReply) -> None:
        self._replies[reply.ranker, reply.id] = reply
        while len(self._replies) > _KEPT:
            self._replies.popitem(last=False)
