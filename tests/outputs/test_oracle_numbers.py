"""What ``classify``, ``atlas`` and ``advise`` say, by ranks and linear programs of SciPy."""

import csv
import json
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest

from keyhole.lab.atlas import fill_column
from tests.lab.running import run
from tests.outputs.drawn import kept_figures, shown_by
from tests.outputs.observability import Game, class_of, forced_regret, game_of, neighbours
from tests.unit.references import all_lists, orders

pytestmark = pytest.mark.interpreted

RATE = {"trivial": "0", "local": "T^(1/2)", "global": "T^(2/3)", "hopeless": "T"}
ORDER = list(RATE)
GAMES = [("NDCG", 3, 1, 2), ("NDCG@2", 3, 2, 3), ("DCG", 3, 1, 3), ("DCG@2", 3, 2, 3),
         ("NDCG", 3, 3, 2), ("DCG", 2, 1, 4)]  # fmt: skip


def told(*arguments, code=0):
    return json.loads(run(*arguments, "--json", code=code).stdout)


def check_words(reason, game, class_):
    """Compare the counts of a reason with the game."""
    size = f"{game.n_actions} actions and {game.losses.shape[1]} outcomes"
    if class_ == "local":
        pairs = len(neighbours(game))
        assert f"Among {size}, " in reason
        assert f"any two neighbours ({pairs} pair{'' if pairs == 1 else 's'}) differ" in reason
        return
    assert reason.startswith(f"Among {size}, the losses of ")
    n_items = len(_rankings(reason)[0].split())
    names = ["(" + " ".join(map(str, order)) + ")" for order in orders(n_items)]
    one, other = (names.index(f"({part})") for part in _rankings(reason))
    if class_ == "hopeless":
        assert not game.tells(range(game.n_actions), one, other)
    else:
        assert (min(one, other), max(one, other)) in neighbours(game)
        assert not game.tells([one, other], one, other)


def _rankings(reason):
    """Return the two rankings that a reason names."""
    return [part.partition(")")[0] for part in reason.split("(")[1:3]]


def check_advice(advice, name, n_items, k, grades, class_):
    """Compare what would help with the classes of games of more feedback, or of other measures."""
    for sentence in advice:
        if sentence.startswith("Showing the top"):
            better = [
                class_of(game_of(name, n_items, j, grades)) for j in range(k + 1, n_items + 1)
            ]
            first = next(
                place for place, each in enumerate(better)
                if ORDER.index(each) < ORDER.index(class_)
            )  # fmt: skip
            rate = RATE[better[first]]
            assert sentence == f"Showing the top {k + 1 + first} would make it learnable at {rate}."
        elif sentence.startswith("DCG is learnable"):
            rate = RATE[class_of(game_of("DCG", n_items, k, grades))]
            assert sentence == f"DCG is learnable at {rate} with the same feedback."


@pytest.mark.parametrize(("name", "n_items", "k", "grades"), GAMES)
def test_classes_are_those_of_ranks_and_linear_programs(name, n_items, k, grades):
    answer = told("classify", name, "--items", n_items, "--top", k, "--grades", grades)
    game = game_of(name, n_items, k, grades)
    class_ = class_of(game)
    assert (answer["class"], answer["rate"]) == (class_, RATE[class_])
    assert (answer["exact"], answer["tolerance"], answer["margin"]) == (True, 0.0, None)
    check_words(answer["reason"], game, class_)
    check_advice(answer["advice"], name, n_items, k, grades, class_)


def test_a_game_of_ones_own_from_its_matrices(tmp_path):
    loss, seen = "0,1/3\n1,0.25\n0.5,0.5\n", "a,a\na,b\nb,b\n"
    (tmp_path / "loss.csv").write_text(loss)
    (tmp_path / "seen.csv").write_text(seen)
    answer = told("classify", "--loss", tmp_path / "loss.csv", "--feedback", tmp_path / "seen.csv")
    losses = np.array([[float(Fraction(x)) for x in row.split(",")] for row in loss.split()])
    game = Game(losses, [row.split(",") for row in seen.split()])
    pairs = neighbours(game)
    local = all(game.tells(pair, *pair) for pair in pairs)
    assert (answer["class"], answer["rate"]) == (("local", "T^(1/2)") if local else ("global", ""))
    assert (
        f"Among 3 actions and 2 outcomes, the losses of any two neighbours ({len(pairs)} pair"
        in (answer["reason"])
    )
    assert answer["tolerance"] == 0.0


def test_a_proof_of_hopelessness_says_what_its_crowds_force(tmp_path):
    path = tmp_path / "proof.json"
    told("classify", "NDCG", "--items", 3, "--top", 1, "--grades", 2, "--certificate", path)
    checked, proof = told("classify", "--check", path), json.loads(path.read_text())
    hopeless, game = proof["proofs"]["hopeless"], game_of("NDCG", 3, 1, 2)
    places = [tuple(each) for each in all_lists(3)]
    sides = []
    for name in ("p", "q"):
        side = np.zeros(len(places))
        shares = [Fraction(share) for share in hopeless[name]]
        assert sum(shares) == 1
        for outcome, share in zip(hopeless["outcomes"], shares, strict=True):
            side[places.index(tuple(map(float, outcome)))] = float(share)
        sides.append(side)
    alike = game.signals(range(6))
    np.testing.assert_allclose(alike @ sides[0], alike @ sides[1], atol=1e-12)
    costs = [game.losses @ side for side in sides]
    forced = ((costs[0] + costs[1]).min() - costs[0].min() - costs[1].min()) / 2
    constant = float(Fraction(hopeless["constant"]))
    assert constant == pytest.approx(forced, abs=1e-11)
    assert constant == pytest.approx(forced_regret(game), abs=1e-6)
    assert checked["constant"] == hopeless["constant"]
    assert (checked["game"], checked["class"], checked["rate"]) == (proof["game"], "hopeless", "T")
    assert proof["game"]["options"] == {"empty": 1.0}  # NDCG of a list without a relevant item


def test_the_atlas_has_the_class_of_every_game(tmp_path):
    shape = ["--items", "2-3", "--grades", 2, 3, "--measures", "NDCG", "DCG@2"]
    serial = patch(
        "keyhole.lab.atlas._filled", lambda columns, _: ((c, fill_column(c)) for c in columns)
    )
    with serial, kept_figures() as figures:
        atlas = told("atlas", *shape, "--out", tmp_path)
        again = told("atlas", *shape, "--out", tmp_path)
    rates = []
    for cell in atlas["cells"]:
        game = game_of(cell["measure"], cell["items"], cell["top"], cell["grades"])
        class_ = class_of(game)
        assert (cell["class"], cell["rate"]) == (class_, RATE[class_]), cell
        forced = pytest.approx(forced_regret(game), abs=1e-6) if class_ == "hopeless" else None
        assert cell["constant"] == forced
        rates.append(class_)
    games = [(c["measure"], c["items"], c["grades"], c["top"]) for c in atlas["cells"]]
    assert games == [
        (measure, items, grades, top)
        for measure in ("NDCG", "DCG@2") for items in (2, 3) for grades in (2, 3)
        for top in range(1, items + 1)
    ]  # fmt: skip
    assert (atlas["resumed"], again["resumed"], atlas["disagreements"]) == (0, len(games), 0)
    assert again["cells"] == atlas["cells"]
    rows = list(csv.DictReader((tmp_path / "atlas.csv").read_text().splitlines()))
    for row, cell in zip(rows, atlas["cells"], strict=True):
        for name in ("items", "top", "grades"):
            assert int(row[name]) == cell[name]
        assert row["rate"] == cell["rate"]
        assert (float(row["constant"]) if row["constant"] else None) == cell["constant"]
    check_figure(shown_by(figures[0]), atlas["cells"])


def check_figure(shown, cells):
    """Compare the rates in the squares, row by row, and what the legend says of them."""
    symbols = {"local": "$T^{1/2}$", "global": "$T^{2/3}$", "hopeless": "T", "trivial": "0"}
    for panel, grades in zip(shown["panels"], (2, 3), strict=True):
        own = [symbols[cell["class"]] for cell in cells if cell["grades"] == grades]
        assert [text for text in panel["texts"] if "=" not in text] == own
        assert [text for text in panel["texts"] if "=" in text] == ["m = 2", "m = 3", "k ="]
    used = {cell["class"] for cell in cells}
    assert {text.partition(":")[0] for text in shown["legends"]} == {symbols[c] for c in used}


@pytest.mark.parametrize(
    ("name", "k", "features"), [("NDCG@2", 2, 0), ("DCG@2", 2, 0), ("NDCG@2", 2, 3), ("NDCG", 1, 0)]
)
def test_advice_rests_on_the_class_of_the_game(name, k, features):
    advice = told("advise", name, "--items", 3, "--top", k, "--grades", 3, "--features", features)
    game = game_of(name, 3, k, 3)
    class_, answer = class_of(game), advice["classification"]
    assert (answer["class"], answer["rate"]) == (class_, RATE[class_])
    assert (answer["tolerance"], answer["margin"]) == (0.0, None)
    check_words(answer["reason"], game, class_)
    check_advice(answer["advice"], name, 3, k, 3, class_)
    said = advice["advice"][0]
    assert said.startswith(f"{name} of 3 items with the top {k} seen (3 grades) can")
    if class_ == "hopeless":
        forced = forced_regret(game)
        assert advice["forced_regret"] == pytest.approx(forced, abs=1e-6)
        assert f"at least {advice['forced_regret']:.4g} a round on one of two crowds" in said
    else:
        assert advice["forced_regret"] is None
        assert f"the regret of the best ranker grows as {RATE[class_]}" in said
    wants_all = "listnet" if features else "hedge"
    assert advice["left_out"][wants_all] == (
        f"It needs the relevance of the first 3 positions and would see {k}."
    )
