"""Errors have one sentence form."""

import pytest

from keyhole.errors import (
    InvalidInput,
    UnknownName,
    check_choice,
    check_integer,
    check_number,
    check_ranking,
    check_relevance,
)


@pytest.mark.parametrize("value", [0, 11, 2.5, "3", None, True, float("nan"), float("inf")])
def test_integer_out_of_range_is_one_sentence(value):
    with pytest.raises(InvalidInput) as caught:
        check_integer(value, "`k` of Top", at_least=1, at_most=10, bound="n_items=")
    expected = f"`k` of Top must be an integer between 1 and n_items=10, got {value!r}."
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
