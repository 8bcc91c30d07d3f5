"""Validates feedback requests and encodes them for the log."""

from keyhole.base.errors import InvalidInput
from keyhole.service.commands import FeedbackRequest
from keyhole.service.events import Answered, Learned, Ranked
from keyhole.service.ranker_state import LiveRanker


def answer_to(
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
