"""Every row of every table, made with options of wrong types, at their ends, and not finite."""

import random
from typing import Any

import numpy as np

from bench.fuzz import values
from bench.fuzz.scene import ANY, BAD, GOOD, Attack, Scene
from keyhole import measure, ranker, reveal, surrogate, world
from keyhole.contracts.lists import Feedback, Query
from keyhole.contracts.rankers import Ranker
from keyhole.contracts.registry import Table, all_settings
from keyhole.measures import MEASURES
from keyhole.policies import POLICIES, SCORERS, policy
from keyhole.rankers import RANKERS
from keyhole.reveals import REVEALS
from keyhole.surrogates import SURROGATES
from keyhole.worlds import WORLDS

_TREES = [[-1, -1], [0.0, 0.0], [-1, -1], [-1, -1], [0.5, 0.25], [0, 1, 2], [0, 1, 2]]

GOOD_SETTINGS: dict[str, dict[str, Any]] = {
    "ranker": {"n_items": 4, "n_features": 3, "ranking": [0, 1, 2, 3]},
    "measure": {},
    "reveal": {},
    "world": {
        "outcomes": [[0, 1], [1, 0]], "probabilities": [0.5, 0.5], "table": [[0, 1], [1, 1]],
        "features": [[0.5], [0.25]], "relevance": [0, 1], "starts": [0, 2],
    },
    "surrogate": {},
    "policy": {"n_actions": 3, "action": 1, "scorer": {
        "name": "linear", "weights": [[1.0], [2.0]], "offsets": [0.0, 1.0],
    }},
    "scorer": {"weights": [[1.0], [2.0]], "offsets": [0.0, 1.0], "trees": _TREES, "n_features": 1},
}  # fmt: skip
"""What rows are made with that must be given something."""

_TABLES: tuple[tuple[Table[Any], Any], ...] = (
    (RANKERS, ranker),
    (RANKERS, ranker),
    (MEASURES, measure),
    (WORLDS, world),
    (REVEALS, reveal),
    (SURROGATES, surrogate),
    (POLICIES, policy),
    (SCORERS, SCORERS.make),
)

_SIMILAR: dict[str, tuple[Any, ...]] = {
    "measure": ("NDCG", "AP", "NDCG@3", "SumLoss", "AUC", {"name": "ERR"}, "Precision@2", "RR"),
    "weighted_by": ("NDCG", "DCG@2", None, "AP"),
    "surrogate": (
        "kl",
        "squared",
        "ranksvm",
        "slam",
        "ordinal",
        {"name": "logistic", "max_grade": 4},
    ),
    "subroutine": ("ftpl", "plackett-luce", "quicksort"),
    "sampler": ("plackett-luce", "reverse-plackett-luce", "ftpl"),
    "similarity": ("rbf", "linear", "polynomial"),
    "step": ("adagrad", "fixed", "power"),
    "exploration": ("lifted", "uniform"),
    "partition": ("random", "fixed"),
    "rest": ("random", "exploit", "same"),
    "margin": ("unit", "grades"),
    "weights": ("average", "index", [1.0, 2.0], [0.5, 0.5, 0.0]),
    "pair": ("swap", "parity", "worst-three", "table-b1"),
    "which": ("set", "single"),
    "items": (["a", "b", "c", "d"], [3, 1, 2, 0], ["a", "a", "b", "c"], list("abcde")),
    "item_names": (["a", "b"], ["a"], None),
    "truth": ([0, 1, 1, 0], [1], [2, 0, 0, 0], [0.5] * 4),
    "ranking": ([3, 2, 1, 0], [0, 0, 1, 2], [0, 1], [[0, 1, 2, 3]]),
}
"""Values that may well be right, for options that take words or lists."""

_COMPILED_ANEW = {
    "surrogate", "step", "exploration", "similarity", "margin", "weighted_by", "subroutine",
    "sampler", "by_loss",
}  # fmt: skip
"""Options of which each choice is compiled by itself, for seconds: such rankers are only made."""


def draw(chance: random.Random) -> Attack:
    """Return the making of one row."""
    table, make = chance.choice(_TABLES)
    name = chance.choice([*table])
    known = all_settings(table[name])
    given = {n: v for n, v in GOOD_SETTINGS[table.noun].items() if n in known}
    attack = chance.random()
    label, kind = ANY, f"{table.noun} {name}"
    if attack < 0.05:
        label = GOOD
    elif attack < 0.10:
        given[chance.choice(("n_item", "zeed", "x", "self", "name "))] = values.value(chance)
        label, kind = BAD, f"unknown option of {table.noun}"
    elif attack < 0.25:
        label, kind = _wrong_number(chance, table.noun, known, given)
    elif known:
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            option = chance.choice([*known])
            given[option] = _some(chance, option)
    what = f"{table.noun}({name!r}, {', '.join(f'{n}={v!r}' for n, v in given.items())})"
    spec = chance.random() < 0.15 and label == ANY

    def act(scene: Scene) -> None:
        def call() -> Any:
            return make({"name": name, **given}) if spec else make(name, **given)

        made = scene.attempt(what, call, label, kind)
        if made is not None and label == ANY:
            _use(scene, made, make, ranks=not _COMPILED_ANEW & given.keys())

    return Attack(what, act)


def _wrong_number(
    chance: random.Random, noun: str, known: dict[str, Any], given: dict[str, Any]
) -> tuple[str, str]:
    """Give what is no number for an option that takes one, and return label and kind."""
    sizes = ("n_items", "n_features", "n_actions", "action", "k", "rate", "seed", "run")
    numeric = [
        name
        for name, default in known.items()
        if name in sizes or (isinstance(default, int | float) and not isinstance(default, bool))
    ]
    if not numeric:
        return GOOD, f"good {noun}"
    option = chance.choice(numeric)
    wrong = values.wrong_number(chance)
    given[option] = wrong
    is_default = wrong is None and known[option] is None
    return ANY if is_default else BAD, f"no number for `{option}` of a {noun}"


def _some(chance: random.Random, option: str) -> Any:
    """Return a value for an option, often one that fits."""
    if option in ("n_items", "n_features", "n_actions") and chance.random() < 0.6:
        return chance.randint(0, 6)
    if option in _SIMILAR and chance.random() < 0.7:
        return chance.choice(_SIMILAR[option])
    kinds = (values.whole, values.real, values.real, values.value, values.array)
    return chance.choice(kinds)(chance)


def _use(scene: Scene, made: Any, make: Any, ranks: bool) -> None:
    """Do with something strange but taken what everybody does with it, without compiling much."""
    scene.attempt("repr", lambda: repr(made))
    spec = scene.attempt("spec", lambda: made.spec)
    if spec is not None:
        scene.attempt("made of its spec", lambda: make(spec))
    if ranks and isinstance(made, Ranker) and made.n_items <= 8 and made.n_features <= 8:
        scene.watch(made)
        features = np.ones((made.n_items, made.n_features)) if made.n_features else None
        query = Query(made.n_items, features)
        shown = scene.attempt("rank", lambda: made.rank(query))
        if shown is not None:
            answer = Feedback(np.full(made.n_items, min(1.0, made.max_grade)))
            scene.attempt("update", lambda: made.update(shown, answer))
            scene.attempt("best", lambda: made.best(query))
