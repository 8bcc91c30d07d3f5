"""Sentences in their order, files to the byte, lines by their names: what a reader leans on."""

import math
from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from keyhole.cli.app import COMMANDS, Commands
from keyhole.contracts.rows import Guarantee, Question
from keyhole.data.letor.queries import QuerySet
from keyhole.lab.advice import Candidate, advise, most_to_lose, sentences
from keyhole.lab.figures.estimates import Estimated, Estimates, draw_estimates
from keyhole.lab.figures.panels import REGRET, Panel, Points, draw_panel, looks_in
from keyhole.lab.figures.studies import make_study_figure
from keyhole.lab.heldout import held_out_scores
from keyhole.lab.results import AT_THE_END, Curve, curves_csv
from keyhole.lab.study import find_study
from keyhole.measures import measure
from keyhole.rankers import ranker
from keyhole.worlds.queries import Queries

pytestmark = pytest.mark.interpreted

# --------------------------------------------------------------------------- advice


@pytest.mark.parametrize(("name", "k"), [("DCG", 1), ("DCG", 2), ("Precision@2", 1)])
@pytest.mark.parametrize("rounds", [None, 40, 10**9])
def test_each_ranker_that_is_named_is_followed_by_its_own_bound(name, k, rounds):
    advice = advise(name, 6, k, rounds=rounds)
    by_name = {each.name: each for each in advice.candidates}
    named: Any = None
    most: Any = most_to_lose(advice.question)
    for sentence in sentences(advice)[1:]:
        first, _, rest = sentence.strip().partition(" ")
        if first in ("Take", "Or"):
            named = by_name[rest.partition(":")[0]]
            is_due = rounds is not None and named.bound is not None
        elif first == "its":
            assert is_due
            is_due = False
            share = named.bound / rounds
            assert f"{share:.3g} a round" in sentence
            assert ("says nothing" in sentence) == (share >= most)
            assert (f"{named.bound:.4g} in all" in sentence) == (share < most)
    assert not is_due


def test_who_is_left_out_is_asked_about_the_grades_of_the_question():
    for grades in (2, 3):
        assert f"{grades} grades" in advise("AP", 3, 1, grades).left_out["forecaster"]


def test_a_question_is_of_one_list_of_two_grades_unless_it_says_more():
    asked = measure("DCG"), 4, 1
    assert Question(*asked) == Question(*asked, grades=2, rounds=None, n_features=0)
    assert Question(*asked).max_grade == 1.0


def test_nobody_attains_the_rate_where_no_rate_is_known():
    advice = advise("Precision@2", 6, 1)
    unknown = Candidate("recall", Guarantee(None, "on winners", "a proof"), None, None)
    said = sentences(replace(advice, candidates=(unknown,)))
    assert said[1:] == [
        "Take recall: on winners (a proof)",
        "No ranker that is shipped attains T^(1/2) here",
    ]
    assert sentences(replace(advice, candidates=()))[1:] == [
        "No ranker that is shipped learns this from that feedback"
    ]


# --------------------------------------------------------------------------- curves


def test_a_table_of_curves_has_lines_that_end_alike_everywhere():
    curve = Curve("a", np.array([2, 9]), np.array([[1.0, 0.25], [2.0, 0.75]]))
    text = curves_csv([curve], AT_THE_END)
    assert text == (
        b"curve,round,average_regret,standard_error,runs\na,2,1.5,0.5,2\na,9,0.5,0.25,2\n"
    )


def test_chance_orders_each_list_held_out_anew():
    numbers = np.random.default_rng(3)
    relevance, starts = numbers.integers(3, size=24).astype(float), np.arange(0, 25, 6)
    lists = QuerySet(
        numbers.normal(size=(24, 2)), relevance, starts, query_ids=tuple("pqrs"), n_dropped=0
    )
    world = Queries(lists.features, lists.relevance, lists.starts, shuffle=False)
    chance = ranker("random-lists", n_features=2, n_items=6, seed=4)
    ndcg, dcg = measure("NDCG@2"), measure("DCG")
    states = [chance.fresh(run=run).state._asdict() for run in range(3)]
    found = held_out_scores(chance, states, lists, [ndcg, dcg])
    for judged in (ndcg, dcg):
        means = []
        for run in range(3):
            learnt = chance.fresh(run=run)
            orders = [learnt.rank(world.query(round=n), round=n).ranking for n in range(4)]
            assert len({tuple(order.tolist()) for order in orders}) > 1
            means.append(
                fmean(judged(relevance[6 * n : 6 * n + 6], o) for n, o in enumerate(orders))
            )
        error = np.std(means, ddof=1) / math.sqrt(3)
        assert found[judged.label] == pytest.approx((fmean(means), error))
    assert held_out_scores(chance, states, None, [ndcg]) == {}


# --------------------------------------------------------------------------- figures


def panel_of(*means, **options):
    x = np.arange(1, 41)
    curves = [
        Points(name, x, (np.asarray(mean), np.full(40, 0.1)))
        for name, mean in zip("abcdefg", means, strict=False)
    ]
    return Panel("", curves, **options)


@pytest.mark.parametrize("log_y", [False, True])
def test_errors_that_are_bars_add_no_line_between_the_marks(log_y):
    panel = panel_of(*[np.linspace(1.0, 2.0, 40) + n for n in range(5)], log_y=log_y)
    plot = Figure().add_subplot()
    draw_panel(plot, panel, REGRET, "", looks_in([panel]), {}, bars=True)
    assert len(plot.containers) == 5
    containers: Any = plot.containers
    assert [bars.lines[0] for bars in containers] == [None] * 5


def test_axes_of_nothing_that_is_known_go_from_0_to_1():
    for log_y, ends in ((False, (0.0, 1.0)), (True, (0.1, 1.0))):
        for from_zero in (False, True):
            assert panel_of(np.full(40, math.nan), log_y=log_y).limits(from_zero) == ends


def test_zero_is_shown_where_it_is_asked_for_alone():
    estimates = [Estimates("a", {"row": Estimated(9.0, 8.0, {"one": 8.0})})]
    cases: Any = (({}, 0, 8.0), ({"zero": True}, 1, 0.0))
    for given, n_lines, low in cases:
        plot = Figure().add_subplot()
        draw_estimates(plot, estimates, ["one"], **given)
        dashed = [line for line in plot.lines if line.get_linestyle() == "--"]
        assert len(dashed) == n_lines
        assert plot.get_xlim()[0] == pytest.approx(low - 0.07 * (9.0 - low))


def test_lines_and_curves_of_a_study_have_the_names_of_its_description(tmp_path):
    study = find_study("rates")
    x = np.array([1000, 4000, 16000])
    curves = {each.label: Curve(each.label, x, np.ones((2, 3))) for each in study.curves}
    lines = {each.label: Curve(each.label, x, np.ones((1, 3))) for each in study.lines}
    assert any(each.label != each.name for each in study.lines)
    figure = make_study_figure(tmp_path, study, curves, lines)
    for spec, plot in zip(study.panels, figure.axes, strict=False):
        drawn = [line.get_label() for line in plot.lines if line.get_label()[0] != "_"]
        own = [each.name for each in study.lines if each.panel == spec.name]
        assert [label for label in drawn if label in own] == own
        assert len(drawn) == len(own) + len(study.in_panel(spec.name))


# --------------------------------------------------------------------------- commands


def all_commands():
    for name in COMMANDS:
        made = Commands(name="keyhole").commands[name]
        yield from getattr(made, "commands", {name: made}).items()


def test_commands_print_for_people_unless_asked_for_json():
    n_found = 0
    for name, command in all_commands():
        for option in command.params:
            if "--json" in option.opts:
                n_found += 1
                assert option.default is False, name
    assert n_found > 12
