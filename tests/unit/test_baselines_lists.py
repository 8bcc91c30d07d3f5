"""The baselines of query-document lists rank and learn as plain references of their own do."""

import math

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput
from keyhole.checks.non_learners import check_only_learners_pass
from keyhole.contracts.lists import Feedback, Query
from keyhole.rankers.lists.dbgd import DBGD
from keyhole.rankers.lists.linear_thompson import LinearThompson
from keyhole.rankers.lists.linucb import LinUCB
from keyhole.rankers.lists.models import model_arrays
from keyhole.rankers.lists.pdgd import PDGD
from keyhole.rankers.lists.plain import RandomLists
from keyhole.rankers.lists.standardised import standardise
from tests.unit.references import descending, gumbels, ndcg, normals, units
from tests.unit.references_lists import N_FEATURES, RUN, SEED, place_of
from tests.unit.test_references_lists import LONGEST, stream

pytestmark = pytest.mark.interpreted

K = 2
SCALES = np.array([1.0, 1e6, 1e-8, 30.0, 0.1])[:N_FEATURES]


def columns_of(features):
    """Return features standardised over the list; those that are all alike are 0."""
    spread = features.std(axis=0)
    return (features - features.mean(axis=0)) / np.where(spread > 1e-12, spread, np.inf)


def play_both(ranker, reference, lists):
    """Play both on the same lists, of features of all scales."""
    for round, (features, grades) in enumerate(lists):
        given = features * SCALES + 3.0 * SCALES
        impression = ranker.rank(Query(len(grades), given))
        ranking = reference.rank(columns_of(features), round)
        assert impression.ranking.tolist() == list(ranking)
        assert impression.explored
        assert math.isnan(impression.propensity)
        values = np.full(len(grades), math.nan)
        values[:K] = grades[ranking][:K]
        ranker.update(impression, Feedback(values))
        reference.update(columns_of(features), ranking, grades[ranking][:K], round)


# ------------------------------------------------------------------ features


def test_features_are_standardised_whatever_their_scale():
    features = np.array([[1.0, 5.0, 1e300], [2.0, 5.0, -1e300], [6.0, 5.0, 0.0]])
    rows = np.empty((3, 4))
    standardise(features, rows)
    third = math.sqrt(1.5)
    first = np.array([-2.0, -1.0, 3.0]) / math.sqrt(14 / 3)
    wanted = np.stack([first, np.zeros(3), [third, -third, 0.0], np.ones(3)], axis=1)
    np.testing.assert_allclose(rows, wanted, atol=1e-12)
    standardise(np.full((3, 3), 0.1), rows)
    assert (rows[:, :3] == 0.0).all()
    standardise(np.zeros((3, 3)), rows)
    assert (rows[:, :3] == 0.0).all()


# ------------------------------------------------------------------ ridge regression


class Ridge:
    """Ridge regression by solving for all that was seen, anew for every list."""

    def __init__(self, width, penalty):
        self.width, self.penalty = width, penalty
        self.rows: list[np.ndarray] = []
        self.labels: list[float] = []
        self.errors: list[float] = []

    def solve(self):
        rows = np.array(self.rows).reshape(-1, N_FEATURES + 1)
        self.inverse = np.linalg.inv(rows.T @ rows + self.penalty * np.eye(N_FEATURES + 1))
        self.slopes = self.inverse @ rows.T @ np.array(self.labels)

    def prepare(self, columns):
        self.solve()
        with_one = np.hstack([columns, np.ones((len(columns), 1))])
        return with_one, math.sqrt((sum(self.errors) + 1) / (len(self.errors) + 1))

    def update(self, columns, ranking, values, _round):
        with_one, _ = self.prepare(columns)
        for item, value in zip(ranking, values, strict=False):
            self.solve()
            self.errors.append((value - with_one[item] @ self.slopes) ** 2)
            self.rows.append(with_one[item])
            self.labels.append(value)


class Bounds(Ridge):
    def rank(self, columns, _round):
        rows, deviation = self.prepare(columns)
        variance = ((rows @ self.inverse) * rows).sum(axis=1)
        return descending(rows @ self.slopes + self.width * deviation * np.sqrt(variance))


def test_linucb():
    ranker = LinUCB(N_FEATURES, LONGEST, k=K, width=0.7, penalty=2.0, seed=SEED, run=RUN)
    reference = Bounds(0.7, 2.0)
    play_both(ranker, reference, stream()[:60])
    reference.solve()
    root = ranker.state.root
    np.testing.assert_allclose(root @ root.T, reference.inverse, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(ranker.state.slopes, reference.slopes, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(
        ranker.state.errors, [len(reference.errors), sum(reference.errors)], rtol=1e-8
    )


class Draws(Ridge):
    """The root is taken from the ranker: any root of the inverse covariance has the same law."""

    def __init__(self, ranker):
        super().__init__(ranker.params.width, ranker.params.penalty)
        self.ranker = ranker

    def rank(self, columns, round):
        rows, deviation = self.prepare(columns)
        root = self.ranker.state.root
        np.testing.assert_allclose(root @ root.T, self.inverse, rtol=1e-8, atol=1e-12)
        noise = normals(place_of(round), 0, N_FEATURES + 1)
        return descending(rows @ (self.slopes + self.width * deviation * root @ noise))


def test_linear_thompson():
    ranker = LinearThompson(N_FEATURES, LONGEST, k=K, width=0.6, penalty=3.0, seed=SEED, run=RUN)
    reference = Draws(ranker)
    assert ranker.params.width == 0.6
    play_both(ranker, reference, stream()[:60])
    reference.solve()
    np.testing.assert_allclose(ranker.state.slopes, reference.slopes, rtol=1e-8, atol=1e-10)
    features = stream()[60][0]
    shown = ranker.best(Query(len(features), features * SCALES))
    assert shown == descending(columns_of(features) @ reference.slopes[:-1]).tolist()


# ------------------------------------------------------------------ PDGD


def chance_of(ranking, scores):
    """Return the probability of a ranking by the Plackett-Luce model."""
    chance, left = 1.0, list(ranking)
    while left:
        powers = np.exp(scores[left])
        chance *= powers[0] / powers.sum()
        left.pop(0)
    return chance


class Pairs:
    """PDGD with whole lists reversed and judged by their probabilities."""

    def __init__(self, rate):
        self.rate, self.slopes = rate, np.zeros(N_FEATURES)
        self.labels: list[float] = []

    def rank(self, columns, round):
        scores = columns @ self.slopes
        return descending(scores + gumbels(place_of(round), 0, len(columns)))

    def update(self, columns, ranking, values, _round):
        scores = columns @ self.slopes
        self.labels += values.tolist()
        labels = [*values, np.mean(self.labels)][: len(ranking)]
        step = np.zeros(N_FEATURES)
        for high in range(len(labels)):
            for low in range(high + 1, len(labels)):
                other = np.array(ranking)
                other[[high, low]] = other[[low, high]]
                chances = chance_of(other, scores), chance_of(ranking, scores)
                rho = chances[0] / sum(chances)
                one, two = ranking[high], ranking[low]
                first = 1 / (1 + math.exp(scores[two] - scores[one]))
                slope = first * (1 - first) * (columns[one] - columns[two])
                step += (labels[high] - labels[low]) * rho * slope
        self.slopes = self.slopes + self.rate * step


def test_pdgd():
    ranker = PDGD(N_FEATURES, LONGEST, k=K, rate=0.8, seed=SEED, run=RUN)
    reference = Pairs(0.8)
    play_both(ranker, reference, stream())
    np.testing.assert_allclose(ranker.state.slopes, reference.slopes, rtol=1e-8)
    assert np.linalg.norm(reference.slopes) > 1.0
    assert ranker.state.seen.tolist() == [len(reference.labels), sum(reference.labels)]


def test_pdgd_weighs_late_pairs_by_the_scores_of_then():
    features = np.array([[0.0], [1.0], [2.0]])
    late, again = (PDGD(1, 3, k=2, rate=5.0) for _ in range(2))
    shown = [late.rank(Query(3, features), round=round) for round in range(2)]
    late.update(shown[1], [1, 0])
    scores = late.state.slopes[0] * columns_of(features)[:, 0]
    again.load_state_dict(late.state_dict())
    late.update(shown[0], [1, 0])
    now = again.rank(Query(3, features), round=0)
    assert (now.note != shown[0].note).any()
    assert shown[0].note.tolist() == [1.0, 1.0, 1.0, 3.0, 2.0, 1.0]
    first, second, third = shown[0].ranking
    labels = {first: 1.0, second: 0.0, third: 0.5}
    z = columns_of(features)[:, 0]
    step = 0.0
    for one, two in ((first, second), (first, third), (second, third)):
        chance = 1 / (1 + math.exp(scores[two] - scores[one]))  # of now; rho of then is a half
        step += 0.5 * chance * (1 - chance) * (labels[one] - labels[two]) * (z[one] - z[two])
    assert late.state.slopes[0] == pytest.approx(again.state.slopes[0] + 5.0 * step)


# ------------------------------------------------------------------ DBGD


class Duels:
    """DBGD, with lists that shrink as contenders place their documents."""

    def __init__(self, distance, rate):
        self.distance, self.rate, self.slopes = distance, rate, np.zeros(N_FEATURES)

    def direction(self, round):
        noise = normals(place_of(round), 0, N_FEATURES)
        return noise / np.linalg.norm(noise)

    def rank(self, columns, round):
        candidate = self.slopes + self.distance * self.direction(round)
        wishes = {
            -1: descending(columns @ self.slopes).tolist(),
            1: descending(columns @ candidate).tolist(),
        }
        coins = units(place_of(round), 1, len(columns))
        shown: list[int] = []
        self.teams: list[int] = []
        while wishes[1]:
            first = 1 if coins[len(shown)] < 0.5 else -1
            for team in (first, -first):
                if wishes[1]:
                    self.teams.append(0 if wishes[1][0] == wishes[-1][0] else team)
                    shown.append(wishes[team][0])
                    for wish in wishes.values():
                        wish.remove(shown[-1])
        return shown

    def update(self, _columns, _ranking, values, round):
        if np.dot(self.teams[: len(values)], values) > 0:
            self.slopes = self.slopes + self.rate * self.direction(round)


def test_dbgd():
    ranker = DBGD(N_FEATURES, LONGEST, k=K, distance=0.7, rate=0.3, seed=SEED, run=RUN)
    reference = Duels(0.7, 0.3)
    play_both(ranker, reference, stream())
    np.testing.assert_allclose(ranker.state.slopes, reference.slopes, rtol=1e-9)
    assert np.linalg.norm(reference.slopes) > 0.3


# ------------------------------------------------------------------ ends


def test_notes_of_lists_that_are_shorter_than_what_is_seen():
    two = Query(2, np.array([[0.0], [1.0]]))
    assert DBGD(1, 4, k=4).rank(two).note[2:].tolist() == [0.0, 0.0]
    note = PDGD(1, 4, k=3).rank(two).note
    assert note[[2, 3, 6, 7]].tolist() == [1.0] * 4


def test_pdgd_learns_where_scores_are_far_apart():
    """No power is too large: what is certain already is left as it is."""
    ranker, two = PDGD(1, 2, k=2), Query(2, np.array([[0.0], [1.0]]))
    ranker.state.slopes[0] = 1e4
    ranker.update(ranker.rank(two), [1, 0])
    assert ranker.state.slopes[0] == 1e4


# ------------------------------------------------------------------ learning


def lists_to_learn(rounds):
    """Return lists of six documents, of which the two that are best in one feature are relevant."""
    numbers = np.random.default_rng(5)
    for _ in range(rounds):
        features = numbers.normal(size=(6, N_FEATURES))
        noisy = features[:, 1] + 0.3 * numbers.normal(size=6)
        yield features * SCALES + 100.0 * SCALES, (np.argsort(np.argsort(noisy)) >= 4).astype(float)


def mean_ndcg(ranker, tell):
    """Return the mean NDCG of lists that greed would show after 300 rounds."""
    scores = []
    for round, (features, relevance) in enumerate(lists_to_learn(400)):
        query = Query(6, features)
        if round < 300 and tell is not None:
            impression = ranker.rank(query, round=round)
            values = np.full(6, math.nan)
            values[:K] = tell(relevance[impression.ranking[:K]])
            ranker.update(impression, Feedback(values))
        if round >= 300:
            scores.append(ndcg(relevance, np.array(ranker.best(query))))
    return float(np.mean(scores))


@pytest.mark.parametrize("make", [LinUCB, LinearThompson, PDGD, DBGD], ids=lambda m: m.__name__)
def test_only_what_learns_orders_documents(make):
    """Random lists have a mean NDCG of .62, so that .8 takes learning."""

    def learns(game):
        assert mean_ndcg(*game) > 0.8

    others = {
        "random": (RandomLists(N_FEATURES, 6), None),
        "idle": (make(N_FEATURES, 6, k=K), None),
        "contrary": (make(N_FEATURES, 6, k=K), lambda values: 1.0 - values),
    }
    check_only_learners_pass(learns, (make(N_FEATURES, 6, k=K), lambda values: values), others)


# ------------------------------------------------------------------ settings


def test_slopes_of_standardised_features_are_no_model_of_the_features():
    ranker = LinUCB(2, 3)
    with pytest.raises(InvalidInput, match="no model to save"):
        model_arrays(ranker, ranker.state_dict())


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(InvalidInput, match="`k` of LinUCB must be an integer"):
        LinUCB(2, 3, k=0)
    with pytest.raises(InvalidInput, match="`penalty` of LinUCB must be a number above 0"):
        LinUCB(2, 3, penalty=0)
    with pytest.raises(InvalidInput, match="`width` of LinearThompson must be a number of at"):
        LinearThompson(2, 3, width=-1)
    with pytest.raises(InvalidInput, match="`rate` of PDGD must be a number above 0"):
        PDGD(2, 3, rate=0)
    with pytest.raises(InvalidInput, match="`distance` of DBGD must be a number above 0"):
        DBGD(2, 3, distance=0)
    with pytest.raises(InvalidInput, match="`rate` of DBGD must be a number above 0"):
        DBGD(2, 3, rate=-1)
    with pytest.raises(InvalidInput, match="A covariance of 1000000 features"):
        LinUCB(1_000_000, 2)
    for make, width in ((LinUCB, 1.0), (LinearThompson, 0.3)):
        params = make(2, 3).params
        assert (params.k, params.width, params.penalty) == (1, width, 1.0)
    assert (PDGD(2, 3).params.k, PDGD(2, 3).params.rate) == (1, 0.3)
    assert (DBGD(2, 3).params.distance, DBGD(2, 3).params.rate) == (1.0, 0.05)
