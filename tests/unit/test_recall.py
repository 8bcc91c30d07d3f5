"""The parts of a recall by hand, and what it learns where lists recur and where they do not."""

import math
from typing import Any

import numpy as np
import pytest

from keyhole.checks.non_learners import check_only_learners_pass
from keyhole.contracts import Query
from keyhole.errors import InvalidInput
from keyhole.game import play
from keyhole.kernels.draw import Draw
from keyhole.measures import measure
from keyhole.rankers.lists import RandomLists, Recall
from keyhole.rankers.lists.models import model_arrays
from keyhole.rankers.lists.recall_features import (
    COMPONENT,
    CONSTANT,
    LENGTH,
    OF_LIST,
    REFERENCES,
)
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
from keyhole.rankers.lists.recall_model import (
    FIRST_SIGHTS,
    FREEDOM,
    RESIDUALS,
    WITHIN,
    begin_list,
    judge_priors,
    learn_relevance,
    new_model,
    variances,
)
from keyhole.worlds.queries import Queries

N_FEATURES, N_ITEMS = 4, 6
NUMBERS = np.random.default_rng(3)


def lists(n_lists, seed=0, noise=0.0, n_items=N_ITEMS):
    """Return lists whose grades are a column of theirs, and some noise."""
    numbers = np.random.default_rng(seed)
    features = numbers.random((n_lists * n_items, N_FEATURES))
    signal = features[:, 0] + noise * numbers.normal(size=len(features))
    grades = np.digitize(signal, [0.6, 0.85]).astype(float)
    return Queries(features, grades, np.arange(0, n_lists * n_items + 1, n_items))


def prepared(ranker, features):
    """Return the scratch memory of a ranker that has looked at a list."""
    work = ranker.kernel.work(ranker.params, len(features))
    ranker.kernel.prepare(ranker.params, ranker.state, features, features[:0], work)
    return work


def deviate(share):
    """Return the normal deviate of a rank by bisection."""
    low, high = -8.0, 8.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        below = math.erf(middle / math.sqrt(2.0)) < share
        low, high = (middle, high) if below else (low, middle)
    return low


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


def test_features_are_deviations_and_ranks_within_the_list():
    features = NUMBERS.random((7, N_FEATURES))
    features[:, 1] = [3, 1, 3, 2, 0, 5, 4]  # two are alike
    features[:, 2] = 0.25
    features[:, 3] = -np.exp(8.0 * features[:, 3])
    work = prepared(Recall(N_FEATURES, 7), features).features
    logs = features.copy()
    logs[:, 3] = -np.log1p(-features[:, 3])
    spread = logs.std(axis=0)
    z = (logs - logs.mean(axis=0)) / np.where(spread > 0, spread, 1)
    signs = np.sign(features[:, None] - features[None]).sum(axis=1) / 7
    ranks = np.vectorize(deviate)(signs)
    assert np.abs(work.deviates - ranks).max() < 0.005
    assert np.abs(work.rows[:, :N_FEATURES] - (z + ranks) / 2).max() < 0.005
    assert not work.rows[:, 2].any()
    extra = work.rows[:, N_FEATURES:]
    assert np.allclose(extra[:, LENGTH], math.log(7) - 3)
    assert (extra[:, CONSTANT] == 1.0).all()
    assert np.allclose(extra[:, COMPONENT], work.deviates.sum(axis=1) / math.sqrt(N_FEATURES))
    assert not extra[:, OF_LIST].any()
    again = prepared(Recall(N_FEATURES, 7, id_column=0), features).features
    assert not again.rows[:, 0].any()
    assert np.array_equal(again.rows[:, 1:N_FEATURES], work.rows[:, 1:N_FEATURES])


def test_long_lists_are_ranked_by_some_of_their_documents():
    features = NUMBERS.random((200, N_FEATURES))
    work = prepared(Recall(N_FEATURES, 200), features)
    chosen = work.features.references
    assert sorted(work.hashes)[-REFERENCES:] == sorted(work.hashes[chosen])
    above = np.sign(features[:, None] - features[None, chosen]).sum(axis=1) / REFERENCES
    most = 1 - 1 / REFERENCES
    expected = np.vectorize(deviate)(np.clip(above, -most, most))
    assert np.abs(work.features.deviates - expected).max() < 0.005


def test_the_component_is_what_ranks_have_in_common():
    numbers = np.random.default_rng(1)
    common = numbers.normal(size=(600, 1))
    features = numbers.normal(size=(600, N_FEATURES)) + common * [2.0, 2.0, 0.0, -2.0]
    world = Queries(features, np.ones(600), np.arange(0, 601, N_ITEMS))
    state = play(Recall(N_FEATURES, N_ITEMS), world, rounds=100).states[0]
    direction = state["component"] / np.linalg.norm(state["component"])
    assert (np.abs(direction[[0, 1]]) > 0.45).all()
    assert abs(direction[2]) < 0.25
    assert direction[0] * direction[3] < 0.0
    squares, count = state["component_squares"]
    assert count == 101.0
    assert 1.0 < squares / count < N_FEATURES


def test_weights_are_those_of_weighted_least_squares():
    model, gain = new_model(N_FEATURES), np.empty(N_FEATURES + 4)
    beliefs = model.weights_by_prior[:, :-1].copy()
    assert beliefs[0].tolist() == [0.0] * 6 + [0.25]
    assert beliefs[1].tolist() == [0.25] * 4 + [0.0] * 3
    assert not beliefs[2].any()
    rows = np.column_stack([NUMBERS.normal(size=(30, N_FEATURES + 3)), np.zeros(30)])
    weights, values = NUMBERS.uniform(0.5, 2.0, 30), NUMBERS.normal(size=30)
    for row, weight, value in zip(rows, weights, values, strict=True):
        learn_relevance(model, Draw(0, 0, 0), 0, row, False, weight, weight * value, gain)
    known = rows[:, :-1]
    for ridge, covariance, priors in zip(
        (20.0, 4.0), model.covariances, ((0, 1), (2,)), strict=True
    ):
        precision = np.append(np.full(N_FEATURES, ridge), [1.0, 1.0, 10.0])
        matrix = np.diag(precision) + (known.T * weights) @ known
        assert np.allclose(np.linalg.inv(matrix), covariance[:-1, :-1])
        for prior in priors:
            right = precision * beliefs[prior] + (known.T * weights) @ values
            found = model.weights_by_prior[prior, :-1]
            assert np.allclose(np.linalg.solve(matrix, right), found)


def test_documents_of_one_list_share_an_effect():
    """Least squares whose noise has variance one and correlation a third within a list."""
    model, gain = new_model(N_FEATURES), np.empty(N_FEATURES + 4)
    size = N_FEATURES + 3
    matrix, right = np.linalg.inv(model.covariances[1, :size, :size]), np.zeros(size)
    for _ in range(8):
        begin_list(model, Draw(0, 0, 0))
        rows, values = NUMBERS.normal(size=(3, size)), NUMBERS.normal(size=3)
        for row, value in zip(rows, values, strict=True):
            own = np.append(row, 0.0)
            learn_relevance(model, Draw(0, 0, 0), 0, own, True, 1.0, value, gain)
            assert own[-1] == 0.0
        inverse = np.linalg.inv(np.full((3, 3), 1 / 3) + np.eye(3) * 2 / 3)
        matrix += rows.T @ inverse @ rows
        right += rows.T @ inverse @ values
    assert np.allclose(np.linalg.inv(matrix), model.covariances[1, :size, :size])
    assert np.allclose(np.linalg.solve(matrix, right), model.weights_by_prior[2, :size])


def test_guesses_are_as_wide_as_the_weights_are_uncertain():
    model, gain = new_model(N_FEATURES), np.empty(N_FEATURES + 4)
    found = []
    for round in range(400):
        model = new_model(N_FEATURES)
        for place in range(3):
            row = np.array([1.0, -2.0, 0.5, 1.0, 0.3, 1.0, 2.0, 0.0])
            learn_relevance(model, Draw(5, 0, round), place, row, False, 3.0, 0.0, gain)
        found.extend(model.guesses @ row)
    # The first width of a guess is half of that of the weights, and nearly all of it is gone.
    variance = row @ model.covariances[0] @ row
    assert np.mean(np.square(found)) == pytest.approx(variance, rel=0.15)
    assert abs(np.mean(found)) < 4.0 * math.sqrt(variance / len(found))


def test_priors_are_trusted_by_what_they_foretold():
    model = new_model(N_FEATURES)
    before = model.trust.copy()
    assert before.tolist() == [0.0, -3.0, -3.0]
    row = np.zeros(N_FEATURES + 4)
    row[N_FEATURES + COMPONENT], row[:N_FEATURES] = 4.0, [1.0, 1.0, -1.0, -1.0]
    judge_priors(model, row, 0.0)  # the first one said 1, the others 0
    assert model.trust.tolist() == [0.0, -1.0, -1.0]
    for _ in range(100):
        judge_priors(model, row, 0.0)
    assert model.trust.tolist() == [-30.0, 0.0, 0.0]


def test_variances_of_noise_and_of_documents():
    model = new_model(N_FEATURES)
    assert variances(model) == pytest.approx((1.0, 0.5, 0.5))
    model.numbers[[RESIDUALS, FIRST_SIGHTS, WITHIN, FREEDOM]] = 6.0, 12.0, 1.5, 6.0
    assert variances(model) == pytest.approx((0.5, 0.25, 0.25))
    model.numbers[WITHIN] = 100.0
    assert variances(model) == pytest.approx((0.5, 0.475, 0.025))


def psi(z):
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi) - z * math.erfc(z / math.sqrt(2)) / 2


def looks_by_hand(k, scores, seen, listed, total, noise, lasting):
    """Return the documents that are lifted, by the formulas as they stand."""
    discounts = np.append(1 / np.log2(np.arange(2, 12)), 0.0)
    drops, order = discounts[:-1] - discounts[1:], np.argsort(-scores)
    values = {}
    for place in range(k, len(scores)):
        item = order[place]
        var = [lasting * noise / (n * lasting + noise) for n in (seen[item], seen[item] + 1)]
        step = math.sqrt(var[0] - var[1])
        if not listed[item] or step**2 < 1e-4 * total:
            continue
        gain = 0.0
        for other in range(min(len(scores), 11)):
            gap = abs(scores[order[other]] - scores[item]) / step
            if gap <= 4.0 and (other < min(place, 10) or other > place):
                gain += (
                    drops[other if other < place else other - 1] * step * psi(int(64 * gap) / 64)
                )
        values[place] = listed[item] * gain
    lifted = []
    for top in range(k - 1, -1, -1):
        net = {
            place: value
            - sum(
                drops[q] * (scores[order[q]] - scores[order[place]])
                for q in range(top, min(place, 10))
            )
            for place, value in values.items()
        }
        best = max(net, key=net.__getitem__, default=None)
        if best is None or net[best] <= 0.0:
            break
        lifted.append(order[best])
        del values[best]
    rest = [item for item in order if item not in lifted]
    head = k - len(lifted)
    return [*rest[:head], *lifted, *rest[head:]]


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


def test_an_update_that_is_refused_leaves_the_memory_as_it_was():
    ranker, query = Recall(N_FEATURES, N_ITEMS), lists(1).query(0)
    ranker.state.weights_by_prior[:] = 1e200
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
    ranker = Recall(N_FEATURES, N_ITEMS, k=2)
    assert ranker.depth == 2
    with pytest.raises(InvalidInput, match="Recall scores whole lists, so it has no model"):
        model_arrays(ranker, ranker.state._asdict())
