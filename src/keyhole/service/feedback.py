"""Decides feedback: validated against its list, late or in time, new or repeated."""

from keyhole.base.errors import InvalidInput, shown
from keyhole.service.commands import FeedbackReply, FeedbackRequest
from keyhole.service.errors import ConflictingRequest, NoSuchResource
from keyhole.service.events import Answered, Event, Learned, Ranked, body_of
from keyhole.service.ranker_state import LiveRanker


def answer_of(live: LiveRanker, event_id: str, request: FeedbackRequest) -> Answered | Event:
    """Return feedback as an event body, or the event of the same feedback given before."""
    seq = live.seq_of.get(event_id)
    if seq is not None:
        waited = live.waiting[seq]
        ranked = live.ranked(seq, waited)
        unused = not ranked.teaches or request.status == "not_shown"
        answered = _answer_to(live, ranked, request, "unused" if unused else "pending")
        waited.ranked = ranked
        return answered
    answered = _answer_to(live, ranked_before(live, event_id), request, "late")
    said = live.found(event_id, "feedback")
    if said is not None:
        _check_same(said, answered)
    return said or answered


def ranked_before(live: LiveRanker, event_id: str) -> Ranked:
    """Return a list that no longer waits for feedback, or raise :class:`NoSuchResource`."""
    event = live.found(event_id, "rank")
    if event is None or event.seq <= live.since:
        raise NoSuchResource(f"There is no event {shown(event_id)} of ranker {live.name!r}.")
    return body_of(event)


def was_never_shown(live: LiveRanker, seq: int | None, event_id: str) -> bool:
    """Return whether a deferred list expired without ever being activated."""
    if not ranked_before(live, event_id).deferred or seq is not None:
        return False
    if live.found(event_id, "activate") is not None:
        return False
    said = live.found(event_id, "feedback")
    return said is None or body_of(said).learned == "late"


def _check_same(said: Event, answered: Answered) -> None:
    """Raise if repeated feedback differs from the first."""
    before: Answered = body_of(said)
    if (before.status, before.relevance) != (answered.status, answered.relevance):
        raise ConflictingRequest(
            f"Event {shown(said.key)} has different feedback already: the first counts."
        )


def said_before(live: LiveRanker, said: Event) -> FeedbackReply:
    """Return the reply to repeated feedback."""
    return FeedbackReply(live.outcome(body_of(said), said.seq), said.seq, False)


def _answer_to(
    live: LiveRanker, ranked: Ranked, request: FeedbackRequest, learned: Learned
) -> Answered:
    """Return a feedback request as an event body, or raise."""
    k = ranked.k
    relevance: tuple[float, ...] = ()
    if request.status == "observed":
        relevance = tuple([float(value) for value in request.relevance or ()])
        largest = float(live.config.request.get("max_grade", 1.0))
        if len(relevance) != k:
            raise InvalidInput(
                f"`relevance` must be {k} number{'s' * (k != 1)}, one for each of the first items "
                f"shown, got {len(relevance)}."
            )
        if relevance and max(relevance) > largest:
            raise InvalidInput(
                f"`relevance` must be at most max_grade={largest:g}, got {max(relevance):g}."
            )
    elif request.relevance is not None:
        raise InvalidInput(f"`relevance` must be omitted if status is {request.status}.")
    elif request.status == "none":
        relevance = (0.0,) * k
    return Answered(request.status, relevance, learned, _truth(live, ranked, request))


def _truth(live: LiveRanker, ranked: Ranked, request: FeedbackRequest) -> tuple[float, ...] | None:
    """Return the relevance of every item, which simulations may send, or raise."""
    if request.truth is None:
        return None
    if not live.config.simulation:
        raise InvalidInput("`truth` must be omitted unless the ranker has `simulation` set.")
    names = live.names_of(ranked)
    if set(request.truth) != set(names):
        raise InvalidInput(f"`truth` must name all of the {len(names)} items of the list.")
    return tuple(float(request.truth[name]) for name in names)
