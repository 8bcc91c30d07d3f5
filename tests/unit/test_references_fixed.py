"""Every ranker of a fixed list plays, round by round, as a plain reference of its own does.

Both see the same relevance and draw the same numbers; every ranking must be the same, and what has
been learnt at the end must agree to rounding. Tunings are written out here once more.
"""

import math

import numpy as np
import pytest

from keyhole import FTPL, Fixed, Forecaster, Hedge, OnlineRank, Random, RTopK
from keyhole.contracts.lists import Feedback
from tests.unit.references import (
    all_lists,
    auc_loss,
    average_precision,
    dcg,
    descending,
    orders,
    sum_loss,
    units,
)
from tests.unit.references_fixed import (
    LOG_2,
    NOISE,
    RUN,
    SEED,
    Blocks,
    Estimated,
    FullInformation,
    Weights,
    exponential,
    linear,
    place_of,
)

pytestmark = pytest.mark.interpreted


def same_play(ranker, reference, relevance_of, rounds, depth=None):
    """Play both on the same relevance; return how many rounds explored."""
    n_explored = 0
    for round in range(rounds):
        impression = ranker.rank()
        ranking, explored, propensity = reference.rank(round)
        assert impression.round == round
        assert impression.ranking.tolist() == list(ranking)
        assert impression.explored == explored
        np.testing.assert_allclose(impression.propensity, propensity, rtol=1e-9)
        values = np.asarray(relevance_of(round), float)[ranking]
        values[len(values) if depth is None else depth :] = math.nan
        ranker.update(impression, Feedback(values))
        reference.update(ranking, values)
        n_explored += explored
    return n_explored


def crowd(n_items, n_grades, seed=0):
    """Return relevance by round that favours the last items."""
    numbers = np.random.default_rng(seed)
    table = numbers.integers(n_grades, size=(1000, n_items)) * (
        numbers.random((1000, n_items)) < np.linspace(0.1, 0.9, n_items)
    )
    return table.__getitem__


def table(name, ranker):
    return ranker.state_dict()[name]


@pytest.mark.parametrize(
    ("measure", "max_grade", "diameter_reward_size", "gain"),
    [
        ("DCG", 2, (5, 5 * 3, 5 * 3), exponential),
        ("SumLoss", 2, (25, 25 * 2, 5 * 2), linear),
        ("Precision@2", 1, (2, 2, 5), linear),
    ],
)
def test_ftpl(measure, max_grade, diameter_reward_size, gain):
    """A5: epsilon = sqrt(D / (R A T)); the noise is uniform on [0, eps_scale / epsilon]."""
    diameter, reward, size = diameter_reward_size

    def rate_of(length):
        return math.sqrt(diameter / (reward * size * length)) / 0.25

    ranker = FTPL(
        5, horizon=30, measure=measure, max_grade=max_grade, eps_scale=0.25, seed=SEED, run=RUN
    )
    assert ranker.rate == pytest.approx(rate_of(30), rel=1e-12)
    reference = FullInformation(5, 30, "ftpl", rate_of, gain)
    same_play(ranker, reference, crowd(5, max_grade + 1), 130)
    np.testing.assert_allclose(table("scores", ranker), reference.learnt, rtol=1e-12)
    assert reference.learnt.max() > 10
    plain = FTPL(5, horizon=30, measure=measure, max_grade=max_grade)
    assert plain.rate == pytest.approx(rate_of(30) * 0.25, rel=1e-12)


@pytest.mark.parametrize("sampler", ["plackett-luce", "quicksort", "reverse-plackett-luce"])
def test_onlinerank(sampler):
    """A8: eta = n sqrt(log 2 / (T M)) over the largest gain, M = n^2 / 4."""

    def rate_of(length):
        return 6 * math.sqrt(LOG_2 / (length * 36 / 4)) / 3 / 0.5

    ranker = OnlineRank(
        6, horizon=40, sampler=sampler, max_grade=2, eps_scale=0.5, seed=SEED, run=RUN
    )
    assert ranker.rate == pytest.approx(rate_of(40), rel=1e-12)
    reference = FullInformation(6, 40, sampler, rate_of, exponential)
    same_play(ranker, reference, crowd(6, 3), 130)
    np.testing.assert_allclose(table("scores", ranker), reference.learnt, rtol=1e-12)


def test_onlinerank_that_knows_how_many_are_chosen():
    """M = k (n - k); grades are divided by the largest one."""
    chosen = OnlineRank(7, horizon=50, n_chosen=2, measure="SumLoss")
    assert chosen.rate == pytest.approx(7 * math.sqrt(LOG_2 / (50 * 2 * 5)), rel=1e-12)
    all_of_them = OnlineRank(7, horizon=50, n_chosen=7, measure="SumLoss")
    assert all_of_them.rate == pytest.approx(7 * math.sqrt(LOG_2 / 50), rel=1e-12)
    graded = OnlineRank(7, horizon=50, measure="SumLoss", max_grade=4)
    assert graded.rate == pytest.approx(7 * math.sqrt(LOG_2 / (50 * 49 / 4)) / 4, rel=1e-12)


@pytest.mark.parametrize(
    ("measure", "n_grades", "loss"),
    [
        ("AP", 2, lambda r, ranking: -average_precision(r, ranking)),
        ("DCG", 3, lambda r, ranking: -dcg(r, ranking)),
        ("SumLoss", 2, sum_loss),
    ],
)
def test_hedge(measure, n_grades, loss):
    """A13: eta = sqrt(8 log(m!) / T) over the largest range."""
    widest = max(np.ptp([loss(r, order) for order in orders(3)]) for r in all_lists(3, n_grades))

    def rate_of(length):
        return math.sqrt(8 * math.log(6) / length) / widest

    ranker = Hedge(3, horizon=40, measure=measure, max_grade=n_grades - 1, seed=SEED, run=RUN)
    assert ranker.rate == pytest.approx(rate_of(40), rel=1e-12)
    reference = Weights(3, 40, rate_of, loss)
    same_play(ranker, reference, crowd(3, n_grades), 130)
    np.testing.assert_allclose(table("losses", ranker), reference.learnt, rtol=1e-12)
    by_ranking = dict(zip(map(tuple, orders(3)), reference.learnt, strict=True))
    assert by_ranking[2, 1, 0] < by_ranking[0, 1, 2]  # the last items are the relevant ones


@pytest.mark.parametrize(
    ("measure", "n_items", "k", "n_grades", "loss"),
    [
        ("DCG", 3, 1, 3, lambda r, ranking: -dcg(r, ranking)),
        ("AUC", 3, 2, 2, auc_loss),
        ("SumLoss", 4, 2, 2, sum_loss),
    ],
)
def test_forecaster(measure, n_items, k, n_grades, loss):
    """A9: eta = (ln N)^(2/3) (k* N T)^(-2/3), gamma = (k*^2 N^2 ln N / T)^(1/3)."""
    ranker = Forecaster(
        n_items, horizon=60_000, measure=measure, k=k, max_grade=n_grades - 1, seed=SEED, run=RUN
    )
    reference = Estimated(n_items, 60_000, k, n_grades, loss)
    assert ranker.scale == pytest.approx(reference.scale, rel=1e-9)
    assert ranker.rate == pytest.approx(reference.eta(60_000), rel=1e-9)
    assert ranker.mix == pytest.approx(reference.gamma(60_000), rel=1e-9)
    assert ranker.mix < 0.5
    bolder = {"rate": 0.05, "mix": 0.3}  # so that a hundred rounds change something
    ranker = ranker.fresh(horizon=50, **bolder)
    reference.horizon = 50
    reference.rate_of = lambda _: 0.05
    reference.gamma_of = lambda _: 0.3
    assert same_play(ranker, reference, crowd(n_items, n_grades), 140, depth=k) == 140
    np.testing.assert_allclose(table("losses", ranker), reference.learnt, rtol=1e-9, atol=1e-9)
    assert np.ptp(reference.learnt) > 10


def test_a_short_game_of_the_forecaster_is_all_exploration():
    assert Forecaster(3, horizon=2, measure="SumLoss").mix == 1.0


def ftpl_blocks(n_items, k, largest_gain, eps_scale=1.0):
    """K = m^(1/3) (T/q)^(2/3), epsilon = 1 / (G sqrt(m K)), for DCG and SumLoss alike."""
    n_cells = -(-n_items // k)

    def tune(length):
        n_blocks = round(n_items ** (1 / 3) * (length / n_cells) ** (2 / 3))
        n_blocks = min(max(n_blocks, 1), length // n_cells)
        return n_blocks, 1 / (largest_gain * math.sqrt(n_items * n_blocks)) / eps_scale

    return tune


def onlinerank_blocks(n_items, k):
    """K = (B T / (2 R q))^(2/3) with B = m sqrt(M log 2), R = k (m - k); eta of A8."""
    n_cells, spread = -(-n_items // k), n_items**2 / 4

    def tune(length):
        learning = n_items * math.sqrt(spread * LOG_2) * length
        n_blocks = round((learning / (2 * k * (n_items - k) * n_cells)) ** (2 / 3))
        n_blocks = min(max(n_blocks, 1), length // n_cells)
        return n_blocks, n_items * math.sqrt(LOG_2 / (n_blocks * spread))

    return tune


@pytest.mark.parametrize(
    ("options", "reference"),
    [
        (
            {"k": 1, "measure": "SumLoss", "eps_scale": 0.1},
            Blocks(5, 60, 1, "ftpl", ftpl_blocks(5, 1, 1, 0.1), linear),
        ),
        (
            {"k": 2, "max_grade": 2},
            Blocks(5, 60, 2, "ftpl", ftpl_blocks(5, 2, 3), exponential),
        ),
        (
            {"k": 2, "subroutine": "plackett-luce"},
            Blocks(5, 60, 2, "plackett-luce", onlinerank_blocks(5, 2), exponential),
        ),
        (
            {"k": 2, "subroutine": "quicksort", "partition": "fixed"},
            Blocks(
                5, 60, 2, "quicksort", onlinerank_blocks(5, 2), exponential, partition="fixed"
            ),
        ),
        (
            {"k": 3, "rest": "random"},
            Blocks(5, 60, 3, "ftpl", ftpl_blocks(5, 3, 1), exponential, rest="random"),
        ),
    ],
    ids=["top 1", "graded top 2", "plackett-luce", "fixed cells", "random rest"],
)  # fmt: skip
def test_rtopk(options, reference):
    ranker = RTopK(5, horizon=60, seed=SEED, run=RUN, **options)
    n_blocks, rate = reference.tune(60)
    assert (ranker.n_blocks, ranker.rate) == pytest.approx((n_blocks, rate), rel=1e-12)
    relevance_of = crowd(5, int(options.get("max_grade", 1)) + 1)
    n_explored = same_play(ranker, reference, relevance_of, 300, depth=options["k"])
    epochs = (60, 120)  # played to their end; the third one is not
    assert n_explored >= sum(reference.tune(length)[0] for length in epochs) * reference.n_cells
    seen = table("scores", ranker) + table("pending", ranker)
    np.testing.assert_allclose(seen, reference.learnt + reference.pending, rtol=1e-12)


def test_rtopk_of_given_blocks_keeps_their_length():
    """Blocks of six rounds, then the same in the epoch that is twice as long."""
    reference = Blocks(5, 60, 2, "ftpl", lambda length: (length // 6, 0.4), exponential)
    ranker = RTopK(5, horizon=60, k=2, n_blocks=10, rate=0.2, eps_scale=0.5, seed=SEED, run=RUN)
    assert same_play(ranker, reference, crowd(5, 2), 180, depth=2) == 180 // 6 * 3


def test_an_unknown_horizon_starts_with_1024_rounds():
    for make in (FTPL, OnlineRank, RTopK):
        assert make(5).rate == make(5, horizon=1024).rate


def test_the_defaults_of_a_game():
    """Top 1, DCG, grades up to 1, seed and run 0."""
    plain = RTopK(6, horizon=90)
    told = RTopK(
        6, horizon=90, k=1, measure="DCG", max_grade=1.0, seed=0, run=0,
        subroutine="ftpl", eps_scale=1.0, partition="random", rest="exploit",
    )  # fmt: skip
    n_blocks, rate = ftpl_blocks(6, 1, 1)(90)
    assert (plain.n_blocks, plain.rate) == pytest.approx((n_blocks, rate), rel=1e-12)
    relevance_of = crowd(6, 2)
    for round in range(90):
        mine, theirs = plain.rank(), told.rank()
        assert mine.ranking.tolist() == theirs.ranking.tolist()
        values = Feedback(relevance_of(round)[mine.ranking].astype(float))
        plain.update(mine, values)
        told.update(theirs, values)


def test_random_and_fixed():
    shuffled, shown = Random(6, seed=SEED, run=RUN), Fixed(4, ranking=[2, 0, 3, 1])
    for round in range(50):
        impression = shuffled.rank()
        assert impression.ranking.tolist() == descending(units(place_of(round), NOISE, 6)).tolist()
        assert impression.explored
        assert math.isnan(impression.propensity)
        assert shown.rank().ranking.tolist() == [2, 0, 3, 1]
    assert shown.rank().propensity == 1.0
    assert not shown.rank().explored
    assert Fixed(4).rank().ranking.tolist() == [0, 1, 2, 3]


def test_precision_in_blocks():
    """(n, n, m): K = m^(1/3) (T/q)^(2/3), epsilon = 1 / sqrt(m K)."""
    ranker = RTopK(8, horizon=4000, k=2, measure="Precision@3")
    n_blocks = round(8 ** (1 / 3) * (4000 / 4) ** (2 / 3))
    assert ranker.n_blocks == n_blocks
    assert ranker.rate == pytest.approx(1 / math.sqrt(8 * n_blocks), rel=1e-12)
