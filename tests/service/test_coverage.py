"""Intervals that promise 95 % hold the truth about as often: no less, and not far more often."""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import binom

from keyhole.data.rounds import Rounds
from keyhole.offline.items import Scoring, as_shown, item_estimates, weights_of
from keyhole.offline.report import Line
from keyhole.service.counters import Group, ItemTally, interval
from keyhole.service.evaluations import record_of

pytestmark = pytest.mark.interpreted

LEAST = 0.94
"""What a promise of 95 % may fall short by: a point, for samples are not quite normal."""
LUCK = 0.001
"""The chance that a test fails of an interval that covers as it should, on either side."""


def limits(n: int, least: float, most: float) -> tuple[int, int]:
    """Return how many of n may cover where the chance to cover is between two numbers."""
    return int(binom.ppf(LUCK, n, least)), int(binom.ppf(1.0 - LUCK, n, most))


class Counted(NamedTuple):
    """How often intervals covered, and how wide they were in the mean."""

    n: int
    n_covered: int
    width: float


LIKED = np.array([0.7, 0.5, 0.4, 0.2])
PLACES = 1.0 / np.log2(np.arange(2, 6))
NAMES = ("ant", "bee", "cat", "dog")
N_ROUNDS, K = 150, 2


def judged(rng: Any, n_rounds: int = N_ROUNDS) -> tuple[Rounds, Scoring]:
    """Return rounds of random lists of which two items are seen, as a log gives them."""
    shown = rng.permuted(np.tile(np.arange(4), (n_rounds, 1)), axis=1)
    seen = np.argsort(shown, axis=1)[:, :K]
    gains = (rng.random((n_rounds, K)) < LIKED[seen]) * 1.0
    chances = np.full((n_rounds, K), K / 4)
    rounds = Rounds(seen, gains, chances, K / 4, np.arange(n_rounds), 1, shown)
    return rounds, Scoring(PLACES, 1.0, K)


def both(rounds: Rounds, weights: Any, scoring: Scoring, confidence: float) -> dict[str, Any]:
    """Return both estimates of what weights earn, as replies have them, with their intervals."""
    found = item_estimates(rounds, weights, scoring)
    of = ("betting", "student-t")  # a bootstrap takes longer than all else, and nobody looks at it
    return record_of({name: Line.of(each, confidence, names=of) for name, each in found.items()})


def worth(order: list[str]) -> float:
    return float(PLACES @ LIKED[[NAMES.index(name) for name in order]])


REVERSED = list(NAMES[::-1])
OF_REVERSED, OF_NAMES = np.arange(4)[::-1], np.arange(4)
QUESTIONS = {
    "policy": worth(REVERSED),
    "difference of lists": worth(REVERSED) - worth(list(NAMES)),
    "difference from what was shown": worth(REVERSED) - float(PLACES.mean() * LIKED.sum()),
}


@pytest.fixture(scope="module")
def covered():
    """How often each interval of each estimate covers, over logs of random lists."""
    rng, n_logs = np.random.default_rng(5), 600
    found: dict[tuple[str, str, str], list[tuple[bool, float]]] = {}
    for _ in range(n_logs):
        rounds, judge = judged(rng)
        policy, other, logged = (
            weights_of(each, judge, rounds) for each in (OF_REVERSED, OF_NAMES, "logged")
        )
        asked = (policy, policy.minus(other), policy.minus(logged))
        for (question, truth), weights in zip(QUESTIONS.items(), asked, strict=True):
            record = both(rounds, weights, judge, 0.95)
            for estimate, said in record.items():
                for kind in ("interval", "approximate_interval"):
                    low, high = said[kind]
                    row = (low <= truth <= high, high - low)
                    found.setdefault((question, estimate, kind), []).append(row)
    return {
        key: Counted(len(rows), sum(is_in for is_in, _ in rows), sum(w for _, w in rows) / n_logs)
        for key, rows in found.items()
    }


ESTIMATES = ("importance-weighted", "doubly-robust")


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("question", QUESTIONS)
def test_approximate_intervals_cover_as_often_as_they_say(covered, question, estimate):
    """Of 600, no fewer and no more than luck makes of a chance of 94 to 96.5 %."""
    counted = covered[question, estimate, "approximate_interval"]
    few, many = limits(counted.n, LEAST, 0.965)
    assert few <= counted.n_covered <= many, (few, counted.n_covered, many)


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("question", QUESTIONS)
def test_conservative_intervals_of_bets_nearly_always_cover(covered, question, estimate):
    """Bets promise 95 % for every number of rounds: it is nearly always, for a width."""
    counted = covered[question, estimate, "interval"]
    assert counted.n_covered >= limits(counted.n, 0.99, 1.0)[0]
    times = counted.width / covered[question, estimate, "approximate_interval"].width
    assert 1.0 < times < 6.0, times


def test_a_share_of_the_confidence_is_a_share_of_what_is_covered():
    """Half of what goes wrong goes wrong on either side, at another confidence as well."""
    rng, sides = np.random.default_rng(6), [0, 0]
    n_logs = 600
    for _ in range(n_logs):
        rounds, judge = judged(rng)
        said = both(rounds, weights_of(OF_REVERSED, judge, rounds), judge, 0.8)
        low, high = said["doubly-robust"]["approximate_interval"]
        sides[0] += worth(REVERSED) < low
        sides[1] += worth(REVERSED) > high
    for n_wrong in sides:
        few, many = limits(n_logs, 0.08, 0.12)
        assert few <= n_wrong <= many, (few, sides, many)


def test_doubly_robust_values_are_those_of_their_lists_in_the_mean():
    """A control: predictions that see their own round are off by many errors."""
    rng, errors, peeking = np.random.default_rng(7), [], []
    for _ in range(400):
        rounds, judge = judged(rng, 20)
        weights = weights_of(OF_REVERSED, judge, rounds)
        estimate = item_estimates(rounds, weights, judge)["doubly-robust"]
        errors.append(estimate.value - worth(REVERSED))
        peeking.append(peeked(rounds) - worth(REVERSED))
    limit = 3.5 / math.sqrt(len(errors))
    assert abs(np.mean(errors)) < limit * np.std(errors)
    assert abs(np.mean(peeking)) > limit * np.std(peeking)


def peeked(rounds: Rounds) -> float:
    """Return the doubly robust value by predictions that have seen the round they are for."""
    total, sums, counts = 0.0, np.zeros(4), np.zeros(4)
    weights = PLACES[::-1]
    for seen, gains in zip(rounds.seen, rounds.gains, strict=True):
        sums[seen] += gains
        counts[seen] += 1.0
        means = np.divide(sums, counts, out=np.zeros(4), where=counts > 0.0)
        total += weights @ means + weights[seen] @ (gains - means[seen]) / (K / 4)
    return total / len(rounds.seen)


def test_what_was_shown_is_worth_what_it_was_in_the_mean():
    """A control: to weigh what was seen by where it was seen counts it as if always on top."""
    rng, errors, naive = np.random.default_rng(8), [], []
    truth = float(PLACES.mean() * LIKED.sum())
    for _ in range(400):
        rounds, judge = judged(rng, 40)
        said = item_estimates(rounds, weights_of("logged", judge, rounds), judge)
        errors.append([said[name].value - truth for name in ESTIMATES])
        on_top = as_shown(PLACES[rounds.shown])._replace(expected=PLACES[rounds.shown])
        naive.append(item_estimates(rounds, on_top, judge)["importance-weighted"].value - truth)
    limit = 3.5 / math.sqrt(len(errors))
    assert (np.abs(np.mean(errors, axis=0)) < limit * np.std(errors, axis=0)).all()
    assert abs(np.mean(naive)) > limit * np.std(naive)


# --------------------------------------------------------------------------- the summary


def exact_coverage(n: int, chance: float, grade: float) -> float:
    """Return how likely the interval of an item holds its mean, seen n times as 0 or a grade."""
    total = 0.0
    for n_liked in range(n + 1):
        item = ItemTally(0, n, grade * n_liked, grade * grade * n_liked)
        around = interval(item.mean() or 0.0, item.variance_of_mean(grade))
        if around["low"] <= grade * chance <= around["high"]:
            total += float(binom.pmf(n_liked, n, chance))
    return total


@pytest.mark.parametrize("grade", [1.0, 4.0])
@pytest.mark.parametrize("n", [5, 10, 40, 160])
def test_intervals_of_items_cover_95_of_100_on_average(n, grade):
    """In the mean of chances all over the range: a count of few covers one more and one less."""
    found = [exact_coverage(n, chance, grade) for chance in np.linspace(0.02, 0.98, 97)]
    assert LEAST < np.mean(found) < 0.97
    assert min(found) > 0.8


def test_the_difference_of_an_apprentice_covers_as_often_as_it_says():
    """As the summary takes it: the spread of both lists counts; that of one alone is too little."""
    rng, n_logs, n_covered, n_of_one = np.random.default_rng(9), 2_000, 0, 0
    for _ in range(n_logs):
        group, item = Group(), ItemTally()
        for score in rng.random(60) < 0.3:
            group.add(float(score))
        liked = rng.random(80) < 0.6
        item = ItemTally(0, 80, float(liked.sum()), float(liked.sum()))
        apart = (item.mean() or 0.0) - (group.mean() or 0.0)
        spreads = (item.variance_of_mean(), group.variance_of_mean())
        around, of_one = interval(apart, sum(spreads)), interval(apart, spreads[0])
        n_covered += around["low"] <= 0.3 <= around["high"]
        n_of_one += of_one["low"] <= 0.3 <= of_one["high"]
    few, many = limits(n_logs, LEAST, 0.965)
    assert few <= n_covered <= many, (few, n_covered, many)
    assert n_of_one < few
