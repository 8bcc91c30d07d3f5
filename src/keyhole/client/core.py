"""The methods of both clients, written once as exchanges."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec
from numpy.typing import ArrayLike

from keyhole.base.errors import InvalidInput, check_integer, check_number
from keyhole.client.errors import ServiceAway, ServiceError
from keyhole.client.replies import (
    EvaluationResult,
    FeedbackResult,
    LineResult,
    Page,
    RankBatch,
    RankerInfo,
    RankerPage,
    Ranking,
    RankItem,
    State,
)
from keyhole.client.requests import (
    Relevance,
    Status,
    body_of,
    event_of,
    feedback_fields,
    names_of,
    path_of,
    rank_fields,
)
from keyhole.client.retries import Answer, Call, Exchange, Pause, ask, error_from, read

MOST_REQUESTS = 256
"""The maximum number of requests in a rank batch."""
MOST_LINES = 1_000
"""The maximum number of lines in a feedback batch."""
_PAGE = 1_000
_POLL_SECONDS = 0.2
_UNHURRIED_SECONDS = 30.0
"""The timeout in seconds of requests that no user waits for: all but rank."""
_BATCH_SECONDS = 120.0
"""The timeout of a feedback batch, which may have to wait for compilation."""
_JUDGING_SECONDS = 120.0
"""The timeout of changes that check whether a measure can be learnt."""
READY_SECONDS = 120.0
"""The wait for a new ranker, whose code may have to be compiled."""


class Core:
    """The exchanges of a client, with its memory of the last list of every ranker."""

    def __init__(self, retries: int) -> None:
        self._retries = check_integer(retries, "`retries`", at_least=0, at_most=20)
        self._last: dict[str, list[str]] = {}
        self._is_away = False

    def _ask(self, call: Call, retries: int | None = None) -> Exchange[Answer]:
        """Make a call, and remember whether the service answered."""
        if not call.seconds and not call.path.endswith("/rank"):
            call = call._replace(seconds=_UNHURRIED_SECONDS)
        try:
            answer = yield from ask(call, self._retries if retries is None else retries)
        except ServiceError as error:
            self._is_away = isinstance(error, ServiceAway)
            raise
        self._is_away = False
        return answer

    def put_ranker(
        self,
        name: str,
        *,
        items: Sequence[str] | None = None,
        n_features: int | None = None,
        max_items: int | None = None,
        ranker: str | None = None,
        settings: Mapping[str, Any] | None = None,
        measure: str | None = None,
        k: int | None = None,
        max_grade: float | None = None,
        mode: Literal["online", "apprentice", "frozen"] | None = None,
        wait_seconds: float | None = None,
        missing: float | None = None,
        apprentice_share: float | None = None,
        simulation: bool | None = None,
        accept_linear_regret: bool | None = None,
        seed: int | None = None,
        if_match: int | None = None,
        ready_within: float = READY_SECONDS,
    ) -> Exchange[RankerInfo]:
        """Create or reconfigure a ranker; :meth:`change_ranker` changes single fields.

        Omitted arguments have their defaults. If that would reset a setting of an existing ranker,
        the request is refused (:class:`~keyhole.client.Conflict`). For the first ranker of a kind
        this waits some seconds until the service has compiled its code.

        Parameters
        ----------
        items
            The items of a fixed list; omit it, and give ``n_features`` (and ``max_items``), if
            each request brings its own documents.
        ranker, settings
            The algorithm and its settings.
        measure, k, max_grade
            The measure of a list, the number of top items whose relevance feedback reveals, and
            the largest relevance grade.
        mode, apprentice_share
            ``online`` shows the ranker's lists and learns; ``apprentice`` shows the caller's
            baseline and learns from its feedback; ``frozen`` does not learn.
        wait_seconds, missing
            The seconds until a list expires, and the relevance to assume for expired lists.
        simulation
            Whether feedback may include the relevance of every item, for the dashboard.
        accept_linear_regret
            Accept a measure that cannot be learnt from this feedback.
        if_match
            The version that was read; the change is refused if the ranker has changed since.
            ready_within
            Seconds to wait until the ranker's code is compiled, after which
            :class:`~keyhole.client.ServiceAway` is raised although the ranker exists. 0: do not
            wait; ``code`` of the result has the status.
        """
        check_number(ready_within, "`ready_within`", at_least=0.0, at_most=86_400.0)
        fields = {
            "items": names_of(items, "items"), "n_features": n_features, "max_items": max_items,
            "ranker": ranker, "settings": settings, "measure": measure, "k": k,
            "max_grade": max_grade, "mode": mode, "wait_seconds": wait_seconds, "missing": missing,
            "apprentice_share": apprentice_share, "simulation": simulation,
            "accept_linear_regret": accept_linear_regret, "seed": seed,
        }  # fmt: skip
        path = path_of("rankers", name)
        answer = yield from self._ask(
            Call("PUT", path, body_of(fields), _match(if_match), seconds=_JUDGING_SECONDS)
        )
        info = read(answer, RankerInfo)
        waited = 0.0
        while info.code.state == "preparing" and ready_within:
            if waited >= ready_within:
                raise ServiceAway(
                    f"Ranker {name!r} was created, but its code is still compiling after "
                    f"{ready_within:g} s: request lists later, or increase `ready_within`.",
                    status=503,
                    type="urn:keyhole:problem:preparing",
                )
            pause = min(_POLL_SECONDS, ready_within - waited)
            yield Pause(pause)
            waited += pause
            later = read((yield from self._ask(Call("GET", path))), RankerInfo)
            info = msgspec.structs.replace(info, code=later.code)
        if info.code.state == "failed" and ready_within:
            raise ServiceError(
                f"Ranker {name!r} was created, but its code could not be compiled: the log of the "
                f"service says why.",
                status=answer.status,
            )
        return info

    def change_ranker(
        self, name: str, /, *, if_match: int | None = None, **changes: Any
    ) -> Exchange[RankerInfo]:
        """Change the given fields of a ranker.

        Parameters
        ----------
        if_match
            The version that was read; the change is refused if the ranker has changed since.
            changes
            Any of ``items``, ``mode``, ``wait_seconds``, ``missing`` (None: skip rounds without
            feedback), ``apprentice_share``, ``simulation`` and ``accept_linear_regret``.
        """
        if isinstance(changes.get("items"), Sequence):
            changes["items"] = names_of(changes["items"], "items")
        return self._change(
            "PATCH", path_of("rankers", name), body_of(changes, none=True), if_match
        )

    def set_items(
        self, name: str, items: Sequence[str], *, if_match: int | None = None
    ) -> Exchange[RankerInfo]:
        """Replace the items of a ranker."""
        body = body_of({"items": names_of(items, "items")})
        return self._change("PUT", path_of("rankers", name, "items"), body, if_match)

    def edit_items(
        self,
        name: str,
        *,
        add: Sequence[str] = (),
        remove: Sequence[str] = (),
        if_match: int | None = None,
    ) -> Exchange[RankerInfo]:
        """Append items to a ranker's list and remove others; the edit is idempotent."""
        body = body_of({"add": names_of(add, "add"), "remove": names_of(remove, "remove")})
        return self._change("POST", path_of("rankers", name, "items"), body, if_match)

    def reset_ranker(self, name: str, *, if_match: int | None = None) -> Exchange[RankerInfo]:
        """Discard everything a ranker has learnt; its log continues."""
        return self._change("POST", path_of("rankers", name, "reset"), b"", if_match)

    def rename_ranker(
        self, name: str, to: str, *, if_match: int | None = None
    ) -> Exchange[RankerInfo]:
        """Rename a ranker, keeping its state; lists that wait for feedback expire."""
        body = body_of({"to": to})
        return self._change("POST", path_of("rankers", name, "rename"), body, if_match)

    def delete_ranker(self, name: str, *, if_match: int | None = None) -> Exchange[None]:
        """Delete a ranker; its log is kept."""
        yield from self._ask(Call("DELETE", path_of("rankers", name), headers=_match(if_match)))

    def _change(
        self, method: str, path: str, body: bytes, if_match: int | None
    ) -> Exchange[RankerInfo]:
        call = Call(method, path, body, _match(if_match), seconds=_JUDGING_SECONDS)
        answer = yield from self._ask(call)
        return read(answer, RankerInfo)

    def rank(
        self,
        ranker: str,
        documents: Sequence[str] | None = None,
        features: ArrayLike | None = None,
        *,
        exclude: Sequence[str] | None = None,
        baseline: Sequence[str] | None = None,
        deferred: bool = False,
        event_id: str | None = None,
        idempotency_key: str | None = None,
        fallback: Sequence[str] | None = None,
    ) -> Exchange[Ranking]:
        """Return the list to show: of the ranker's fixed items, or of documents with features.

        If the service is down, the result is ``fallback``, or else the last list of this ranker
        (for a fixed list), or else the order of ``baseline`` or ``documents``, and its
        ``from_fallback`` is true. Without any of them :class:`~keyhole.client.ServiceAway` is
        raised. After a failure there are no retries until the service answers again, because a
        user is waiting.

        Parameters
        ----------
        documents, features
            Document ids, and a row of features for each; None for a fixed list.
        exclude
            Items to leave out of this list.
        baseline
            The caller's list, which an apprentice shows.
        deferred
            Start the feedback timer only when the list is activated.
            event_id
            The id for this event; default: the service makes one.
        idempotency_key
            By default a new one per call, so that a retry returns the same list; give one to retry
            across processes.
        """
        fields = rank_fields(documents, features, exclude, baseline, deferred, event_id)
        instead = self._instead(ranker, documents, exclude, baseline, fallback)
        call = Call(
            "POST",
            path_of("rankers", ranker, "rank"),
            body_of(fields),
            {"Idempotency-Key": idempotency_key or str(uuid.uuid4())},
        )
        try:
            answer = yield from self._ask(call, 0 if self._is_away and instead else None)
        except ServiceAway:
            if not instead:
                raise
            return Ranking(instead, from_fallback=True)
        ranking = read(answer, Ranking)
        if documents is None and exclude is None:
            self._last[ranker] = ranking.ranking
        return ranking

    def rank_batch(
        self,
        ranker: str,
        requests: int | Sequence[Mapping[str, Any]],
        *,
        idempotency_key: str | None = None,
    ) -> Exchange[list[RankItem]]:
        """Return up to 256 lists in one request, at a fraction of the cost of single requests.

        Parameters
        ----------
        requests
            The number of lists, for a fixed list; or a dict per request with arguments of
            :meth:`rank` (``documents``, ``features``, ``exclude``, ``baseline``, ``deferred``,
            ``event_id``).
        idempotency_key
            By default a new one per call, so that a retry returns the same lists.

        There is one result per request, in order. A refused request does not affect the others: the
        ``status`` of its result is not 201, and ``detail`` has the reason. There is no fallback.
        """
        if isinstance(requests, int):
            check_integer(requests, "`requests`", at_least=1, at_most=MOST_REQUESTS)
            asked: list[dict[str, Any]] = [{}] * requests
        else:
            asked = [_fields_of(one) for one in requests]
        if len(asked) > MOST_REQUESTS:
            raise InvalidInput(
                f"A batch must have at most {MOST_REQUESTS} requests, got {len(asked)}."
            )
        if not asked:
            return []
        call = Call(
            "POST",
            path_of("rankers", ranker, "rank-batch"),
            body_of({"requests": asked}),
            {"Idempotency-Key": idempotency_key or str(uuid.uuid4())},
        )
        answer = yield from self._ask(call)
        return read(answer, RankBatch).replies

    def _instead(
        self,
        ranker: str,
        documents: Sequence[str] | None,
        exclude: Sequence[str] | None,
        baseline: Sequence[str] | None,
        fallback: Sequence[str] | None,
    ) -> list[str]:
        """Return the fallback list; empty if there is none."""
        seen = self._last.get(ranker) if documents is None else None
        listed = names_of(fallback, "fallback") or seen or baseline or documents or []
        return [item for item in listed if item not in set(exclude or [])]

    def feedback(
        self,
        ranker: str,
        event: str | Ranking | RankItem,
        relevance: Relevance | None = None,
        *,
        status: Status = "observed",
        truth: Mapping[str, float] | None = None,
    ) -> Exchange[FeedbackResult]:
        """Send feedback on a list: the relevance of its first k items.

        ``status`` is ``none`` if the list was seen and nothing was relevant, and ``not_shown`` if
        it was not seen. Feedback on a fallback list is not sent; ``sent`` is then false.
        """
        fields = feedback_fields(relevance, status, truth)
        event_id = event_of(event)
        if event_id is None:
            return FeedbackResult("unused", created=False, sent=False)
        path = path_of("rankers", ranker, "events", event_id, "feedback")
        answer = yield from self._ask(Call("PUT", path, body_of(fields)))
        return read(answer, FeedbackResult)

    def feedback_batch(
        self, ranker: str, lines: Iterable[tuple[str | Ranking | RankItem, Relevance | Status]]
    ) -> Exchange[list[LineResult]]:
        """Send feedback on up to 1,000 lists.

        A line is an event and its relevance, or ``"none"`` or ``"not_shown"``. Lines on fallback
        lists are not sent. There is one result per line that was sent.
        """
        sent = []
        for event, seen in lines:
            status: Any = seen if isinstance(seen, str) else "observed"
            values = None if isinstance(seen, str) else seen
            fields = feedback_fields(values, status, None)
            if (event_id := event_of(event)) is not None:
                sent.append(body_of({"event_id": event_id, **fields}))
        if len(sent) > MOST_LINES:
            raise InvalidInput(f"A batch must have at most {MOST_LINES} lines, got {len(sent)}.")
        if not sent:
            return []
        answer = yield from self._ask(
            Call(
                "POST",
                path_of("rankers", ranker, "feedback-batch"),
                b"\n".join(sent) + b"\n",
                {"Content-Type": "application/x-ndjson"},
                seconds=_BATCH_SECONDS,
            )
        )
        rows = [row for row in answer.body.splitlines() if row.strip()]
        return [read(answer._replace(body=row), LineResult) for row in rows]

    def activate(self, ranker: str, event: str | Ranking | RankItem) -> Exchange[None]:
        """Start the feedback timer of a deferred list, which is shown now."""
        event_id = event_of(event)
        if event_id is not None:
            path = path_of("rankers", ranker, "events", event_id, "activate")
            yield from self._ask(Call("POST", path))

    def events_page(self, ranker: str, after: int) -> Exchange[Page]:
        """Return the next page of a ranker's log."""
        path = path_of("rankers", ranker, "events")
        params = {"after": str(after), "limit": str(_PAGE)}
        answer = yield from self._ask(Call("GET", path, params=params))
        return read(answer, Page)

    def state(self, ranker: str) -> Exchange[State]:
        """Return the progress of a ranker and the hash of its state."""
        answer = yield from self._ask(Call("GET", path_of("rankers", ranker, "state")))
        return read(answer, State)

    def ranker(self, name: str) -> Exchange[RankerInfo]:
        """Return the configuration of a ranker and its progress."""
        answer = yield from self._ask(Call("GET", path_of("rankers", name)))
        return read(answer, RankerInfo)

    def rankers(self) -> Exchange[list[RankerInfo]]:
        """Return all rankers that this key may see."""
        found: list[RankerInfo] = []
        params = {"limit": str(_PAGE)}
        while True:
            answer = yield from self._ask(Call("GET", path_of("rankers"), params=params))
            page = read(answer, RankerPage)
            found += page.rankers
            if page.next_after is None:
                return found
            params["after"] = page.next_after

    def evaluate(
        self,
        ranker: str,
        policy: Sequence[str] | None = None,
        *,
        baseline: Sequence[str] | None = None,
        confidence: float | None = None,
        bound: str | None = None,
        after: int | None = None,
    ) -> Exchange[EvaluationResult]:
        """Evaluate another policy on the log of a ranker, and wait for the result.

        Parameters
        ----------
        policy
            An order of all items, ``"best"`` (default: the ranker's current best list) or
            ``"uniform"`` (random order).
        baseline
            The baseline to beat, given likewise; default: ``"logged"``, the lists that were shown.
        confidence, bound
            The confidence level and the confidence bound of the verdict.
        after
            Use only rounds after this event: a held-out part that the policy did not see.
        """
        fields = {
            "policy": policy, "baseline": baseline, "confidence": confidence, "bound": bound,
            "after": after,
        }  # fmt: skip
        path = path_of("rankers", ranker, "evaluations")
        answer = yield from self._ask(Call("POST", path, body_of(fields)))
        where = answer.headers.get("location", "")
        told = read(answer, EvaluationResult)
        while told.status in ("queued", "running"):
            yield Pause(_POLL_SECONDS)
            answer = yield from self._ask(Call("GET", where))
            told = read(answer, EvaluationResult)
        if told.problem is not None:
            raise error_from(told.problem, int(told.problem.get("status", 500)))
        return told


def _match(version: int | None) -> dict[str, str]:
    return {} if version is None else {"If-Match": f'"{version}"'}


def _fields_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return one rank request of a batch, or raise."""
    names = ("documents", "features", "exclude", "baseline", "deferred", "event_id")
    for name in request:
        if name not in names:
            raise InvalidInput(f"A request of a batch must have {', '.join(names)}, got {name!r}.")
    documents, features, exclude, baseline, deferred, event_id = map(request.get, names)
    fields = rank_fields(documents, features, exclude, baseline, bool(deferred), event_id)
    return {name: value for name, value in fields.items() if value is not None}
