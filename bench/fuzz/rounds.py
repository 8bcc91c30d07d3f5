"""Rounds of live rankers: strange impressions, feedback and lists, in any order."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from bench.fuzz import values
from bench.fuzz.scene import ANY, BAD, GOOD, Attack, Scene
from keyhole import ranker
from keyhole.base.errors import MAX_ROUND
from keyhole.contracts.lists import Feedback, Impression, Query
from keyhole.contracts.rankers import Ranker
from keyhole.rankers import RANKERS
from keyhole.rankers.lists.base import ContextualRanker

N_ITEMS, N_FEATURES = 5, 3

_OPTIONS: dict[str, dict[str, Any]] = {
    "rtopk": {"horizon": 50, "k": 2, "items": list("abcde")},
    "ftpl": {"horizon": 50},
    "onlinerank": {"items": list("abcde")},
    "hedge": {"horizon": 50},
    "forecaster": {"horizon": 50},
    "slam": {"measure": "NDCG@3"},
}
"""What the rankers that are attacked are made with, besides the size of their lists."""


def cast(name: str, **changed: Any) -> Ranker:
    """Return a fresh ranker to attack."""
    given = dict(_OPTIONS.get(name, {}), n_items=N_ITEMS, **changed)
    if issubclass(RANKERS[name], ContextualRanker):
        given["n_features"] = N_FEATURES
    return ranker(name, **given)


def query_of(made: Ranker, chance: random.Random) -> Query | None:
    """Return a list that a ranker can rank."""
    if not made.n_features:
        return None
    n_items = chance.randint(1, made.n_items)
    numbers = np.random.default_rng(chance.getrandbits(32))
    return Query(n_items, numbers.random((n_items, made.n_features)))


def answer_of(made: Ranker, shown: Impression, chance: random.Random) -> list[float]:
    """Return what a user may well have answered."""
    top = max(1, int(min(made.max_grade, 2.0)))
    return [float(chance.randint(0, top)) for _ in shown.ranking]


def play_some(made: Ranker, chance: random.Random, n_rounds: int = 4) -> list[Impression]:
    """Let a ranker learn for some rounds, and return what it has shown."""
    seen = []
    for _ in range(n_rounds):
        shown = made.rank(query_of(made, chance))
        made.update(shown, answer_of(made, shown, chance))
        seen.append(shown)
    return seen


def warm() -> None:
    """Compile all that the attacks call."""
    for name in RANKERS:
        made = cast(name)
        chance = random.Random(0)
        play_some(made, chance)
        made.best(query_of(made, chance))


# --------------------------------------------------------------------------- attacks


def _as_it_is(given: Any) -> Any:
    return given


Step = Callable[[Scene, Ranker, list[Impression], random.Random], None]


def _fair(scene: Scene, made: Ranker, seen: list[Impression], chance: random.Random) -> None:
    """A round as it should be."""
    label = GOOD if made.next_round < MAX_ROUND else ANY
    shown = scene.attempt("rank", lambda: made.rank(query_of(made, chance)), label)
    if shown is not None:
        seen.append(shown)
        answer = answer_of(made, shown, chance)
        scene.attempt(f"update with {answer}", lambda: made.update(shown, answer), GOOD, "update")


def _any_round(scene: Scene, made: Ranker, seen: list[Impression], chance: random.Random) -> None:
    """Rounds out of order, late, negative, huge."""
    round = chance.choice(
        (0, 3, 10**6, 2**46, 2**47 - 1, values.whole(chance), values.value(chance))
    )
    query = query_of(made, chance)
    shown = scene.attempt(f"rank in round {round!r}", lambda: made.rank(query, round=round))
    if shown is not None:
        seen.append(shown)
        answer = answer_of(made, shown, chance)
        scene.attempt(f"update with {answer}", lambda: made.update(shown, answer), kind="round")


def _late(scene: Scene, made: Ranker, seen: list[Impression], chance: random.Random) -> None:
    """Feedback on an impression of any time, perhaps for the second time."""
    shown = chance.choice(seen)
    answer = answer_of(made, shown, chance)
    label = GOOD if len(shown.ranking) == N_ITEMS else ANY
    scene.attempt(f"late feedback {answer}", lambda: made.update(shown, answer), label, "late")


def _any_feedback(
    scene: Scene, made: Ranker, seen: list[Impression], chance: random.Random
) -> None:
    """Feedback of any shape and size."""
    shown = chance.choice(seen)
    n = len(shown.ranking)
    answer: Any = chance.choice(
        (
            [values.real(chance) for _ in range(n)],
            [values.real(chance) for _ in range(chance.randint(0, 7))],
            values.array(chance, n),
            values.value(chance),
        )
    )
    wrap = Feedback if chance.random() < 0.3 else _as_it_is
    scene.attempt(f"feedback {answer!r}", lambda: made.update(shown, wrap(answer)), kind="feedback")


def _bad_feedback(
    scene: Scene, made: Ranker, seen: list[Impression], chance: random.Random
) -> None:
    """Feedback that no ranker can take."""
    shown = chance.choice(seen)
    n = len(shown.ranking)
    kind, answer = chance.choice(
        (
            ("infinite relevance", [np.inf] * n),
            ("negative relevance", [-1.0] * n),
            ("feedback of two dimensions", np.ones((n, n))),
            ("feedback that is too long", [1.0] * (n + 1)),
            ("feedback without a value", []),
            ("words as feedback", ["x"] * n),
            ("complex feedback", [1 + 2j] * n),
        )
    )
    scene.attempt(f"{kind}: {answer!r}", lambda: made.update(shown, answer), BAD, kind)


def _made_by_hand(
    scene: Scene, made: Ranker, seen: list[Impression], chance: random.Random
) -> None:
    """Impressions with one field that is not what rank gave."""
    shown = chance.choice(seen)
    n = len(shown.ranking)
    kind, changed, label = chance.choice(
        (
            ("propensity 0", {"propensity": 0.0}, ANY),
            ("propensity NaN", {"propensity": np.nan}, ANY),
            ("propensity -1", {"propensity": -1.0}, ANY),
            ("tiny propensity", {"propensity": 5e-324}, ANY),
            ("any propensity", {"propensity": values.real(chance)}, ANY),
            ("explored", {"explored": not shown.explored}, ANY),
            ("explored, no propensity", {"explored": True, "propensity": 0.0}, ANY),
            ("any round", {"round": values.whole(chance)}, ANY),
            ("negative round", {"round": -1}, BAD),
            ("round past the last", {"round": 2**62}, BAD),
            ("no round", {"round": None}, BAD),
            ("items out of range", {"ranking": np.arange(n) + 10**9}, BAD),
            ("negative items", {"ranking": np.arange(n) - 5 * 10**6}, BAD),
            ("items twice", {"ranking": np.zeros(n + 1, np.int64)}, BAD),
            ("ranking of two dimensions", {"ranking": np.tile(np.arange(n), (2, 1))}, BAD),
            ("any ranking", {"ranking": values.array(chance, n)}, ANY),
            ("any thing", {chance.choice(("ranking", "query", "propensity", "explored")):
                           values.value(chance)}, ANY),
            ("another list", {"query": (n + 3, None, None)}, ANY),
            ("n_items that lies", {"query": (2**40, shown.query.features, None)}, BAD),
        )
    )  # fmt: skip
    answer = answer_of(made, shown, chance)

    def update() -> None:
        """Make the impression too: it may be refused as soon as it is made."""
        fields: dict[str, Any] = {
            name: Query(*value) if name == "query" and isinstance(value, tuple) else value
            for name, value in changed.items()
        }
        made.update(replace(shown, **fields), answer)

    scene.attempt(f"impression with {changed!r}, {answer}", update, label, kind)


def _features(scene: Scene, made: Ranker, seen: list[Impression], chance: random.Random) -> None:
    """Lists of huge, tiny, not finite or wrongly shaped features."""
    n = chance.randint(1, N_ITEMS)
    numbers = np.random.default_rng(chance.getrandbits(32))
    table: Any = numbers.random((n, N_FEATURES))
    scale = chance.choice((1e3, 1e100, 1e154, 1e300, 1.7e308, -1e308, np.nan, np.inf, 1e-320))
    where = (chance.randrange(n), chance.randrange(N_FEATURES))
    match chance.randrange(4):
        case 0:
            table = table * scale
        case 1:
            table[where] = scale
        case 2:
            table = values.array(chance, n)
        case 3:
            table = values.value(chance)
    label = ANY
    if made.n_features and isinstance(table, np.ndarray) and table.shape == (n, N_FEATURES):
        label = ANY if table.dtype.kind != "f" or bool(np.isfinite(table).all()) else BAD
    kind = "features that are not finite" if label == BAD else "features"
    what = f"rank {n} items of features {table!r}"
    shown = scene.attempt(what, lambda: made.rank(Query(n, table)), label, kind)
    if shown is not None:
        answer = [1.0] * len(shown.ranking)
        scene.attempt("update of it", lambda: made.update(shown, answer), kind="huge features")
        scene.attempt("best of it", lambda: made.best(Query(n, table)), kind="huge features")


def _of_another(scene: Scene, made: Ranker, seen: list[Impression], chance: random.Random) -> None:
    """The impression of another ranker."""
    other = cast(chance.choice([*RANKERS]), seed=3)
    shown = other.rank(query_of(other, chance), round=chance.randrange(60))
    answer = answer_of(other, shown, chance)
    scene.attempt(f"impression of {other!r}", lambda: made.update(shown, answer), kind="another's")


def _text(scene: Scene, made: Ranker, seen: list[Impression], chance: random.Random) -> None:
    """Impressions from text that has changed on its way."""
    shown = chance.choice(seen)
    record = json.loads(shown.to_json())
    if chance.random() < 0.5:
        field = chance.choice([*record])
        record[field] = chance.choice(
            (None, -1, 2**62, 1e308, "x", [], [0], {}, True, [[0, 1]], [1e308] * 5, [None] * 5)
        )
        text = json.dumps(record)
    else:
        text = values.reworded(chance, json.dumps(record))
    given = scene.attempt(f"from_json({text!r})", lambda: Impression.from_json(text))
    if given is not None:
        answer = [1.0] * max(1, len(given.ranking))
        scene.attempt("update with it", lambda: made.update(given, answer), kind="from_json")


def _other_items(scene: Scene, made: Ranker, seen: list[Impression], chance: random.Random) -> None:
    """Items come and go, and late answers find theirs."""
    names: Any = chance.choice(
        (list("bcdef"), list("edcba"), list("abc"), list("vwxyz"), [4, 3, 2, 1, 0], list(range(5)),
         values.value(chance), ["a", "a"], [1.5], [None])
    )  # fmt: skip
    other = scene.attempt(f"with_items({names!r})", lambda: made.with_items(names))
    if other is not None:
        scene.watch(other, f"{type(made).__name__} of other items")
        shown = chance.choice(seen)
        answer = answer_of(made, shown, chance)
        scene.attempt("late answer to it", lambda: other.update(shown, answer), kind="with_items")
        scene.attempt("rank", other.rank, kind="with_items")


_STEPS: tuple[Step, ...] = (
    _fair, _fair, _any_round, _late, _any_feedback, _any_feedback, _bad_feedback, _made_by_hand,
    _made_by_hand, _features, _of_another, _text, _other_items,
)  # fmt: skip


def draw(chance: random.Random) -> Attack:
    """Return some rounds of a ranker, of which most are attacks."""
    name = chance.choice([*RANKERS])
    steps = [chance.choice(_STEPS) for _ in range(chance.randint(2, 8))]
    what = f"{name}: {', '.join(step.__name__.strip('_') for step in steps)}"

    def act(scene: Scene) -> None:
        made = cast(name)
        seen = play_some(made, chance, 2)
        scene.watch(made, name)
        for step in steps:
            step(scene, made, seen, chance)
            if scene.failures:
                return  # what follows a broken state shows nothing new

    return Attack(what, act)
