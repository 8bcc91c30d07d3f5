"""Compiles a ranker's code by exercising every operation once, on a small throwaway log.

The operations take the same path as requests, so they compile the same kernels for the same
array types.
"""

import base64
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np

from keyhole.base.errors import KeyholeError
from keyhole.service.commands import (
    Document,
    FeedbackRequest,
    GiveFeedback,
    Packed,
    Rank,
    RankRequest,
)
from keyhole.service.engine import Engine, Made, now
from keyhole.service.events import FIRST_LINK, Config, Event, body_bytes, linked
from keyhole.service.ranker_state import LiveRanker
from keyhole.service.store.memory import MemoryStore
from keyhole.service.summary import summary

_NAME = "trial"
_NO_CODE = frozenset({"items", "seed", "run", "version"})
"""Settings of a ranker that do not affect its compiled code."""


def code_of(config: Config) -> bytes:
    """Return a key that two rankers share if and only if they need the same code."""
    settings = {name: value for name, value in config.spec.items() if name not in _NO_CODE}
    around = (config.measure, config.k, config.catalogue is None)
    asked = [config.request.get(name) for name in ("n_features", "max_grade")]
    return msgspec.json.encode((settings, around, asked), order="sorted")


def warm_up(config: Config) -> None:
    """Compile or load all code that requests to a ranker need."""
    for _ in warming(config):
        pass


def warming(config: Config) -> Iterator[None]:
    """Run :func:`warm_up` as a generator, one function at a time."""
    engine = _engine_of(msgspec.structs.replace(config, mode="online", missing=0.0))
    yield
    tries = _with_documents if config.catalogue is None else _with_own_list
    for attempt in tries(engine, config):
        with suppress(KeyholeError):  # the ranker would refuse such a request as well
            attempt()
        yield


def _engine_of(config: Config) -> Engine:
    store = MemoryStore()
    engine = Engine(store)
    _append(engine, config)
    return engine


def _append(engine: Engine, config: Config) -> None:
    live = engine.rankers.get(_NAME)
    seq, link = (0, FIRST_LINK) if live is None else (live.seq, live.link)
    loose = Event(_NAME, seq + 1, "config", None, None, now(), body_bytes(config), b"")
    event = linked(link, loose)
    engine.store.append([event])
    engine.apply(event)


Attempt = Callable[[], Any]


def _with_own_list(engine: Engine, config: Config) -> Iterator[Attempt]:
    """Yield the operations of a ranker of a fixed list: single and batched."""
    yield lambda: _rank(engine)
    yield lambda: _answer(engine, [_rank(engine)])
    yield lambda: _answer(engine, [_rank(engine), _rank(engine)])
    yield from _looks(engine)
    shown: list[str] = []
    yield lambda: shown.append(_rank(engine))
    other = (config.catalogue or ())[::-1]
    yield lambda: _append(engine, msgspec.structs.replace(config, catalogue=other, mode="online"))
    yield lambda: _answer(engine, shown)  # feedback on a list of earlier items
    yield lambda: _answer(engine, [_rank(engine)])


def _with_documents(engine: Engine, config: Config) -> Iterator[Attempt]:
    """Yield the operations of a ranker of request documents, for every encoding of features."""
    n_features = int(config.request["n_features"])
    n_items = min(max(int(config.spec.get("n_items", 2)), 1), 3)
    items = [Document(f"document-{place}") for place in range(n_items)]
    rows: Any = np.zeros((n_items, n_features)).tolist()
    forms = [rows, *(_packed(n_items, n_features, dtype) for dtype in ("f4", "f8"))]
    for features in forms:
        for exclude in (None, [items[-1].id]):

            def ask(features: Any = features, exclude: Any = exclude) -> str:
                return _rank(engine, items=items, features=features, exclude=exclude)

            yield lambda ask=ask: _answer(engine, [ask()])  # type: ignore[misc]
            yield lambda ask=ask: engine.ranker(_NAME).learner.best(  # type: ignore[misc]
                _query_of(engine, ask())
            )
    yield from _looks(engine)


def _looks(engine: Engine) -> Iterator[Attempt]:
    """Yield the operations of dashboard pages, the state hash and a start from a snapshot."""
    live = engine.ranker(_NAME)
    yield lambda: summary(live)
    yield lambda: LiveRanker.from_snapshot(live.snapshot(), live.store)


def _packed(n_items: int, n_features: int, dtype: Any) -> Packed:
    content = np.zeros((n_items, n_features), dtype=f"<{dtype}").tobytes()
    return Packed((n_items, n_features), base64.b64encode(content).decode(), dtype)


def _rank(engine: Engine, **asked: Any) -> str:
    return str(engine.execute(Rank(_NAME, RankRequest(**asked))).event_id)


def _query_of(engine: Engine, event_id: str) -> Any:
    live = engine.ranker(_NAME)
    ranked = live.ranked(live.seq_of[event_id])
    return live.lesson(ranked, (0.0,) * ranked.k)[0].query


def _answer(engine: Engine, shown: list[str]) -> None:
    """Give feedback on lists; several are learnt from as a batch."""
    made: list[Made] = []
    decisions = []
    for event_id in shown:
        decision = engine.decide(GiveFeedback(_NAME, event_id, FeedbackRequest("none")), now())
        if decision is not None:
            decisions.append(decision)
            made += decision.made
    engine.store.append([event for event, _ in made])
    engine.apply_all(made)
    for decision in decisions:
        engine.settle(decision)
