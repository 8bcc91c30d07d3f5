"""Vowpal Wabbit's text, written and read; tests/ecosystem has the real program read it."""

from dataclasses import replace

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput, KeyholeError
from keyhole.base.limits import VARIABLE
from keyhole.data.bandit.log import BanditLog
from keyhole.data.bandit.vowpal_wabbit import read_vowpal_wabbit, write_vowpal_wabbit
from keyhole.ecosystem.vowpal_wabbit import read_lists, write_lists

LOG = BanditLog.of(
    [[0.1, 1.0, 0.0], [1 / 3, 0.0, 0.0], [-2.5, 0.0, 0.0]],
    actions=[2, 0, 1],
    rewards=[0.0, 1.0, -0.25],
    propensities=[0.2, 1 / 3, 1.0],
    positions=[0, 2, 1],
    action_names=["tea", "hot milk", "a|b:c"],
    feature_names=["age", "a b:c", "never"],
)


def same(one, other):
    return one.n_actions == other.n_actions and all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("contexts", "actions", "rewards", "propensities", "positions")
    )


def test_lines_per_action(tmp_path):
    write_vowpal_wabbit(LOG.rows([0, 1]), tmp_path / "log.vw", form="cb_adf")
    assert (tmp_path / "log.vw").read_text().split("\n") == [
        "shared | age:0.1 a_b_c:1.0",
        "|action tea",
        "|action hot_milk",
        "0:0.0:0.2 |action a_b_c",
        "",
        "shared 'position=2 | age:0.3333333333333333",
        "0:-1.0:0.3333333333333333 |action tea",
        "|action hot_milk",
        "|action a_b_c",
        "",
        "",
    ]


@pytest.mark.parametrize("form", ["cb", "cb_adf"])
@pytest.mark.parametrize("name", ["log.vw", "log.vw.gz"])
def test_what_is_written_is_read_to_the_bit(tmp_path, form, name):
    write_vowpal_wabbit(LOG, tmp_path / name, form=form)
    again = read_vowpal_wabbit(tmp_path / name, n_actions=3, feature_names=LOG.feature_names)
    assert same(again, LOG)
    assert again.feature_names == LOG.feature_names
    assert again.action_names == (None if form == "cb" else ("tea", "hot_milk", "a_b_c"))
    shown = read_vowpal_wabbit(tmp_path / name)  # what is always 0 is not in the file
    assert shown.feature_names == ("age", "a_b_c")
    assert np.array_equal(shown.contexts, LOG.contexts[:, :2])


def test_numbered_actions_and_features_stay_numbers(tmp_path):
    log = BanditLog.of([[1.0], [2.0]], [1, 0], [0, 1], [0.5, 0.5])
    write_vowpal_wabbit(log, tmp_path / "log.vw", form="cb_adf")
    again = read_vowpal_wabbit(tmp_path / "log.vw")
    assert again.action_names is None
    assert again.feature_names == ("x0",)
    assert same(again, log)


def test_the_rest_of_the_format(tmp_path):
    (tmp_path / "log.vw").write_text(
        "1 2:-0.5:0.25 3 second|user:2 age:1.5 old age:0.5 | :7\r\n3:0:1 |page x\n"
    )
    log = read_vowpal_wabbit(tmp_path / "log.vw")
    assert (log.actions.tolist(), log.rewards.tolist(), log.n_actions) == ([1, 2], [0.5, 0.0], 3)
    assert log.feature_names == ("user^age", "user^old", "", "page^x")
    assert log.contexts.tolist() == [[4.0, 2.0, 7.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    assert not np.signbit(log.rewards).any()
    (tmp_path / "adf.vw").write_text("0:1:0.5 | x\n| y z\n\n| x\n0:2:0.5 | y z\n")
    log = read_vowpal_wabbit(tmp_path / "adf.vw")  # no shared line, and no names
    assert (log.contexts.shape, log.actions.tolist()) == ((2, 0), [0, 1])
    assert log.action_names is None


def test_words_that_touch_the_bar_are_tags(tmp_path):
    (tmp_path / "log.vw").write_text("shared first|u a\n0:1:0.5 one|action x\ntwo|action y\n")
    log = read_vowpal_wabbit(tmp_path / "log.vw")
    assert (log.actions.tolist(), log.action_names) == ([0], ("x", "y"))
    assert log.feature_names == ("u^a",)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("\n\n", "must have at least one row"),
        ("1:0:0.5 | a\n2:0 | a\n", "line 2: a row must have one label .*, got '2:0'"),
        ("1:0:0.5 2:0:0.5 | a\n", "line 1: a row must have one label"),
        ("0:0:0.5 | a\n", "line 1: an action counts from 1, got 0"),
        ("1:x:0.5 | a\n", "line 1: a cost must be a number, got 'x'"),
        ("1:0:0.5 | a:b\n", "line 1: the value of a must be a number, got 'b'"),
        ("1:0:0.5 |n:w a\n", "line 1: the weight of a namespace must be a number"),
        ("1:0:0.5 | a\n1:0:1.5 | a\n", "line 2: a propensity must be above 0 and at most 1"),
        ("shared | a\n| x\n| y\n", "line 1: the lines .* got 0 and 1"),
        ("shared | a\n0:0:1 | x\n\nshared | a\n0:0:1 | y\n", "line 5: the actions of a row must"),
        ("1:0:0.5 | other\n", "a feature must be one of `feature_names`, got 'other'"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(tmp_path, text, sentence):
    (tmp_path / "log.vw").write_text(text)
    with pytest.raises(InvalidInput, match=sentence):
        read_vowpal_wabbit(tmp_path / "log.vw", feature_names=["a"])


def test_names_must_stay_different(tmp_path):
    log = BanditLog.of([[1.0, 2.0]], [0], [1], [1.0], feature_names=["a b", "a:b"])
    with pytest.raises(InvalidInput, match=r"`feature_names` must differ .* got 'a b' and 'a:b'"):
        write_vowpal_wabbit(log, tmp_path / "log.vw")
    with pytest.raises(KeyholeError, match="`form` must be one of cb, cb_adf"):
        write_vowpal_wabbit(LOG, tmp_path / "log.vw", form="cats")


LISTS = "1:-2.0 'q7 | 1:0.5 3:1.0\n2:0.0 'q7 |\n\n1:-1.0 | 2:0.25\n"


def test_lists_are_read_and_written(tmp_path):
    (tmp_path / "lists.vw").write_text(LISTS)
    queries = read_lists(tmp_path / "lists.vw")
    assert queries.features.tolist() == [[0.5, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.25, 0.0]]
    assert queries.relevance.tolist() == [2.0, 0.0, 1.0]
    assert (queries.starts.tolist(), queries.query_ids) == ([0, 2, 3], ("q7", "2"))
    write_lists(queries, tmp_path / "again.vw.gz")
    again = read_lists(tmp_path / "again.vw.gz", n_features=4)
    assert again.features[:, :3].tolist() == queries.features.tolist()
    assert again.features.shape == (3, 4)
    assert again.query_ids == queries.query_ids
    write_lists(replace(queries, query_ids=("a b", "c|d")), tmp_path / "named.vw")
    assert read_lists(tmp_path / "named.vw").query_ids == ("a_b", "c_d")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1:-1 | 9:1\n", "a feature must be at most n_features=4, got 9"),
        ("1:-1 | age:1\n", "line 1: a feature must be a number from 1, got 'age'"),
        ("1:-1 | 0:1\n", "line 1: a feature must be a number from 1, got '0'"),
        ("1:-1 | 1:1\n1:2 | 1:1\n", "line 2: a document must have one label .* got '1:2'"),
        ("1:-1:0.5 | 1:1\n", "line 1: a document must have one label"),
    ],
)
def test_lists_that_cannot_be_read(tmp_path, text, sentence):
    (tmp_path / "lists.vw").write_text(text)
    with pytest.raises(InvalidInput, match=sentence):
        read_lists(tmp_path / "lists.vw", n_features=4)


def test_contexts_that_fit_nowhere(tmp_path, monkeypatch):
    """Fifty rows with a feature of their own each are a table of 8 x 50 x 50 = 20,000 bytes."""
    path = tmp_path / "log.vw"
    path.write_text("".join(f"{1 + row % 2}:0:0.5 | f{row}:1\n" for row in range(50)))
    monkeypatch.setenv(VARIABLE, "20000")
    assert read_vowpal_wabbit(path).contexts.shape == (50, 50)
    monkeypatch.setenv(VARIABLE, "19999")
    with pytest.raises(InvalidInput, match=r"The contexts of .* would take"):
        read_vowpal_wabbit(path)
