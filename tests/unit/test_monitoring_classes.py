"""The whole classification table, by enumeration and by rule, and the facts behind it."""

import itertools
import sys
import time
from fractions import Fraction

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput, LibraryMissing
from keyhole.measures import measure
from keyhole.measures.linear import LinearMeasure
from keyhole.monitoring.classification import RATES, classify, classify_matrices
from keyhole.monitoring.games import Game, _shipped_losses
from keyhole.monitoring.hopeless import best_witness, forced_regret, invisible
from keyhole.monitoring.observability import cells_of, explain, generators, interactions, solve_game
from keyhole.monitoring.rules import rule_for
from keyhole.rankers import RANKERS

GAMES = [(2, 2), (3, 2), (4, 2), (2, 3), (3, 3)]
LINEAR = ("SumLoss", "InversionLoss", "DCG")


def table_class(name: str, n_items: int, k: int, grades: int) -> str:  # noqa: PLR0911
    """Return the class by the table of docs/learnability.md, and by the remark on m=2 below it."""
    base, _, cut = name.partition("@")
    n, m = int(cut or n_items), n_items
    if base in ("Precision", "Recall") and n >= m:
        return "trivial"
    if base == "Precision" or (base, n) in (("DCG", 1), ("RR", 1), ("ERR", 1)):
        return "local"
    if grades > 2 and base == "PairwiseLoss":
        return "hopeless" if k == 1 else "global" if k < m else "local"
    if grades > 2 and base == "NDCG":
        return "hopeless" if k < m else "local"
    if (base, n) == ("NDCG", 1) or m == 2:
        return "local"
    if base in (*LINEAR, "PairwiseLoss"):
        return "global" if k < (n if n < m else m - 1) else "local"
    if base == "AUC" and m == 3:
        return "global" if k == 1 else "local"
    if base in ("RR", "ERR"):
        return "hopeless" if k < min(n, m - 1) else "local"
    if base == "Recall" or (base, n) == ("AP", 1):
        return "hopeless" if k <= m - 2 else "local"
    if base == "AUC" and m % 2:
        return "hopeless" if k <= m - 3 else "global" if k < m else "local"
    return "hopeless" if k <= m - 2 else "global" if k == m - 1 else "local"


def names(n_items: int) -> list[str]:
    cut = ("DCG", "NDCG", "Precision", "Recall", "AP", "RR", "ERR")
    return [
        *LINEAR,
        *("PairwiseLoss", "NDCG", "AP", "AUC", "ERR", "RR", "NDCGLoss", "APLoss"),
        *(f"{base}@{n}" for base in cut for n in range(1, n_items + 1)),
    ]


@pytest.mark.parametrize(("n_items", "grades"), GAMES)
def test_the_whole_table_by_enumeration_and_by_rule(n_items, grades):
    wrong = []
    for name in names(n_items):
        rule = rule_for(measure(name), n_items, grades)
        for k in range(1, n_items + 1):
            solution = solve_game(Game.of(name, n_items, k, grades))
            listed = table_class(name.replace("Loss@", "@"), n_items, k, grades)
            if name in ("NDCGLoss", "APLoss"):
                listed = table_class(name.removesuffix("Loss"), n_items, k, grades)
            found = {solution.class_, rule and rule.class_at(k), listed}
            if len(found) > 1 or not solution.is_exact:
                wrong.append((name, k, solution.class_, rule, listed, solution.is_exact))
    assert wrong == []


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("SumLoss", "2/3 2/3 1/2 1/2"),
        ("PairwiseLoss", "2/3 2/3 1/2 1/2"),
        ("DCG", "2/3 2/3 1/2 1/2"),
        ("Precision@1", "1/2 1/2 1/2 1/2"),
        ("Precision@2", "1/2 1/2 1/2 1/2"),
        ("Precision@3", "1/2 1/2 1/2 1/2"),
        ("NDCG", "1 1 2/3 1/2"),
        ("AP", "1 1 2/3 1/2"),
        ("AUC", "1 1 2/3 1/2"),
        ("ERR", "1 1 1/2 1/2"),
    ],
)
def test_the_rows_of_four_items(name, row):
    exponents = {"T": "1", "T^(2/3)": "2/3", "T^(1/2)": "1/2"}
    assert " ".join(exponents[classify(name, 4, k).rate] for k in (1, 2, 3, 4)) == row


@pytest.mark.parametrize(
    ("name", "row"), [("AUC", "T T T^(2/3) T^(2/3) T^(1/2)"), ("NDCG", "T T T T^(2/3) T^(1/2)")]
)
def test_rows_of_five_items_by_both(name, row):
    for method in ("rule", "enumeration"):
        rates = [classify(name, 5, k, method=method).rate for k in range(1, 6)]
        assert " ".join(rates) == row


@pytest.mark.parametrize(
    "weights", [[3, 2, 1], [1, 1, 0], [2, 0, 0], [1, 1, 1], [0, 2, 5], [4, 1, 1]]
)
def test_linear_measures_follow_the_rule_of_levels(weights):
    judge = LinearMeasure(weights)
    rule = rule_for(judge, 3, 2)
    assert rule is not None
    for k in (1, 2, 3):
        assert solve_game(Game.of(judge, 3, k)).class_ == rule.class_at(k)


# --------------------------------------------------------------------------- the key fact

PRIMES = (2**61 - 1, 2**31 - 1)


def rank_modulo(rows: list[list[int]], prime: int) -> int:
    """Return the rank by elimination modulo a prime."""
    rank, rows = 0, [[entry % prime for entry in row] for row in rows]
    for column in range(len(rows[0])):
        pivot = next((r for r in rows[rank:] if r[column]), None)
        if pivot is None:
            continue
        rows.remove(pivot)
        inverse = pow(pivot[column], -1, prime)
        pivot = [entry * inverse % prime for entry in pivot]
        rows = [
            [(a - row[column] * b) % prime for a, b in zip(row, pivot, strict=True)]
            if row[column]
            else row
            for row in rows
        ]
        rows.insert(rank, pivot)
        rank += 1
    return rank


def is_in_span(game: Game, actions: tuple[int, ...], target: list[int]) -> bool:
    """Decide by the signal matrices themselves, modulo two primes."""
    signals = {tuple(row) for action in actions for row in game.signals(action).tolist()}
    rows = [list(row) for row in sorted(signals)]
    answers = {rank_modulo(rows, p) == rank_modulo([*rows, target], p) for p in PRIMES}
    assert len(answers) == 1
    return answers.pop()


@pytest.mark.parametrize("name", ["SumLoss", "AP", "AUC", "RR", "Recall@2", "PairwiseLoss"])
@pytest.mark.parametrize(("n_items", "grades"), [(3, 2), (3, 3), (4, 2)])
def test_interactions_decide_as_signal_matrices_do(name, n_items, grades):
    for k in range(1, n_items):
        game = Game.of(name, n_items, k, grades)
        cells, everyone = cells_of(game.losses), tuple(range(len(game.feedback)))
        questions = [(*pair, everyone) for pair in generators(game, cells)]
        questions += [(v.first, v.second, v.between) for v in cells.neighbours[:5]]
        for first, second, actions in questions:
            explanation = explain(game, first, second, actions)
            target = game.losses.difference(first, second)[:, 0].tolist()
            assert (explanation.refutation is None) == is_in_span(game, actions, target)


@pytest.mark.parametrize(("n_items", "k", "grades"), [(3, 1, 2), (4, 2, 2), (3, 2, 3)])
def test_invisible_functions_fill_what_signals_leave(n_items, k, grades):
    game = Game.of("SumLoss", n_items, k, grades)
    rows = [row for action in range(len(game.feedback)) for row in game.signals(action).tolist()]
    normals = invisible(game)
    assert not np.any(np.array(rows) @ normals)
    rank = rank_modulo([list(r) for r in {tuple(row) for row in rows}], PRIMES[0])
    assert rank + np.linalg.matrix_rank(normals) == grades**n_items


def test_interactions_of_ndcg_are_differences_of_one_over_z():
    """The adjacent swap: (D(1) - D(2)) (r_a - r_b)/Z(1 + s), so the order is m - 1."""
    game = Game.of("NDCG", 4, 1)
    found = interactions(game.losses, 0, game.losses.actions.index((1, 0, 2, 3)))
    assert max(len(items) for items, _ in found) == 3
    assert {items for items, _ in found if len(items) == 3} == {(0, 2, 3), (1, 2, 3)}


# --------------------------------------------------------------------------- the linear program

CONSTANTS = [
    ("NDCG", 3, (0.0441, 0)),
    ("NDCG", 4, (0.0621, 0.0156, 0)),
    ("AP", 3, (0.0625, 0)),
    ("AP", 4, (0.0897, 0.0243, 0)),
    ("AUC", 3, (0, 0)),
    ("AUC", 4, (0.0625, 0.0625, 0)),
]


@pytest.mark.parametrize(("name", "n_items", "constants"), CONSTANTS)
def test_linear_regret_is_forced_exactly_in_the_hopeless_cells(name, n_items, constants):
    for k, constant in enumerate(constants, start=1):
        game = Game.of(name, n_items, k)
        witness = best_witness(game)
        assert (witness is not None) == (solve_game(game).class_ == "hopeless")
        assert (0 if witness is None else float(witness.constant)) == pytest.approx(
            constant, abs=5e-5
        )


def test_the_optimum_and_the_pair_of_table_b1():
    game = Game.of("NDCG", 3, 1)
    witness = best_witness(game)
    assert witness is not None
    assert float(witness.constant) == pytest.approx(0.044092, abs=5e-7)
    columns = ["000", "110", "101", "011", "100", "010", "001", "111"]
    sides = []
    for row in ("0 .1 .15 .05 .2 .3 .2 0", "0 .3 0 0 .15 .15 .4 0"):
        shares = dict(zip(columns, map(Fraction, row.split()), strict=True))
        sides.append(tuple(shares["".join(map(str, r))] for r in game.losses.outcomes))
    for action in range(6):
        laws = [game.signals(action) @ np.array(side) for side in sides]
        assert (laws[0] == laws[1]).all()
    assert float(forced_regret(game, *sides)) == pytest.approx(0.014197, abs=5e-7)


# --------------------------------------------------------------------------- any number of items


@pytest.mark.parametrize("grades", [2, 3])
@pytest.mark.parametrize("name", ["NDCG", "NDCG@10", "NDCG@700", "AUC", "AP", "ERR", "DCG@7"])
def test_a_thousand_items_take_less_than_a_second(name, grades):
    start = time.process_time()
    answer = classify(name, 1000, 3, grades)
    assert time.process_time() - start < 1.0
    assert answer.source == "rule"
    assert answer.class_ == ("global" if name == "DCG@7" else "hopeless")


def test_differences_of_one_over_z_alternate_in_sign():
    """Complete monotonicity of 1/Z, which the rule of NDCG rests on, in numbers."""
    from keyhole.measures.exact import discount

    sums = list(itertools.accumulate(discount(p) for p in range(1, 31)))
    values = [1 / total for total in sums]
    for order in range(29):
        assert all((-1) ** order * value > 0 for value in values)
        values = [b - a for a, b in itertools.pairwise(values)]


def test_differences_of_auc_vanish_only_for_odd_numbers_of_items():
    for n_items in range(3, 30):
        values = [Fraction(1, (1 + s) * (n_items - 1 - s)) for s in range(n_items - 1)]
        orders = [values[0]]
        while len(values) > 1:
            values = [b - a for a, b in itertools.pairwise(values)]
            orders.append(values[0])
        last = max(j for j, value in enumerate(orders) if value)
        rule = rule_for(measure("AUC"), n_items, 2)
        assert rule is not None
        assert rule.global_from == 1 + last


def test_what_is_not_known_is_not_guessed():
    answer = classify("NDCG", 100_000, 99_999, grades=3)
    assert (answer.class_, answer.rate, answer.source) == ("unknown", "unknown", None)
    assert answer.reason.startswith("No rule is known for NDCG on 100000 items with 3 grades")
    assert classify("NDCG", 100_000, 99_998, grades=3).class_ == "hopeless"
    with pytest.raises(InvalidInput, match="not known has no certificate"):
        answer.certificate()


# --------------------------------------------------------------------------- advice


def test_advice_names_a_larger_k_another_measure_and_a_ranker():
    advice = classify("NDCG", 20, 1).advice
    learnable = "Showing the top 19 would make it learnable at T^(2/3)"
    assert advice[0] == f"{learnable}, but no shipped ranker learns it."
    assert advice[1] == "DCG is learnable at T^(2/3) with the same feedback."
    small = classify("NDCG", 5, 1).advice[0]
    assert small == "Showing the top 4 would make it learnable at T^(2/3)."
    assert classify("DCG", 20, 1).advice[-1] == "`rtopk` attains the rate T^(2/3)."
    assert classify("NDCG", 4, 3).advice[-1] == "`forecaster` attains the rate T^(2/3)."
    assert classify("NDCG", 4, 4).advice[-1] == "`hedge` attains the rate T^(1/2)."
    assert classify("DCG", 4, 4).advice[-1] == "`ftpl` attains the rate T^(1/2)."


@pytest.mark.parametrize("grades", [2, 3])
def test_advice_is_true(grades):
    """A larger k has the promised rate, a smaller one has not, and named rankers exist."""
    for name in ("NDCG", "AUC", "PairwiseLoss", "ERR", "Recall@2", "DCG@2", "Precision@3"):
        for k in (1, 2, 3, 4, 5):
            answer = classify(name, 5, k, grades)
            for sentence in answer.advice:
                for ranker in sentence.split("`")[1::2]:
                    assert ranker in RANKERS
                if sentence.startswith("Showing"):
                    better = int(sentence.split()[3])
                    assert classify(name, 5, better, grades).rate in sentence
                    rates = {classify(name, 5, j, grades).rate for j in range(k, better)}
                    assert rates == {answer.rate}
                if "same feedback" in sentence:
                    assert classify(sentence.split()[0], 5, k, grades).rate in sentence


def test_an_answer_is_plain_data():
    data = classify("NDCG", 4, 2).as_dict()
    assert (data["class"], data["rate"], data["source"]) == ("hopeless", "T", "enumeration")
    assert set(RATES) == {"trivial", "local", "global", "hopeless", "unknown"}


def test_without_scipy_rules_still_answer(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    _shipped_losses.cache_clear()
    assert classify("AP", 3, 1).source == "enumeration"  # needs no linear program
    assert classify("AP", 3, 2).source == "rule"
    with pytest.raises(LibraryMissing, match=r"pip install -e '\.\[oracle\]' in a checkout"):
        classify("AP", 3, 2, method="enumeration")


# --------------------------------------------------------------------------- games of one's own


def pricing(n_prices: int) -> tuple[list[list[int]], list[list[str]]]:
    """Return dynamic pricing: a price too high costs 2, one too low the difference."""
    prices = range(n_prices)
    loss = [[value - price if price <= value else 2 for value in prices] for price in prices]
    return loss, [["sold" if price <= value else "no" for value in prices] for price in prices]


OWN = [
    ("apple tasting", [[1, 0], [0, 1]], [["a", "b"], ["c", "c"]], "local"),
    ("bandit", [[0, 1, 0, 1], [0, 0, 1, 1]], [[0, 1, 0, 1], [0, 0, 1, 1]], "local"),
    ("labels cost", [[1, 1], [0, 1], [1, 0]], [["a", "b"], ["c", "c"], ["c", "c"]], "global"),
    ("blind", [[0, 1], [1, 0]], [["a", "a"], ["a", "a"]], "hopeless"),
    ("no choice", [[0, 0], [1, 0]], [["a", "b"], ["a", "a"]], "trivial"),
    ("pricing", *pricing(4), "global"),
    ("fractions", [["1/3", 1], [1, "1/3"]], [["a", "b"], ["c", "c"]], "local"),
]


@pytest.mark.parametrize(("loss", "feedback", "class_"), [row[1:] for row in OWN])
def test_games_of_ones_own(loss, feedback, class_):
    answer = classify_matrices(loss, feedback)
    assert (answer.class_, answer.source, answer.exact) == (class_, "enumeration", True)


def test_floats_are_read_with_a_stated_tolerance():
    answer = classify_matrices([[1 / 3, 0.7], [0.7, 1 / 3]], [["a", "b"], ["c", "c"]])
    assert (answer.class_, answer.exact, answer.tolerance) == ("local", False, 1e-12)


@pytest.mark.parametrize(("name", "k"), [("SumLoss", 1), ("AP", 1), ("AP", 2), ("RR", 2)])
def test_a_ranking_game_is_classified_alike_from_its_matrices(name, k):
    """The general machinery, without relabelling or interactions, on the same game."""
    game = Game.of(name, 3, k)
    scale = game.losses.denominator
    loss = [[Fraction(int(x), scale) for x in row] for row in game.losses.numerators[:, :, 0]]
    answer = classify_matrices(loss, game.feedback.tolist())
    assert answer.class_ == solve_game(game).class_
    assert answer.exact
