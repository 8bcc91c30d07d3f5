"""What ``keyhole bound`` and ``keyhole advise`` promise, from the theorems in plain Python."""

import itertools
import json
import math

import numpy as np
import pytest
from scipy.optimize import brentq

from tests.lab.running import run
from tests.unit.test_keystone_bound import by_hand

pytestmark = pytest.mark.interpreted

M, W, R, DELTA, GRADE, L = 7, 2.0, 1.5, 0.1, 3, 0.02
REACH = W * R


def constants_of(surrogate):
    """Return range, both Lipschitz constants and smoothness of a loss on seven documents."""
    if surrogate == "squared":  # a sum of squares of scores up to W R less grades up to 3
        farthest = REACH + GRADE
        return M * farthest**2, 2 * M * farthest, 2 * math.sqrt(M) * farthest, 2 * M
    # ListNet: the most is lost where all of the mass is on the document that scores least.
    most = 2 * REACH + math.log(M - 1 + math.exp(-2 * REACH))
    return most, 2.0, math.sqrt(2.0), 1.0


def promises(surrogate, n):
    """Return all bounds by name."""
    B, G, G2, H = constants_of(surrogate)
    reach = G * REACH
    size = H * R**2 * W**2 / n
    found = {
        "descent, averaged": reach * math.sqrt(2 / n),
        "descent, averaged, tight": reach / math.sqrt(n),
        "regularised": 2 * reach * (8 / n + math.sqrt(2 / n)),
        "descent, averaged, smooth loss": 2 * math.sqrt(2 * size * L) + 8 * size,
        "least mean loss, grows with lists": 3 * G2 * REACH * math.sqrt(M / n)
        + B * math.sqrt(8 * math.log(1 / DELTA) / n),
    }
    A = reach * math.sqrt(math.log2(3 * M * n) / n)
    complexity = B if 5 * A / 2 >= B else min(B, 10 * A * math.log(6 * B / (5 * A)))
    found["least mean loss"] = (
        2 * complexity
        + 3 * B * math.sqrt(math.log(4 / DELTA) / (2 * n))
        + B * math.sqrt(math.log(2 / DELTA) / (2 * n))
    )
    scale = 5 * math.sqrt(3) * REACH * math.sqrt(H * math.log2(3 * M * n) / n)
    root = math.sqrt(B)
    slope = root if scale >= root else min(root, 4 * scale * math.log(3 * root / scale))
    rest = B * (math.log(2 / DELTA) + math.log(math.log(n))) / n
    mean = L + math.sqrt(4 * rest * L) + 4 * rest

    def too_small(loss):
        """Tell how far a loss is above what Theorem 44 allows."""
        spread = math.sqrt(8 * slope**2 * loss) + math.sqrt(4 * rest * loss)
        return loss - mean - 45 * slope**2 - spread - 20 * rest

    found["least mean loss, smooth loss"] = brentq(too_small, 1e-9, 1e9, xtol=1e-12) - L
    return found


@pytest.mark.parametrize("n", [5_000, 10**9])
@pytest.mark.parametrize("surrogate", ["listnet", "squared"])
def test_promises_on_new_lists_are_those_of_the_theorems(surrogate, n):
    told = json.loads(run(
        "bound", "--surrogate", surrogate, "--queries", n, "--items", M, "--radius", W, "--norm", R,
        "--confidence", 1 - DELTA, "--max-grade", GRADE, "--optimal-loss", L, "--json",
    ).stdout)  # fmt: skip
    B, G, G2, H = constants_of(surrogate)
    names = ("loss_range", "lipschitz", "lipschitz_l2", "smoothness")
    assert [told[name] for name in names] == pytest.approx([B, G, G2, H], rel=1e-12)
    found, expected = {row["name"]: row for row in told["bounds"]}, promises(surrogate, n)
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert found[name]["value"] == pytest.approx(value, rel=1e-9), name
        assert found[name]["says_something"] == (value < B)
        sure = "in expectation" if name in EXPECTED else "with confidence 0.9"
        assert found[name]["holds"] == sure
    assert [row["name"] for row in told["bounds"]] == sorted(expected, key=expected.__getitem__)
    assert told["smallest"] == min(expected, key=expected.__getitem__)


EXPECTED = {
    "descent, averaged", "descent, averaged, tight", "regularised",
    "descent, averaged, smooth loss",
}  # fmt: skip


def promised_regret(weights, gain, k, rounds):
    """Return the bounds on regret for a measure of these weights; a gain is at most so much."""
    m, counted = len(weights), np.count_nonzero(weights)
    placed = np.array([np.array(weights)[list(p)] for p in itertools.permutations(range(m))])
    cells, size = -(-m // k), gain * m
    loose = counted * np.abs(weights).max()
    apart = np.abs(placed[:, None] - placed[None]).sum(axis=2).max() / 2
    best = max(np.clip(weights, 0, None).sum(), -np.clip(weights, None, 0).sum())

    def rtopk(diameter, reward):
        scale = (gain * reward) ** (2 / 3) * (diameter * size * cells) ** (1 / 3)
        return 3 * scale * rounds ** (2 / 3)

    above = [weight - weights[-1] for weight in weights]
    penalty = sum(w * math.log((m + 1) / (p + 1)) for p, w in enumerate(above))
    parts = by_hand(list(weights), k, rounds, 0.1, KEYSTONE_BLOCK, 0.01)[:3]
    return {
        "keystone": gain * sum(parts),
        "rtopk": rtopk(loose, loose),
        "rtopk, tight=True": rtopk(apart, best),
        "adaptive-ftpl": gain * 2 * math.sqrt(2 * penalty * sum(above) / 4 * (rounds + 1)),
        "ftpl": 2 * math.sqrt(loose * gain * loose * size * rounds),
    }, gain * apart


KEYSTONE_BLOCK = 16
"""Rounds for which keystone keeps a list, at the settings of its theorem."""


@pytest.mark.parametrize(("k", "grade"), [(1, 3), (2, 1), (5, 2)])
def test_promises_of_regret_are_those_of_the_theorems(k, grade):
    rounds = 10**5
    told = json.loads(
        run("bound", "--rounds", rounds, "--items", 5, "--top", k, "--max-grade", grade,
            "--measure", "DCG@3", "--json").stdout
    )  # fmt: skip
    weights = [1 / math.log2(place + 2) if place < 3 else 0.0 for place in range(5)]
    expected, most = promised_regret(weights, 2.0**grade - 1, k, rounds)
    assert told["largest_regret"] == pytest.approx(most * rounds, rel=1e-12)
    found = {row["ranker"]: row for row in told["bounds"]}
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert found[name]["value"] == pytest.approx(value, rel=1e-9), name
        assert found[name]["says_something"] == (value < most * rounds)
        assert found[name]["sees"] == ("all" if name.endswith("ftpl") else f"top {k}")
    assert [row["value"] for row in told["bounds"]] == sorted(r["value"] for r in told["bounds"])


@pytest.mark.parametrize(("rounds", "grades"), [(10**8, 3), (10**4, 4)])
def test_advice_has_the_bounds_of_those_who_fit(rounds, grades):
    """With what can be lost at most, and from when on bounds are below it."""
    told = json.loads(
        run("advise", "DCG@2", "--items", 3, "--top", 1, "--grades", grades, "--rounds", rounds,
            "--json").stdout
    )  # fmt: skip
    weights, gain = [1.0, 1 / math.log2(3), 0.0], 2.0 ** (grades - 1) - 1
    expected, most = promised_regret(weights, gain, 1, rounds)
    assert told["most_to_lose"] == pytest.approx(most, rel=1e-12)
    rows = {row["ranker"]: row for row in told["candidates"]}
    assert {name for name, row in rows.items() if row["bound"] is not None} == {"keystone", "rtopk"}
    said = "\n".join(told["advice"])
    for name in ("keystone", "rtopk"):
        assert rows[name]["bound"] == pytest.approx(expected[name], rel=1e-9)
        since = rows[name]["bound_says_something_from"]
        at = promised_regret(weights, gain, 1, since)[0][name]
        assert at == pytest.approx(most * since, rel=1e-9)
        digits = max(0, math.floor(math.log10(since)) - 1)
        bound = expected[name]
        if bound < most * rounds:
            sentence = f"its bound after {rounds:,} rounds: {bound:.4g} in all, "
            sentence += f"{bound / rounds:.3g} a round, of at most {most:.3g} that can be lost"
        else:
            sentence = f"its bound, {bound / rounds:.3g} a round, says nothing at {rounds:,} "
            sentence += f"rounds: a ranking can lose at most {most:.3g}. It does from "
            sentence += f"{math.ceil(since / 10**digits) * 10**digits:,} rounds on"
        assert sentence in said, name
    powers = {"keystone": 2 / 3, "rtopk": 2 / 3, "iw-onlinerank": 2 / 3, "forecaster": 2 / 3}
    assert {name: row["power"] for name, row in rows.items()} == powers
    assert "2.7 times as much without" in rows["rtopk"]["sense"]  # 2^(2/3) / (2^(2/3) - 1)
    assert round(2 ** (2 / 3) / (2 ** (2 / 3) - 1), 1) == 2.7
