"""The best fixed ranking for average precision, where lists are too long to try all rankings."""

# ruff: noqa: T201 (tests print the bounds they hold results against)

import numpy as np
import pytest

import keyhole.game.comparators
from keyhole import Fixed, Flips, Full, Recorded, best_fixed, play
from keyhole.base.errors import InvalidInput
from keyhole.game.comparators import comparator_for
from keyhole.measures import measure


@pytest.fixture
def searched(monkeypatch):
    """Search lists of any length, also those whose rankings could all be tried."""

    def game(table, name, search, **options):
        world = Recorded(table)
        with monkeypatch.context() as patch:
            if search:
                patch.setattr(keyhole.game.comparators, "LARGEST_EXHAUSTIVE", 1)
            return play(Fixed(world.n_items, max_grade=4), world, reveal=Full(), measure=name,
                        rounds=len(table), **options)  # fmt: skip

    return game


def crowd(seed: int, m: int, rounds: int = 30):
    """Return users of a few tastes that no single ranking suits."""
    rng = np.random.default_rng(seed)
    tastes = rng.random((3, m)) ** 2
    return (rng.random((rounds, m)) < tastes[rng.integers(3, size=rounds)]).astype(float)


@pytest.mark.parametrize("name", ["AP", "APLoss", "AP@3"])
def test_the_search_is_never_better_than_the_best_and_mostly_as_good(searched, name):
    """Where it misses the best ranking, regret is smaller than it should be: a lower bound."""
    missed = []
    for seed in range(60):
        table = crowd(seed, m=3 + seed % 5)
        best = searched(table, name, search=False)
        found = searched(table, name, search=True)
        assert (best.exact, found.exact) == ("exhaustive", "local")
        assert (best.regret_is_lower_bound, found.regret_is_lower_bound) == (False, True)
        missed.append((best.regret[0] - found.regret[0]) / best.rounds)
    by_round = np.array(missed)
    share = float((by_round > 1e-12).mean())
    print(f"{name}: {share:.2%} of searches miss the best ranking, by {by_round.max():.4f} at most")
    assert by_round.min() > -1e-12
    assert share <= 0.05


def test_what_the_search_scores_is_what_its_ranking_scores(searched):
    for name in ("AP", "APLoss", "AP@4"):
        table = crowd(7, m=12)
        trace = searched(table, name, search=False, comparator="final", n_points=None)
        ranking = best_fixed(Recorded(table), measure=name, rounds=len(table))
        totals = np.cumsum(measure(name).many(table, np.tile(ranking, (len(table), 1))))
        assert trace.exact == "local"
        np.testing.assert_allclose(trace.best[0], totals, rtol=0, atol=1e-9)
        prefix = searched(table, name, search=False)
        assert prefix.best[0, -1] == pytest.approx(totals[-1], abs=1e-9)


def test_no_move_of_one_item_improves_what_is_found():
    table = crowd(3, m=11, rounds=60)
    table[::9] = 0.0  # lists without a relevant item score 1 whatever is shown
    ranking = best_fixed(Recorded(table), measure="AP", rounds=60)
    judge = measure("AP")

    def total(order):
        return judge.many(table, np.tile(order, (60, 1))).sum()

    best = total(ranking)
    for start in range(11):
        rest = np.delete(ranking, start)
        moved = [total(np.insert(rest, place, ranking[start])) for place in range(11)]
        assert max(moved) <= best + 1e-9
    assert best > max(total(np.random.default_rng(i).permutation(11)) for i in range(200))


def test_long_lists_of_one_taste_are_ranked_by_it(searched):
    world = Flips(20, n_relevant=5)
    table = np.array([world.relevance(t) for t in range(500)])
    assert sorted(best_fixed(Recorded(table), measure="AP", rounds=500)[:5]) == [*range(15, 20)]
    trace = searched(table, "AP", search=False)  # the items in order, the relevant ones last
    assert trace.exact == "local"
    assert trace.average_regret.mean > 0.3


def test_what_has_no_search_is_refused_as_before():
    assert comparator_for(measure("ERR"), 9, binary=True).kind == "none"
    assert comparator_for(measure("AP"), 201, binary=True).kind == "none"
    assert comparator_for(measure("AP"), 200, binary=True).kind == "local"
    with pytest.raises(InvalidInput, match=r"at most 8 items \(for AP: by a search, at most 200\)"):
        best_fixed(Recorded(np.eye(9)), measure="ERR", rounds=9)
