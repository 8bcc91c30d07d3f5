"""Errors have one sentence form."""

from typing import Any

import numpy as np
import pytest

from keyhole.base.errors import (
    InvalidInput,
    UnknownName,
    check_array,
    check_choice,
    check_integer,
    check_number,
    check_ranking,
    check_relevance,
    check_round,
    check_seed,
)


@pytest.mark.parametrize("value", [0, 11, 2.5, "3", None, True, float("nan"), float("inf")])
def test_integer_out_of_range_is_one_sentence(value):
    with pytest.raises(InvalidInput) as caught:
        check_integer(value, "`k` of Top", at_least=1, at_most=10, bound="n_items=")
    expected = f"`k` of Top must be an integer between 1 and n_items=10, got {value!r}."
    assert str(caught.value) == expected


@pytest.mark.parametrize("value", ["abc", None, float("inf")])
def test_what_is_no_number_is_not_taken_for_zero(value):
    with pytest.raises(InvalidInput, match="must be an integer of at least 0"):
        check_integer(value, "x", at_least=0)


def test_rows_of_numbers_are_one_sentence():
    with pytest.raises(InvalidInput) as caught:
        check_array([[1.0, 2.0], [3.0]], "`features`", n_dims=2)
    expected = "`features` must be rows of numbers, all of one length, got [[1.0, 2.0], [3.0]]."
    assert str(caught.value) == expected


def test_integer_accepts_whole_floats():
    assert check_integer(3.0, "x", at_least=1) == 3


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf"), "abc", None])
def test_number_out_of_range(value):
    with pytest.raises(InvalidInput, match="must be a number of at least 0"):
        check_number(value, "x", at_least=0.0, at_most=1.0)


def test_number_above_is_strict():
    with pytest.raises(InvalidInput, match="above 0"):
        check_number(0.0, "x", above=0.0)


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(UnknownName, match="Did you mean 'NDCG'"):
        check_choice("ndcg", "measure", ["NDCG", "AP"])
    with pytest.raises(UnknownName, match=r"got 'zzz'\.$"):
        check_choice("zzz", "measure", ["NDCG", "AP"])


@pytest.mark.parametrize("bad", [[0, float("nan")], [0, -1], [0, float("inf")]])
def test_relevance_names_the_first_bad_entry(bad):
    with pytest.raises(InvalidInput, match="at index 1"):
        check_relevance(bad)


def test_ragged_relevance():
    with pytest.raises(InvalidInput, match="lists of one length"):
        check_relevance([[1, 0], [1]])


@pytest.mark.parametrize("bad", [[0, 0, 1], [0, 1], [0, 1, 3], [0.5, 1, 2], ["a", 1, 2]])
def test_ranking_must_be_a_permutation(bad):
    with pytest.raises(InvalidInput):
        check_ranking(bad, 3)


def test_the_ends_of_a_range_are_in_it():
    assert check_integer(1, "x", at_least=1, at_most=3) == 1
    assert check_integer(3, "x", at_least=1, at_most=3) == 3
    assert check_number(0.0, "x", at_least=0.0, at_most=1.0) == 0.0
    assert check_number(1, "x", at_least=0.0, at_most=1.0) == 1.0
    assert check_number(1e-60, "x", above=0.0) == 1e-60
    assert check_number(-1e60, "x") == -1e60


@pytest.mark.parametrize("size", [1e-61, 1e61, 5e-324, -1e308, 10**300])
def test_numbers_whose_products_leave_floating_point_are_refused(size):
    with pytest.raises(InvalidInput, match=r"^x must be a number of a size between 1e-60 and"):
        check_number(size, "x")


def test_a_range_without_an_end_is_told_as_one():
    with pytest.raises(InvalidInput, match=r"^x must be an integer of at least 1, got 0\.$"):
        check_integer(0, "x", at_least=1)
    with pytest.raises(InvalidInput, match=r"^x must be a number of at least 0\.5, got 0\.$"):
        check_number(0, "x", at_least=0.5)
    with pytest.raises(InvalidInput, match=r"^x must be a number above 0\.0, got -1\.$"):
        check_number(-1, "x", above=0.0)
    with pytest.raises(InvalidInput, match=r"of at least -2\.0 and at most 3\.0, got 4\.$"):
        check_number(4, "x", at_least=-2.0, at_most=3.0)


def test_seeds_and_rounds_have_an_end():
    assert check_seed(0) == 0
    assert check_seed(2**63 - 1) == 2**63 - 1
    assert check_round(0) == 0
    assert check_round(2**47 - 1) == 2**47 - 1
    for check, value in (
        (check_seed, -1), (check_seed, 2**63), (check_round, -1), (check_round, 2**47)
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match="must be an integer between 0 and"):
            check(value)


@pytest.mark.parametrize("known", [["NDCG"], ["x", "NDCG"]])
def test_a_suggestion_is_near(known):
    with pytest.raises(UnknownName, match="Did you mean 'NDCG'"):
        check_choice("nd", "measure", known)  # two thirds alike
    with pytest.raises(UnknownName, match=r"got 'n'[.]$"):
        check_choice("n", "measure", known)  # two fifths


def test_bad_relevance_is_placed():
    assert check_relevance([0.0, 2]).tolist() == [0.0, 2.0]
    with pytest.raises(InvalidInput, match=r"not negative, got -1\.0 at index \(1, 0\)"):
        check_relevance([[0, 1], [-1, -2]])
    with pytest.raises(InvalidInput, match=r"must be a list, got 3\."):
        check_relevance(3)


def test_rankings_are_checked_row_by_row():
    assert check_ranking(np.array([[1.0, 0.0], [0.0, 1.0]]), 2).tolist() == [[1, 0], [0, 1]]
    bad: Any
    for bad, got in (
        ([[1, 0], [1, 1]], "item 1 twice and no item 0 in ranking 1"),
        ([[[0, 1]], [[0, -1]]], "-1 in ranking 1, which is no item"),
        ([0.0, 0.5], "0.5, which is no item"),
        (0, "0"),
        ([0, 1, 2], "3 items"),
    ):
        with pytest.raises(InvalidInput) as caught:
            check_ranking(bad, 2)
        start = "ranking must hold each of the items 0 to 1 exactly once, got "
        assert str(caught.value) == f"{start}{got}."
    with pytest.raises(InvalidInput, match="got item 3 3 times and no item 0\\."):
        check_ranking([3, 3, 3, 1], 4)
