"""The parts of a recall by hand, and what it learns where lists recur and where they do not."""

from typing import Any

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput
from keyhole.checks.non_learners import check_only_learners_pass
from keyhole.contracts.lists import Query
from keyhole.game.play import play
from keyhole.measures import measure
from keyhole.rankers.lists.models import model_arrays
from keyhole.rankers.lists.plain import RandomLists
from keyhole.rankers.lists.recall import Recall
from keyhole.rankers.lists.recall_memory import (
    LAST,
    LISTED,
    MEAN,
    MOMENT,
    PLACES,
    PRIOR,
    SEEN,
    WEIGHT,
    find,
    find_or_forget,
    new_memory,
)
from keyhole.rankers.lists.recall_model import RESIDUALS, WITHIN, variances
from keyhole.worlds.queries import Queries
from tests.unit.references_recall import looks_by_hand
from tests.unit.test_draw import reference_mix
from tests.unit.test_recall_model import N_FEATURES, N_ITEMS, prepared

pytestmark = pytest.mark.interpreted

NUMBERS = np.random.default_rng(3)


def lists(n_lists, seed=0, noise=0.0, n_items=N_ITEMS):
    """Return lists whose grades are a column of theirs, and some noise."""
    numbers = np.random.default_rng(seed)
    features = numbers.random((n_lists * n_items, N_FEATURES))
    signal = features[:, 0] + noise * numbers.normal(size=len(features))
    grades = np.digitize(signal, [0.6, 0.85]).astype(float)
    return Queries(features, grades, np.arange(0, n_lists * n_items + 1, n_items))


def test_a_full_set_forgets_what_was_listed_longest_ago():
    memory = new_memory(PLACES - 1)  # rounded up to one set
    documents = [np.uint64(1000 + 2 * number) for number in range(PLACES + 1)]
    for clock, document in enumerate(documents[:PLACES]):
        assert find(memory, document) == -1
        place = find_or_forget(memory, document)
        assert find_or_forget(memory, document) == place == find(memory, document)
        memory.counts[place, LAST] = 1 + (clock + 3) % PLACES
        memory.counts[place, SEEN] = memory.values[place, MEAN] = 7
    oldest = documents[PLACES - 3]
    place = find(memory, oldest)
    assert memory.counts[place, LAST] == 1
    assert find_or_forget(memory, documents[PLACES]) == place
    assert find(memory, oldest) == -1
    assert all(find(memory, document) >= 0 for document in documents if document != oldest)
    assert memory.counts[place].tolist() == [0, 0, 0]
    assert memory.values[place].tolist() == [0.0] * 4


def test_the_hash_of_a_document_chooses_its_set_evenly():
    features = NUMBERS.random((4000, N_FEATURES))
    work = prepared(Recall(N_FEATURES, 4000, capacity=8000), features)
    hashes = work.hashes[:4000]
    assert len(set(hashes.tolist())) == 4000
    counts = np.bincount((hashes >> np.uint64(32)).astype(np.int64) * 1000 >> 32, minlength=1000)
    assert counts.mean() == 4.0
    assert 3.0 < counts.var() < 5.0  # that of a Poisson number is 4, with a deviation of 0.18


def test_documents_are_known_by_their_row_or_by_their_id():
    rows = NUMBERS.random((5, N_FEATURES)).astype(np.float32)
    rows[1], rows[2] = rows[0], rows[0, ::-1]
    rows[3], rows[4] = 0.0, -0.0
    hashes = prepared(Recall(N_FEATURES, 5), rows).hashes
    assert hashes[0] == hashes[1] != hashes[2]
    assert hashes[3] == hashes[4]
    assert np.array_equal(prepared(Recall(N_FEATURES, 5), rows.astype(float)).hashes, hashes)
    named = NUMBERS.random((5, N_FEATURES))
    named[:, 2] = [1, 2, 1, 3, 2]
    hashes = prepared(Recall(N_FEATURES, 5, id_column=2), named).hashes
    assert hashes[0] == hashes[2] != hashes[1] == hashes[4] != hashes[3]


@pytest.mark.parametrize("id_column", [None, 2])
def test_hashes_stay_what_they_are(id_column):
    """States that were saved have them: factors are 2 u + 1, for u of a generator of that seed."""
    rows = np.array([[0.5, -1.0, 3.25, 1e-300], [7.0, 0.0, 1e9, -2.5]])
    hashes = prepared(Recall(N_FEATURES, 2, id_column=id_column), rows).hashes
    numbers = np.random.default_rng(2**31 - 1).integers(2**63, size=N_FEATURES, dtype=np.uint64)
    for row, hashed in zip(rows, hashes.tolist(), strict=True):
        total = 0
        for column, bits in enumerate(row.view(np.uint64).tolist()):
            if id_column in (None, column):
                total += (bits ^ (bits >> 32)) * (2 * int(numbers[column]) + 1)
        assert hashed == reference_mix(total % 2**64)


@pytest.mark.parametrize("k", [1, 3])
def test_documents_are_lifted_by_the_value_of_knowing_them(k):
    ranker = Recall(N_FEATURES, 14, k=k)
    features = NUMBERS.random((14, N_FEATURES))
    work: Any = prepared(ranker, features)
    n_lifted, out = 0, np.empty(14, np.int64)
    for trial in range(60):
        work.header[:] = 0  # a list that is known
        work.scores[:] = NUMBERS.normal(size=14) * 0.4
        work.seen[:] = NUMBERS.integers(0, 4, 14)
        work.listed[:] = NUMBERS.integers(0, 6, 14)
        ranker.state.numbers[:] = 5.0, 10.0, NUMBERS.random(), 8.0
        draw = ranker.draw(trial)
        explored, _ = ranker.kernel.rank(ranker.params, ranker.state, draw, features, out, work)
        expected = looks_by_hand(k, work.scores, work.seen, work.listed, *variances(ranker.state))
        assert out.tolist() == expected
        assert explored == (out.tolist() != np.argsort(-work.scores).tolist())
        n_lifted += explored
    assert n_lifted > 5


def test_new_lists_are_explored_by_guesses_and_known_ones_are_not():
    ranker, world = Recall(N_FEATURES, N_ITEMS), lists(300)
    explored = [ranker.rank(world.query(t), round=t).explored for t in range(300)]
    assert 30 < sum(explored) < 270
    ranker.update(ranker.rank(world.query(0)), 1.0)
    assert not ranker.rank(world.query(0), round=5).explored  # all of it was listed but once


def test_what_was_seen_is_remembered():
    ranker, query = Recall(N_FEATURES, N_ITEMS), lists(1).query(0)
    for count in range(1, 4):
        shown = ranker.rank(query)
        ranker.update(shown, 4.0)
        state = ranker.state
        places = np.flatnonzero(state.keys)
        assert len(places) == N_ITEMS
        assert (state.counts[places, LISTED] == count).all()
        assert (state.counts[places, LAST] == count).all()
    assert state.counts[places, SEEN].sum() == 3
    assert set(state.values[places, MEAN].tolist()) <= {0.0, 2.0}  # roots of the grades
    seen = state.counts[:, SEEN] > 0
    assert np.allclose(state.values[seen, MOMENT], 2.0 * state.values[seen, WEIGHT])


def test_only_documents_whose_scores_are_due_are_described():
    """They are due where a document was never listed, or twice as often as when they last were."""
    ranker, rows = Recall(N_FEATURES, N_ITEMS), NUMBERS.random((N_ITEMS, N_FEATURES))
    for due in (True, True, False, True, False):
        assert (prepared(ranker, rows).is_due[:N_ITEMS] == due).all()
        ranker.update(ranker.rank(Query(N_ITEMS, rows)), 1.0)
    remembered = prepared(ranker, rows).by_features.copy()
    ranker.state.values[:, PRIOR] += 0.5
    rows[4] = NUMBERS.random(N_FEATURES)
    work = prepared(ranker, rows)
    assert work.is_due.tolist() == [False] * 4 + [True, False]
    others = [0, 1, 2, 3, 5]
    assert np.allclose(work.by_features[others], remembered[others] + 0.5)
    ranker.state.keys[:] = 0
    whole = prepared(ranker, rows)
    assert np.array_equal(work.features.rows[4], whole.features.rows[4])
    assert work.by_features[4] == pytest.approx(whole.by_features[4])


def test_ties_are_broken_at_random():
    ranker, alike = Recall(N_FEATURES, N_ITEMS), Query(N_ITEMS, np.ones((N_ITEMS, N_FEATURES)))
    first = [ranker.rank(alike, round=t).ranking[0] for t in range(200)]
    assert set(first) == set(range(N_ITEMS))
    assert ranker.best(alike) == list(range(N_ITEMS))


def test_means_follow_what_changes():
    """After many sights of one grade the mean moves by a twentieth of the way to another."""
    ranker, query = Recall(N_FEATURES, 1), Query(1, NUMBERS.random((1, N_FEATURES)))
    for _ in range(50):
        ranker.update(ranker.rank(query), 1.0)
    place = np.flatnonzero(ranker.state.keys)[0]
    assert ranker.state.values[place, MEAN] == pytest.approx(1.0)
    ranker.update(ranker.rank(query), 0.0)
    assert ranker.state.values[place, MEAN] == pytest.approx(0.95)
    assert ranker.state.counts[place].tolist() == [51, 51, 51]


def test_a_document_that_is_twice_on_a_list_is_one():
    rows = NUMBERS.random((N_ITEMS, N_FEATURES))
    rows[1] = rows[0]
    ranker = Recall(N_FEATURES, N_ITEMS)
    ranker.update(ranker.rank(Query(N_ITEMS, rows)), 1.0)
    places = np.flatnonzero(ranker.state.keys)
    assert len(places) == N_ITEMS - 1
    assert (ranker.state.counts[places, LISTED] == 1).all()


def mean_score(ranker, world, rounds, tell):
    """Return the mean NDCG@10 of what a ranker shows while it is told something of the first."""
    judge, total = measure("NDCG@10"), 0.0
    for t in range(rounds):
        shown, relevance = ranker.rank(world.query(t), round=t), world.relevance(t)
        total += judge(relevance, shown.ranking)
        told = tell(relevance[shown.ranking[: ranker.depth]])
        if told is not None:
            ranker.update(shown, told)
    return total / rounds


TELLERS: dict[str, Any] = {
    "nothing": lambda _: None,
    "the opposite": lambda grades: 2.0 - grades,
    "always the same": np.ones_like,
}


@pytest.mark.compiled
@pytest.mark.parametrize("k", [1, 3])
def test_lists_that_recur_are_learnt_by_heart(k):
    """Grades have nothing to do with features: only who remembers documents can know them."""
    world = lists(25)
    grades = np.random.default_rng(2).permutation(world.params.relevance)
    by_heart = Queries(world.features, grades, world.params.starts)
    chance = play(RandomLists(N_FEATURES, N_ITEMS), by_heart, rounds=2000).average_score.mean

    def learns(tell):
        ranker = Recall(N_FEATURES, N_ITEMS, k=k)
        assert mean_score(ranker, by_heart, 600, tell) > chance + 0.12

    check_only_learners_pass(learns, lambda grades: grades, TELLERS)


def test_new_lists_are_ranked_by_what_features_have_said():
    """What is relevant has little of every feature, against what is believed at first."""
    numbers = np.random.default_rng(4)
    features = numbers.random((250 * N_ITEMS, N_FEATURES))
    grades = np.digitize(-features.sum(axis=1), [-1.9, -1.4]).astype(float)
    world = Queries(features, grades, np.arange(0, 250 * N_ITEMS + 1, N_ITEMS))
    chance = play(RandomLists(N_FEATURES, N_ITEMS), world, rounds=2000).average_score.mean

    def learns(tell):
        ranker = Recall(N_FEATURES, N_ITEMS)
        assert mean_score(ranker, world, 250, tell) > chance + 0.1

    check_only_learners_pass(learns, lambda grades: grades, TELLERS)


def test_grades_up_to_a_hundred_need_not_be_told():
    small = lists(12)
    large = Queries(small.features, 50.0 * small.params.relevance, small.params.starts)
    totals = [
        play(
            Recall(N_FEATURES, N_ITEMS), world, measure=measure("SumLoss"), rounds=150
        ).average_score.mean
        for world in (small, large)
    ]
    chance = play(RandomLists(N_FEATURES, N_ITEMS), small, measure=measure("SumLoss"), rounds=150)
    gains = [chance.average_score.mean - loss for loss in (totals[0], totals[1] / 50)]
    assert gains[0] > 0.1 * chance.average_score.mean
    assert gains[1] > 0.9 * gains[0]


def test_scales_do_not_matter():
    """Numbers within 0 to 1, far smaller ones, and those of a list mapped onto 0 to 1."""
    world = lists(60)
    scores = []
    for scale in (1.0, 1e-30, 4.0):
        scaled = Queries(scale * world.features, world.params.relevance, world.params.starts)
        scores.append(play(Recall(N_FEATURES, N_ITEMS), scaled, rounds=60).scores[0, -1])
    assert scores == pytest.approx([scores[0]] * 3, rel=0.02)


def test_a_small_memory_forgets_and_still_ranks():
    world = lists(40, noise=3.0)
    small, large = (
        play(Recall(N_FEATURES, N_ITEMS, capacity=size), world, rounds=1200).average_score.mean
        for size in (16, 1024)
    )
    assert small < large - 0.1
    assert Recall(N_FEATURES, N_ITEMS, capacity=17).state.keys.shape == (24,)
    assert Recall(N_FEATURES, N_ITEMS).state.keys.shape == (2**15,)


@pytest.mark.parametrize(("name", "value"), [("weights_by_prior", 1e200), ("covariances", 1.7e308)])
def test_an_update_that_is_refused_leaves_the_memory_as_it_was(name, value):
    ranker, query = Recall(N_FEATURES, N_ITEMS), lists(1).query(0)
    getattr(ranker.state, name)[:] = value
    shown, before = ranker.rank(query), ranker.state_dict()
    with pytest.raises(InvalidInput, match="must leave the state of Recall finite"):
        ranker.update(shown, 1.0)
    assert all(np.array_equal(before[name], array) for name, array in ranker.state_dict().items())
    assert not ranker.state.keys.any()


def test_states_and_settings_that_cannot_be():
    for name, index, value in (
        ("values", (0, WEIGHT), -1.0),
        ("numbers", RESIDUALS, 0.0),
        ("numbers", WITHIN, -1.0),
        ("component_squares", 1, 0.0),
        ("peak", 0, -1.0),
        ("trust", 1, 1.0),
    ):
        ranker = Recall(N_FEATURES, N_ITEMS)
        arrays = ranker.state_dict()
        arrays[name][index] = value
        with pytest.raises(InvalidInput, match=f"`{name}`"):
            ranker.load_state_dict(arrays)
    for options in ({"k": 0}, {"capacity": 0}, {"id_column": N_FEATURES}, {"id_column": -1}):
        with pytest.raises(InvalidInput, match=f"`{next(iter(options))}` of Recall must be"):
            Recall(N_FEATURES, N_ITEMS, **options)
    with pytest.raises(InvalidInput, match="KEYHOLE_MEMORY_LIMIT"):
        Recall(N_FEATURES, N_ITEMS, capacity=10**12)
    with pytest.raises(InvalidInput, match="The covariances of 300000 features"):
        Recall(300_000, 1)
    assert Recall(N_FEATURES, N_ITEMS, id_column=N_FEATURES - 1).params.id_column == 3
    ranker = Recall(N_FEATURES, N_ITEMS, k=2)
    assert (ranker.depth, ranker.seed, ranker.run) == (2, 0, 0)
    with pytest.raises(InvalidInput, match="Recall scores whole lists, so it has no model"):
        model_arrays(ranker, ranker.state._asdict())
