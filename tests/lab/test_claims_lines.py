"""Claims beside lines, at equality, of single runs, and those that are not judged."""

import math
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput, KeyholeError
from keyhole.lab.claims import judge
from tests.lab.plain_sums import FIRST, FROM, X, curve, error, known, mean, noise, shown

SEEDS = range(4)
TINY = 1e-7


# The line is moved: claims about lines have no number of their own.


def late_gap(seed, binding):
    """Return a curve and a line that is near it from some place on, nearest at one, and far above
    it before that."""
    found = curve("a", noise(seed, 6, 1.0, 0.2))
    gaps = np.random.default_rng(seed).uniform(0.1, 0.5, len(X))
    gaps[binding], gaps[:FIRST] = 0.05, -9.0
    return found, gaps


@pytest.mark.parametrize("by", [TINY, 0.0, -TINY])
@pytest.mark.parametrize("binding", [FIRST, FIRST + 2, len(X) - 1])
def test_below_is_below_at_every_late_point(binding, by):
    low, gaps = late_gap(1, binding)
    whole = np.round(low.values * 2**20) / 2**20  # sums of these are exact
    low = curve("a", whole)
    high = curve("b", np.array([[mean(low, p) for p in range(len(X))]]) + gaps - gaps[binding] + by)
    claim = {"text": "claim", "kind": "below", "curves": ["a", "b"], "from": FROM}
    verdict = judge(claim, {"a": low, "b": high}, {}, {})
    assert verdict.holds is (by > 0)
    found = min(mean(high, place) - mean(low, place) for place in range(FIRST, len(X)))
    assert verdict.evidence == (
        f"over {len(X) - FIRST} checkpoints from round {FROM} the smallest gap is {found:.4g}"
    )
    assert judge({**claim, "curves": ["b", "a"]}, {"a": low, "b": high}, {}, {}).holds is False
    early = judge({**claim, "from": FROM - 1}, {"a": low, "b": high}, {}, {})
    assert early.holds is (by > 0)
    assert judge({**claim, "from": X[FIRST - 1]}, {"a": low, "b": high}, {}, {}).holds is False


@pytest.mark.parametrize("errors", [None, 0.0, 3.5])
@pytest.mark.parametrize("n_runs", [1, 6])
@pytest.mark.parametrize("seed", SEEDS)
def test_over_a_line_is_over_it_by_errors_at_every_late_point(seed, n_runs, errors):
    curves = [
        curve("a", noise(seed, n_runs, 1.0, 0.2)),
        curve("b", noise(seed + 9, n_runs, 1.1, 0.2)),
    ]
    some = 2.0 if errors is None else errors
    shape = np.linspace(1.0, 0.6, len(X))
    height = min(
        mean(each, p) + some * known(error(each, p)) - shape[p]
        for each in curves
        for p in range(FIRST, len(X))
    )
    claim: dict[str, Any] = {"kind": "over-line", "curves": ["a", "b"], "line": "l", "from": FROM}
    claim |= {} if errors is None else {"errors": errors}
    for by, holds in ((-TINY, True), (TINY, False)):
        line = shape + height + by
        line[:FIRST] = 99.0
        verdict = judge(
            {"text": "claim", **claim}, {each.label: each for each in curves},
            {"l": curve("l", [line])}, {},
        )  # fmt: skip
        assert verdict.holds is holds
        _, which, place = min(
            (mean(each, p) - line[p], each.label, p)
            for each in curves
            for p in range(FIRST, len(X))
        )
        lowest = next(each for each in curves if each.label == which)
        assert verdict.evidence == (
            f"over {len(X) - FIRST} checkpoints from round {FROM} the lowest of 2 is {which} with "
            f"{shown(lowest, place)} at {X[place]}, the line {line[-1]:.5g} (less {some:g} "
            f"standard errors)"
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_under_a_line_is_its_total_at_the_end(seed):
    found = curve("a", noise(seed, 5, 1.0, 0.2))
    total = fmean(row[-1] * X[-1] for row in found.values.tolist())
    for by, holds in ((TINY, True), (-TINY, False)):
        limit = total * (1.0 + by)
        line = curve("l", [[0.0] * (len(X) - 1) + [limit / X[-1]]])
        claim = {"text": "claim", "kind": "under-line", "curve": "a", "line": "l"}
        verdict = judge(claim, {"a": found}, {"l": line}, {})
        assert verdict.holds is holds
        assert verdict.evidence == (
            f"total regret {total:.5g} of at most {limit:.5g} ({total / limit:.0%})"
        )


@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize("errors", [0.7, 3.0])
@pytest.mark.parametrize("n_runs", [3, 8])
def test_on_a_line_is_within_standard_errors_of_the_mean(n_runs, errors, above):
    """A deviation for an error would be apart by the root of the runs."""
    found = curve("a", noise(n_runs, n_runs, 1.0, 0.2))
    totals = [row[-1] * X[-1] for row in found.values.tolist()]
    off = stdev(totals) / math.sqrt(n_runs)
    for some, holds in ((errors * (1 - TINY), True), (errors * (1 + TINY), False)):
        limit = fmean(totals) + (some if above else -some) * off
        line = curve("l", [[0.0] * (len(X) - 1) + [limit / X[-1]]])
        claim = {"text": "c", "kind": "on-line", "curve": "a", "line": "l", "errors": errors}
        verdict = judge(claim, {"a": found}, {"l": line}, {})
        assert verdict.holds is holds
        assert verdict.evidence == (
            f"{fmean(totals):.5g} ± {off:.2g} over {n_runs} runs against {limit:.5g}: {some:.2f} "
            f"standard errors off, at most {errors:g}"
        )


@pytest.mark.parametrize("n_runs", [1, 7])
@pytest.mark.parametrize("binding", [0, 3, len(X) - 1])
def test_beneath_is_beneath_with_two_standard_errors_at_every_point(binding, n_runs):
    found = curve("a", noise(binding, n_runs, 1.0, 0.2))
    tops = [mean(found, p) + 2.0 * known(error(found, p)) for p in range(len(X))]
    for by, holds in ((TINY, True), (-TINY, False)):
        line = [2.0 * top for top in tops]
        line[binding] = tops[binding] * (1.0 + by)
        claim = {"text": "claim", "kind": "beneath", "curve": "a", "line": "l"}
        verdict = judge(claim, {"a": found}, {"l": curve("l", [line])}, {})
        assert verdict.holds is holds
        assert verdict.evidence == (
            f"mean and 2 standard errors are at most {1 / (1 + by):.2%} of the line over "
            f"{len(X)} points"
        )


def test_lines_rise_and_none_is_as_high_as_the_next():
    ends = {"a": 1.0, "b": 1.0 + TINY, "c": 2.0}
    lines = {name: curve(name, [[9.0, end]], [10, 20]) for name, end in ends.items()}
    claim = {"text": "claim", "kind": "lines", "lines": ["a", "b", "c"]}
    verdict = judge(claim, {}, lines, {})
    assert verdict.holds is True
    assert verdict.evidence == "at 20, rising: a 1, b 1, c 2"
    assert judge({**claim, "lines": ["a", "c", "b"]}, {}, lines, {}).holds is False
    lines["b"] = lines["a"]
    assert judge(claim, {}, lines, {}).holds is False


# --------------------------------------------------------------------------- at equality, and NaN


def flat(label, *runs):
    return curve(label, [[run, run] for run in runs], [10, 20])


A, B = flat("a", 1.0, 1.0), flat("b", 2.0, 2.0)


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        ({"kind": "order", "curves": ["a", "b"], "by": 1.0}, False),  # not above, but at
        ({"kind": "band", "curve": "a", "high": 1.0}, True),
        ({"kind": "band", "curve": "a", "low": 1.0}, True),
        ({"kind": "falls", "curve": "a", "from": 10, "factor": 1.0}, True),
        ({"kind": "fraction", "curves": ["a", "b"], "factor": 0.5}, True),
        ({"kind": "settles", "curve": "a", "from": 10, "growth": 10.0}, True),
        ({"kind": "settles", "curve": "a", "from": 10, "growth": 10.0 - 5e-10}, True),  # rounding
        ({"kind": "settles", "curve": "a", "from": 10, "growth": 10.0 - 2e-9}, False),
        ({"kind": "mostly", "curves": ["a", "b"], "share": 1.0}, True),
        ({"kind": "over-line", "curves": ["a"], "line": "a", "from": 10}, True),
        ({"kind": "under-line", "curve": "a", "line": "a"}, True),
        ({"kind": "beneath", "curve": "a", "line": "a"}, True),
        ({"kind": "power", "curve": "a", "low": 0.0, "high": 0.0}, True),
    ],
)
def test_what_is_exactly_at_a_limit(claim, holds):
    curves = {"a": A, "b": B}
    assert judge({"text": "claim", **claim}, curves, curves, {}).holds is holds


def test_where_no_error_is_known_none_is_allowed_for():
    """A single run has no error, and takes none from the other; nothing holds of an interval.

    c has 2.5 ± 1: it is above a by 1.5 errors of its own, and by no more.
    """
    one = {"a": flat("a", 1.0), "b": flat("b", 1.5), "c": flat("c", 1.5, 3.5)}
    claim: dict[str, Any] = {"text": "claim", "kind": "order", "curves": ["a", "b"], "errors": 9.0}
    assert judge(claim, one, {}, {}).holds is True
    assert judge({**claim, "by": 0.5}, one, {}, {}).holds is False
    for errors, holds in ((9.0, False), (1.5 + TINY, False), (1.5 - TINY, True), (0.0, True)):
        beside = {**claim, "curves": ["a", "c"], "errors": errors}
        assert judge(beside, one, {}, {}).holds is holds
    beside = {**claim, "curves": ["a", "c"], "errors": 1.0}
    assert judge({**beside, "by": 0.5 + TINY}, one, {}, {}).holds is False
    assert judge({**beside, "by": 0.5 - TINY}, one, {}, {}).holds is True
    line = {"text": "claim", "kind": "power", "line": "l", "high": 0.5}
    lines = {"l": curve("l", [[2.0, 4.0, 8.0]], [10, 100, 1000])}
    found = judge(line, {}, lines, {})
    assert (found.holds, found.evidence) == (True, "power 0.301, -inf to 0.5")
    assert judge({**line, "high": 0.30}, {}, lines, {}).holds is False
    assert judge({**line, "low": 0.31}, {}, lines, {}).holds is False
    rate_of = {"text": "claim", "kind": "rate", "curve": "l", "claimed": "1", "high": 9.0}
    assert judge(rate_of, lines, {}, {}).holds is False
    several = {"l": curve("l", [[2.0, 4.0, 8.0]] * 2, [10, 100, 1000])}
    assert judge(rate_of, several, {}, {}).holds is True


def test_a_curve_of_a_single_point_is_told_in_the_mean():
    point = {"a": curve("a", [[1.0], [3.0]], [7])}
    claim = {"text": "claim", "kind": "band", "curve": "a", "low": 0.5, "high": 2.5}
    assert judge(claim, point, {}, {}).evidence == "2 ± 1 in the mean, band 0.5 to 2.5"


# --------------------------------------------------------------------------- what is not judged


def test_what_is_skipped_or_lacks_data_has_no_verdict_and_says_why():
    claim = {"text": "claim", "kind": "order", "curves": ["a", "b"]}
    found = judge({**claim, "skip": "too short"}, {"a": A, "b": B}, {}, {})
    assert (found.holds, found.evidence) == (None, "too short")
    found = judge(claim, {"a": A}, {}, {"b": "no data"})
    assert (found.holds, found.evidence, str(found)) == (
        None, "no data", "SKIP  claim: no data",
    )  # fmt: skip
    found = judge(claim, {"a": A, "b": B}, {}, {"c": "no data"})
    assert found.holds is True
    assert str(found).startswith("PASS  claim: at 20, rising: ")
    assert str(judge({**claim, "curves": ["b", "a"]}, {"a": A, "b": B}, {}, {})).startswith("FAIL")


@pytest.mark.parametrize("kind", ["below", "over-line"])
def test_curves_that_share_no_checkpoints_are_refused_and_those_that_do_are_judged(kind):
    other = curve("b", [[2.0, 2.0]], [10, 30])
    claim = {"text": "claim", "kind": kind, "curves": ["a", "b"], "from": 10, "line": "l"}
    lines = {"l": flat("l", 0.5)}
    with pytest.raises(InvalidInput, match="must share checkpoints"):
        judge(claim, {"a": A, "b": other}, lines, {})
    assert judge(claim, {"a": A, "b": B}, lines, {}).holds is True
    with pytest.raises(InvalidInput, match="must share checkpoints"):
        judge({**claim, "from": 21}, {"a": A, "b": B}, lines, {})
    assert judge({**claim, "from": 20}, {"a": A, "b": B}, lines, {}).holds is True


def test_names_that_are_not_there_are_refused_and_those_that_are_there_are_judged():
    claim: dict[str, Any] = {"text": "claim", "kind": "under-line", "curve": "a", "line": "b"}
    for wrong, sentence in (
        ({"kind": "under"}, "kind of claim 'claim' must be"),
        ({"curve": "c"}, "curve of claim 'claim' must be"),
        ({"line": "c"}, "line of claim 'claim' must be"),
    ):
        with pytest.raises(KeyholeError, match=sentence):
            judge({**claim, **wrong}, {"a": A}, {"b": B}, {})
    assert judge(claim, {"a": A}, {"b": B}, {}).holds is True
