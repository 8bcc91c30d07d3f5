"""The contract suite over the rankers of query-document lists."""

from typing import Any

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput, NotObservable
from keyhole.checks.attacks import ATTACKS
from keyhole.checks.living import LIVING_CHECKS
from keyhole.checks.rankers import RANKER_CHECKS, check_items_are_exchangeable
from keyhole.contracts.lists import Query
from keyhole.game.play import play
from keyhole.rankers import RANKERS
from keyhole.rankers.lists.base import ContextualRanker
from keyhole.rankers.lists.gradient import Descent
from keyhole.rankers.lists.plain import RandomLists
from keyhole.rankers.lists.top_k import ContextualRTopK
from keyhole.surrogates import SURROGATES, surrogate
from keyhole.worlds.generated import Graded, Separable
from keyhole.worlds.queries import Queries
from tests.contract.few_lists import EQUAL, N_FEATURES, N_ITEMS, NUMBERS, SINGLE, VARIED

EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "contextual-rtopk": [
        {"surrogate": name, "mix": 0.4}
        for name, cls in SURROGATES.items()
        if cls.parts is not None or cls.pairs is not None
    ]
    + [
        {"surrogate": "kl", "exploration": "uniform", "mix": 0.5, "mix_power": 0.1},
        {"surrogate": "ranksvm", "exploration": "uniform", "radius": 0.5, "mix": 0.9},
        {"surrogate": "squared", "step": "adagrad", "rate": 0.3, "mismatch_scale": 2.0},
        {"surrogate": "kl", "k": 3, "mix": 0.4, "centred": False},
        {"surrogate": "ranksvm", "k": 4, "exploration": "uniform", "mix": 0.5, "mix_power": 0.1},
    ],
    "listnet": [
        {},
        {"surrogate": "ndcg_squared", "step": "fixed", "rate": 0.1},
        {"surrogate": "slam", "step": "adagrad", "run": 1},
    ],
    "slam": [
        {"measure": "NDCG@3"},
        {"measure": "AP", "rate": 0.3},
        {
            "measure": "NDCG@3",
            "rate": 1.0,
            "power": 0.5,
            "margin": "grades",
            "weighted_by": "NDCG",
        },
    ],
    "max-violation": [
        {"measure": "NDCG"},
        {"measure": "NDCG", "power": 0.5, "by_loss": True},
    ],
    "kernel-slam": [
        {"similarity": "rbf", "gamma": 3.0},
        {"similarity": "polynomial", "degree": 3, "budget": N_ITEMS, "rate": 0.5},
    ],
    "kernel-max-violation": [{"similarity": "linear"}, {"similarity": "rbf", "budget": 9}],
    "perceptron": [{}],
    "linucb": [{"k": 2}],
    "linear-thompson": [{"k": 2}],
    "pdgd": [{"k": 2}],
    "dbgd": [{"k": 2}],
    "random-lists": [{}],
    "recall": [{"capacity": 64}, {"k": 3, "run": 1}, {"k": 2, "id_column": 1, "capacity": 8}],
}
UNDIGESTED = {name for name, cls in RANKERS.items() if issubclass(cls, ContextualRanker)} - {
    *EXAMPLES
}
"""Rows for which nothing is written above: they are checked as they are made by default."""
EXAMPLES |= {name: [{}] for name in UNDIGESTED}
PARAMETERS = [
    pytest.param(row, options, id=f"{row}-{'-'.join(map(str, options.values()))}")
    for row, many in EXAMPLES.items()
    for options in many
]
FIRST = {row: many[:1] for row, many in EXAMPLES.items()}
FIRST["contextual-rtopk"] = [
    each
    for each in EXAMPLES["contextual-rtopk"]
    if each in ({"surrogate": "kl", "mix": 0.4}, {"surrogate": "ranksvm", "mix": 0.4})
]
COMPILED = [each for each in PARAMETERS if each.values[1] in FIRST[str(each.values[0])]]


def test_every_row_has_an_example():
    rows = {name for name, cls in RANKERS.items() if issubclass(cls, ContextualRanker)}
    assert set(EXAMPLES) == rows


def _make(row, options):
    cls: Any = RANKERS[row]
    if options.get("surrogate") in ("logistic", "ordinal"):
        options = {**options, "surrogate": surrogate(options["surrogate"], max_grade=2)}
    return cls(N_FEATURES, N_ITEMS, **options)


def check_ranker(ranker, worlds, rounds=60):
    for check in RANKER_CHECKS:
        if check is not check_items_are_exchangeable:  # test_exchangeable.py
            for world in worlds:
                check(ranker, world, rounds)
    for check in LIVING_CHECKS:
        check(ranker, VARIED, rounds)


@pytest.mark.parametrize(("row", "options"), COMPILED)
def test_ranker(row, options):
    ranker = _make(row, options)
    check_ranker(ranker, (EQUAL, VARIED))
    for check in ATTACKS:  # interpreted, they end in warnings of NumPy's
        check(ranker, VARIED, 60)


@pytest.mark.interpreted
@pytest.mark.parametrize(("row", "options"), PARAMETERS)
def test_ranker_in_other_settings_and_in_single_precision(row, options):
    """Each compiles everything once more; that games have the same bits is in test_digests.py."""
    worlds = (SINGLE,) if options in FIRST[row] else (EQUAL, VARIED)
    check_ranker(_make(row, options), worlds, rounds=45)


@pytest.mark.parametrize(
    "world", [Separable(N_ITEMS, n_features=N_FEATURES), Graded(N_ITEMS, n_features=N_FEATURES)]
)
def test_generated_lists(world):
    for check in RANKER_CHECKS:
        if check is not check_items_are_exchangeable:  # lists are drawn item by item
            check(_make("listnet", {}), world, 60)


def test_what_cannot_be_estimated_is_refused():
    for name, cls in SURROGATES.items():
        if cls.parts is None and cls.pairs is None:
            with pytest.raises(NotObservable, match="one or two documents"):
                ContextualRTopK(N_FEATURES, N_ITEMS, surrogate=name)


def test_lists_that_do_not_fit_are_refused():
    ranker = Descent(N_FEATURES, N_ITEMS)
    for query in (
        Query(3),
        Query(3, np.zeros((3, N_FEATURES + 1))),
        Query(N_ITEMS + 1, np.zeros((N_ITEMS + 1, N_FEATURES))),
    ):
        with pytest.raises(InvalidInput, match="of the query must be"):
            ranker.rank(query)
    with pytest.raises(InvalidInput, match="`n_features` of Descent must be 4"):
        play(Descent(N_FEATURES + 1, N_ITEMS), EQUAL, rounds=10)


def test_learning_beats_chance_and_curves_add_up():
    random = play(RandomLists(N_FEATURES, N_ITEMS), VARIED, rounds=3000)
    for name in ("kl", "ranksvm"):
        ranker = ContextualRTopK(N_FEATURES, N_ITEMS, surrogate=name)
        result = play(ranker, VARIED, rounds=3000)
        assert result.average_score.mean > random.average_score.mean + 0.02
        assert result.average_greedy_score.mean > random.average_score.mean + 0.02
        assert result.rounds[-1] == 3000
        assert np.all(np.diff(result.scores) >= 0)


def test_centred_features_keep_pointwise_surrogates_above_chance():
    """Few documents are relevant, so uncentred ones lower the weight of all that is common."""
    features = 0.5 + 0.5 * NUMBERS.random((600, N_FEATURES))
    relevant = (features[:, 0] > 0.9) & (NUMBERS.random(600) < 0.5)
    world = Queries(features, relevant.astype(float), np.arange(0, 601, N_ITEMS))
    random = play(RandomLists(N_FEATURES, N_ITEMS), world, rounds=2000)
    for name in ("hinge", "poisson"):
        for centred, sign in ((True, 1), (False, -1)):
            ranker = ContextualRTopK(
                N_FEATURES, N_ITEMS, surrogate=name, centred=centred, row_norm=world.largest_norm
            )
            gain = play(ranker, world, rounds=2000).average_score.mean
            assert sign * (gain - random.average_score.mean) > 0.02
    with pytest.raises(InvalidInput, match="`centred` of Descent must be true or false, got 1"):
        Descent(N_FEATURES, N_ITEMS, centred=1)  # type: ignore[arg-type]


def test_every_pass_meets_every_query_once_in_another_order():
    n = VARIED.n_queries
    orders = []
    for lap in range(3):
        first = [
            VARIED.kernel.query(VARIED.params, VARIED._draw(lap * n + i, 0, 0), VARIED.features)[0]
            for i in range(n)
        ]
        assert sorted(first) == VARIED.params.starts[:-1].tolist()
        orders.append(first)
    assert orders[0] != orders[1] != orders[2]
