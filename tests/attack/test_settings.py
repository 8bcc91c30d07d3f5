"""Every option of every row of every table, given what it cannot be.

What is refused is refused with a sentence; what is accepted works, and stays finite.
"""

import warnings
from typing import Any

import numpy as np
import pytest

from keyhole.base.errors import (
    InvalidInput,
    KeyholeError,
    check_flag,
    check_integer,
    check_number,
    shown,
)
from keyhole.contracts.lists import Feedback, Query
from keyhole.contracts.registry import all_settings
from keyhole.game.comparators import best_fixed
from keyhole.game.play import play
from keyhole.measures import MEASURES, measure
from keyhole.policies import POLICIES, SCORERS
from keyhole.rankers import RANKERS
from keyhole.rankers.fixed.hedge import Hedge
from keyhole.rankers.fixed.plain import Random
from keyhole.rankers.lists.kernel_perceptron import KernelMaxViolationPerceptron
from keyhole.reveals import REVEALS
from keyhole.surrogates import SURROGATES
from keyhole.worlds import WORLDS
from keyhole.worlds.choices import Choices
from keyhole.worlds.flips import Flips
from keyhole.worlds.table import Ratings

pytestmark = pytest.mark.interpreted

WRONG: dict[str, Any] = {
    "text": "maybe", "nothing": "", "a digit": "1", "a word": "nan", "no text": "\udcff",
    "NUL": "\0", "long text": "x" * 5000, "bytes": b"x",
    "list": [], "one": [1], "nested": [[1]], "ragged": [[1, 2], [3]], "names": ["a"],
    "numbers": [1, 2, 3], "NaN inside": [float("nan")], "None inside": [None] * 3,
    "mapping": {}, "a spec": {"name": "x"}, "true": True, "false": False, "null": None,
    "NaN": float("nan"), "infinity": float("inf"), "minus infinity": -float("inf"),
    "-1": -1, "0": 0, "a half": 0.5, "2.5": 2.5, "1e308": 1e308, "-1e308": -1e308, "1e30": 1e30,
    "tiny": 5e-324, "10**30": 10**30, "10**400": 10**400, "10**5000": 10**5000,
    "imaginary": 1j, "imaginaries": np.array([1j]), "a class": object, "array": np.array([1, 2]),
    "array of none": np.array(2),
}  # fmt: skip

TABLES = {table.noun: table for table in (
    RANKERS, MEASURES, WORLDS, REVEALS, SURROGATES, POLICIES, SCORERS
)}  # fmt: skip

SCORER = {"name": "linear", "weights": [[0.1, 0.2]], "offsets": [0.0]}
TREES = ([0, -1, -1], [0.5, 0, 0], [1, 0, 0], [2, 0, 0], [0, 0.1, 0.9], [0, 3], [0, 1])
NEEDED: dict[tuple[str, str], dict[str, Any]] = {
    ("ranker", "fixed"): {"ranking": [0, 1, 2, 3]},
    ("world", "outcomes"): {"outcomes": [[0, 1], [1, 0]], "probabilities": [0.5, 0.5]},
    ("world", "ratings"): {"table": [[0, 1, 2]]},
    ("world", "recorded"): {"table": [[0, 1, 2]]},
    ("world", "shuffled"): {"table": [[0, 1, 2]]},
    ("world", "queries"): {
        "features": [[0.1], [0.9], [0.5]], "relevance": [0, 1, 2], "starts": [0, 2, 3]
    },
    ("policy", "uniform"): {"n_actions": 3},
    ("policy", "always"): {"n_actions": 3, "action": 1},
    ("scorer", "linear"): {"weights": [[0.1, 0.2]], "offsets": [0.0]},
    ("scorer", "forest"): {"trees": TREES, "n_features": 1},
}  # fmt: skip
"""What a row must be given besides what its kind must be."""

ROWS = [(noun, name) for noun, table in TABLES.items() for name in table]
LONGEST = 100
"""Items of the longest list that is tried out: more would be right, and take long."""


def settings_of(noun, name):
    """Return settings of which a row is made."""
    known = all_settings(TABLES[noun][name])
    of_kind: dict[str, dict[str, Any]] = {
        "ranker": {"n_items": 4, **({"n_features": 2} if "n_features" in known else {})},
        "policy": {"scorer": SCORERS.make(SCORER)} if "scorer" in known else {},
    }
    return {**of_kind.get(noun, {}), **NEEDED.get((noun, name), {})}


def use_ranker(made):
    if made.n_items > LONGEST or made.n_features > LONGEST:
        return
    rows = np.full((made.n_items, made.n_features), 0.5)
    query = Query(made.n_items, rows) if made.n_features else None
    for round in range(2):
        made.update(made.rank(query, round=round), Feedback(np.zeros(made.n_items)))
    for name, array in made.state_dict().items():
        assert array.dtype.kind != "f" or np.isfinite(array).all(), name


def use_world(made):
    if max(made.n_items, made.n_features) <= LONGEST:
        assert np.isfinite(made.relevance(round=0)).all()


USES = {
    "ranker": use_ranker,
    "world": use_world,
    "measure": lambda made: made([0, 1, 1, 0], [1, 2, 0, 3]),
    "reveal": lambda made: made([0, 1, 2], [2, 0, 1]),
    "surrogate": lambda made: made.value([0.5, 0.1], [0, 1]),
    "policy": lambda made: made.n_actions > LONGEST or made.probabilities([[0.5, 0.5]]),
    "scorer": lambda made: made.n_features > LONGEST or made.scores([[0.5] * made.n_features]),
}


def refusal(noun, name, settings):
    """Return the error that settings are refused with, or None if what they make works."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            USES[noun](TABLES[noun].make(name, **settings))
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize(("noun", "name"), ROWS)
def test_every_setting_is_refused_in_a_sentence_or_works(noun, name):
    good = settings_of(noun, name)
    assert refusal(noun, name, good) is None
    for setting in all_settings(TABLES[noun][name]):
        for wrong, value in WRONG.items():
            error = refusal(noun, name, {**good, setting: value})
            if error is not None:
                assert isinstance(error, KeyholeError), f"{setting} given as {wrong}: {error!r}"
                assert len(str(error)) < 1500, f"{setting} given as {wrong}"


@pytest.mark.parametrize("noun", TABLES)
@pytest.mark.parametrize("wrong", WRONG)
def test_every_name_is_refused_in_a_sentence(noun, wrong):
    with pytest.raises(KeyholeError) as refused:
        TABLES[noun].make(WRONG[wrong])
    assert len(str(refused.value)) < 1500


@pytest.mark.parametrize("value", ["maybe", 1, 0, None, [], "true", np.array([True])])
def test_flags_are_true_or_false(value):
    with pytest.raises(InvalidInput, match="x must be true or false"):
        check_flag(value, "x")
    assert check_flag(np.bool_(True), "x") is True


@pytest.mark.parametrize("wrong", ["a digit", "bytes", "true", "imaginary", "10**5000"])
def test_what_python_would_take_for_a_number_is_none(wrong):
    value = WRONG[wrong]
    with pytest.raises(InvalidInput, match="x must be an integer"):
        check_integer(value, "x", at_least=0)
    with pytest.raises(InvalidInput, match="x must be a number"):
        check_number(value, "x")


def test_integers_fit_compiled_code():
    assert check_integer(2**63 - 1, "x", at_least=0) == 2**63 - 1
    with pytest.raises(
        InvalidInput, match=r"^x must be an integer between 0 and 9223372036854775807"
    ):
        check_integer(2**63, "x", at_least=0)


def test_values_are_shown_shortly():
    class Odd:
        def __repr__(self):
            raise RuntimeError

    assert shown([1, 2]) == "[1, 2]"
    assert len(shown("x" * 10**6)) <= 201
    assert shown(Odd()) == "an Odd that cannot be written"


# --------------------------------------------------------------------------- claims on memory

TOO_MUCH = r"would take .* more than the limit of .*: KEYHOLE_MEMORY_LIMIT raises it\.$"


@pytest.mark.parametrize(
    "claim",
    [
        lambda: Flips(10**12),
        lambda: Random(10**12),
        lambda: RANKERS.make("slam", n_items=10**6, n_features=10**6),
        lambda: WORLDS.make("graded", n_items=10**6, n_features=10**7),
        lambda: KernelMaxViolationPerceptron(100, 3, budget=10**12),
        lambda: play(Random(3), Flips(3), rounds=10, runs=10**10),
        lambda: play(Random(3), Flips(3), rounds=10**13, n_points=None),
        lambda: play(Random(3), Flips(3), rounds=10**13, record=True),
    ],
)
def test_what_would_not_fit_is_refused_before_it_is_made(claim):
    with pytest.raises(InvalidInput, match=TOO_MUCH):
        claim()


def test_a_limit_can_be_set(monkeypatch):
    monkeypatch.setenv("KEYHOLE_MEMORY_LIMIT", "1M")
    with pytest.raises(InvalidInput, match=TOO_MUCH):
        Flips(100_000)
    monkeypatch.setenv("KEYHOLE_MEMORY_LIMIT", "1G")
    assert Flips(100_000).n_items == 100_000


def test_the_range_of_a_measure_is_not_looked_for_without_end():
    with pytest.raises(InvalidInput, match="`max_grade` must be smaller for 5 items"):
        Hedge(5, measure="SumLoss", max_grade=1e30)


def test_the_best_ranking_is_found_in_parts_as_in_one(monkeypatch):
    world = Choices(4, skew=0.5)
    whole = best_fixed(world, rounds=500)
    monkeypatch.setattr("keyhole.game.comparators._SEGMENT_WORK", 40)
    assert best_fixed(world, rounds=500).tolist() == whole.tolist()


# --------------------------------------------------------------------------- values that were taken


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: measure("NDCG", empty=float("inf")), "`empty` of NDCG must be a number"),
        (lambda: measure("NDCG", empty=True), "`empty` of NDCG must be a number"),
        (lambda: Ratings([[1e308, 1.0]]), "`table` of Ratings must be at most 1e+60"),
        (lambda: Choices(5, skew=1e6), "`skew` of Choices must be a number"),
        (lambda: RANKERS.make("ftpl", n_items=3, tight="maybe"), "`tight` of FTPL must be true"),
        (lambda: RANKERS.make("ftpl", n_items=3, max_grade=1000), "`max_grade` of FTPL must be"),
        (lambda: POLICIES.make("greedy", scorer="linear"), "`scorer` of Greedy must be a scorer"),
    ],
)
def test_values_that_make_no_sense_are_refused(make, sentence):
    with pytest.raises(InvalidInput) as refused:
        make()
    assert str(refused.value).startswith(sentence)


def test_a_measure_that_leaves_empty_lists_out_is_made_of_its_spec_again():
    skipping = measure("NDCG", empty=float("nan"))
    assert str(measure(skipping.spec).empty) == "nan"
