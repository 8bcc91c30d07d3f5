"""What a session prints is a short line or a small table, whatever its size and its state."""

import inspect
import threading
import time
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import keyhole
from keyhole import MEASURES, POLICIES, RANKERS, REVEALS, SURROGATES, WORLDS, Feedback, Query
from keyhole.base.display import Described, Description, on_one_line, short, some_of
from keyhole.contracts.registry import all_settings
from keyhole.data.letor.queries import QuerySet
from keyhole.game.log import Log
from keyhole.game.trace import Trace

pytestmark = pytest.mark.interpreted

TABLES: list[Any] = [RANKERS, WORLDS, MEASURES, REVEALS, SURROGATES]
NASTY = ["<script>alert(1)</script>", "two\nlines", "\x1b[31mred", "\ud800", "&amp;" * 500]
NEEDED: dict[str, Any] = {
    "n_items": 4,
    "n_features": 4,
    "table": np.arange(250.0).reshape(50, 5),
    "outcomes": np.eye(5),
    "probabilities": [0.2] * 5,
    "features": np.ones((1000, 4)),
    "relevance": [1.0] * 1000,
    "starts": list(range(0, 1001, 10)),
}
NAMES = ["ant", "bee", "cat"]


def is_short(text):
    lines = text.split("\n")
    return len(text) <= 200 if len(lines) == 1 else len(lines) <= 15 and max(map(len, lines)) <= 300


class Parsed(HTMLParser):
    """The tags and the text of some HTML."""

    def __init__(self, html):
        super().__init__()
        self.tags: list[str] = []
        self.text: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):  # noqa: ARG002
        self.tags.append(tag)

    def handle_data(self, data):
        self.text.append(data)


def made(table, name):
    needed = [n for n, d in all_settings(table[name]).items() if d is inspect.Parameter.empty]
    return table.make(name, **{setting: NEEDED[setting] for setting in needed})


@pytest.mark.parametrize("table", [*TABLES, POLICIES], ids=lambda table: table.noun)
def test_tables_name_their_rows(table):
    assert is_short(repr(table))
    assert all(name in repr(table) for name in table)
    assert repr(table).startswith(f"Table of {len(table)} ")


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.noun)
def test_every_row_of_every_table_is_short(table):
    for name in table:
        row = made(table, name)
        assert is_short(repr(row)), repr(row)
        assert type(row).__name__ in repr(row)
        told = Parsed(row._repr_html_())
        assert told.tags == ["div", "strong"]
        assert told.text == [repr(row)]


def test_settings_that_differ_from_the_defaults_are_shown():
    ranker = keyhole.ranker(
        "rtopk", items=NAMES, horizon=90, measure=keyhole.measure("Precision@2")
    )
    cut = "measure=Precision(cutoff=2), items=['ant', 'bee', 'cat']"
    assert repr(ranker) == f"RTopK(n_items=3, horizon=90, {cut})"
    assert repr(keyhole.Flips(4, flip=np.float64(0.25))) == "Flips(n_items=4, flip=0.25)"
    assert repr(keyhole.Flips()) == "Flips()"
    assert repr(keyhole.RTopK(5, eps_scale=np.float64(1.0))) == "RTopK(n_items=5)"  # its default


def test_long_lists_are_counted():
    names = [f"item {i}" for i in range(100_000)]
    began = time.process_time()
    ranker = keyhole.FTPL(100_000, items=names)
    assert "items=['item 0', 'item 1', 'item 2', … 100000 in all]" in repr(ranker)
    assert repr(keyhole.Ratings(np.ones((300, 20)))) == "Ratings(table=<300 by 20 values>)"
    assert repr(keyhole.Ratings([[1.0] * 20] * 300)) == "Ratings(table=<300 by 20 values>)"
    query = Query(100_000, np.ones((100_000, 2)), tuple(names))
    assert repr(query).startswith("Query: items 100,000; features 2; names item 0, item 1")
    assert is_short(repr(query))
    assert is_short(repr(Feedback(np.full(100_000, np.nan))))
    shown = keyhole.Impression(7, query, np.arange(100_000), True, 0.125)
    assert repr(shown) == (
        "Impression\n  round       7\n"
        "  shows       item 0, item 1, item 2, item 3, item 4 … (100,000 in all)\n"
        "  explored    yes\n  propensity  0.125"
    )
    assert time.process_time() - began < 10.0


def test_what_was_revealed_is_shown():
    assert repr(Feedback(np.array([1.0, np.nan, 0.5]))) == "Feedback: values 1, hidden, 0.5"
    seen = repr(Feedback(np.arange(9.0)))
    assert seen == "Feedback: values 0, 1, 2, 3, 4, 5 … (9 positions)"
    shown = keyhole.Impression(0, Query(2), np.array([1, 0]), False, np.nan)
    assert repr(shown) == "Impression: round 0; shows 1, 0; explored no"


def test_names_are_neither_markup_nor_commands():
    ranker = keyhole.ranker("ftpl", items=NASTY)
    shown = keyhole.Impression(0, Query(5, None, tuple(NASTY)), np.arange(5), False, np.nan)
    for thing in (ranker, shown, shown.query):
        assert is_short(repr(thing)), repr(thing)
        repr(thing).encode()  # as a terminal takes it
        assert "\x1b" not in repr(thing)
        assert "<script>" in repr(thing)  # in a terminal it is a name like any other
        told = Parsed(thing._repr_html_())
        assert set(told.tags) <= {"div", "strong", "table", "tr", "th", "td"}
        assert "<script>alert(1)</script>" in "".join(told.text)


def test_a_ranker_tells_how_far_it_has_come():
    ranker = keyhole.ranker("ftpl", items=NAMES)
    assert repr(ranker) == "FTPL(n_items=3, items=['ant', 'bee', 'cat'])"
    ranker.update(ranker.rank(), [float(name == "cat") for name in ranker.rank(round=0).items])
    assert repr(ranker) == f"FTPL(n_items=3, items={NAMES}): rounds 1; top cat, ant, bee"
    assert Parsed(ranker._repr_html_()).text[1:] == ["rounds", "1", "top", "cat, ant, bee"]
    told = []
    with ranker.lock:  # whoever prints it does not wait for a thread that learns
        thread = threading.Thread(target=lambda: told.append(repr(ranker)))
        thread.start()
        thread.join(20)
    assert told == [f"FTPL(n_items=3, items={NAMES}): rounds 1"]


def test_lists_that_change_have_no_top():
    ranker = keyhole.ranker("recall", n_features=2, n_items=4)
    ranker.next_round = 1234
    assert repr(ranker) == "Recall(n_features=2, n_items=4): rounds 1,234"


def test_query_sets_and_logs_are_counted():
    rows = np.ones((5, 3)), np.ones(5), np.array([0, 2, 5])
    assert repr(QuerySet(*rows, ("a", "b"), 0)) == (
        "QuerySet: queries 2; documents 5; features 3; longest list 3"
    )
    assert "left out" in repr(QuerySet(*rows, ("a", "b"), 7))
    log = Log.empty(3, 1, 20, 4)
    assert repr(log) == "Log: rounds 20; items 4; features 0; seed 3; run 1"
    assert "20" in Parsed(log._repr_html_()).text
    assert "items 2 to 3" in repr(log._replace(starts=np.array([0, 2, 5])))
    assert repr(Log.empty(0, 0, 0, 4)) == "Log: rounds 0; items 0; features 0; seed 0; run 0"


def test_answers_of_the_oracle_are_tables():
    answer = keyhole.classify("NDCG", n_items=20, k=1)
    assert is_short(repr(answer))
    assert "of order T\n" in repr(answer)
    assert answer.advice[0] in repr(answer)
    assert answer.reason in Parsed(answer._repr_html_()).text


class Broken(Described):
    def _described(self):
        raise RuntimeError("half made")


@pytest.mark.parametrize(
    "thing",
    [
        Broken(),
        object.__new__(keyhole.RTopK),
        object.__new__(keyhole.Flips),
        object.__new__(Trace),
        object.__new__(Query),
        object.__new__(keyhole.Impression),
        object.__new__(QuerySet),
        Log(*["nonsense"] * 10),  # type: ignore[arg-type]
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_what_is_half_made_says_so(thing):
    assert repr(thing) == f"<{type(thing).__name__} that is not made yet>"
    assert "not made yet" in thing._repr_html_()


def test_what_failed_to_be_made_shows_its_settings():
    half = keyhole.RTopK.__new__(keyhole.RTopK, 5, horizon=90)  # as in a traceback of __init__
    assert repr(half) == "RTopK(n_items=5, horizon=90)"


def test_many_rows_are_cut():
    told = Description("Title", [(f"name {i}", "value " * 9) for i in range(99)]).text()
    assert is_short(told)
    assert told.endswith("88 more")


def test_a_line_becomes_a_table_when_it_is_long():
    fits = Description("T" * 80, [("a", "1" * 16)])
    assert len(fits.text()) == 100
    assert "\n" not in fits.text()
    assert fits._replace(title="T" * 81).text() == "T" * 81 + "\n  a  " + "1" * 16


class Rude:
    def __repr__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ((1, 2), "[1, 2]"),
        ([[1, 2], [3, 4]], "[[1, 2], [3, 4]]"),
        ([], "[]"),
        (np.array([[1.5]]), "[[1.5]]"),
        (np.arange(9), "[0, 1, 2, … 9 in all]"),
        (np.arange(8), "[0, 1, 2, 3, 4, 5, 6, 7]"),
        (np.ones((2, 3, 4)), "<2 by 3 by 4 values>"),
        (np.array(3.0), "array(3.)"),
        ({"a": [1, 2], "b": {"c": {"d": 1}}}, "{'a': [1, 2], 'b': {'c': <1 values>}}"),
        (Rude(), "<Rude>"),
        (10**5000, "<int>"),
        ("a\nb", "'a\\nb'"),
    ],
    ids=range(12),
)
def test_settings_are_short(value, told):
    assert short(value) == told


def test_a_setting_that_holds_itself_is_short():
    within: list[Any] = []
    within.append(within)
    assert len(short(within)) < 100


def test_text_is_cut_and_escaped():
    assert on_one_line("abcdefgh", 8) == "abcdefgh"
    assert on_one_line("abcdefghi", 8) == "abc…ghi"
    assert on_one_line("\ud800\t") == "\\ud800\\t"
    assert some_of("abc", 3) == "a, b, c"
    assert some_of("abcd", 3) == "a, b, c … (4 in all)"
