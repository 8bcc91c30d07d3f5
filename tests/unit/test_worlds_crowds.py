"""Crowds that change, or stay, as they say: chances by phase, walks, and orders of real people."""

import math

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput
from keyhole.kernels.draw import WORLD_STREAM, Draw, stream_of
from keyhole.reveals.noisy import Noisy
from keyhole.reveals.top import Top
from keyhole.worlds.phases import Alternating, Independent, Rising, Takeover
from keyhole.worlds.queries import Queries
from keyhole.worlds.table import Shuffled
from keyhole.worlds.walking import Walking, _walk

N_DRAWS = 2000
# Hoeffding: a mean of 2,000 numbers in [0, 1] is off by this with a probability of 1e-9.
OFF = math.sqrt(math.log(2e9) / (2 * N_DRAWS))


def shares(world, rounds):
    """Return how often each item is relevant in some rounds."""
    return np.mean([world.relevance(t) for t in rounds], axis=0)


@pytest.mark.parametrize(
    ("world", "first", "later"),
    [
        (Independent(4), [0.2, 0.4, 0.6, 0.8], [0.2, 0.4, 0.6, 0.8]),
        (Takeover(4, at=N_DRAWS), [0.1, 0.1, 0.1, 0.9], [0.1, 0.1, 0.9, 0.1]),
        (Rising(4, at=N_DRAWS), [0.1, 0.1, 0.1, 0.6], [0.1, 0.1, 0.95, 0.6]),
        (Alternating(4, period=N_DRAWS), [0.1, 0.1, 0.1, 0.9], [0.1, 0.1, 0.9, 0.1]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_chances_are_those_of_the_phase(world, first, later):
    assert np.abs(shares(world, range(N_DRAWS)) - first).max() < OFF
    assert np.abs(shares(world, range(N_DRAWS, 2 * N_DRAWS)) - later).max() < OFF


def test_what_took_over_stays_and_what_alternates_returns():
    later = range(5 * N_DRAWS, 6 * N_DRAWS)
    assert shares(Takeover(4, at=7), later)[2] > 0.9 - OFF
    turns = Alternating(6, n_relevant=2, n_sets=3, period=5, flip=0.0)
    seen = [np.flatnonzero(turns.relevance(t)).tolist() for t in range(0, 20, 5)]
    assert seen == [[4, 5], [2, 3], [0, 1], [4, 5]]


def test_items_are_judged_apart_from_each_other():
    opinions = np.array([Independent(2, low=0.5, high=0.5).relevance(t) for t in range(N_DRAWS)])
    assert abs((opinions[:, 0] * opinions[:, 1]).mean() - 0.25) < OFF


N_WALKS = 4000


def _places(times):
    draw = Draw(5, stream_of(WORLD_STREAM, 0), 0)
    places = np.zeros((len(times), N_WALKS))
    for row, time in enumerate(times):
        _walk(draw, time, 1.0, places[row])
    return places


def test_a_walk_has_the_law_of_its_steps():
    """Cov(W(s), W(t)) = min(s, t): for a Gaussian process that is the law of a random walk."""
    times = [0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 100, 1000, 1023, 1024, 1025]
    places = _places(times)
    assert not places[0].any()
    for row, s in enumerate(times[1:], 1):
        for column, t in enumerate(times[1:], 1):
            found = (places[row] * places[column]).mean() / math.sqrt(s * t)
            # A mean of products of standard normal numbers: its standard error is at most
            # sqrt(2 / n), and it is off by seven of them less often than once in 10^9.
            assert abs(found - min(s, t) / math.sqrt(s * t)) < 7 * math.sqrt(2 / N_WALKS), (s, t)
    steps = _places([700, 701, 702])
    assert abs(np.diff(steps, axis=0).var() - 1.0) < 7 * math.sqrt(2 / N_WALKS)


def test_a_walk_is_one_path_whenever_it_is_asked_for():
    world = Walking(3, spread=0.0, step=100.0)  # so large a step leaves no doubt about an opinion
    once = [world.relevance(t, seed=3).tolist() for t in range(1, 40)]
    again = [world.relevance(t, seed=3).tolist() for t in range(39, 0, -1)]
    assert once == again[::-1]
    places = np.zeros((39, 3))
    for t in range(1, 40):
        _walk(Draw(3, stream_of(WORLD_STREAM, 0), t), t, 100.0, places[t - 1])
    assert once == (places > 0).astype(float).tolist()


def test_the_odds_of_a_walk_begin_about_even():
    spread = shares(Walking(N_DRAWS, spread=1.0, step=0.0), range(1))
    assert abs(spread.mean() - 0.5) < OFF
    # E p(1 - p) for p = sigmoid(N(0, 1)) is .2066: how often two rounds of an item disagree is
    # twice that.
    world = Walking(N_DRAWS, spread=1.0, step=0.0)
    differ = np.mean(world.relevance(0) != world.relevance(1))
    assert abs(differ - 2 * 0.2066) < OFF


def test_everybody_comes_once_in_an_order_of_each_run():
    table = np.arange(60.0).reshape(30, 2)
    crowd = Shuffled(table)
    assert crowd.length == 30
    orders = [
        [crowd.relevance(t, seed=seed, run=run)[0] for t in range(30)]
        for seed, run in ((0, 0), (0, 1), (1, 0))
    ]
    assert all(sorted(order) == table[:, 0].tolist() for order in orders)
    assert len({tuple(order) for order in orders}) == 3


# --------------------------------------------------------------------------- lists


LENGTHS = [3, 1, 6, 2]
STARTS = np.concatenate([[0], np.cumsum(LENGTHS)])
FEATURES = np.arange(12.0).reshape(12, 1)


def lists(**options):
    return Queries(FEATURES, FEATURES[:, 0], STARTS, **options)


def test_documents_shuffled_within_lists_keep_their_labels():
    plain, shuffled = lists(), lists(document_seed=1)
    moved = False
    for t in range(8):
        known, found = plain.query(t).features, shuffled.query(t).features
        assert known is not None
        assert found is not None
        assert sorted(known[:, 0]) == sorted(found[:, 0])
        assert found[:, 0].tolist() == shuffled.relevance(t).tolist()
        moved |= known.tolist() != found.tolist()
    assert moved
    other = lists(document_seed=2)
    assert not np.array_equal(other.features, shuffled.features)


def test_labels_are_permuted_within_lists_from_a_round_on():
    world, before = lists(permute_at=8), lists()
    later: dict[float, list[float]] = {}
    for t in range(24):
        labels, first = world.relevance(t), before.relevance(t)
        assert sorted(labels) == sorted(first)
        if t < 8:
            assert labels.tolist() == first.tolist()
        else:  # the same ones whenever the list comes back
            assert later.setdefault(first[0], labels.tolist()) == labels.tolist()
    assert any(labels != sorted(labels) for labels in later.values())
    with pytest.raises(InvalidInput, match="`permute_at` of Queries must be"):
        lists(permute_at=-1)


def test_noise_replaces_a_share_of_what_is_shown_and_nothing_else():
    reveal, relevance = Noisy(Top(2), noise=0.3, max_grade=3), [0.0, 3.0, 1.0]
    shown = np.array([reveal(relevance, [1, 2, 0], round=t).values for t in range(N_DRAWS)])
    assert np.isnan(shown[:, 2]).all()
    for position, truth in ((0, 3.0), (1, 1.0)):
        counts = np.bincount(shown[:, position].astype(int), minlength=4) / N_DRAWS
        expected = np.full(4, 0.3 / 4)
        expected[int(truth)] += 0.7
        assert np.abs(counts - expected).max() < OFF
    assert str(reveal) == "top(2), 30% at random"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Independent(3, chances=[0, 1]), "`chances` of Independent must be 3 numbers"),
        (lambda: Independent(2, chances=[0, 2]), "`chances` of Independent must be 2 numbers"),
        (lambda: Alternating(4, n_relevant=3), "`n_relevant` of Alternating must be"),
        (lambda: Alternating(4, period=0), "`period` of Alternating must be"),
        (lambda: Alternating(4, n_sets=1), "`n_sets` of Alternating must be"),
        (lambda: Takeover(4, at=0), "`at` of Takeover must be"),
        (lambda: Rising(4, n_rising=3), "`n_rising` of Rising must be"),
        (lambda: Rising(4, high=1.5), "`high` of Rising must be"),
        (lambda: Walking(4, step=-1), "`step` of Walking must be"),
        (lambda: Noisy(noise=2), "`noise` of Noisy must be"),
        (lambda: Noisy(max_grade=0), "`max_grade` of Noisy must be"),
    ],
)
def test_what_cannot_be_is_refused(make, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        make()
