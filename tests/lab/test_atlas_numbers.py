"""The atlas and the figure of an evaluation: every cell, count and caption from the entries."""

import csv
import io
import json
from dataclasses import asdict, replace
from itertools import pairwise

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput
from keyhole.cli import atlas as command
from keyhole.data.bandit.log import BanditLog
from keyhole.lab.atlas import (
    Atlas,
    Column,
    Entry,
    atlas_csv,
    atlas_markdown,
    columns_of,
    fill_column,
)
from keyhole.lab.figures import values as figures
from keyhole.lab.figures.atlas import _CLASSES, make_atlas
from keyhole.monitoring.classification import classify
from keyhole.monitoring.games import Game
from keyhole.monitoring.hopeless import best_witness
from keyhole.offline.evaluation import evaluate
from tests.lab.running import run, said

pytestmark = pytest.mark.interpreted

RATES = {"hopeless": "T", "global": "T^(2/3)", "local": "T^(1/2)", "trivial": "0",
         "unknown": "unknown"}  # fmt: skip
IN_TABLES = {"hopeless": "T", "global": "T^2/3", "local": "T^1/2", "trivial": "0", "unknown": "?"}


def entry(measure, items, top, grades, class_, source="enumeration", **more):
    given = {"exact": source is not None, "constant": None, "by_rule": class_, **more}
    return Entry(measure, items, top, grades, class_, source, **given)


ENTRIES = (
    entry("NDCG", 2, 1, 2, "hopeless", constant=0.0123),
    entry("NDCG", 2, 2, 2, "trivial", by_rule="unknown"),
    entry("NDCG", 3, 1, 2, "global", "rule"),
    entry("NDCG", 3, 2, 2, "local", by_rule="global"),
    entry("NDCG", 3, 3, 2, "unknown", None),
    entry("AP", 3, 1, 4, "hopeless", "rule"),
    entry("AP", 3, 2, 4, "local", exact=False),
    entry("AP", 3, 3, 4, "trivial"),
)
ATLAS = Atlas(ENTRIES, 3)


def test_a_row_of_the_table_for_every_game():
    rows = list(csv.reader(io.StringIO(atlas_csv(ATLAS).decode())))
    assert rows[0] == ["measure", "items", "top", "grades", "class", "rate", "source", "exact",
                       "constant"]  # fmt: skip
    for found, each in zip(rows[1:], ENTRIES, strict=True):
        assert found == [
            each.measure, str(each.items), str(each.top), str(each.grades), each.class_,
            RATES[each.class_], each.source or "", "true" if each.exact else "false",
            "" if each.constant is None else str(each.constant),
        ]  # fmt: skip


def test_the_page_has_all_k_of_a_length_in_a_cell():
    assert atlas_markdown(ATLAS) == (
        "Two grades:\n\n| measure | m = 2 | m = 3 |\n|---|---|---|\n"
        "| NDCG | T, 0 | T^2/3, T^1/2, ? |\n| AP |  |  |\n\n"
        "Four grades:\n\n| measure | m = 2 | m = 3 |\n|---|---|---|\n"
        "| NDCG |  |  |\n| AP |  | T, T^1/2, 0 |\n"
    )
    assert {each.class_: IN_TABLES[each.class_] for each in ENTRIES} == IN_TABLES


def test_what_is_printed_counts_the_games(tmp_path, capsys):
    command._print_atlas(ATLAS, tmp_path)
    text = " ".join(capsys.readouterr().out.split())
    n_both = sum(e.source == "enumeration" and e.by_rule != "unknown" for e in ENTRIES)
    disputed = [e for e in ENTRIES if e.by_rule not in (e.class_, "unknown")]
    assert (n_both, len(disputed)) == (4, 1)
    assert text.startswith(
        "8 games: 5 enumerated, 2 by rule, 1 unknown; 3 resumed. Of 4 games classified by "
        "both, rule and enumeration disagree on 1."
    )
    assert ATLAS.disputed == disputed
    record = command._record(ATLAS)
    assert (record["resumed"], record["disagreements"]) == (3, 1)
    for cell, each in zip(record["cells"], ENTRIES, strict=True):
        assert cell == {**asdict(each), "class": each.class_, "rate": RATES[each.class_]}


def test_grids_below_each_other_have_the_same_room(tmp_path):
    """Of 40 items they do not fit beside each other; a row is .27 inches, and heads an inch."""
    sizes = []
    for all_grades in ((2,), (2, 3), (2, 3, 4)):
        games = tuple(
            entry(measure, 40, top, grades, "local")
            for grades in all_grades for measure in ("NDCG", "AP") for top in (1, 40)
        )  # fmt: skip
        figure = make_atlas(tmp_path, Atlas(games))
        assert len(figure.axes) == len(all_grades)
        sizes.append(figure.get_size_inches())
    heights = [height for _, height in sizes]
    assert [b - a for a, b in pairwise(heights)] == pytest.approx([1.0 + 2 * 0.27] * 2)
    assert [width for width, _ in sizes] == pytest.approx([0.44 * 40 + 1.6] * 3)


def test_every_game_has_a_box_with_its_rate_at_its_place(tmp_path):
    figure = make_atlas(tmp_path, ATLAS)
    for plot, grades in zip(figure.axes, (2, 4), strict=True):
        own = [each for each in ENTRIES if each.grades == grades]
        boxes = plot.patches
        texts = [text for text in plot.texts if "=" not in text.get_text()]
        dots = [line for line in plot.get_lines() if line.get_marker() == "o"]
        by_rule = [each for each in own if each.source == "rule"]
        assert len(boxes) == len(texts) == len(own)
        assert len(dots) == len(by_rule)
        for box, text, each in zip(boxes, texts, own, strict=True):
            left = 0.0 if each.items == 2 else 2.35  # those of two items and a gap come first
            row = ("NDCG", "AP").index(each.measure)
            assert box.get_xy() == pytest.approx((left + each.top - 1, row))
            look = _CLASSES[each.class_]
            assert text.get_text() == look.rate
            assert box.get_facecolor()[:3] == pytest.approx(
                [int(look.colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
            )
        assert plot.get_title() == {2: "Two grades", 4: "Four grades"}[grades]
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(named) == len(_CLASSES) + 1
    rates = {name: look.rate for name, look in _CLASSES.items()}
    assert rates == {"trivial": "0", "local": r"$T^{1/2}$", "global": r"$T^{2/3}$",
                     "hopeless": "T", "unknown": "?"}  # fmt: skip


@pytest.mark.parametrize("column", [Column("NDCG", 3, 2), Column("DCG", 3, 2), Column("AP", 3, 2)])
def test_a_column_has_the_class_of_each_k_and_the_constant_of_hopeless_ones(column):
    for k, found in enumerate(fill_column(column), 1):
        answer = classify(column.measure, column.items, k, column.grades, method="enumeration")
        constant = None
        if answer.class_ == "hopeless":
            witness = best_witness(Game.of(column.measure, column.items, k, column.grades))
            constant = None if witness is None else float(witness.constant)
        assert (found.top, found.class_, found.source) == (k, answer.class_, "enumeration")
        assert found.constant == constant
        assert found.rate == answer.rate
        assert found.by_rule in (found.class_, "unknown")


def test_large_games_are_answered_by_rule():
    for k, found in enumerate(fill_column(Column("NDCG", 40, 2)), 1):
        answer = classify("NDCG", 40, k, 2, method="rule")
        assert (found.class_, found.source, found.exact) == (answer.class_, "rule", True)
        assert (found.constant, found.by_rule) == (None, answer.class_)


def test_columns_that_no_figure_holds_are_refused_and_fewer_are_not():
    assert len(columns_of(["NDCG"], [70, 80, 70], [2])) == 2  # each once
    with pytest.raises(InvalidInput, match="add up to at most 150 columns of a figure, got 151"):
        columns_of(["NDCG"], [71, 80], [2])


@pytest.mark.parametrize(
    ("wrong", "sentence", "mended"),
    [
        ("3-2", "ascending ranges, got '3-2'", "2-2"),
        ("two", "numbers or ranges such as 2-5", "2"),
        ("0", "must be", "1"),
    ],
)
def test_lengths_that_are_none_are_refused_and_mended_ones_are_not(
    wrong, sentence, mended, tmp_path, monkeypatch
):
    monkeypatch.setattr(command, "save_atlas", lambda *_: None)
    given = ["atlas", "--out", tmp_path, "--grades", 2, "--measures", "NDCG", "--items"]
    assert sentence in said(run(*given, wrong, code=2))
    assert " games: " in said(run(*given, mended))


def test_a_dispute_is_exit_code_1(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "save_atlas", lambda *_: None)
    given = ["atlas", "--out", tmp_path, "--json"]
    for atlas, code in ((ATLAS, 1), (Atlas(ENTRIES[:3]), 0)):
        monkeypatch.setattr("keyhole.lab.atlas.make_atlas", lambda *_, atlas=atlas: atlas)
        ended = run(*given, code=code)
        assert len(json.loads(ended.stdout)["cells"]) == len(atlas.entries)
        assert ("Disagreement: NDCG on 3 items with 2 grades and the top 2 shown is local by "
                "enumeration, global by rule." in ended.stderr) == (code == 1)  # fmt: skip


# --------------------------------------------------------------------------- evaluations


@pytest.fixture(scope="module")
def evaluation():
    numbers = np.random.default_rng(0)
    actions = numbers.integers(2, size=120)
    clicks = numbers.random(120) < np.where(actions == 1, 0.6, 0.2)
    log = BanditLog.of(np.zeros((120, 0)), actions, clicks, np.full(120, 0.5))
    return evaluate(log, "uniform", "best-fixed", 0.9, bound="student-t")


def test_the_figure_of_an_evaluation_says_what_it_rests_on(evaluation, tmp_path):
    for hidden in ([], ["betting", "student-t"]):
        caption = figures._caption(evaluation, hidden[::-1])
        assert caption == (
            f"filled: estimates; lines: down to the student-t bound, which decides; hollow: "
            f"one-sided 90% lower bounds, {evaluation.n_rows:,} rows"
            + (f"; far below and out of view: {', '.join(sorted(hidden))}" if hidden else "")
        )
    figure = figures.make_values(tmp_path, evaluation)
    left, right = figure.axes
    titles = (f"uniform against best-fixed: {evaluation.verdict}", "uniform minus best-fixed")
    assert next(text.get_text() for text in figure.texts if text.get_gid()) == titles[0]
    assert right.get_title() == titles[1]
    for plot, lines in (
        (left, [evaluation.policy.lines, evaluation.baseline.lines]),
        (right, [evaluation.difference]),
    ):
        points = [
            line.get_xdata()[0] for line in plot.get_lines()
            if len(line.get_xdata()) == 1 and line.get_fillstyle() != "none"
        ]  # fmt: skip
        assert points == [each.estimate.value for found in lines for each in found.values()]
        bars = [list(line.get_xdata()) for line in plot.get_lines()
                if len(line.get_xdata()) == 2 and line.get_linestyle() == "-"]  # fmt: skip
        assert bars == [
            [each.bounds["student-t"].value, each.estimate.value]
            for found in lines for each in found.values()
            if each.bounds["student-t"].value is not None
        ]  # fmt: skip
    assert 0.0 in [
        line.get_xdata()[0] for line in right.get_lines() if line.get_linestyle() == "--"
    ]


def test_a_larger_file_says_so_with_commas(evaluation):
    many = replace(evaluation, n_rows=1_234_567, confidence=0.99)
    assert "one-sided 99% lower bounds, 1,234,567 rows" in figures._caption(many, [])
