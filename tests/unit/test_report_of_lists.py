"""Every number that the gate reports of rankings of documents, by definition."""

import math
from typing import Any

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput
from keyhole.game.log import Log
from keyhole.offline.item_estimator import seen_items
from keyhole.offline.lists import evaluate_lists, revealed
from keyhole.offline.rankings import item_position, top_set
from tests.unit import references_gate
from tests.unit.references import dcg
from tests.unit.test_report_of_the_gate import assert_same, without_words

NUMBERS = np.random.default_rng(4)
LENGTHS = [4 + row % 3 for row in range(40)]


def some_log():
    """Lists of four to six documents with grades up to 3, of which three or more are revealed."""
    starts = np.cumsum([0, *LENGTHS])
    rankings = [NUMBERS.permutation(length) for length in LENGTHS]
    values = NUMBERS.choice([0.0, 0.0, 1.0, 3.0], size=starts[-1])
    for row, length in enumerate(LENGTHS):
        values[starts[row] + 3 + (row % 5 == 0) : starts[row] + length] = np.nan
    return Log(
        3, 1, np.arange(40), np.ones(40, bool), NUMBERS.uniform(0.1, 0.9, 40), starts,
        np.concatenate(rankings), values, NUMBERS.random((starts[-1], 2)),
    )  # fmt: skip


LOG = some_log()


def shown(row):
    where = slice(LOG.starts[row], LOG.starts[row + 1])
    return LOG.rankings[where].tolist(), LOG.values[where].tolist()


def tops_in_another_order(every):
    """Return rankings whose first two are those that were shown, but for some of the rows."""
    found = []
    for row in range(40):
        ranking = shown(row)[0]
        swapped = [ranking[1], ranking[0], *ranking[:1:-1]]
        found.append(swapped if row % every else ranking[::-1])
    return found


def rows_of(rankings, k, score, largest, *, logged=False):
    """Return what rankings earn in each row, and the weight of the row."""
    earned, weights = [], []
    for row in range(40):
        ranking, values = shown(row)
        chance = 1.0 if logged else float(LOG.propensities[row])
        agrees = set(ranking[:k]) == set(rankings[row][:k])
        of_item = dict(zip(ranking[:k], values[:k], strict=True))
        earned.append(score([of_item[i] for i in rankings[row][:k]]) / chance if agrees else 0.0)
        weights.append(1 / chance if agrees else 0.0)
    least = 1.0 if logged else float(LOG.propensities.min())
    span = None if largest is None else (0.0, largest / least)
    worth = None if largest is None else (0.0, largest)
    return references_gate.Rows(earned, "none", span, worth), weights


def by_hand(policies, k, *, confidence, bound, seed, names):
    why = "it is for the importance-weighted value of one policy"
    (policy, of_policy), (baseline, of_baseline) = policies
    rewarded = [any(value > 0 for value in shown(row)[1][:k]) for row in range(40)]

    def lines(rows):
        return {"importance-weighted": references_gate.line(rows, confidence, seed, why)}

    gap = lines(references_gate.difference(policy, baseline))
    decisive = gap["importance-weighted"]
    value = decisive["bounds"][bound]
    said = [
        {
            "name": name,
            "estimates": lines(rows),
            "diagnostics": references_gate.diagnostics(weights, rewarded),
            "training_rows": None,
        }
        for name, rows, weights in zip(
            names, (policy, baseline), (of_policy, of_baseline), strict=True
        )
    ]
    return {
        "verdict": "promote" if value is not None and value > 0 else "keep",
        "decided_by": bound,
        "lower_bound": value,
        "interval": decisive["intervals"][bound],
        "confidence": confidence,
        "rows": 40,
        "policy": said[0],
        "baseline": said[1],
        "difference": gap,
    }


def dcg_at(cutoff):
    return lambda grades: dcg(np.array(grades), np.arange(len(grades)), cutoff)


def precision_at(cutoff):
    return lambda grades: math.fsum(grades[:cutoff])


CASES = {
    "DCG": (dcg_at(2), 2, 3.0),
    "DCG@1": (dcg_at(1), 2, 5.0),
    "Precision": (precision_at(2), 2, 4.0),
    "Precision@1": (precision_at(1), 2, None),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("logged", [False, True])
def test_rankings_on_a_log(name, logged):
    score, k, max_grade = CASES[name]
    largest = None if max_grade is None else score([max_grade] * k)
    asked: dict[str, Any] = {
        "confidence": 0.8,
        "bound": "student-t",
        "seed": 5,
        "names": ("new", "old"),
    }
    policy = tops_in_another_order(3)
    baseline = [shown(row)[0] for row in range(40)] if logged else tops_in_another_order(2)
    found = evaluate_lists(
        LOG, policy, "logged" if logged else baseline, k=k, measure=name, max_grade=max_grade,
        **asked,
    )  # fmt: skip
    expected = by_hand(
        [rows_of(policy, k, score, largest), rows_of(baseline, k, score, largest, logged=logged)],
        k,
        **asked,
    )
    assert_same(without_words(found.as_dict()), expected)
    assert found.notes == (f"Rewards are {name} of the first {k} documents.",)


def test_grades_above_1_have_no_guarantee_unless_the_largest_is_said():
    policy = tops_in_another_order(3)
    asked: dict[str, Any] = {"names": ("new", "old"), "seed": 2}
    found = evaluate_lists(LOG, policy, "logged", 0.9, k=3, bound="betting", **asked)
    assert found.lower_bound is None
    assert found.verdict == "keep"
    assert found.warnings[-1] == (
        "There is no betting bound: the range of rewards is not known, or the rows depend on each "
        "other; give the range of rewards."
    )
    told = evaluate_lists(LOG, policy, "logged", 0.9, k=3, max_grade=3.0, **asked)
    assert told.lower_bound is not None
    with pytest.raises(InvalidInput, match="`max_grade` must be at least 3, as the log has it"):
        evaluate_lists(LOG, policy, "logged", max_grade=2.0)
    binary = LOG._replace(values=np.minimum(LOG.values, 1.0))
    unsaid = evaluate_lists(binary, policy, "logged", k=3)
    said = evaluate_lists(binary, policy, "logged", k=3, max_grade=1.0)
    assert unsaid.as_dict() == said.as_dict()
    assert unsaid.lower_bound is not None


def test_as_many_items_count_as_every_row_reveals():
    assert revealed(LOG) == 3
    hidden = LOG.values.copy()
    hidden[int(LOG.starts[7]) + 1] = np.nan
    assert revealed(LOG._replace(values=hidden)) == 1
    assert revealed(LOG._replace(values=np.zeros(len(hidden)))) == 6  # the longest list
    policy = tops_in_another_order(3)
    by_default, said = evaluate_lists(LOG, policy), evaluate_lists(LOG, policy, k=3)
    assert by_default.as_dict() == said.as_dict()
    assert evaluate_lists(LOG, policy, k=2).as_dict() != said.as_dict()


def test_a_row_of_which_nothing_is_revealed_is_refused_and_the_others_are_judged():
    nothing = LOG.values.copy()
    nothing[int(LOG.starts[7])] = np.nan
    with pytest.raises(InvalidInput, match="must reveal at least the first item"):
        evaluate_lists(LOG._replace(values=nothing), "logged")
    assert evaluate_lists(LOG.part(8), "logged").n_rows == 32
    with pytest.raises(InvalidInput, match="the log of a ranker of documents with features"):
        evaluate_lists(LOG._replace(features=np.empty((len(LOG.values), 0))), "logged")


# ------------------------------------------------------------------ estimators of lists


def test_items_by_their_positions():
    rewards = np.array([[1.0, 0.5, 0.0], [0.0, 2.0, 1.0]])
    logged = np.array([[0.5, 0.25, 0.8], [0.4, 0.5, 0.1]])
    wanted = np.array([[1.0, 0.2, 0.0], [0.5, 0.3, 0.7]])
    expected = [
        math.fsum(r * w / p for r, p, w in zip(*of_list, strict=True))
        for of_list in zip(rewards, logged, wanted, strict=True)
    ]
    found = item_position(rewards, logged, wanted, high=9.0)
    assert found.contributions.tolist() == pytest.approx(expected, rel=1e-12)
    assert (found.range, found.bias, found.name) == ((0.0, 9.0), "none", "item-position")
    assert item_position(rewards, logged, wanted).range is None
    assert item_position(-rewards, logged, wanted, high=9.0).range is None


def test_seen_items_by_their_chances():
    """Base + the sum over seen items of weight (gain - predicted) / chance; NaN counts for none."""
    gains = np.array([[1.0, 0.0], [3.0, 2.0], [0.0, 1.0]])
    chances = np.array([[0.5, 0.25], [0.2, np.nan], [1.0, 0.1]])
    weights = np.array([[1.0, 0.6], [0.5, 1.0], [0.6, 0.3]])
    guesses = np.array([[0.25, 0.5], [1.0, 7.0], [0.5, 0.75]])
    base = np.array([1.5, -0.25, 0.75])
    plain, corrected = [], []
    for row in range(3):
        seen = [place for place in range(2) if not math.isnan(chances[row, place])]
        parts = [(weights[row, p] / chances[row, p], gains[row, p], guesses[row, p]) for p in seen]
        plain.append(math.fsum(weight * gain for weight, gain, _ in parts))
        corrected.append(base[row] + math.fsum(w * (gain - guess) for w, gain, guess in parts))
    options: dict[str, Any] = {"largest": 2.0, "least_chance": 0.05}
    found = seen_items(gains, chances, weights, **options)
    assert found.contributions.tolist() == pytest.approx(plain, rel=1e-12)
    assert (found.name, found.range) == ("importance-weighted", (-40.0, 40.0))
    for known, low in ((True, 0.0), (False, -40.0)):
        one_sided = seen_items(gains, chances, weights, never_negative=known, **options)
        assert one_sided.range == (low, 40.0)
    predictions: dict[str, Any] = {"predicted": guesses, "base": base}
    assert seen_items(gains, chances, weights, **predictions, **options).range is None
    predictions["base_range"] = (-1.0, 3.0)
    robust = seen_items(gains, chances, weights, **predictions, **options)
    assert robust.contributions.tolist() == pytest.approx(corrected, rel=1e-12)
    assert (robust.name, robust.range, robust.bias) == ("doubly-robust", (-41.0, 43.0), "none")
    lacking: list[dict[str, Any]] = [{}, {"largest": 2.0}, {"least_chance": 0.05}]
    for fewer in lacking:
        assert seen_items(gains, chances, weights, **fewer).range is None
    refused = {
        "of one shape": lambda: seen_items(gains[:2], chances, weights),
        "above 0 and at most 1": lambda: seen_items(gains, chances * 3, weights),
        "go together": lambda: seen_items(gains, chances, weights, base=base),
    }
    for sentence, call in refused.items():
        with pytest.raises(InvalidInput, match=sentence):
            call()


def test_tops_may_be_worth_what_is_said():
    policy = [shown(row)[0] for row in range(40)]
    most = top_set(LOG, policy, k=2).contributions.max()
    assert top_set(LOG, policy, k=2, high=most).range == (0.0, most)
    with pytest.raises(InvalidInput, match="`high` must be at least the largest contribution"):
        top_set(LOG, policy, k=2, high=0.99 * most)
