"""Advice: the ranker to take, what it promises, and what nobody can."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from keyhole.bounds import blocks, ftpl
from keyhole.cli.app import app
from keyhole.contracts.rows import Guarantee
from keyhole.lab.advice import (
    _made,
    advise,
    as_record,
    most_to_lose,
    sentences,
)
from keyhole.rankers import RANKERS
from tests.lab.guaranteed import guarantees, only_with_guarantees


def run(*args):
    return CliRunner().invoke(app, ["advise", *map(str, args)])


def test_gains_per_item_are_for_keystone_with_the_bound_of_rtopk_beside_it():
    advice = advise("DCG", 20, 1, rounds=10**8)
    assert advice.candidates[0].name == "keystone"
    rtopk = next(each for each in advice.candidates if each.name == "rtopk")
    bound = ftpl.top_k_bound(ftpl.constants("DCG", 20), blocks.n_cells(20, 1), 1e8)
    assert rtopk.bound == pytest.approx(bound)
    most = most_to_lose(advice.question)
    assert most is not None
    assert rtopk.says_something_from is not None
    # At that round the bound is what a ranking can lose at most: it says nothing before.
    question = replace(advice.question, rounds=None)
    there = ftpl.top_k_bound(ftpl.constants("DCG", 20), 20, rtopk.says_something_from)
    assert there / rtopk.says_something_from == pytest.approx(most)
    assert most_to_lose(question) == most
    text = " ".join(sentences(advice))
    assert "Take keystone: regret of order T^(2/3)" in text
    assert f"after 100,000,000 rounds: {bound:.4g} in all" in text
    assert "says nothing at 1,000 rounds" in " ".join(sentences(advise("DCG", 20, 1, rounds=1000)))


def test_the_most_to_lose_is_the_best_less_the_worst():
    assert most_to_lose(advise("SumLoss", 4, 1).question) == pytest.approx(4.0)  # (4+3) - (1+2)
    assert most_to_lose(advise("Precision@2", 5, 1).question) == pytest.approx(2.0)
    assert most_to_lose(advise("AP", 4, 1).question) is None


def test_everything_seen_is_for_full_information_too():
    names = [each.name for each in advise("DCG", 6, 6).candidates]
    assert "ftpl" in names
    assert "hedge" in names
    assert "ftpl" in advise("DCG", 6, 1).left_out
    assert advise("DCG", 6, 1).left_out["random"] == "It learns nothing."


def test_what_is_hopeless_is_said_in_the_words_of_the_certificate():
    advice = advise("NDCG", 4, 1)
    assert advice.forced == pytest.approx(248400133 / 4e9)
    text = " ".join(sentences(advice))
    assert "cannot be learnt by any ranker: its regret grows as T: at least 0.0621 a round" in text
    assert advice.classification.reason.rstrip(".") in text
    assert "DCG is learnable at T^(2/3)" in text
    assert as_record(advice)["take"] is None
    assert "keystone, tuned for DCG, without a guarantee for NDCG" in text


@pytest.mark.parametrize(("n_features", "name"), [(0, "keystone"), (3, "recall")])
def test_who_is_named_all_the_same_is_not_left_out(n_features, name):
    advice = advise("NDCG", 4, 1, n_features=n_features)
    assert advice.all_the_same == name
    assert f"all the same: {name}," in sentences(advice)[-1]
    assert name not in advice.left_out
    assert "keystone" in advise("NDCG", 4, 4).left_out  # where another ranker learns it
    assert advise("DCG", 4, 1).all_the_same is None


def test_lists_with_queries_have_rankers_of_their_own():
    record = as_record(advise("DCG", 10, 1, n_features=46))
    names = [each["ranker"] for each in record["candidates"]]
    assert "contextual-rtopk" in names
    assert "keystone" not in [*names, *record["left_out"]]
    assert record["left_out"]["listnet"].startswith("It needs the relevance of the first 10")


def test_a_ranker_of_lists_is_made_for_the_documents_that_are_seen():
    record = as_record(advise("DCG", 3, 3, n_features=2))
    assert "contextual-rtopk" in [each["ranker"] for each in record["candidates"]]
    assert "contextual-rtopk" not in record["left_out"]
    ranker = _made(RANKERS["contextual-rtopk"], advise("DCG", 4, 2, n_features=2).question)
    assert ranker.depth == 2


def test_a_better_rate_is_named_where_a_ranker_has_it(monkeypatch):
    """Precision can be learnt at T^(1/2): who attains it is named, and else that nobody does."""
    local = {**guarantees(), "rtopk": Guarantee(2 / 3, "sense", "source")}
    without = {name: row for name, row in local.items() if row.power != 1 / 2}
    only_with_guarantees(monkeypatch, without)
    text = " ".join(sentences(advise("Precision@2", 6, 1)))
    assert "No ranker that is shipped attains T^(1/2) here" in text
    fast = {**without, "rtopk": Guarantee(1 / 2, "sense", "source")}
    only_with_guarantees(monkeypatch, fast)
    text = " ".join(sentences(advise("Precision@2", 6, 1)))
    assert "Or rtopk: regret of order T^(1/2) sense (source)" in text
    assert "No ranker that is shipped" not in text


def test_what_is_not_known_is_said():
    advice = advise("DCG", 30, 1)
    unknown = replace(advice.classification, class_="unknown", reason="No rule is known for it.")
    text = " ".join(sentences(replace(advice, classification=unknown)))
    assert "it is not known whether it can be learnt. No rule is known for it" in text


def test_the_command_says_it_and_prints_json():
    said = run("DCG", "--items", 20)
    assert said.exit_code == 0
    assert "Take keystone" in said.stdout
    assert "No choice here: random, fixed. It learns nothing." in said.stdout
    record = json.loads(run("DCG", "--items", 20, "--json").stdout)
    assert record["take"] == "keystone"
    assert record["classification"]["rate"] == "T^(2/3)"
    wrong = run("DCG", "--items", 20, "--rounds", 0)
    assert wrong.exit_code == 2
    assert "--rounds must be" in wrong.stderr
    assert run("DCG", "--items", 20, "--top", 21).exit_code == 2
    assert run("DGC", "--items", 20).exit_code == 2
