"""Games, losses and cells: the papers' tables and vectors, exactly."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from keyhole import LinearMeasure
from keyhole.base.errors import InvalidInput, UnknownName
from keyhole.contracts.measures import Measure
from keyhole.measures import MEASURES, measure
from keyhole.measures.dcg import DCG
from keyhole.measures.exact import discount, number, value_of
from keyhole.measures.ndcg import NDCG
from keyhole.measures.sum_loss import SumLoss
from keyhole.monitoring.cells import Cells, _round
from keyhole.monitoring.classification import classify
from keyhole.monitoring.elimination import Span
from keyhole.monitoring.exact import definition_of, read_number
from keyhole.monitoring.games import Game, losses_of

# The papers list rankings by the rank of each item: row 4, 231, puts item 3 first.
RANKS = ("123", "132", "213", "231", "312", "321")
TABLE_3_1 = {
    "123": (0, 3, 2, 5, 1, 4, 3, 6),
    "132": (0, 2, 3, 5, 1, 3, 4, 6),
    "213": (0, 3, 1, 4, 2, 5, 3, 6),
    "231": (0, 1, 3, 4, 2, 3, 5, 6),
    "312": (0, 2, 1, 3, 3, 5, 4, 6),
    "321": (0, 1, 2, 3, 3, 4, 5, 6),
}
TABLE_3_2 = {
    "123": "00001111",
    "132": "00001111",
    "213": "00110011",
    "231": "01010101",
    "312": "00110011",
    "321": "01010101",
}


def action_of(game: Game, ranks: str) -> int:
    ranking = tuple(int(i) for i in np.argsort([int(rank) for rank in ranks]))
    return game.losses.actions.index(ranking)


def exact_row(game: Game, ranks: str) -> list[Fraction]:
    """Return the losses of a rational measure."""
    rows = game.losses.numerators[action_of(game, ranks)]
    assert len(game.losses.numbers.terms) == 1
    return [Fraction(int(entry), game.losses.denominator) for (entry,) in rows]


@pytest.mark.parametrize("ranks", RANKS)
def test_table_3_1(ranks):
    assert exact_row(Game.of("SumLoss", 3, 1), ranks) == list(TABLE_3_1[ranks])


@pytest.mark.parametrize("ranks", RANKS)
def test_table_3_2(ranks):
    game = Game.of("SumLoss", 3, 1)
    assert "".join(map(str, game.feedback[action_of(game, ranks)])) == TABLE_3_2[ranks]


def test_signal_matrices_have_a_row_per_symbol():
    game = Game.of("SumLoss", 3, 1)
    assert game.signals(0).tolist() == [[1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1]]
    assert Game.of("SumLoss", 3, 2, grades=3).signals(0).shape == (9, 27)
    assert (Game.of("SumLoss", 3, 2).signals(3).sum(axis=0) == 1).all()


def test_losses_of_rankings_are_written_in_signals_as_in_x0():
    game = Game.of("SumLoss", 3, 1)
    for ranking, row in zip(game.losses.actions, game.losses.matrix, strict=True):
        on_top = [next(a for a in game.losses.actions if a[0] == item) for item in ranking]
        seen = [game.signals(game.losses.actions.index(a))[1] for a in on_top]
        assert (row == sum((place + 1) * s for place, s in enumerate(seen))).all()


def test_the_vector_of_x1_is_not_locally_observable():
    game = Game.of("SumLoss", 3, 1)
    difference = [a - b for a, b in zip(*(exact_row(game, r) for r in ("123", "132")), strict=True)]
    assert difference == [0, 1, -1, 0, 0, 1, -1, 0]
    span = Span(game.signals(action_of(game, "123")).tolist())
    assert span.coefficients(difference) is None
    normal = span.refutation(difference)
    assert normal is not None
    assert (game.signals(0) @ np.array(normal) == 0).all()
    assert np.dot(np.array(normal), np.array(difference)) != 0


def test_lemma_23_vectors_of_ndcg():
    game, log3 = Game.of("NDCG", 3, 1), math.log2(3)
    first, last = (-game.losses.matrix[action_of(game, ranks)] for ranks in ("123", "321"))
    row = [1, 1 / 2, 1 / log3, (1 + log3 / 2) / (1 + log3), 1, 3 / (2 * (1 + 1 / log3)), 1, 1]
    assert first == pytest.approx(row, abs=1e-15)
    share = log3 / (2 * (1 + log3))
    assert first - last == pytest.approx([0, -0.5, 0, -share, 0.5, 0, share, 0], abs=1e-15)


def test_lemma_23_vectors_of_ap():
    game = Game.of("AP", 3, 1)
    third, half = Fraction(1, 3), Fraction(1, 2)
    rows = {
        "123": [1, third, half, Fraction(7, 12), 1, Fraction(5, 6), 1, 1],
        "321": [1, 1, half, 1, third, Fraction(5, 6), Fraction(7, 12), 1],
    }
    for ranks, row in rows.items():
        assert [-loss for loss in exact_row(game, ranks)] == row


def test_the_auc_example_of_four_items():
    game = Game.of("AUC", 4, 1)
    columns = "0000 0001 0010 0100 1000 0011 0101 1001 0110 1010 1100 0111 1011 1101 1110 1111"
    order = [game.losses.outcomes.index(tuple(map(int, c))) for c in columns.split()]
    rows = {
        "1234": "0 1 2/3 1/3 0 1 3/4 1/2 1/2 1/4 0 1 2/3 1/3 0 0",
        "4321": "0 0 1/3 2/3 1 0 1/4 1/2 1/2 3/4 1 0 1/3 2/3 1 0",
    }
    for ranks, row in rows.items():
        losses = exact_row(game, ranks)
        assert [losses[x] for x in order] == [Fraction(entry) for entry in row.split()]


@pytest.mark.parametrize(
    "name", [*MEASURES, *(f"{name}@2" for name, cls in MEASURES.items() if cls.takes_cutoff)]
)
def test_definitions_are_what_the_kernels_compute(name):
    judge = measure(name)
    definition = definition_of(type(judge))
    assert definition is not None, f"{name} has no method `exact`"
    for relevance in itertools.product(range(3), repeat=4):
        for ranking in ((0, 1, 2, 3), (2, 0, 3, 1)):
            value = number(definition(judge, relevance, ranking))
            assert value == pytest.approx(judge(relevance, ranking), abs=1e-12)


def test_discounts_are_known_to_fifty_digits():
    assert discount(1) == 1
    assert abs(discount(3) - Fraction(1, 2)) < Fraction(1, 10**60)
    assert abs(discount(8) - discount(2) / 2) < Fraction(1, 10**60)  # log2(9) = 2 log2(3)
    for term in losses_of(NDCG(), 3, 3).numbers.terms:
        assert 0 < value_of(term) <= 1


# --------------------------------------------------------------------------- cells


@pytest.mark.parametrize(
    ("name", "n_items", "n_pairs"),
    [
        ("SumLoss", 4, 36),
        ("DCG", 4, 36),
        ("NDCG", 4, 36),
        ("AP", 4, 264),
        ("RR", 4, 264),
        ("ERR", 4, 264),
        ("SumLoss", 5, 240),
        ("DCG", 5, 240),
    ],
)
def test_numbers_of_neighbours(name, n_items, n_pairs):
    cells = Cells(Game.of(name, n_items, 1).losses)
    assert cells.n_neighbour_pairs == n_pairs
    assert cells.is_proof
    assert all(pair.is_proof for pair in cells.pairs)


def test_neighbours_in_sumloss_are_the_adjacent_swaps():
    game = Game.of("SumLoss", 4, 1)
    found = {game.losses.actions[v.second] for v in Cells(game.losses).neighbours}
    assert found == {(1, 0, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2)}


@pytest.mark.parametrize("name", ["SumLoss", "NDCG", "AP", "AUC", "ERR", "Precision@2"])
def test_every_ranking_is_best_somewhere(name):
    """p = c - loss of a ranking favours it: vectors of one length and one sum."""
    losses = Game.of(name, 3, 1).losses
    rows = losses.matrix
    for own, group in zip(rows, Cells(losses).duplicates, strict=True):
        gaps = (rows - own) @ (own.max() + 1.0 - own)
        assert all(gap > 1e-9 for i, gap in enumerate(gaps) if i not in group)


def test_the_exchange_of_items_agrees_with_the_linear_program():
    """What follows from sorting for measures that add up gains, the program finds as well."""
    for name in ("SumLoss", "DCG@2", "NDCG", "AUC", "Recall@2"):
        losses = losses_of(measure(name), 4, 2)
        quick, slow = Cells(losses), Cells(losses)
        slow._exchange = lambda *_: ()  # type: ignore[method-assign]
        found = [v.second for v in quick.neighbours]
        assert found == [v.second for v in slow.neighbours]
        assert all(v.is_proof for v in slow.pairs) or name in ("DCG@2", "NDCG")


def test_dominated_and_degenerate_actions():
    loss = [[0, 2], [2, 0], [1, 1], [2, 2], [0, 3]]
    cells = Cells(Game.from_matrices(loss, [["a", "b"]] * 5).losses)
    assert cells.optimal == (0, 1)
    assert cells.dominated == (3,)
    assert cells.degenerate == (2, 4)  # optimal where outcomes are equally likely, or certain
    assert cells.between(0, 1) == (0, 1, 2)  # the middle of the segment is optimal on the face
    assert cells.is_proof
    floats = Cells(
        Game.from_matrices([[x / 7 for x in row] for row in loss], [["a", "b"]] * 5).losses
    )
    assert (floats.optimal, floats.dominated, floats.degenerate) == ((0, 1), (3,), (2, 4))
    assert floats.between(0, 1) == (0, 1, 2)


def test_duplicates_are_found():
    cells = Cells(Game.of("Precision@1", 3, 1).losses)
    assert cells.duplicates[0] == (0, 1)
    assert len(cells.distinct) == 3


def test_rounded_points_are_distributions():
    assert sum(_round(np.array([0.1, 0.2, 0.7]))) == 1


# --------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Game.of("NDCG", 4, 5), "`k` of Top must be an integer between 1 and n_items=4"),
        (lambda: Game.of("NDCG", 4, 1, grades=1), "`grades` must be an integer between 2"),
        (lambda: Game.of("ERR", 3, 1, grades=9), "`grades` must be an integer between 2 and 5"),
        (lambda: Game.of("NDCG", 9, 1), "too large to enumerate"),
        (lambda: Game.of(NDCG(empty=math.nan), 3, 1), "`empty` of NDCG must be finite"),
        (lambda: Game.of(LinearMeasure([2, 1]), 3, 1), "one per weight"),
        (lambda: Game.from_matrices([[0, 1]], [["a"]]), "feedback must have the shape of loss"),
        (lambda: Game.from_matrices([[0, 1], [0]], [["a"]]), "loss must be a list of rows"),
        (lambda: Game.from_matrices([[math.nan]], [["a"]]), "loss must hold finite numbers"),
        (lambda: Game.from_matrices([["x"]], [["a"]]), "loss must hold finite numbers"),
        (lambda: Game.from_matrices(3, [["a"]]), "loss must be a list of rows"),  # type: ignore[arg-type]
        (lambda: Game.from_matrices([[0] * 300] * 200, [["a"] * 300] * 200), "at most 50000"),
        (lambda: classify("NDCG", 4, 1, method="guess"), "`method` must be one of"),
    ],
)
def test_bad_games_get_one_sentence(call, sentence):
    with pytest.raises((InvalidInput, UnknownName), match=sentence) as caught:
        call()
    assert str(caught.value).count(". ") <= 1


def test_unknown_measures_suggest_the_nearest():
    with pytest.raises(UnknownName, match="Did you mean 'NDCG'"):
        classify("NGCG", 3, 1)


# --------------------------------------------------------------------------- numbers as given


@pytest.mark.parametrize(
    ("given", "value", "exact"),
    [
        (2, Fraction(2), True),
        ("1/3", Fraction(1, 3), True),
        (Fraction(2, 7), Fraction(2, 7), True),
        (np.int64(4), Fraction(4), True),
        (3.0, Fraction(3), True),
        (1 / 3, Fraction(1, 3), False),
        (math.pi, Fraction(math.pi), False),
    ],
)
def test_numbers_are_read_as_they_are_meant(given, value, exact):
    assert read_number(given) == (value, exact)


class Lopsided(SumLoss):
    """A measure that favours the first item."""

    def __call__(self, relevance, ranking):
        return super().__call__(relevance, ranking) + float(ranking[0] == 0)


def test_a_measure_must_treat_items_alike():
    with pytest.raises(InvalidInput, match="must treat all items alike"):
        Game.of(Lopsided(), 3, 1)


class Odd(DCG):
    """A measure of one's own: no exact definition, so floats decide and say so."""

    name = "Odd"


def test_a_measure_of_ones_own_states_its_tolerance():
    answer = classify(Odd(), 3, 1)
    assert (answer.class_, answer.source, answer.exact) == ("global", "enumeration", False)
    assert answer.tolerance == pytest.approx(1e-12, rel=2.0)
    assert answer.margin is not None
    assert answer.margin > 1e6
    assert classify(Odd(), 30, 1).class_ == "unknown"
    with pytest.raises(InvalidInput, match="not decided exactly"):
        answer.certificate()
    assert isinstance(Odd(), Measure)
