"""The numbers of a comparison: every field, sentence and cell from the scores of the runs alone."""

import json
import math
from dataclasses import replace
from statistics import fmean, stdev

import numpy as np
import pytest
from scipy.stats import t as student

from keyhole.lab.compare import as_record, contest_of_games, play_contest, sentences as sentences_of
from keyhole.lab.figures.comparison import make_comparison
from keyhole.lab.figures.styles import readable
from keyhole.lab.kinds.games import GameSpec
from keyhole.lab.paired import judge_pairs
from tests.lab.plain_sums import close

pytestmark = pytest.mark.interpreted


def interval(differences, n_pairs, confidence=0.95):
    """Return the mean of differences over the runs with its ends, Student's and Bonferroni's."""
    n = len(differences)
    spread = stdev(differences) / math.sqrt(n)
    width = student.isf((1.0 - confidence) / n_pairs / 2.0, n - 1) * spread
    return fmean(differences), fmean(differences) - width, fmean(differences) + width


# --------------------------------------------------------------------------- pairs


@pytest.mark.parametrize("confidence", [0.95, 0.8])
@pytest.mark.parametrize("n_rankers", [2, 3, 5])
@pytest.mark.parametrize("n_runs", [2, 5, 12])
def test_every_gap_has_the_interval_of_its_differences(n_runs, n_rankers, confidence):
    numbers = np.random.default_rng(n_runs)
    costs = {
        f"r{place}": numbers.normal(size=n_runs) + numbers.normal(size=1) for place in
        range(n_rankers)
    }  # fmt: skip
    verdict = judge_pairs(costs, confidence)
    order = sorted(costs, key=lambda name: fmean(costs[name].tolist()))
    assert (list(verdict.gaps), verdict.best) == (order, order[0])
    assert (verdict.n_pairs, verdict.n_runs) == (math.comb(n_rankers, 2), n_runs)
    assert verdict.confidence == confidence
    best = verdict.gaps[order[0]]
    assert (best.mean, best.low, best.high, best.standing) == (0.0, 0.0, 0.0, "best")
    for name in order[1:]:
        gap, off = verdict.gaps[name], (costs[name] - costs[order[0]]).tolist()
        mean, low, high = interval(off, math.comb(n_rankers, 2), confidence)
        assert (gap.mean, gap.low, gap.high) == pytest.approx((mean, low, high), rel=1e-9)
        assert gap.standing == ("worse" if low > 0.0 else "not told apart")


@pytest.mark.parametrize("n_rankers", [2, 4])
@pytest.mark.parametrize("n_runs", [2, 3, 8])
def test_who_is_worse_is_so_by_the_whole_interval_and_no_less(n_runs, n_rankers):
    """One pair, just above and just below where its interval begins at 0."""
    scatter = np.random.default_rng(n_runs).normal(size=n_runs)
    scatter -= scatter.mean()
    _, _, width = interval(scatter.tolist(), math.comb(n_rankers, 2))
    others = {f"far{place}": np.full(n_runs, 100.0 + place) for place in range(n_rankers - 2)}
    for by, standing in ((1e-9, "worse"), (-1e-9, "not told apart")):
        costs = {"a": np.zeros(n_runs), "b": scatter + width + by, **others}
        verdict = judge_pairs(costs)
        assert verdict.gaps["b"].standing == standing
        assert verdict.gaps["b"].low == pytest.approx(by, abs=1e-11)
    tied = judge_pairs({"a": np.zeros(3), "b": np.zeros(3)})
    assert tied.gaps["b"].standing == "not told apart"  # an interval that begins at 0


# --------------------------------------------------------------------------- comparisons

GAMES = {
    "gains, two grades": (
        GameSpec(items=5, top=2, rounds=60, runs=4, seed=3, points=9),
        ["random", "epsilon-greedy", "cascade-ucb"], ["fixed"],
    ),
    "a loss, several grades": (
        GameSpec(
            world="independent", items=4, top=1, rounds=50, runs=5, seed=8, measure="SumLoss",
            world_options={"chances": [0.1, 0.3, 0.5, 0.9]}, points=7,
        ),
        ["random", "epsilon-greedy"], [],
    ),
    "two runs": (
        GameSpec(items=4, top=1, rounds=30, runs=2, seed=1, measure="Precision@2"),
        ["random", "epsilon-greedy", "pege"], ["fixed"],
    ),
    "one run": (GameSpec(items=4, top=1, rounds=30, seed=1), ["random", "epsilon-greedy"], []),
    "alone": (GameSpec(items=4, top=1, rounds=30, runs=3), ["random"], []),
}  # fmt: skip


@pytest.fixture(scope="module")
def compared():
    """Return comparisons by name, each played once."""
    found = {}

    def of(name):
        if name not in found:
            spec, names, beside = GAMES[name]
            ranking = list(range(spec.items or 0))[::-1]
            options = {"fixed": {"ranking": ranking}}
            found[name] = play_contest(contest_of_games(spec, names, beside, options))
        return found[name]

    return of


def costs_of(result):
    """Return what each run cost per round: less is better."""
    trace = result.trace
    sign = 1.0 if trace.is_loss else -1.0
    return [sign * total / int(trace.rounds[-1]) for total in trace.scores[:, -1].tolist()]


def mean_error(values):
    return fmean(values), stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None


@pytest.mark.parametrize("name", GAMES)
def test_every_number_of_the_record_is_that_of_the_runs(compared, name):
    comparison, (spec, names, beside) = compared(name), GAMES[name]
    record = json.loads(json.dumps(as_record(comparison)))
    results = {result.contender.name: result for result in comparison.results}
    costs = {each: costs_of(result) for each, result in results.items()}
    assert [row["ranker"] for row in record["rankers"]] == sorted(
        [*names, *beside], key=lambda each: fmean(costs[each])
    )
    order = sorted(names, key=lambda each: fmean(costs[each]))
    n_pairs = math.comb(len(names), 2)
    assert (record["best"], record["n_pairs"], record["confidence"]) == (order[0], n_pairs, 0.95)
    standings = {}
    for row in record["rankers"]:
        trace = results[row["ranker"]].trace
        regret = trace.scores - trace.best if trace.is_loss else trace.best - trace.scores
        ends = [total / spec.rounds for total in regret[:, -1].tolist()]
        scores = [total / spec.rounds for total in trace.scores[:, -1].tolist()]
        assert close([row["average_regret"], row["average_regret_error"]], mean_error(ends))
        assert close([row["average_score"], row["average_score_error"]], mean_error(scores))
        assert close(row["by_run"], ends)
        assert [x for x, _ in row["curve"]] == trace.rounds.tolist()
        columns = (regret / trace.rounds).T.tolist()
        assert close([y for _, y in row["curve"]], [mean_error(each)[0] for each in columns])
        assert close(row["curve_error"], [mean_error(each)[1] for each in columns])
        assert row["is_judged"] == (row["ranker"] in names)
        assert row["sees"] == (f"top({spec.top})" if row["is_judged"] else "top(1)")
        assert row["seconds"] == trace.seconds
        if not row["is_judged"]:
            assert (row["standing"], row["worse_by"], row["worse_by_interval"]) == (None,) * 3
        elif row["ranker"] == order[0]:
            assert (row["standing"], row["worse_by"]) == ("best", 0.0)
            assert row["worse_by_interval"] == [0.0, 0.0]
        else:
            off = [a - b for a, b in zip(costs[row["ranker"]], costs[order[0]], strict=True)]
            assert close(row["worse_by"], fmean(off))
            if spec.runs == 1:
                assert row["worse_by_interval"] == [None, None]
                assert row["standing"] == "one run tells nothing"
                continue
            _, low, high = interval(off, n_pairs)
            assert close(row["worse_by_interval"], [low, high])
            assert row["standing"] == ("worse" if low > 0.0 else "not told apart")
            standings[row["ranker"]] = row["standing"]
    assert record["worse"] == [each for each in order if standings.get(each) == "worse"]
    assert record["not_told_apart"] == [
        each for each in order if standings.get(each) == "not told apart"
    ]
    assert record["is_loss"] == (spec.measure == "SumLoss")
    assert record["sees"] == f"top({spec.top})"
    assert record["spec"]["seed"] == spec.seed


def expected_sentences(comparison, names):
    """Return the verdict in words, from the scores alone."""
    results = {result.contender.name: result for result in comparison.results}
    costs = {each: costs_of(result) for each, result in results.items()}
    order = sorted(names, key=lambda each: fmean(costs[each]))
    best, n_runs, n_pairs = order[0], len(costs[order[0]]), math.comb(len(names), 2)
    if len(order) == 1:
        return [f"{best} is the only ranker compared"]
    if n_runs == 1:
        return [f"{best} did best, but one run tells nothing: --runs 20 would"]

    def gap(worse, better, pairs):
        return interval([a - b for a, b in zip(costs[worse], costs[better], strict=True)], pairs)

    ends = {each: gap(each, best, n_pairs) for each in order[1:]}
    close_ones = [each for each in order[1:] if ends[each][1] <= 0.0]
    told = [f"{best} is best in the mean of {n_runs} runs"]
    if close_ones:
        told.append(f"Not told apart from it: {', '.join(close_ones)}")
        worse = [each for each in order[1:] if each not in close_ones]
        told += [f"Worse than it: {', '.join(worse)}"] if worse else []
    else:
        mean, low, high = ends[order[1]]
        told[0] += (
            f", and better than every other: than {order[1]}, the next, by {mean:.4f} "
            f"({low:.4f} to {high:.4f})"
        )
    lies = f"All {n_pairs} differences between two rankers lie in their intervals"
    if n_pairs == 1:
        lies = "The difference lies in its interval"
    told.append(f"{lies} with 95% confidence (Student, paired by run, Bonferroni)")
    for result in comparison.results:
        name = result.contender.name
        if name not in names:
            first, last = sorted([name, best], key=lambda each: fmean(costs[each]))
            mean, low, high = gap(last, first, 1)
            how = "better" if low > 0.0 else "better in the mean, but not told apart"
            told.append(
                f"{name} sees more ({result.contender.reveal}) and is not judged: {first} is "
                f"{how}, by {mean:.4f} ({low:.4f} to {high:.4f})"
            )
    if n_runs < 5:
        told.append("With so few runs intervals are wide: --runs 20 tells more apart")
    return told


@pytest.mark.parametrize("name", GAMES)
def test_every_sentence_of_the_verdict_has_the_numbers_of_the_runs(compared, name):
    comparison = compared(name)
    assert sentences_of(comparison) == expected_sentences(comparison, GAMES[name][1])


def worse_by(comparison, spread):
    """Return a comparison whose second ranker is worse by 1, with some spread over the runs."""
    first, second, *rest = comparison.results
    costs = np.array([-1.0, -2.0, 0.0, 4.0])[: len(first.trace.scores)] * spread
    trace = replace(second.trace, scores=first.trace.scores - 1e3 * (1.0 + costs[:, np.newaxis]))
    results = (first, replace(second, trace=trace), *rest)
    judged = {r.contender.name: r.costs for r in results if r.contender.is_judged}
    return replace(comparison, results=results, verdict=judge_pairs(judged))


@pytest.mark.parametrize("spread", [0.01, 9.0])
def test_sentences_on_both_sides_of_a_verdict(compared, spread):
    comparison = compared("gains, two grades")
    judged = replace(
        comparison, results=tuple(r for r in comparison.results if r.contender.is_judged)
    )
    moved = worse_by(judged, spread)
    assert sentences_of(moved) == expected_sentences(moved, GAMES["gains, two grades"][1])


def test_the_figure_has_the_gaps_and_their_intervals(compared, tmp_path):
    comparison = compared("gains, two grades")
    verdict = comparison.verdict
    figure = make_comparison(tmp_path, "title", comparison.curves, comparison.axes, "DCG", verdict)
    left, right = figure.axes
    assert left.get_xscale() == "log"
    drawn = [line for line in right.get_lines() if len(line.get_xdata()) == 2]
    bars = [line.get_xdata() for line in drawn if line.get_linestyle() == "-"]
    assert [list(bar) for bar in bars] == [[gap.low, gap.high] for gap in verdict.gaps.values()]
    points = [line.get_xdata()[0] for line in right.get_lines() if len(line.get_xdata()) == 1]
    assert points == [gap.mean for gap in verdict.gaps.values()]
    others = list(verdict.gaps.values())[1:]
    assert [text.get_text() for text in right.texts] == [
        "best", *(f"+{gap.mean:.4f}\n{gap.standing}" for gap in others)
    ]  # fmt: skip
    names = [label.get_text() for label in right.get_yticklabels()]
    assert names == [readable(each) for each in verdict.gaps]
    assert right.get_xlabel() == f"worse than {readable(verdict.best)} by"
    caption = figure.texts[-1].get_text()
    assert "4 runs, on the same users" in caption
    assert "95% intervals for all 3 pairs at once; who sees more is not judged" in caption


@pytest.mark.parametrize(("largest", "scale"), [(29.9, "linear"), (30.1, "symlog")])
def test_gaps_are_on_a_logarithmic_scale_where_the_middle_one_could_not_be_seen(
    compared, tmp_path, largest, scale
):
    comparison = compared("gains, two grades")
    gaps = dict(zip(comparison.verdict.gaps, comparison.verdict.gaps.values(), strict=True))
    for name, mean in zip(gaps, (0.0, 0.5, 0.5 * largest), strict=True):
        gaps[name] = replace(gaps[name], mean=mean)
    figure = make_comparison(
        tmp_path, "title", comparison.curves, comparison.axes, "DCG",
        replace(comparison.verdict, gaps=gaps),
    )  # fmt: skip
    assert figure.axes[1].get_xscale() == scale
