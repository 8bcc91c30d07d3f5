"""The numbers of an advice: what can be lost, what bounds say and from when on, who is named."""

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from keyhole.bounds import keystone
from keyhole.contracts.rows import Guarantee, Question
from keyhole.lab.advice import (
    _round_number,
    advise,
    as_record,
    most_to_lose,
    sentences,
)
from keyhole.measures import measure as named_measure
from keyhole.rankers import RANKERS
from keyhole.rankers.fixed.base import FixedListRanker
from keyhole.rankers.lists.base import ContextualRanker
from tests.lab.guaranteed import guarantees, only_with_guarantees
from tests.lab.running import run

pytestmark = pytest.mark.interpreted

DISCOUNT = {
    "DCG": lambda p: 1.0 / math.log2(p + 2.0),
    "DCG@2": lambda p: 1.0 / math.log2(p + 2.0) if p < 2 else 0.0,
    "SumLoss": lambda p: p + 1.0,
    "InversionLoss": lambda p: p + 1.0,  # all that is above is above something
    "PairwiseLoss": lambda p: p + 1.0,
    "Precision@2": lambda p: 1.0 if p < 2 else 0.0,
}
"""What a gain is worth at each position, from 0, up to what no ranking changes."""
EXPONENTIAL = ("DCG", "DCG@2")
BINARY = ("PairwiseLoss",)
"""Measures whose gains are per item with two grades alone."""


def gain_of(name, grade):
    return 2.0**grade - 1.0 if name in EXPONENTIAL else float(grade)


def largest_difference(name, n_items, grades):
    """Return by how much two rankings can differ for any list of grades, by trying them all."""
    most = 0.0
    for given in itertools.combinations_with_replacement(range(grades), n_items):
        gains = [gain_of(name, grade) for grade in given]
        values = [
            sum(DISCOUNT[name](place) * gains[item] for place, item in enumerate(ranking))
            for ranking in itertools.permutations(range(n_items))
        ]
        most = max(most, max(values) - min(values))
    return most


GAMES = [
    (name, n_items, grades)
    for name in DISCOUNT
    for n_items in (2, 3, 4, 5)
    for grades in (2, 3, 4)
    if grades == 2 or (name not in BINARY and n_items < 5)
]


@pytest.mark.parametrize(("name", "n_items", "grades"), GAMES)
def test_the_most_to_lose_is_found_by_trying_all_lists_and_rankings(name, n_items, grades):
    question = Question(named_measure(name), n_items, 1, grades)
    expected = pytest.approx(largest_difference(name, n_items, grades), rel=1e-12, abs=1e-9)
    assert most_to_lose(question) == expected


def test_the_most_to_lose_of_three_grades_and_of_what_has_no_gains_per_item():
    """The case that a largest gain of 1 would make 1.35."""
    assert most_to_lose(advise("DCG", 9, 1, 3).question) == pytest.approx(
        3.0 * sum(abs(1 / math.log2(p + 2) - 1 / math.log2(10 - p)) for p in range(9)) / 2.0
    )
    for name, grades in (("NDCG", 3), ("AP", 2), ("PairwiseLoss", 3)):
        assert most_to_lose(Question(named_measure(name), 4, 2, grades)) is None
    assert most_to_lose(Question(named_measure("PairwiseLoss"), 4, 2, 2)) is not None


# --------------------------------------------------------------------------- bounds


def papers_constants(name, n_items, grades):
    """Return D, R and A as the thesis has them (Corollaries 20 to 22)."""
    gain, m = gain_of(name, grades - 1), n_items
    worths = [DISCOUNT[name](place) for place in range(m)]
    diameter = sum(worth > 0.0 for worth in worths) * max(worths)
    return diameter, gain * diameter, gain * m


def expected_bounds(name, n_items, k, grades):
    """Return regret bounds in total as functions of the rounds, by ranker."""
    d, r, a = papers_constants(name, n_items, grades)
    cells = math.ceil(n_items / k)
    constants = keystone.constants(name, n_items, k, float(grades - 1))
    above = [DISCOUNT[name](place) - DISCOUNT[name](n_items - 1) for place in range(n_items)]
    penalty = sum(w * math.log((n_items + 1) / (p + 1)) for p, w in enumerate(above))
    gain = gain_of(name, grades - 1)
    return {
        "adaptive-ftpl": lambda t: gain * math.sqrt(2 * penalty * sum(above) * (t + 1)),
        "keystone": lambda t: keystone.safety_bound(constants, t),
        "rtopk": lambda t: 3.0 * (r * r * d * a * cells) ** (1 / 3) * t ** (2 / 3),
        "ftpl": lambda t: 2.0 * math.sqrt(d * r * a * t),
    }


BOUNDED = [("DCG", 3, 2, 4), ("DCG", 20, 1, 2), ("SumLoss", 6, 4, 3), ("DCG@2", 3, 3, 4),
           ("Precision@2", 6, 6, 2)]  # fmt: skip


@pytest.mark.parametrize(("name", "n_items", "k", "grades"), BOUNDED)
@pytest.mark.parametrize("rounds", [1, 10**4, 10**12])
def test_bounds_are_those_of_the_theorems_after_the_rounds_asked_for(
    name, n_items, k, grades, rounds
):
    record = as_record(advise(name, n_items, k, grades, rounds=rounds))
    expected = expected_bounds(name, n_items, k, grades)
    found = {each["ranker"]: each["bound"] for each in record["candidates"]}
    assert "keystone" in found
    assert ("ftpl" in found) == (k == n_items)
    for ranker, bound in found.items():
        if ranker in expected:
            assert bound == pytest.approx(expected[ranker](rounds), rel=1e-12)
        else:
            assert bound is None
    assert record["rounds"] == rounds
    timeless = as_record(advise(name, n_items, k, grades))
    assert timeless["rounds"] is None
    assert {each["bound"] for each in timeless["candidates"]} == {None}


@pytest.mark.parametrize(("name", "n_items", "k", "grades"), BOUNDED)
def test_a_bound_says_something_from_where_it_is_the_most_that_can_be_lost(
    name, n_items, k, grades
):
    most = largest_difference(name, n_items, 2) * gain_of(name, grades - 1) if n_items < 8 else None
    record = as_record(advise(name, n_items, k, grades))
    most = record["most_to_lose"] if most is None else most
    assert record["most_to_lose"] == pytest.approx(most)
    expected = expected_bounds(name, n_items, k, grades)
    for each in record["candidates"]:
        since = each["bound_says_something_from"]
        if each["ranker"] not in expected:
            assert since is None
            continue
        assert expected[each["ranker"]](since) / since == pytest.approx(most, rel=1e-9)
        # From there on it is less, and before it is not.
        assert expected[each["ranker"]](2.0 * since) / (2.0 * since) < most
        assert expected[each["ranker"]](0.5 * since) / (0.5 * since) > most


@pytest.mark.parametrize(("n_items", "k", "grades"), [(3, 2, 3), (3, 3, 4), (20, 1, 2)])
def test_what_is_said_of_a_bound_on_both_sides_of_where_it_says_something(n_items, k, grades):
    """Regret of RTop-kF is 3 (R^2 D A q)^(1/3) T^(2/3): per round, it falls to the most at T."""
    expected = expected_bounds("DCG", n_items, k, grades)["keystone"]
    question = advise("DCG", n_items, k, grades)
    most, since = most_to_lose(question.question), question.candidates[0].says_something_from
    assert most is not None
    assert since is not None
    for rounds, says in ((math.floor(since) - 1, False), (math.ceil(since) + 1, True)):
        told = sentences(advise("DCG", n_items, k, grades, rounds=rounds))[2]
        total = expected(rounds)
        if says:
            assert told == (
                f"  its bound after {rounds:,} rounds: {total:.4g} in all, {total / rounds:.3g} a "
                f"round, of at most {most:.3g} that can be lost"
            )
        else:
            assert told == (
                f"  its bound, {total / rounds:.3g} a round, says nothing at {rounds:,} rounds: a "
                f"ranking can lose at most {most:.3g}. It does from {round_up(since)} rounds on"
            )
    timeless = sentences(question)
    assert not any("its bound" in sentence for sentence in timeless)


def round_up(value):
    """Return the least number of at least a value that has two digits and zeros, or one digit."""
    power = 1
    while 100 * power <= value:
        power *= 10
    return f"{power * math.ceil(value / power):,}"


def test_large_numbers_are_rounded_up_to_two_digits():
    numbers = np.random.default_rng(0)
    values = [*(10.0 ** numbers.uniform(-1, 12, size=200)), 1.0, 9.5, 10.0, 99.0, 99.5, 100.0, 101]
    for value in values:
        assert _round_number(value) == round_up(value)
        assert int(_round_number(value).replace(",", "")) >= value
    assert (_round_number(1201.0), _round_number(1200.0)) == ("1,300", "1,200")


# --------------------------------------------------------------------------- what nobody can


@pytest.mark.parametrize(
    ("name", "n_items", "k", "grades"), [("NDCG", 3, 1, 2), ("NDCG", 4, 2, 2), ("AP", 3, 1, 2)]
)
def test_the_loss_that_is_forced_is_that_of_the_two_crowds_of_the_certificate(
    name, n_items, k, grades
):
    """On whichever is worse of two crowds, which look alike, by trying every ranking."""
    advice = advise(name, n_items, k, grades)
    proof = advice.classification.certificate()["proofs"]["hopeless"]
    judged = named_measure(name)
    regrets = []
    for crowd in ("p", "q"):
        chances = [float(Fraction(each)) for each in proof[crowd]]
        outcomes = [np.array(each, dtype=float) for each in proof["outcomes"]]
        means = [
            sum(c * judged(r, np.array(ranking)) for c, r in zip(chances, outcomes, strict=True))
            for ranking in itertools.permutations(range(n_items))
        ]
        regrets.append(max(means) - np.array(means))
    forced = float(((regrets[0] + regrets[1]) / 2.0).min())
    assert forced > 0.01
    assert advice.forced == pytest.approx(forced, abs=1e-11)
    assert as_record(advice)["forced_regret"] == advice.forced
    assert f"at least {forced:.4g} a round on one of two crowds" in sentences(advice)[0]


def test_nothing_is_forced_where_the_measure_can_be_learnt_or_no_constant_is_proved():
    learnable, hopeless = advise("DCG", 4, 1), advise("NDCG", 50, 1)
    assert learnable.forced is None
    assert f"as T: at least {hopeless.forced:.4g} a round on one" in sentences(hopeless)[0]
    assert "its regret grows as T. " in sentences(replace(hopeless, forced=None))[0]
    assert (
        "can be learnt: the regret of the best ranker grows as T^(2/3). "
        in (sentences(learnable)[0])
    )


@pytest.mark.parametrize(("name", "n_items", "k"), [("NDCG", 4, 1), ("NDCG", 50, 2), ("AP", 3, 1)])
def test_what_nobody_can_learn_has_the_ways_out_and_who_is_taken_all_the_same(name, n_items, k):
    """The last way out that classify names is a ranker; advice names one of its own."""
    advice = advise(name, n_items, k)
    first, *ways, last = sentences(advice)
    *others, named = advice.classification.advice
    assert ways == [way.removesuffix(".") for way in others]
    assert named.removesuffix(".") not in ways
    assert "cannot be learnt by any ranker" in first
    assert last.startswith(f"What can be done all the same: {advice.all_the_same}, ")


# --------------------------------------------------------------------------- who is named


@pytest.mark.parametrize(
    ("name", "n_items", "k", "features"),
    [("DCG", 4, 4, 0), ("DCG", 5, 1, 0), ("Precision@2", 6, 1, 0), ("SumLoss", 4, 4, 0),
     ("NDCG", 5, 4, 0), ("DCG", 5, 2, 3)],
)  # fmt: skip
def test_those_named_have_as_good_a_rate_as_the_first(name, n_items, k, features):
    record = as_record(advise(name, n_items, k, n_features=features))
    names = [each["ranker"] for each in record["candidates"]]
    assert names == [each for each in guarantees() if each in names]  # those to be taken first
    powers: dict[str, Any] = {each: guarantees()[each].power for each in names}
    first, *rest = names
    better = [
        each for each in rest
        if powers[each] is not None and (powers[first] is None or powers[each] <= powers[first])
    ]  # fmt: skip
    said = [sentence for sentence in record["advice"] if sentence.startswith("Or ")]
    assert [sentence.split(":")[0] for sentence in said] == [
        f"Or {each}" for each in sorted(better, key=powers.__getitem__)
    ]
    assert record["take"] == first
    assert record["advice"][1].startswith(f"Take {first}: ")
    best = {"T^(1/2)": 1 / 2, "T^(2/3)": 2 / 3}[record["classification"]["rate"]]
    proved = [power for power in powers.values() if power is not None]
    nobody = any(sentence.startswith("No ranker that is shipped") for sentence in record["advice"])
    assert nobody == (min(proved) > best)
    for each in record["candidates"]:
        row = guarantees()[each["ranker"]]
        assert (each["power"], each["sense"], each["source"]) == (row.power, row.sense, row.source)
    base = ContextualRanker if features else FixedListRanker
    everybody = {each for each, cls in RANKERS.items() if issubclass(cls, base)}
    listed = [*names, *record["without_guarantee"], *record["left_out"]]
    assert sorted(listed) == sorted(everybody)  # each is in one of the three
    assert not set(record["without_guarantee"]) & set(guarantees())


def test_the_rates_are_those_of_the_theorems():
    roots = ("semibandit", "neighbourhood", "ftpl", "adaptive-ftpl", "hedge")
    thirds = ("keystone", "rtopk", "iw-onlinerank", "forecaster", "contextual-rtopk")
    expected = {**dict.fromkeys(roots, 0.5), **dict.fromkeys(thirds, 2 / 3), "recall": None}
    assert {name: row.power for name, row in guarantees().items()} == expected


def test_a_rate_is_told_as_a_fraction():
    told = [Guarantee(power, "", "").rate for power in (1 / 2, 2 / 3, 3 / 4, None)]
    assert told == ["T^(1/2)", "T^(2/3)", "T^(3/4)", "no rate"]


def test_nobody_attains_a_rate_that_only_slower_ones_have(monkeypatch):
    kept = guarantees()
    only_with_guarantees(monkeypatch, {"rtopk": kept["rtopk"]})
    nobody = "No ranker that is shipped attains T^(1/2) here"
    assert sentences(advise("Precision@2", 6, 1))[-1] == nobody
    assert nobody not in sentences(advise("DCG", 6, 1))  # whose rate is T^(2/3)
    only_with_guarantees(monkeypatch, {name: kept[name] for name in ("rtopk", "semibandit")})
    assert nobody not in sentences(advise("Precision@2", 6, 1))


# --------------------------------------------------------------------------- the command


def test_the_command_prints_the_record_and_the_sentences():
    given = ["advise", "SumLoss", "--items", 6, "--top", 2, "--grades", 3, "--rounds", 10**12]
    record = json.loads(run(*given, "--json").stdout)
    expected = as_record(advise("SumLoss", 6, 2, 3, rounds=10**12))
    assert record == json.loads(json.dumps(expected))
    lines = [line.rstrip(".") for line in run(*given).stdout.splitlines()]
    assert lines[: len(record["advice"])] == record["advice"]
    assert f"Fits too, without a guarantee: {', '.join(record['without_guarantee'])}" in lines


@pytest.mark.parametrize(
    ("wrong", "sentence", "mended"),
    [
        (["--rounds", 0], "--rounds must be an integer between 1 and", ["--rounds", 1]),
        (["--rounds", 2**47 + 1], "must be an integer between 1 and", ["--rounds", 2**47]),
        (["--top", 4], "must be an integer between 1 and", ["--top", 3]),
        (["--features", -1], "--features must be an integer of at least 0", ["--features", 1]),
        (["--grades", 1], "must be an integer", ["--grades", 2]),
    ],
)
def test_what_is_refused_is_accepted_when_it_is_mended(wrong, sentence, mended):
    given = ["advise", "DCG", "--items", 3]
    assert sentence in run(*given, *wrong, code=2).stderr
    assert "Take " in run(*given, *mended).stdout
