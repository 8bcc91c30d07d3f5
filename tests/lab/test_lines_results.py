"""Bounds as lines, curves and tables: every point from its formula or from the runs."""

import csv
import io
import math
from dataclasses import replace
from statistics import fmean, stdev

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput, KeyholeError
from keyhole.bounds import generalisation, iw_onlinerank, keystone
from keyhole.bounds.guarantees import Problem, guarantees
from keyhole.game.play import play
from keyhole.lab.bound_lines import LINES
from keyhole.lab.figures.groups import GroupCurve, grouped, table_of
from keyhole.lab.figures.panels import Axes
from keyhole.lab.kinds.games import GameSpec, build, play_game
from keyhole.lab.kinds.horizons import HorizonsSpec, build_horizons, play_horizons
from keyhole.lab.kinds.lists import ListSpec, build_lists, play_lists, play_lists_to_the_end
from keyhole.lab.kinds.sides import SidesSpec, build_sides, play_sides
from keyhole.lab.results import Curve, curves_csv
from keyhole.lab.study import CurveSpec, find_study
from keyhole.surrogates import surrogate

pytestmark = pytest.mark.interpreted

X = np.array([10, 250, 4000])


def drawn(kind, **options):
    return LINES[kind](X, **options).tolist()


# --------------------------------------------------------------------------- lines


def test_bounds_of_choices_are_per_round_and_tuned_for_the_last():
    for items, chosen, most in ((5, 2, 6.0), (7, None, 49 / 4)):
        rate = items * math.sqrt(math.log(2) / (4000 * most))
        totals = [items**2 * math.log(2) / (2 * rate) + rate * t * most / 2 for t in X.tolist()]
        expected = [total / t for total, t in zip(totals, X.tolist(), strict=True)]
        assert drawn("choice-bound", items=items, chosen=chosen) == pytest.approx(expected)
    expected = [6 * math.sqrt(7 * t) / (2 * math.sqrt(math.pi)) / t for t in X.tolist()]
    assert drawn("uniform-choice", items=7) == pytest.approx(expected)


@pytest.mark.parametrize(("items", "top"), [(6, 1), (7, 3), (20, 5)])
def test_the_bound_of_the_top_k_is_tuned_for_each_horizon(items, top):
    """DCG: D = m, R = m, A = m; SumLoss: D = m^2, R = m^2, A = m."""
    for measure, d in (("DCG", items), ("SumLoss", items**2)):
        cells = -(-items // top)
        scale = 3.0 * (d * d * d * items * cells) ** (1 / 3)
        expected = [scale * t ** (2 / 3) / t for t in X.tolist()]
        found = drawn("top-k-bound", items=items, top=top, measure=measure)
        assert found == pytest.approx(expected)
    assert drawn("top-k-bound", items=items) == drawn(
        "top-k-bound", items=items, top=1, measure="DCG"
    )


@pytest.mark.parametrize(("items", "top", "measure"), [(6, 1, "DCG"), (8, 3, "SumLoss")])
def test_the_bounds_of_our_own_are_those_of_the_game(items, top, measure):
    constants = keystone.constants(measure, items, top)
    expected = [keystone.safety_bound(constants, t) / t for t in X.tolist()]
    assert drawn("safety-bound", items=items, top=top, measure=measure) == pytest.approx(expected)
    given = iw_onlinerank.constants(iw_onlinerank.falling_weights(measure, items), top)
    expected = [
        iw_onlinerank.regret_bound(given, iw_onlinerank.best_schedule(given, t), t) / t
        for t in X.tolist()
    ]
    found = drawn("iw-onlinerank-bound", items=items, top=top, measure=measure)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(("items", "counted", "top"), [(6, 2, 1), (9, 4, 3)])
def test_the_bound_of_the_semi_bandit(items, counted, top):
    def total(t):
        return counted * math.sqrt(2 * items * t * math.log(items / counted) / top)

    expected = [total(t) / t for t in X.tolist()]
    found = drawn("semi-bandit-bound", items=items, counted=counted, top=top)
    assert found == pytest.approx(expected)


def test_what_a_pair_forces_is_the_same_in_every_round():
    found = drawn("hopeless-constant", pair="table-b1", items=3, top=1)
    assert found == pytest.approx([0.014197] * 3, abs=5e-7)
    found = drawn("hopeless-constant", pair="swap", items=4, top=2)
    assert found == pytest.approx([0.008646] * 3, abs=5e-7)


def test_bounds_on_risks_vary_in_one_number():
    """Theorem 35: G W R sqrt(2 / n) or the like, by the function that has its reference."""
    loss = surrogate("listnet")
    points = np.array([50, 200, 800])
    options = {"radius": 2.5, "norm": 1.5, "items": 7}
    found = LINES["risk-bound"](
        points, vary="queries", bound="descent, averaged", surrogate="listnet", **options
    )
    steepness = loss.lipschitz(7, max_grade=1.0, max_score=2.5 * 1.5)
    assert steepness is not None
    expected = [generalisation.descent_bound(steepness, 2.5, 1.5, n) for n in (50, 200, 800)]
    assert found.tolist() == pytest.approx(expected)
    for vary, fixed in (("items", {"queries": 90}), ("queries", {"items": 9})):
        for bound in ("descent, averaged", "least mean loss, grows with lists", "range"):
            found = LINES["risk-bound"](
                points, vary=vary, bound=bound, surrogate="smooth_dcg",
                surrogate_options={"eps": 0.5}, radius=0.7, **fixed,
            )  # fmt: skip
            for point, value in zip(points.tolist(), found.tolist(), strict=True):
                own = {f"n_{name}": number for name, number in {**fixed, vary: point}.items()}
                problem = Problem(surrogate("smooth_dcg", eps=0.5), radius=0.7, **own)
                rows = {row.name: row.value for row in guarantees(problem)}
                wanted = problem.range if bound == "range" else rows[bound]
                assert value == pytest.approx(
                    math.nan if wanted is None else wanted, rel=1e-12, nan_ok=True
                )
    with pytest.raises(KeyholeError, match="bound must be one of"):
        LINES["risk-bound"](points, vary="items", bound="rang", surrogate="listnet")


# --------------------------------------------------------------------------- curves


def some_curve(n_runs=4):
    values = np.random.default_rng(n_runs).uniform(0.5, 2.0, size=(n_runs, 3))
    return Curve("a, b", X, values)


@pytest.mark.parametrize("n_runs", [1, 2, 5])
def test_means_errors_and_totals_are_those_of_the_runs(n_runs):
    curve = some_curve(n_runs)
    mean, error = curve.mean
    for place in range(3):
        values = curve.values[:, place].tolist()
        assert mean[place] == pytest.approx(fmean(values))
        off = stdev(values) / math.sqrt(n_runs) if n_runs > 1 else math.nan
        assert error[place] == pytest.approx(off, nan_ok=True)
        totals = [value * int(X[place]) for value in values]
        assert curve.totals[:, place].tolist() == pytest.approx(totals)
    for x, place in ((10, 0), (249, 0), (250, 1), (251, 1), (4000, 2), (10**9, 2), (None, 2)):
        assert curve.index(x) == place
        assert curve.at(x) == pytest.approx((mean[place], error[place]), nan_ok=True)
    with pytest.raises(InvalidInput, match="has no point up to 9"):
        curve.index(9)


@pytest.mark.parametrize("n_runs", [1, 3])
def test_curves_as_csv_have_every_number_exactly(n_runs):
    curves = [some_curve(n_runs), replace(some_curve(n_runs + 1), label="other")]
    text = curves_csv(curves, Axes("", "", "round", "average_regret")).decode()
    assert text.splitlines()[0] == "curve,round,average_regret,standard_error,runs"
    rows = list(csv.DictReader(io.StringIO(text)))
    expected = []
    for curve in curves:
        mean, error = curve.mean
        for place, x in enumerate(X.tolist()):
            off = "" if len(curve.values) == 1 else repr(float(error[place]))
            told = [curve.label, str(x), repr(float(mean[place])), off, str(len(curve.values))]
            expected.append(told)
    assert [list(row.values()) for row in rows] == expected


def test_a_curve_is_average_regret_and_is_kept_to_the_bit():
    spec = GameSpec(
        ranker="epsilon-greedy", items=5, rounds=40, runs=3, seed=2, points=8, measure="SumLoss"
    )
    trace = play_game(build(spec))
    curve = Curve.of("a", trace)
    expected = (trace.scores - trace.best) / trace.rounds
    assert np.array_equal(curve.values, expected)
    assert np.array_equal(curve.x, trace.rounds)
    again = Curve.of_dict("a", curve.as_dict())
    assert np.array_equal(again.values, curve.values)
    assert again.x.tolist() == curve.x.tolist()
    with pytest.raises(InvalidInput, match="whole number x for each"):
        Curve.of_dict("a", {"x": [1], "values": [[1.0, 2.0]]})
    assert Curve.of_dict("a", {"x": [1, 2], "values": [[1.0, 2.0]]}).values.tolist() == [[1, 2]]


# --------------------------------------------------------------------------- groups


def spec_of(label, name, group, panel="main"):
    return CurveSpec(label, name, panel, GameSpec(ranker=name), group)


def point(label, *values):
    return Curve(label, np.array([7]), np.array([[value] for value in values], dtype=float))


SPECS = [spec_of("u: a", "a", "u"), spec_of("u: b", "b", "u"), spec_of("v: a", "a", "v"),
         spec_of("w: b", "b", "w"), spec_of("x: b", "b", "x")]  # fmt: skip
POINTS = {
    "u: a": point("u: a", 1.0, 2.0, 6.0),
    "u: b": point("u: b", 4.0),
    "v: a": point("v: a", 5.5, 6.5),
    "w: b": point("w: b", 8.0, 3.0, 5.0),
}
TOLD = {
    ("a", "u"): [1.0, 2.0, 6.0], ("b", "u"): [4.0], ("a", "v"): [5.5, 6.5],
    ("b", "w"): [8.0, 3.0, 5.0],
}  # fmt: skip


def test_points_stand_by_their_group_and_those_not_played_are_left_out():
    groups, joined = grouped(SPECS, POINTS)
    assert groups == ("u", "v", "w")
    assert [curve.label for curve in joined] == ["a", "b"]
    for curve in joined:
        assert isinstance(curve, GroupCurve)
        assert curve.ranker == curve.label
        mean, error = curve.mean
        for place, group in enumerate(groups):
            values = TOLD.get((curve.label, group), [])
            at = fmean(values) if values else math.nan
            off = stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
            assert mean[place] == pytest.approx(at, nan_ok=True)
            assert error[place] == pytest.approx(off, nan_ok=True)


def test_the_table_of_a_study_has_means_with_their_errors():
    study = replace(find_study("thesis-fig5.2"), curves=tuple(SPECS))
    rows = table_of(study, POINTS, "main")

    def cell(name, group):
        values = TOLD.get((name, group), [])
        if not values:
            return ""
        off = f" ± {stdev(values) / math.sqrt(len(values)):.2g}" if len(values) > 1 else ""
        return f"{fmean(values):.4g}{off}"

    expected = [[group, cell("a", group), cell("b", group)] for group in ("u", "v", "w")]
    assert rows == [["", "a", "b"], *expected]


# --------------------------------------------------------------------------- kinds of study


def test_the_two_sides_of_a_pair_count_alike():
    fields = {"ranker": "epsilon-greedy", "items": 3, "top": 1, "rounds": 30, "runs": 2, "seed": 1,
              "measure": "NDCG", "pair": "worst-three", "learns": "DCG"}  # fmt: skip
    spec = SidesSpec.of(fields, "here")
    curve = play_sides("a", build_sides(spec), None)
    sides = []
    for side in (0, 1):
        world = {"pair": "worst-three", "side": side}
        game = build(replace(spec.game, measure="DCG", world_options=world))
        judged = build(replace(spec.game, world_options=world)).measure
        trace = play_game(replace(game, measure=judged))
        sides.append((trace.best - trace.scores) / trace.rounds)
    assert np.array_equal(curve.values, (sides[0] + sides[1]) / 2.0)
    assert not np.array_equal(sides[0], sides[1])
    assert spec.work == 2 * 30 * 2


def test_every_horizon_has_games_of_its_own_with_a_gap_that_shrinks():
    fields = {"ranker": "epsilon-greedy", "world": "near-ties", "items": 3, "runs": 2, "seed": 5,
              "points": [20, 45], "gap": 0.8, "shrinks": 0.5, "top": 1}  # fmt: skip
    spec = HorizonsSpec.of(fields, "here")
    curve = play_horizons("a", build_horizons(spec), None)
    assert curve.x.tolist() == [20, 45]
    for column, horizon in enumerate((20, 45)):
        gap = {"gap": 0.8 * horizon**-0.5}
        trace = play_game(build(replace(spec.game, rounds=horizon, world_options=gap)))
        ends = (trace.best[:, -1] - trace.scores[:, -1]) / horizon
        assert curve.values[:, column].tolist() == pytest.approx(ends.tolist(), rel=1e-12)
    assert spec.work == 65 * 2
    assert spec.at(1).world_options["gap"] == 0.8
    assert replace(spec, gap=3.0).at(1).world_options["gap"] == 1.0  # a chance


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("since", [0, 12])
def test_means_of_lists_are_of_those_since_a_round(since, greedy, tmp_path):
    path = tmp_path / "train.txt"
    rows = [f"{n % 3} qid:{n // 4} 1:{n % 5} 2:{n % 7}" for n in range(24)]
    path.write_text("\n".join(rows) + "\n")
    spec = ListSpec(
        world=[str(path)], measure="NDCG@2", rounds=30, runs=2, top=1,
        seed=6, since=since, greedy=greedy, points=30,
    )  # fmt: skip
    built = build_lists(spec)
    whole = play_lists("a", built)
    end = play_lists_to_the_end("a", built)
    trace = play(
        built.ranker, built.world, measure="NDCG@2", reveal=built.reveal, rounds=30, seed=6,
        runs=2, n_points=30,
    )  # fmt: skip
    totals, others = trace.scores, trace.greedy
    if greedy:
        totals, others = others, totals
    assert np.array_equal(whole.values, totals / trace.rounds)
    assert not np.array_equal(whole.values, others / trace.rounds)
    places = whole.x.tolist()
    first = places.index(since) if since else None
    expected = []
    for row in whole.values.tolist():
        before = row[first] * since if first is not None else 0.0
        expected.append((row[-1] * 30 - before) / (30 - since))
    assert end.values[:, 0].tolist() == pytest.approx(expected, rel=1e-12)
    assert end.x.tolist() == [30]
