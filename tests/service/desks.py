"""Small services that tests of the engine share."""

from typing import Any

from keyhole.service.commands import (
    Configure,
    FeedbackRequest,
    GiveFeedback,
    Rank,
    RankerRequest,
    RankReply,
    RankRequest,
)
from keyhole.service.engine import Engine
from keyhole.service.store.memory import MemoryStore

ANIMALS = ["ant", "bee", "cat", "dog"]


def engine_of(name: str = "animals", **asked: Any) -> Engine:
    """Return an engine with one ranker, of four animals unless asked otherwise."""
    engine = Engine(MemoryStore())
    configure(engine, name, **asked)
    return engine


def configure(engine: Engine, name: str = "animals", **asked: Any) -> Any:
    if "n_features" not in asked:
        asked.setdefault("items", ANIMALS)
    return engine.execute(Configure(name, RankerRequest(**{"seed": 1, **asked})))


def rank(engine: Engine, name: str = "animals", idem: str | None = None, **asked: Any) -> RankReply:
    return engine.execute(Rank(name, RankRequest(**asked), idem))


def answer(
    engine: Engine,
    event_id: str,
    relevance: list[float] | None = None,
    status: Any = "observed",
    name: str = "animals",
    **asked: Any,
) -> Any:
    return engine.execute(GiveFeedback(name, event_id, FeedbackRequest(status, relevance, **asked)))


def state_of(engine: Engine, name: str = "animals") -> str:
    return engine.ranker(name).sha256()
