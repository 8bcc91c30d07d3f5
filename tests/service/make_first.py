"""Makes the log of the first form that is kept: python -m tests.service.make_first.

It is made once, by the version whose form it is. Later versions must open it, and find in it what
``first.json`` says.
"""

import json
from pathlib import Path

from keyhole.service.commands import (
    Activate,
    Configure,
    Document,
    Expire,
    FeedbackRequest,
    GiveFeedback,
    Rank,
    RankerRequest,
    RankRequest,
)
from keyhole.service.engine import Engine
from keyhole.service.events import Key
from keyhole.service.store import open_store

FIXTURES = Path(__file__).parent / "fixtures"
LIKED = {"tea", "x"}


def copy_first(path: Path) -> None:
    """Copy the log of the first form, and bring it to the form of now, as serving it does."""
    path.write_bytes((FIXTURES / "first.db").read_bytes())
    open_store(path).close()
    path.with_name(path.name + ".lock").unlink()


def serve_items(engine: Engine, n_rounds: int) -> None:
    """Let a fixed list live through all that can happen to one."""
    items = ["coffee", "tea", "milk", "<b>cocoa</b>"]
    engine.execute(Configure("shop", RankerRequest(items=items, k=2, seed=1)), 1_000)
    for round in range(n_rounds):
        at = 2_000 + 10 * round
        request = RankRequest(
            deferred=round % 7 == 3, exclude=["milk"] if round % 11 == 5 else None
        )
        shown = engine.execute(Rank("shop", request, idem=f"request {round}"), at)
        if round % 14 == 3:
            engine.execute(Activate("shop", shown.event_id), at + 1)
        relevance = [float(name in LIKED) for name in shown.ranking[:2]]
        said = (
            FeedbackRequest(relevance=relevance),
            FeedbackRequest("none"),
            FeedbackRequest("not_shown"),
            None,
        )[(0, 0, 0, 1, 0, 2, 3)[round % 7]]
        if said is not None:
            engine.execute(GiveFeedback("shop", shown.event_id, said), at + 2)
        if round == n_rounds // 2:
            engine.execute(
                Configure("shop", RankerRequest(items=[*items[1:], "water"], k=2, seed=1)), at + 3
            )
    waiting = tuple(engine.ranker("shop").waiting)
    engine.execute(Expire("shop", waiting[:2]), 9_000)
    late = engine.store.event("shop", waiting[0])
    assert late is not None
    assert late.key is not None
    engine.execute(GiveFeedback("shop", late.key, FeedbackRequest(relevance=[1.0, 0.0])), 9_001)


def serve_documents(engine: Engine, n_rounds: int) -> None:
    """Let a ranker of query-document lists learn."""
    request = RankerRequest(n_features=2, max_items=4, k=2, seed=2, settings={"capacity": 16})
    engine.execute(Configure("news", request), 1_000)
    for round in range(n_rounds):
        names = ["x", "y", f"z{round % 5}"]
        features = [[0.5, 1.0], [1.0, 0.25], [0.0, float(round % 5)]]
        ask = RankRequest(items=[Document(name) for name in names], features=features)
        shown = engine.execute(Rank("news", ask), 2_000 + 10 * round)
        relevance = [float(name in LIKED) for name in shown.ranking[:2]]
        said = FeedbackRequest(relevance=relevance)
        engine.execute(GiveFeedback("news", shown.event_id, said), 2_001 + 10 * round)


def make(path: Path) -> dict[str, dict[str, object]]:
    """Make the log, and return what it leads to."""
    with open_store(path) as store:
        engine = Engine(store)
        serve_items(engine, 40)
        serve_documents(engine, 20)
        for live in engine.rankers.values():
            store.put_snapshot(live.snapshot())
        store.add_key(Key("kh_first", bytes(32), ("rank", "feedback"), ("*",), 1_000))
        return {
            name: {"seq": live.seq, "round": live.round, "sha256": live.sha256()}
            for name, live in sorted(engine.rankers.items())
        }


if __name__ == "__main__":
    (FIXTURES / "first.db").unlink(missing_ok=True)
    found = make(FIXTURES / "first.db")
    (FIXTURES / "first.db.lock").unlink()
    (FIXTURES / "first.json").write_text(json.dumps(found, indent=2) + "\n")
