"""The contract suite: every row of every table, every check."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput, UnknownName
from keyhole.checks import check_ranker
from keyhole.checks.attacks import ATTACKS
from keyhole.checks.living import LIVING_CHECKS, check_late_answers_find_their_items
from keyhole.checks.measures import check_measure
from keyhole.checks.rankers import RANKER_CHECKS, check_items_are_exchangeable
from keyhole.checks.reveals import check_reveal
from keyhole.checks.worlds import check_world
from keyhole.contracts.measures import Measure
from keyhole.contracts.rankers import Ranker, RankerKernel
from keyhole.contracts.reveals import Reveal
from keyhole.contracts.worlds import World
from keyhole.kernels.draw import WORLD_STREAM, Draw, RelabelledDraw, stream_of
from keyhole.measures import MEASURES, measure
from keyhole.measures.linear import LinearMeasure
from keyhole.rankers import RANKERS
from keyhole.rankers.fixed.base import FixedListRanker
from keyhole.rankers.fixed.plain import Random
from keyhole.rankers.fixed.subroutines import SUBROUTINES
from keyhole.reveals import REVEALS
from keyhole.reveals.choice import Choice
from keyhole.reveals.full import Full
from keyhole.reveals.noisy import Noisy
from keyhole.reveals.top import Top
from keyhole.worlds import WORLDS
from keyhole.worlds.choices import Choices
from keyhole.worlds.flips import Flips
from keyhole.worlds.gaussian import Gaussian
from keyhole.worlds.generated import Graded, Separable
from keyhole.worlds.near_ties import NearTies
from keyhole.worlds.outcomes import Hopeless, Outcomes
from keyhole.worlds.phases import Alternating, Independent, Rising, Takeover
from keyhole.worlds.queries import Queries
from keyhole.worlds.switching import Switching
from keyhole.worlds.table import Ratings, Recorded, Shuffled
from keyhole.worlds.walking import Walking

MAKE: dict[str, Any] = dict(RANKERS)  # each with options of its own
TABLE = np.random.default_rng(5).integers(0, 4, size=(300, 5)).astype(float)
GRADED = Ratings(TABLE)

RANKER_EXAMPLES: dict[str, list[tuple[str, Callable[..., Ranker], World | None]]] = {
    "keystone": [
        ("top 1", lambda: MAKE["keystone"](5), None),
        ("graded", lambda: MAKE["keystone"](5, k=2, max_grade=3), GRADED),
        ("SumLoss", lambda: MAKE["keystone"](6, k=3, measure="SumLoss", run=1), None),
    ],
    "rtopk": [
        *(
            (name, lambda name=name: MAKE["rtopk"](5, horizon=120, k=2, subroutine=name), None)
            for name in SUBROUTINES
        ),
        ("top 1", lambda: MAKE["rtopk"](5, horizon=100, k=1, measure="SumLoss", run=1), None),
        ("everything seen", lambda: MAKE["rtopk"](4, horizon=90, k=4), None),
        ("random rest", lambda: MAKE["rtopk"](5, horizon=100, k=2, rest="random"), None),
        ("fixed cells", lambda: MAKE["rtopk"](5, horizon=100, k=2, partition="fixed"), None),
        ("unknown horizon", lambda: MAKE["rtopk"](3, k=1, measure="Precision@2"), None),
        ("short horizon", lambda: MAKE["rtopk"](5, horizon=20, k=2), None),
        ("graded", lambda: MAKE["rtopk"](5, horizon=100, k=2, max_grade=3), GRADED),
        ("long list", lambda: MAKE["rtopk"](60, horizon=120, k=7), None),
    ],
    "iw-onlinerank": [
        ("top 1", lambda: MAKE["iw-onlinerank"](5, horizon=100), None),
        ("graded", lambda: MAKE["iw-onlinerank"](5, k=2, max_grade=3), GRADED),
    ],
    "semibandit": [
        ("top 1", lambda: MAKE["semibandit"](5, horizon=100, measure="Precision@2"), None),
        ("graded", lambda: MAKE["semibandit"](5, k=3, max_grade=3), GRADED),
        ("part of n", lambda: MAKE["semibandit"](6, k=2, measure="Precision@3", run=1), None),
    ],
    "neighbourhood": [
        ("pairs", lambda: MAKE["neighbourhood"](4, horizon=90, measure="Precision@2"), None),
    ],
    "ftpl": [
        ("DCG", lambda: MAKE["ftpl"](5, horizon=100), None),
        ("unknown horizon", lambda: MAKE["ftpl"](5, measure="PairwiseLoss", seed=3), None),
    ],
    "adaptive-ftpl": [
        ("DCG", lambda: MAKE["adaptive-ftpl"](5), None),
        ("graded", lambda: MAKE["adaptive-ftpl"](5, max_grade=3, seed=3), GRADED),
    ],
    "leader": [("SumLoss", lambda: MAKE["leader"](5, measure="SumLoss"), None)],
    "onlinerank": [
        (name, lambda name=name: MAKE["onlinerank"](5, horizon=50, sampler=name), None)
        for name in SUBROUTINES
        if name != "ftpl"
    ],
    "hedge": [
        ("AP", lambda: MAKE["hedge"](4, horizon=100, measure="AP"), None),
        ("graded", lambda: MAKE["hedge"](5, horizon=50, measure="NDCG", max_grade=3), GRADED),
    ],
    "forecaster": [
        ("top 1", lambda: MAKE["forecaster"](4, horizon=100, measure="DCG"), None),
        ("top 2", lambda: MAKE["forecaster"](3, horizon=50, k=2, measure="AUC"), None),
    ],
    "thompson": [("graded", lambda: MAKE["thompson"](5, k=2, max_grade=3), GRADED)],
    "epsilon-greedy": [("top 2", lambda: MAKE["epsilon-greedy"](5, k=2, scale=0.5), None)],
    "cascade-ucb": [("graded", lambda: MAKE["cascade-ucb"](5, k=2, max_grade=3), GRADED)],
    "toprank": [("top 2", lambda: MAKE["toprank"](5, k=2, run=1), None)],
    "pege": [("graded", lambda: MAKE["pege"](5, k=2, max_grade=3), GRADED)],
    "pege2": [("top 2", lambda: MAKE["pege2"](5, k=2), None)],
    "random": [("random", lambda: MAKE["random"](5), None)],
    "fixed": [("fixed", lambda: MAKE["fixed"](5, ranking=[3, 1, 4, 0, 2]), None)],
}
UNDIGESTED = {name for name, cls in RANKERS.items() if issubclass(cls, FixedListRanker)} - {
    *RANKER_EXAMPLES
}
"""Rows for which nothing is written above: they are checked as they are made by default."""
for name in UNDIGESTED:
    RANKER_EXAMPLES[name] = [("default", partial(MAKE[name], 5), None)]
EXAMPLES = [
    pytest.param(row, label, make, world, id=f"{row}-{label}".replace(" ", "-"))
    for row, examples in RANKER_EXAMPLES.items()
    for label, make, world in examples
]
LONG = ("hedge-graded", "rtopk-long-list", "iw-onlinerank-graded", "keystone-SumLoss")
"""Other settings whose games are much work: interpreted, they take longer than to compile."""
FIRST = [
    each
    for each in EXAMPLES
    if each.id in LONG or each.values[1] == RANKER_EXAMPLES[str(each.values[0])][0][0]
]
OTHERS = [each for each in EXAMPLES if each not in FIRST]
EXEMPTIONS = {
    ("rtopk", "everything seen", check_late_answers_find_their_items): (
        "the list has become shorter than k: what is explored is planned by k, so that an answer "
        "of before may be left out, though never credited to another item"
    ),
    ("rtopk", "fixed cells", check_items_are_exchangeable): (
        "consecutive cells are defined by the items' indices; the default partition is random"
    ),
}

WORLD_EXAMPLES: dict[str, list[World]] = {
    "flips": [Flips(6, n_relevant=2), Flips(3, truth=[0, 1, 1], flip=0.4)],
    "gaussian": [Gaussian(6, n_relevant=2)],
    "choices": [Choices(6), Choices(6, n_chosen=3, skew=1.5), Choices(2, weights=[1, 9])],
    "switching": [Switching(6, n_relevant=2, period=7), Switching(4, n_relevant=1, flip=0.0)],
    "independent": [Independent(6), Independent(3, chances=[0.0, 1.0, 0.5])],
    "alternating": [Alternating(6, n_relevant=2, period=7), Alternating(6, n_sets=3, period=9)],
    "takeover": [Takeover(6, at=30)],
    "rising": [Rising(6, at=30)],
    "walking": [Walking(6, step=0.3)],
    "near-ties": [NearTies(6, n_leaders=1, gap=0.3), NearTies(2, chances=[0.2, 1.0])],
    "hopeless": [
        Hopeless(side=1),
        Hopeless(pair="worst-three"),
        Hopeless(4, pair="swap"),
        Hopeless(5, pair="parity", side=1),
    ],
    "outcomes": [Outcomes([[0, 1, 2], [2, 0, 0]], [0.25, 0.75])],
    "ratings": [GRADED, Ratings(TABLE > 1, item_names=list("abcde"))],
    "recorded": [Recorded(TABLE[:50])],
    "shuffled": [Shuffled(TABLE[:50])],
    "queries": [
        Queries(TABLE[:, :2], TABLE[:, 2], np.arange(0, 301, 5)),
        Queries(TABLE[:, :2], TABLE[:, 2], np.arange(0, 301, 5), document_seed=3),
    ],
    "separable": [Separable(), Separable(7, n_features=3, n_grades=2, spread=0.1)],
    "graded": [Graded(n_features=7), Graded(6, n_features=2, max_grade=1, noise=0.0)],
}
REVEAL_EXAMPLES: dict[str, list[Reveal]] = {
    "full": [Full()],
    "top": [Top(1), Top(4)],
    "choice": [Choice("single"), Choice("set")],
    "noisy": [Noisy(Top(4), noise=0.5, max_grade=2), Noisy("full")],
}
WORLD_EXAMPLES |= {name: [WORLDS.make(name)] for name in {*WORLDS} - {*WORLD_EXAMPLES}}
REVEAL_EXAMPLES |= {name: [REVEALS.make(name)] for name in {*REVEALS} - {*REVEAL_EXAMPLES}}
MEASURE_EXAMPLES = [
    *(measure(name) for name in MEASURES),
    *(measure(f"{name}@3") for name, cls in MEASURES.items() if cls.takes_cutoff),
    measure("ERR", max_grade=6),
    LinearMeasure([3, 2, 2, 1, 0, 0], gain="exponential"),
]


def test_every_row_has_an_example():
    rows = {name for name, cls in RANKERS.items() if issubclass(cls, FixedListRanker)}
    assert set(RANKER_EXAMPLES) == rows
    assert set(WORLD_EXAMPLES) == set(WORLDS)
    assert set(REVEAL_EXAMPLES) == set(REVEALS)


def test_exemptions_have_reasons_and_rows():
    labels = {(row, label) for row, examples in RANKER_EXAMPLES.items() for label, *_ in examples}
    assert all((row, label) in labels and reason for (row, label, _), reason in EXEMPTIONS.items())


def check_or_exempt(row, label, check, ranker, crowd):
    if (row, label, check) in EXEMPTIONS:
        with pytest.raises(AssertionError):  # an exemption that is not needed must go
            check(ranker, crowd, 120)
    else:
        check(ranker, crowd, 120)


def check_example(row, label, make, world, checks):
    ranker = make()
    crowd = world or Flips(ranker.n_items, n_relevant=max(1, ranker.n_items // 3))
    for check in checks:
        if check is not check_items_are_exchangeable:  # test_exchangeable.py
            check_or_exempt(row, label, check, ranker, crowd)


@pytest.mark.parametrize(("row", "label", "make", "world"), FIRST)
def test_ranker(row, label, make, world):
    check_example(row, label, make, world, (*RANKER_CHECKS, *LIVING_CHECKS, *ATTACKS))


@pytest.mark.interpreted  # where attacks end in warnings of NumPy's
@pytest.mark.parametrize(("row", "label", "make", "world"), OTHERS)
def test_ranker_in_other_settings(row, label, make, world):
    """Each compiles everything once more; that games have the same bits is in test_digests.py."""
    check_example(row, label, make, world, (*RANKER_CHECKS, *LIVING_CHECKS))


@pytest.mark.parametrize(
    "given",
    [
        *MEASURE_EXAMPLES,
        *(reveal for row in REVEAL_EXAMPLES.values() for reveal in row),
        *(world for row in WORLD_EXAMPLES.values() for world in row),
    ],
    ids=lambda given: f"{type(given).__name__}",
)
def test_specs_make_equal_things(given):
    """Of a spec, as JSON, a thing of the same settings is made, and of the shown call another."""
    spec = json.loads(json.dumps(given.spec))
    for table in (MEASURES, REVEALS, WORLDS):
        if isinstance(given, table.base):
            again = table.make(spec)
            assert type(again) is type(given)
            assert again.spec == given.spec
            assert str(again) == str(given)
            assert repr(again) == repr(given)
    if not isinstance(given, Measure) and not {"…", "<"} & set(repr(given)):
        names = {cls.__name__: cls for cls in (*REVEALS.values(), *WORLDS.values())}
        shown = eval(repr(given), names)  # noqa: S307
        assert shown.spec == given.spec


# That compiled ones have the same bits is in test_interpreted_readers.py.
@pytest.mark.interpreted
@pytest.mark.parametrize("given", MEASURE_EXAMPLES, ids=lambda m: m.label)
def test_measure(given):
    check_measure(given)


@pytest.mark.interpreted
@pytest.mark.parametrize("given", [r for row in REVEAL_EXAMPLES.values() for r in row], ids=str)
def test_reveal(given):
    check_reveal(given)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "given",
    [w for row in WORLD_EXAMPLES.values() for w in row],
    ids=lambda w: f"{type(w).__name__}-{w.n_items}",
)
def test_world(given):
    check_world(given)


@pytest.mark.parametrize("given", [*WORLD_EXAMPLES["separable"], *WORLD_EXAMPLES["graded"]])
def test_drawn_features(given):
    labels = np.roll(np.arange(given.n_items), 1)
    renamed_world, renamed = given.relabelled(labels), given.matrix()
    for t in range(50):
        features: Any = given.query(t, seed=3).features
        assert np.isfinite(features).all()
        assert np.array_equal(features, given.query(t, seed=3).features)
        draw = RelabelledDraw(*Draw(3, stream_of(WORLD_STREAM, 0), t), labels)
        rows = renamed_world.kernel.query(renamed_world.params, draw, renamed)
        assert rows == (0, given.n_items)
        assert np.array_equal(renamed, features[labels])
    assert not np.array_equal(features, given.query(t, seed=4).features)


@pytest.mark.parametrize(
    ("name", "n_features", "n_items"), [("mslr", 136, 120), ("yahoo", 700, 24), ("yandex", 245, 10)]
)
def test_lists_like_real_ones(name, n_features, n_items):
    world = Graded.like(name)
    lists: list[tuple[Any, Any]] = [
        (world.query(t).features, world.relevance(t)) for t in range(300)
    ]
    lengths = [len(grades) for _, grades in lists]
    # 300 lengths, uniform over at most 161: five standard errors of the mean.
    assert abs(np.mean(lengths) - n_items) < 5 * (max(lengths) - min(lengths)) / np.sqrt(12 * 300)
    assert len(set(lengths)) > 10
    for features, grades in lists:
        assert features.shape == (len(grades), n_features)
        assert (features > 0.0).all()
        assert (np.linalg.norm(features, axis=1) <= 1.0).all()
    assert np.mean([grades.max() > 0 for _, grades in lists]) > 0.95
    shares = np.bincount(np.concatenate([g for _, g in lists]).astype(int), minlength=5)
    expected = np.array([16, 8, 4, 2, 1]) / 31
    assert np.abs(shares / shares.sum() - expected).max() < 2.5 / np.sqrt(shares.sum())


def test_games_of_one_list_refuse_lists_that_change():
    from keyhole.experiment.description import Experiment
    from keyhole.experiment.worlds import check_fixed

    with pytest.raises(InvalidInput, match="one fixed list, got 'graded'"):
        check_fixed("graded")
    with pytest.raises(
        UnknownName, match="one of alternating, choices, flips, gaussian, graded, hopeless,"
    ):
        Experiment(world="grades").build()


def test_thread_count_changes_nothing():
    from keyhole.game.play import play

    ranker, crowd = MAKE["rtopk"](5, horizon=120, k=2), Flips(5, n_relevant=1)
    traces = [play(ranker, crowd, rounds=120, runs=7, n_threads=n) for n in (1, 2, 5)]
    for trace in traces[1:]:
        assert np.array_equal(trace.scores, traces[0].scores)
        assert np.array_equal(trace.best, traces[0].best)


def _broken(**kernels: Callable[..., Any]) -> Ranker:
    """Return a random ranker with some of its kernels replaced by plain Python."""

    class Broken(Random):
        kernel = RankerKernel(**{**Random.kernel._asdict(), **kernels})

    return Broken(4)


def test_the_checks_can_fail():
    def repeats(params, state, draw, features, out, work):
        out[:] = 0
        return False, 1.0

    def by_index(params, state, draw, features, out, work):
        out[:] = np.arange(len(out))
        return False, 1.0

    def forgetful(params, state, draw, features, out, work):
        work.keys[0] = work.keys[0] + 1 if np.isfinite(work.keys[0]) else 0
        out[:] = np.roll(np.arange(len(out)), int(work.keys[0]) % len(out))
        return False, 1.0

    with pytest.raises(AssertionError, match="each item once"):
        check_ranker(_broken(rank=repeats))
    with pytest.raises(AssertionError, match=r"Compiled and per-round|Relabelling|same ranking"):
        check_ranker(_broken(rank=forgetful))
    with pytest.raises(AssertionError, match="Relabelling items"):
        check_items_are_exchangeable(_broken(rank=by_index), Flips(4, n_relevant=1), 20)
