"""Games of rankers of a fixed list that no default setting would lead to, for tests of numbers."""

from functools import cache
from typing import Any

from tests.service.played import ANIMALS, Crowd, Game, played
from tests.service.references import History


def asked(**changes: Any) -> dict[str, Any]:
    return {"items": list(ANIMALS[:5]), "simulation": True, **changes}


OTHERS = ["bee", "gnu", "dog", "ant", "hen"]
"""Some that stay, in another order, and some that are new."""

GAMES = {
    "random, top 2, grades to 3": Game(
        asked(ranker="random", k=2, max_grade=3.0), seed=1, excluding=0.3
    ),
    "random, more points than are kept": Game(
        asked(ranker="random", k=1, max_grade=4.0, items=list(ANIMALS[:4])), 618, seed=2
    ),
    "random, all 5 seen, a loss": Game(
        asked(ranker="random", k=5, measure="SumLoss", max_grade=4.0), seed=3
    ),
    "keystone, items change": Game(
        asked(k=2, measure="SumLoss", missing=1.0, max_grade=3.0), 140, seed=4, excluding=0.2,
        changes={60: {"items": OTHERS}, 100: {"wait_seconds": 7.5}},
    ),
    "keystone, gains of grades": Game(
        asked(k=1, max_grade=3.0), 120, seed=5, excluding=0.2, changes={90: {"mode": "frozen"}}
    ),
    "keystone, people change": Game(
        asked(k=1, items=list(ANIMALS[:3])), 330, seed=11, turns=150, lost=0.0, delay=1.0
    ),
    "apprentice without a share": Game(
        asked(k=2, mode="apprentice", measure="SumLoss"), 120, seed=6,
        changes={80: {"items": OTHERS}},
    ),
    "apprentice with a share": Game(
        asked(ranker="epsilon-greedy", mode="apprentice", max_grade=4.0, apprentice_share=0.3),
        300, seed=7,
    ),
    "apprentice that knows the chances of sets": Game(
        asked(ranker="epsilon-greedy", k=2, mode="apprentice", apprentice_share=0.6), 60, seed=12
    ),
    "frozen in the end, late and lost": Game(
        asked(ranker="rtopk", k=2, measure="Precision@2", settings={"horizon": 100}),
        130, seed=8, lost=0.4, delay=12.0, changes={100: {"mode": "frozen", "simulation": False}},
    ),
}  # fmt: skip


@cache
def log_of(name: str) -> tuple[Crowd, History]:
    """Return a crowd that has played one of the games, and what its events tell."""
    crowd = played(GAMES[name])
    return crowd, History(crowd.engine.store)
