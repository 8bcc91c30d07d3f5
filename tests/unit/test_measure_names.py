"""Names, cutoffs, printing and the sentences for bad input of measures."""

import re

import numpy as np
import pytest

from keyhole import LinearMeasure, measure
from keyhole.base.errors import InvalidInput, KeyholeError, UnknownName
from keyhole.measures import MEASURES

pytestmark = pytest.mark.interpreted

WITH_CUTOFF = [name for name, cls in MEASURES.items() if cls.takes_cutoff]


def test_these_measures_take_a_cutoff():
    expected = {"DCG", "NDCG", "Precision", "AP", "ERR", "RR", "Recall", "NDCGLoss", "APLoss"}
    assert set(WITH_CUTOFF) == expected


@pytest.mark.parametrize("name", WITH_CUTOFF)
def test_at_sign_and_operator_agree(name):
    by_name, by_operator = measure(f"{name}@2"), measure(name) @ 2
    assert by_name.label == by_operator.label == f"{name}@2"
    assert str(by_name) == str(by_operator)
    assert type(by_name) is type(by_operator)
    relevance, ranking = [0, 2, 1, 0], [3, 2, 1, 0]
    assert by_name(relevance, ranking) == by_operator(relevance, ranking)


def test_operator_keeps_the_options():
    assert (measure("NDCG", empty=0) @ 5).empty == 0
    assert (measure("ERR", max_grade=2) @ 5).max_grade == 2


def test_a_measure_is_its_own_name():
    of = measure("NDCG@3")
    assert measure(of) is of


@pytest.mark.parametrize("name", [name for name in MEASURES if name not in WITH_CUTOFF])
def test_no_cutoff_taken(name):
    for make in (lambda: measure(f"{name}@3"), lambda: measure(name) @ 3):
        with pytest.raises(InvalidInput) as caught:
            make()
        assert str(caught.value) == f"{name} takes no cutoff, got 3."


@pytest.mark.parametrize("cutoff", ["", "x", "-1", "1.5", " 3", "3 ", "@3", "²"])
def test_cutoff_must_be_a_whole_number(cutoff):
    with pytest.raises(InvalidInput) as caught:
        measure(f"NDCG@{cutoff}")
    expected = f"cutoff of measure 'NDCG@{cutoff}' must be a whole number after the @."
    assert str(caught.value) == expected


@pytest.mark.parametrize("cutoff", [0, -2, 1.5, "3", None, True])
def test_operator_refuses_cutoffs(cutoff):
    if cutoff is None:
        assert (measure("NDCG@3") @ cutoff).cutoff is None  # type: ignore[operator]
        return
    with pytest.raises(InvalidInput) as caught:
        measure("NDCG") @ cutoff
    assert str(caught.value) == (
        f"cutoff of NDCG must be an integer of at least 1, got {cutoff!r}."
    )


def test_cutoff_zero_by_name():
    with pytest.raises(InvalidInput, match=r"^cutoff of NDCG must be an integer of at least 1"):
        measure("NDCG@0")


def test_unknown_names():
    with pytest.raises(UnknownName, match=r"got 'ndgc'\. Did you mean 'NDCG'\?$"):
        measure("ndgc@3")


PRINTED = {
    "SumLoss": "SumLoss (loss; item r; position p; no cutoff)",
    "PairwiseLoss": "PairwiseLoss (loss; item r; position pairs; no cutoff)",
    "DCG@5": "DCG@5 (gain; item 2^r - 1; position 1/log2(1+p); cutoff 5)",
    "NDCG": "NDCG (gain; item 2^r - 1; position 1/log2(1+p), over that of the best ranking; "
    "no cutoff, empty list 1)",
    "AP@3": "AP@3 (gain; item 1[r > 0]; position precision at p; cutoff 3, empty list 1)",
    "ERR@10": "ERR@10 (gain; item (2^r - 1)/2^4; position 1/p, if the user gets there; cutoff 10)",
}


@pytest.mark.parametrize("name", PRINTED)
def test_printing(name):
    assert str(measure(name)) == PRINTED[name]
    assert repr(measure(name)) == f"<{PRINTED[name]}>"


@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_prints_its_conventions(name):
    of = measure(name)
    kind = "loss" if of.is_loss else "gain"
    shown = str(of)
    assert shown.startswith(f"{name} ({kind}; item {of.gain}; position {of.discount}; no cutoff")
    assert shown.endswith(")" if of.default_empty is None else f", empty list {of.empty:g})")


def test_linear_measure_prints_its_weights():
    of = LinearMeasure([0.5, 1], gain="exponential")
    assert str(of) == "Linear (loss; item exponential; position 0.5, 1; no cutoff)"


EACH_ONCE = "ranking must hold each of the items 0 to 1 exactly once"
BAD_LISTS = [
    ([0, -1], [0, 1], "relevance must be finite and not negative, got -1.0 at index 1."),
    ([0, np.nan], [0, 1], "relevance must be finite and not negative, got nan at index 1."),
    (["a", 1], [0, 1], "relevance must be numbers in lists of one length."),
    ([], [], "relevance must have 1 dimension and at least one item, got shape (0,)."),
    (
        [[1, 0]],
        [[0, 1]],
        "relevance must have 1 dimension and at least one item, got shape (1, 2).",
    ),
    ([1, 0], [0, 0], f"{EACH_ONCE}, got item 0 twice and no item 1."),
    (
        [0, 2, 1],
        [1, 2, 2],
        "ranking must hold each of the items 0 to 2 exactly once, got item 2 twice and no item 0.",
    ),
    ([1, 0], [1, 2], f"{EACH_ONCE}, got 2, which is no item."),
    ([1, 0], [0], f"{EACH_ONCE}, got 1 item."),
    ([1, 0], [[0, 1]], "ranking must have the shape of relevance (2,), got (1, 2)."),
    ([1, 0], ["a", "b"], "ranking must be a list of item indices."),
]


@pytest.mark.parametrize(("relevance", "ranking", "sentence"), BAD_LISTS)
@pytest.mark.parametrize("name", ["NDCG", "SumLoss"])
def test_bad_lists(name, relevance, ranking, sentence):
    with pytest.raises(InvalidInput) as caught:
        measure(name)(relevance, ranking)
    assert str(caught.value) == sentence


def test_bad_tables():
    with pytest.raises(InvalidInput, match="relevance must have 2 dimensions and at least one"):
        measure("DCG").many([1, 0], [0, 1])
    with pytest.raises(InvalidInput, match=r"ranking must have the shape of relevance \(2, 2\)"):
        measure("DCG").many([[1, 0], [0, 1]], [[0, 1]])
    with pytest.raises(InvalidInput, match=r"got -2\.0 at index \(1, 0\)\."):
        measure("DCG").many([[1, 0], [-2, 1]], [[0, 1], [1, 0]])


def test_err_has_a_top_grade():
    with pytest.raises(InvalidInput) as caught:
        measure("ERR", max_grade=2)([3, 0], [0, 1])
    assert str(caught.value) == "relevance must be at most max_grade=2.0 for ERR, got 3.0."
    with pytest.raises(InvalidInput, match=r"`max_grade` of ERR must be an integer between 1"):
        measure("ERR", max_grade=0)


@pytest.mark.parametrize(
    ("attempt", "sentence"),
    [
        (lambda: LinearMeasure([3, 1, 0]) @ 2, "Linear takes no cutoff, got 2"),
        (lambda: measure("SumLoss") @ 2, "SumLoss takes no cutoff, got 2"),
        (lambda: measure("NDCG", empty="x"), "`empty` of NDCG must be a number, got 'x'"),
        (
            lambda: measure("NDCG", foo=1),
            "setting of NDCG must be one of cutoff, empty, got 'foo'",
        ),
        (lambda: measure("NDCG@٣"), "must be a whole number after the @"),
        (lambda: measure("DCG")(1.0, [0]), "relevance must be a list, got 1.0"),
        (lambda: measure("NDCG")([2000, 0], [0, 1]), "at most max_grade=1000.0 for NDCG"),
        (lambda: LinearMeasure("a"), "must be finite numbers that never rise or never fall"),
        (lambda: LinearMeasure([]), "must be finite numbers that never rise or never fall"),
        (lambda: LinearMeasure([1, 0, 1]), "must be finite numbers that never rise or never fall"),
    ],
)
def test_odd_requests_get_a_sentence(attempt, sentence):
    with pytest.raises(KeyholeError, match=re.escape(sentence)):
        attempt()


def test_the_best_ranking_has_no_ndcg_loss_to_the_last_bit():
    lists = np.random.default_rng(0)
    for _ in range(500):
        relevance = lists.integers(0, 5, size=9)
        ideal = np.argsort(-relevance, kind="stable")
        assert measure("NDCGLoss")(relevance, ideal) == 0.0
        assert measure("NDCGLoss@4")(relevance, ideal) == 0.0
