"""What can be asked of a service; both clients have these methods, and nothing else decides."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec
from numpy.typing import ArrayLike

from keyhole.base.errors import InvalidInput, check_integer, check_number
from keyhole.client.errors import ServiceAway, ServiceError
from keyhole.client.replies import (
    Evaluation,
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
from keyhole.client.retries import Answer, Call, Pause, Talk, ask, error_from, read

MOST_REQUESTS = 256
"""Lists that the service shows at once."""
MOST_LINES = 1_000
"""Lines of feedback that the service takes at once."""
_PAGE = 1_000
_POLL_SECONDS = 0.2
_UNHURRIED_SECONDS = 30.0
"""How long an answer may take that nobody who looks at a page waits for: all but that to a rank."""
_BATCH_SECONDS = 120.0
"""The same for a batch of feedback, of which the first may wait for compiled code."""
_JUDGING_SECONDS = 120.0
"""How long it may take to be told whether a measure can be learnt."""
READY_SECONDS = 120.0
"""How long the first ranker of its kind is waited for: its code is compiled."""


class Core:
    """The talks of a client, and what it remembers: the last list of every ranker."""

    def __init__(self, retries: int) -> None:
        self._retries = check_integer(retries, "`retries`", at_least=0, at_most=20)
        self._last: dict[str, list[str]] = {}
        self._is_away = False

    def _ask(self, call: Call, retries: int | None = None) -> Talk[Answer]:
        """Make a call, and remember whether the service is there."""
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
    ) -> Talk[RankerInfo]:
        """Create a ranker, or say anew what one is; :meth:`change_ranker` changes what it names.

        Everything that is not given has its default; a ranker that is there and would lose a
        setting by that is left as it is (:class:`~keyhole.client.Conflict`).

        The service has to compile the code of the first ranker of its kind, which takes seconds;
        this waits for it.

        Parameters
        ----------
        items
            The names of a fixed list; leave it out, and give ``n_features`` (and ``max_items``),
            where lists come with the requests.
        ranker, settings
            An algorithm of the library and its settings.
        measure, k, max_grade
            How lists are judged, how many items from the top feedback tells of, and the largest
            relevance.
        mode, apprentice_share
            ``apprentice`` shows the caller's baseline and learns beside it; ``frozen`` learns
            nothing.
        wait_seconds, missing
            How long feedback is waited for, and the relevance that counts where none came.
        simulation
            Whether feedback may tell the whole truth, for the dashboard.
        accept_linear_regret
            Go on even where the measure cannot be learnt from this feedback.
        if_match
            The version that was read: a ranker that has changed since is left as it is.
        ready_within
            Seconds to wait until the ranker can be asked for lists;
            :class:`~keyhole.client.ServiceAway` is raised after them, and the ranker is there all
            the same. 0 does not wait: ``code`` of the result tells how far it is.
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
                    f"Ranker {name!r} was created, but its code is not ready after "
                    f"{ready_within:g} s: ask for lists later, or let `ready_within` be more.",
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
                f"Ranker {name!r} was created, but its code could not be prepared: the log of the "
                f"service says why.",
                status=answer.status,
            )
        return info

    def change_ranker(
        self, name: str, /, *, if_match: int | None = None, **changes: Any
    ) -> Talk[RankerInfo]:
        """Change what is named of a ranker, and nothing else.

        Parameters
        ----------
        if_match
            The version that was read: a ranker that has changed since is left as it is.
        changes
            Any of ``items``, ``mode``, ``wait_seconds``, ``missing`` (None: rounds without feedback
            teach nothing), ``apprentice_share``, ``simulation`` and ``accept_linear_regret``.
        """
        if isinstance(changes.get("items"), Sequence):
            changes["items"] = names_of(changes["items"], "items")
        return self._change(
            "PATCH", path_of("rankers", name), body_of(changes, none=True), if_match
        )

    def set_items(
        self, name: str, items: Sequence[str], *, if_match: int | None = None
    ) -> Talk[RankerInfo]:
        """Change the list of a ranker, and nothing else."""
        body = body_of({"items": names_of(items, "items")})
        return self._change("PUT", path_of("rankers", name, "items"), body, if_match)

    def edit_items(
        self,
        name: str,
        *,
        add: Sequence[str] = (),
        remove: Sequence[str] = (),
        if_match: int | None = None,
    ) -> Talk[RankerInfo]:
        """Add items to the end of a ranker's list, and remove some; what is so already stays so."""
        body = body_of({"add": names_of(add, "add"), "remove": names_of(remove, "remove")})
        return self._change("POST", path_of("rankers", name, "items"), body, if_match)

    def reset_ranker(self, name: str, *, if_match: int | None = None) -> Talk[RankerInfo]:
        """Let a ranker forget all that it has learnt; its log goes on."""
        return self._change("POST", path_of("rankers", name, "reset"), b"", if_match)

    def rename_ranker(self, name: str, to: str, *, if_match: int | None = None) -> Talk[RankerInfo]:
        """Let a ranker go on under another name; what waits for feedback is given up."""
        body = body_of({"to": to})
        return self._change("POST", path_of("rankers", name, "rename"), body, if_match)

    def delete_ranker(self, name: str, *, if_match: int | None = None) -> Talk[None]:
        """Delete a ranker; its log stays."""
        yield from self._ask(Call("DELETE", path_of("rankers", name), headers=_match(if_match)))

    def _change(
        self, method: str, path: str, body: bytes, if_match: int | None
    ) -> Talk[RankerInfo]:
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
    ) -> Talk[Ranking]:
        """Return the list to show: of the ranker's own items, or of documents with features.

        Where the service is away, that is ``fallback``, or the list that it gave last (of a
        fixed list), or the order of ``baseline`` or ``documents``; the result says so, and if
        there is none of them, :class:`~keyhole.client.ServiceAway` is raised. Once it was away,
        the service is asked only once a call until it answers: somebody waits for this list.

        Parameters
        ----------
        documents, features
            Ids, and a row of numbers for each; None for a fixed list.
        exclude
            Items that must not be shown now.
        baseline
            The list that an apprentice shows.
        deferred
            Whether feedback is waited for only once the list is activated.
        event_id
            The id of this event, where the caller has one.
        idempotency_key
            Made for every call, so that a retry shows the same list; give one to make that hold
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
    ) -> Talk[list[RankItem]]:
        """Return many lists to show, at most 256 of them: a fraction of the cost of one by one.

        Parameters
        ----------
        requests
            How many lists of a fixed list are wanted; or what each is asked for with, by the names
            that :meth:`rank` has (``documents``, ``features``, ``exclude``, ``baseline``,
            ``deferred``, ``event_id``).
        idempotency_key
            Made for every call, so that a retry shows the same lists.

        There is a result for each request, in their order. One that is refused harms no other:
        ``status`` of its result is not 201, and ``detail`` says why. There is no fallback.
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
        """Return the list to show where the service is away; an empty one if there is none."""
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
    ) -> Talk[FeedbackResult]:
        """Tell what was seen of a list: the relevance of its first k items.

        ``status`` is ``none`` where the list was seen and nothing was liked, and ``not_shown``
        where it was not seen. Feedback for a list that came from a fallback is not sent, and the
        result says so.
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
    ) -> Talk[list[LineResult]]:
        """Tell what was seen of many lists, at most 1,000 of them.

        A line is an event and its relevance, or ``"none"`` or ``"not_shown"``. Lines for lists
        that came from a fallback are left out. There is a result for each line that was sent.
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

    def activate(self, ranker: str, event: str | Ranking | RankItem) -> Talk[None]:
        """Begin to wait for the feedback of a deferred list, which is shown now."""
        event_id = event_of(event)
        if event_id is not None:
            path = path_of("rankers", ranker, "events", event_id, "activate")
            yield from self._ask(Call("POST", path))

    def events_page(self, ranker: str, after: int) -> Talk[Page]:
        """Return the next page of a ranker's log."""
        path = path_of("rankers", ranker, "events")
        params = {"after": str(after), "limit": str(_PAGE)}
        answer = yield from self._ask(Call("GET", path, params=params))
        return read(answer, Page)

    def state(self, ranker: str) -> Talk[State]:
        """Return how far a ranker has come, and the hash of what it knows."""
        answer = yield from self._ask(Call("GET", path_of("rankers", ranker, "state")))
        return read(answer, State)

    def ranker(self, name: str) -> Talk[RankerInfo]:
        """Return a ranker as it is configured."""
        answer = yield from self._ask(Call("GET", path_of("rankers", name)))
        return read(answer, RankerInfo)

    def rankers(self) -> Talk[list[RankerInfo]]:
        """Return all rankers that this key may see, read page by page."""
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
    ) -> Talk[Evaluation]:
        """Judge another list on the log of a ranker, and wait for the verdict.

        Parameters
        ----------
        policy
            An order of all items, or ``"best"`` (the default: the best list by now) or
            ``"uniform"``.
        baseline
            What it must beat, in the same words; the default, ``"logged"``, is what was shown.
        confidence, bound
            How sure the verdict must be, and the bound that decides.
        after
            Judge by rounds after this event alone, which the policy has not learnt from.
        """
        fields = {
            "policy": policy, "baseline": baseline, "confidence": confidence, "bound": bound,
            "after": after,
        }  # fmt: skip
        path = path_of("rankers", ranker, "evaluations")
        answer = yield from self._ask(Call("POST", path, body_of(fields)))
        where = answer.headers.get("location", "")
        told = read(answer, Evaluation)
        while told.status in ("queued", "running"):
            yield Pause(_POLL_SECONDS)
            answer = yield from self._ask(Call("GET", where))
            told = read(answer, Evaluation)
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
